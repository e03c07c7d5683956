#include "adapters/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

int threads_count(const char *part)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	if (!tasks)
		return -1;
	for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
		char path[320], name[32] = "";
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = *part ? fopen(path, "r") : NULL;
		if (file && !fgets(name, sizeof(name), file))
			name[0] = '\0';
		if (file)
			fclose(file);
		count += strstr(name, part) != NULL;
	}
	closedir(tasks);
	return count;
}

uint32_t threads_mxcsr(void)
{
#if defined(__SSE__)
	return _mm_getcsr();
#else
	return 0;
#endif
}
