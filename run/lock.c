#include "run/lock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock_file.h"
#include "base/memory.h"

char *lock_default_path(void)
{
	const char *named = getenv("PRONY_LOCK");
	return memory_strdup(named && *named ? named : "/tmp/prony.lock");
}

/*
 * Opens the lock so that every user of this machine can open it, because all measurements take it.
 */
static enum prony_status open_lock(const char *path, int *lock, struct error *err)
{
	struct error why = ERROR_INIT;
	if (lock_file_open(path, 0666, lock, &why) == PRONY_OK)
		return PRONY_OK;
	return error_set(err, PRONY_STORE, "%s; set PRONY_LOCK to another file", why.text);
}

enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path), void *context,
			    int *fd, struct error *err)
{
	bool reported = false;
	int lock;
	enum prony_status status = open_lock(path, &lock, err);
	while (status == PRONY_OK) {
		bool locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
		if (locked && lock_file_stands(path, lock)) {
			*fd = lock;
			return PRONY_OK;
		}
		if (!locked && errno != EWOULDBLOCK && errno != EINTR)
			status = error_errno(err, PRONY_STORE, errno, "cannot lock %s", path);
		if (stop && *stop)
			status = error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (!locked && status == PRONY_OK) {
			if (!reported && waiting)
				waiting(context, path);
			reported = true;
			clock_sleep_until_ns(clock_monotonic_ns() + INT64_C(200000000));
			continue;
		}
		/* The file was replaced, so the next process would lock another file. */
		close(lock);
		if (status == PRONY_OK)
			status = open_lock(path, &lock, err);
	}
	return status;
}
