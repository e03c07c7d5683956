/* `prony worker` by itself, for tests of worker/ that need no more of the program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/worker.h"

int main(int argc, char **argv)
{
	struct worker_options options = {.adapter = NULL};
	struct error err = ERROR_INIT;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--adapter") == 0)
			options.adapter = argv[i + 1];
		else if (strcmp(argv[i], "--library") == 0)
			options.library = argv[i + 1];
		else if (strcmp(argv[i], "--option") == 0)
			options.option = argv[i + 1];
	}
	int code = worker_main(&options, &err);

	if (code != 0)
		fprintf(stderr, "worker: %s\n", err.text);
	fflush(NULL);
	_exit(code);
}
