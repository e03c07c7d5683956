/* Starts a client and its worker in a test. The worker is a shell script or the test program
 * itself; the test program is also the guard. Every function fails the calling test on an
 * unexpected result. */
#ifndef PRONY_TESTS_UNIT_CLIENT_FIXTURE_H
#define PRONY_TESTS_UNIT_CLIENT_FIXTURE_H

#include <stdbool.h>

#include "client/client.h"

#define SECOND_NS INT64_C(1000000000)

struct peer {
	struct client_spec spec;
	struct client *client;
	const char *argv[8];
	char *self, *folder; /* folder: the folder of the bundle, and the worker's $FOLDER */
	char *folder_row;
	const char *environment[2];
	struct error err;
};

/* Runs the guard if the program was started as one: true, and the caller returns *exit_code. */
bool client_fixture_guard(int argc, char **argv, int *exit_code);

/* Fills the spec; the caller may change it before peer_start. */
void peer_init_script(struct peer *peer, const char *script);
/* The worker is this program with the arguments "worker MODE". */
void peer_init_self(struct peer *peer, const char *mode);
void peer_start(struct peer *peer);
/* Ends the worker; returns how it ended. */
struct client_end peer_end(struct peer *peer);

/* Requires hello to give `status` and its message to contain `part`. NULL: the message is not
 * checked. */
void peer_hello(struct peer *peer, enum prony_status status, const char *part);
/* Sends any request without members. */
void peer_ask(struct peer *peer, enum protocol_verb verb, enum prony_status status,
	      const char *part);
/* Fails unless the two statuses are equal and peer->err contains `part`; clears peer->err. */
void peer_error(struct peer *peer, enum prony_status is, enum prony_status wanted,
		const char *part);

#endif
