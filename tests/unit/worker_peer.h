/*
 * A worker in a child process, seen from the parent: real pipes, real shared memory, a real bundle.
 * Every function fails the test that calls it when something is not as it must be.
 */
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

/* What a hello says at least. */
#define PEER_HELLO                                                                                 \
	"\"protocol\": 2, \"device\": \"cpu\", \"backend\": \"\", \"options\": [], \"rank\": 0, "  \
	"\"world_size\": 1"

struct peer {
	pid_t pid;
	int request_fd, reply_fd, shared_fd;
	char *shared;
	char *line; /* of the last reply; owned */
	json_t *reply;
	int64_t id;
};

/* Fixtures of a group: one bundle (LeNet, training, PEER_SLOTS batches) for all its tests. */
int peer_write_bundle(void **state);
int peer_remove_bundle(void **state);
/* Its folder. */
const char *peer_folder(void);
/* The member "bundle": "FOLDER" of a request. */
const char *peer_bundle(void);

void peer_start(struct peer *peer, const char *adapter, const char *option);
/* Ends the requests and waits; the status of waitpid. */
int peer_stop(struct peer *peer);

void peer_write(struct peer *peer, const char *bytes, size_t length);
/* The parsed reply to raw bytes, borrowed until the next one. */
const json_t *peer_send(struct peer *peer, const char *bytes, size_t length);
/* To a request; `members` are its further members, "" for none. */
const json_t *peer_ask(struct peer *peer, const char *verb, const char *members);
/* The same, and it must be ok. */
const json_t *peer_must(struct peer *peer, const char *verb, const char *members);
/* A request that must be refused with a status; the message must contain `part`. */
void peer_refused(struct peer *peer, const char *verb, const char *members, const char *status,
		  const char *part);

const json_t *peer_hello(struct peer *peer, bool shared);
/* hello to feed of every slot. */
void peer_prepare(struct peer *peer, bool shared);
/* A run whose records must be `expected`, in order, joined, and inside the request. */
void peer_check_run(struct peer *peer, bool shared, const char *members, int64_t expected);

#endif
