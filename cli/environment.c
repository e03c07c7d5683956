#include "cli/environment.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/*
 * Variables that decide where prony finds its own files, libraries, interpreters and their modules.
 */
static const char *const deciding[] = {
	"PRONY_SHARE",	 "PRONY_SHARED",    "PRONY_*LIBRARY", "PRONY_*PYTHON*",	 "VIRTUAL_ENV",
	"CONDA_PREFIX",	 "PYENV_ROOT",	    "PYTHONPATH",     "PYTHONHOME",	 "XDG_DATA_HOME",
	"XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LD_LIBRARY_PATH", "LD_PRELOAD",
};

static bool decides(const char *row)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(row, "="), row);
	for (size_t i = 0; i < sizeof(deciding) / sizeof(deciding[0]); i++)
		if (fnmatch(deciding[i], name, 0) == 0)
			return row[strcspn(row, "=")] == '=' && row[strcspn(row, "=") + 1];
	return false;
}

static bool is_somebody_elses(const char *path)
{
	struct stat info;

	return path && stat(path, &info) == 0 && info.st_uid != 0;
}

void environment_say_sudo(void)
{
	const char *user = getenv("SUDO_UID"), *home = getenv("HOME");

	if (geteuid() != 0 || !user || strcmp(user, "0") == 0)
		return;
	for (char **row = environ; row && *row; row++)
		if (decides(*row))
			cli_say("prony: under sudo, %.200s selects code that runs as root; unset "
				"it unless you want that\n",
				*row);
	if (is_somebody_elses(home))
		cli_say("prony: under sudo, code from HOME=%.200s runs as root; use sudo -H for "
			"root's own HOME\n",
			home);
}
