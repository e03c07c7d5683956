/* Installs offline in tests: pip takes small wheels from a folder, and the test program acts as the
 * worker that loads the installed library. */
#ifndef PRONY_TESTS_INSTALL_FIXTURE_H
#define PRONY_TESTS_INSTALL_FIXTURE_H

#include <jansson.h>

#include "base/strbuf.h"
#include "frameworks/registry.h"

struct install_fixture {
	char *home, *wheels; /* XDG_DATA_HOME, and the folder of wheels for pip */
	struct strbuf lines; /* the lines that `sink` received */
	struct install_sink sink;
	volatile int stop; /* checked by `sink` */
};

/* Sets up a fixture, which must not be moved. Returns false if the machine does not allow it. */
bool install_fixture_make(struct install_fixture *fixture);
bool install_fixture_release(struct install_fixture *fixture);

/* Writes FOLDER/NAME, and creates the folders on the way. */
void install_put_file(const char *folder, const char *name, const char *text);

/* Writes a lock into DATA/locks, which takes precedence over the tree's. It is the lock of
 * `environment` (mxnet, mxnet@old); the library is FRAMEWORK/libFRAMEWORK.so in a wheel with the
 * digest `sha256`. `more` are further lines of the lock's head. */
void install_write_lock(const struct install_fixture *fixture, const char *environment,
			const char *version, const char *sha256, const char *more);

/* Writes that lock, and a wheel for it whose library is the text `behaviour`. */
void install_offer(const struct install_fixture *fixture, const char *name, const char *version,
		   const char *behaviour, const char *more);

/* framework_install_many of one. */
enum prony_status framework_install(const struct framework *framework, const char *environment,
				    const struct install_sink *sink, struct error *err);

/* Returns a worker's reply to a request (not to `close`), by the framework's name and the text of
 * the library to load. NULL: the worker replies with invalid JSON. */
typedef json_t *install_reply(const json_t *request, const char *name, const char *library);

extern struct registry install_registry; /* prony's own descriptors, for the tests */

/* The main function: runs a guard, a worker with these replies, or the tests. */
int install_main(int argc, char **argv, install_reply *reply);

#endif
