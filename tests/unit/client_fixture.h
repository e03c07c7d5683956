/*
 * A client and its worker in a test: the worker is a shell script, or the test program itself,
 * which is also its own guard. Every function fails the test that calls it when something is not as
 * it must be.
 */
#ifndef PRONY_TESTS_UNIT_CLIENT_FIXTURE_H
#define PRONY_TESTS_UNIT_CLIENT_FIXTURE_H

#include <stdbool.h>

#include "client/client.h"

#define SECOND_NS INT64_C(1000000000)

struct peer {
	struct client_spec spec;
	struct client *client;
	const char *argv[8];
	char *self, *folder; /* folder: of the bundle, and the worker's $FOLDER */
	char *folder_row;
	const char *environment[2];
	struct error err;
};

/* The guard, when that is what the program was started for: true, and *exit_code is to be returned.
 */
bool client_fixture_guard(int argc, char **argv, int *exit_code);

/* Fills the spec; the caller may change it before peer_start. */
void peer_init_script(struct peer *peer, const char *script);
/* The worker is this program with the arguments "worker MODE". */
void peer_init_self(struct peer *peer, const char *mode);
void peer_start(struct peer *peer);
/* Ends the worker; returns how. */
struct client_end peer_end(struct peer *peer);

/* hello must give `status`; its message holds `part`. NULL: no message is looked for. */
void peer_hello(struct peer *peer, enum prony_status status, const char *part);
/* Any request without members. */
void peer_ask(struct peer *peer, enum protocol_verb verb, enum prony_status status,
	      const char *part);
/* Fails unless peer->err is that; clears it. */
void peer_error(struct peer *peer, enum prony_status is, enum prony_status wanted,
		const char *part);

#endif
