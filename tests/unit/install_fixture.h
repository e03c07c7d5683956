/*
 * Installations offline: pip takes small wheels from a folder, and the test's own program plays the
 * worker that loads what was installed.
 */
#ifndef PRONY_TESTS_INSTALL_FIXTURE_H
#define PRONY_TESTS_INSTALL_FIXTURE_H

#include <jansson.h>

#include "base/strbuf.h"
#include "frameworks/registry.h"

struct install_fixture {
	char *home, *wheels; /* XDG_DATA_HOME, and where pip looks for wheels */
	struct strbuf lines; /* what `sink` was told */
	struct install_sink sink;
	volatile int stop; /* which `sink` looks at */
};

/* Of a fixture that stays where it is. False where the machine would not. */
bool install_fixture_make(struct install_fixture *fixture);
bool install_fixture_release(struct install_fixture *fixture);

/* Writes FOLDER/NAME, and the folders on the way. */
void install_put_file(const char *folder, const char *name, const char *text);

/*
 * A lock in DATA/locks, which goes before the tree's: of `environment` (mxnet, mxnet@old), whose
 * library is FRAMEWORK/libFRAMEWORK.so in a wheel of that digest. `more` are further lines of its
 * head.
 */
void install_write_lock(const struct install_fixture *fixture, const char *environment,
			const char *version, const char *sha256, const char *more);

/* That lock, and a wheel for it whose library is the text `behaviour`. */
void install_offer(const struct install_fixture *fixture, const char *name, const char *version,
		   const char *behaviour, const char *more);

void assert_holds(const char *text, const char *part);

/*
 * What a worker answers to a request (not to `close`), by the framework's name and the text of the
 * library that it was to load. NULL: what is no JSON.
 */
typedef json_t *install_reply(const json_t *request, const char *name, const char *library);

extern struct registry install_registry; /* prony's own descriptors, for the tests */

/* main: a guard, or a worker with these replies, or the tests. */
int install_main(int argc, char **argv, install_reply *reply, int (*tests)(void));

#endif
