/* A worker in a child process, seen from the parent: real pipes, real shared memory, a real bundle.
 * Every function fails the calling test on an error. */
#ifndef PRONY_TESTS_UNIT_WORKER_PEER_H
#define PRONY_TESTS_UNIT_WORKER_PEER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_SLOTS 3
#define PEER_RECORDS_OFFSET 4096
#define PEER_RECORDS_BYTES (1 << 16)
#define PEER_TENSORS_OFFSET (PEER_RECORDS_OFFSET + PEER_RECORDS_BYTES)
#define PEER_TENSORS_BYTES (4 << 20)
#define PEER_SHARED_BYTES (PEER_TENSORS_OFFSET + PEER_TENSORS_BYTES)

/* The minimum members of a hello. */
#define PEER_HELLO                                                                                 \
	"\"protocol\": 2, \"device\": \"cpu\", \"backend\": \"\", \"options\": [], \"rank\": 0, "  \
	"\"world_size\": 1"

struct peer {
	pid_t pid;
	int request_fd, reply_fd, shared_fd;
	char *shared;
	char *line; /* the line of the last reply; owned */
	json_t *reply;
	int64_t id;
};

/* Fixtures of a group: one bundle (LeNet, training, PEER_SLOTS batches) for all its tests. */
int peer_write_bundle(void **state);
int peer_remove_bundle(void **state);
/* Returns the folder of the bundle. */
const char *peer_folder(void);
/* Returns the member "bundle": "FOLDER" of a request. */
const char *peer_bundle(void);

void peer_start(struct peer *peer, const char *adapter, const char *option);
/* Ends the requests and waits; returns the status of waitpid. */
int peer_stop(struct peer *peer);

void peer_write(struct peer *peer, const char *bytes, size_t length);
/* Sends raw bytes; returns the parsed reply, borrowed until the next one. */
const json_t *peer_send(struct peer *peer, const char *bytes, size_t length);
/* Sends a request; `members` are its other members, "" for none. */
const json_t *peer_ask(struct peer *peer, const char *verb, const char *members);
/* Like peer_ask; the reply must be ok. */
const json_t *peer_must(struct peer *peer, const char *verb, const char *members);
/* Sends a request that must be refused with a status; the message must contain `part`. */
void peer_refused(struct peer *peer, const char *verb, const char *members, const char *status,
		  const char *part);

const json_t *peer_hello(struct peer *peer, bool shared);
/* Sends the requests from hello to feed of every slot. */
void peer_prepare(struct peer *peer, bool shared);
/* Sends a run; its records must be `expected`, in order, contiguous, and inside the request. */
void peer_check_run(struct peer *peer, bool shared, const char *members, int64_t expected);

#endif
