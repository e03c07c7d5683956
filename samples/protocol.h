/* The wire format between the parent and a worker: names of verbs, the shared-memory layout. The
 * document for people who write workers is docs/worker-protocol.md; a test keeps both in step. */
#ifndef PRONY_SAMPLES_PROTOCOL_H
#define PRONY_SAMPLES_PROTOCOL_H

#include <stdint.h>

#define PROTOCOL_VERSION 2
#define PROTOCOL_LINE_BYTES_MAX (1 << 20) /* of one JSON line with its newline */

/* Environment of a worker: numbers of inherited descriptors. The shared-memory descriptor is named
 * in hello. */
#define PROTOCOL_ENV_REQUEST "PRONY_REQUEST_FD"
#define PROTOCOL_ENV_REPLY "PRONY_REPLY_FD"

#define PROTOCOL_VERBS(X)                                                                          \
	X(HELLO, "hello")                                                                          \
	X(SUPPORTS, "supports")                                                                    \
	X(OPEN, "open")                                                                            \
	X(BUILD, "build")                                                                          \
	X(FEED, "feed")                                                                            \
	X(RUN, "run")                                                                              \
	X(READ, "read")                                                                            \
	X(PROFILE, "profile")                                                                      \
	X(CLOSE, "close")

enum protocol_verb {
#define X(id, name) VERB_##id,
	PROTOCOL_VERBS(X)
#undef X
		VERB_COUNT
};
const char *protocol_verb_name(enum protocol_verb verb);
/* VERB_COUNT when unknown. */
enum protocol_verb protocol_verb_parse(const char *name);

/* What a worker may be asked to profile: bits of a set, and their words. */
#define PROTOCOL_PROFILES(X)                                                                       \
	X(LAYERS, "layers")                                                                        \
	X(LINES, "lines")

enum protocol_profile {
#define X(id, name) PROFILE_##id,
	PROTOCOL_PROFILES(X)
#undef X
		PROFILE_COUNT
};
const char *protocol_profile_name(enum protocol_profile profile);
/* PROFILE_COUNT when unknown. */
enum protocol_profile protocol_profile_parse(const char *name);

/* One interval between two synchronisations: a step (sync "step"), a block, or the whole window. */
struct step_record {
	int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
};

/* The shared memory: this header at offset 0, then the regions at their offsets (multiples of
 * 4096). Little-endian. The parent writes the header before hello, then nothing but the ring; the
 * worker writes records and tensors. */
#define SHARED_MAGIC 0x79E0B001u
struct shared_header {
	uint32_t magic, version;
	uint64_t total_bytes;
	uint64_t records_offset,
		records_bytes; /* struct step_record[], the run verb fills from 0 */
	uint64_t tensors_offset,
		tensors_bytes;		  /* a safetensors image, the read verb fills from 0 */
	uint64_t ring_offset, ring_bytes; /* streamed batches; 0 bytes with resident input */
};

/* The ring region: slot i begins at i * stride with the batch's inputs, in the order of the
 * graph's; its labels follow. Each tensor begins at a multiple of 4096. A byte in the pipe of full
 * slots stands for the next batch, in the order of the slots; one in that of free slots gives the
 * oldest back. */
#define RING_ALIGNMENT 4096u
struct ring_layout {
	uint64_t labels, stride; /* bytes */
};
/* Of a network with one input and one label. */
struct ring_layout ring_layout_of(uint64_t input_bytes, uint64_t label_bytes);
/* The bytes rounded up to where the next tensor begins. */
uint64_t ring_pages(uint64_t bytes);

#endif
