#include "cli/machine_lock.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "run/lock.h"

static void say_waiting(void *context, const char *path)
{
	(void)context;
	cli_say("waiting: another prony measures on this machine (%s)\n", path);
}

enum prony_status machine_lock(const volatile int *stop, int *fd, struct error *err)
{
	char *path = lock_default_path();
	enum prony_status status = lock_take(path, stop, say_waiting, NULL, fd, err);

	free(path);
	return status;
}
