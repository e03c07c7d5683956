#include "run/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdint.h>

#include "base/clock.h"

char *lock_default_path(void)
{
	const char *named = getenv("PRONY_LOCK");
	return strdup(named && *named ? named : "/tmp/prony.lock");
}

enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path), void *context,
			    int *fd, struct error *err)
{
	/* Read-only is enough to lock, so that a file of another user serves as well. */
	int lock = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (lock < 0)
		return error_errno(err, PRONY_STORE, errno,
				   "cannot open the lock %s; PRONY_LOCK names another file", path);
	fchmod(lock, 0666);
	bool told = false;
	while (flock(lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			int failure = errno;
			close(lock);
			return error_errno(err, PRONY_STORE, failure, "cannot lock %s", path);
		}
		if (stop && *stop) {
			close(lock);
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		}
		if (!told && waiting)
			waiting(context, path);
		told = true;
		clock_sleep_until_ns(clock_monotonic_ns() + INT64_C(200000000));
	}
	*fd = lock;
	return PRONY_OK;
}
