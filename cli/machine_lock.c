#include "cli/machine_lock.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/cli.h"
#include "run/lock.h"

static void say_waiting(void *context, const char *path)
{
	(void)context;
	cli_say("waiting: another prony measures on this machine (%s)\n", path);
}

enum prony_status machine_lock(const volatile int *stop, int *fd, struct error *err)
{
	char *path = lock_default_path(), *self = path_self();
	struct file_stamp before = file_stamp(self);
	int taken = -1;
	enum prony_status status = lock_take(path, stop, say_waiting, NULL, &taken, err);
	struct file_stamp now = file_stamp(self);

	if (status == PRONY_OK && !file_stamp_equal(&before, &now)) {
		close(taken);
		status =
			error_set(err, PRONY_IO,
				  "%s was replaced or removed while this waited for another prony: "
				  "its processes would be of another program; nothing was measured",
				  self);
	}
	if (status == PRONY_OK)
		*fd = taken;
	free(self);
	free(path);
	return status;
}
