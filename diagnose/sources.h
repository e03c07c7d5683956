/* Reads kernel files under a root, so that a recorded machine can be read like this one. */
#ifndef PRONY_DIAGNOSE_SOURCES_H
#define PRONY_DIAGNOSE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sensors/watched.h"

#define SOURCE_NAME_BYTES 64

/* The content of root + path without surrounding blanks; the caller frees it; NULL with the reason
 * in err. */
char *source_text(const char *root, const char *path, struct error *err);

/* Whether root + path exists, of any kind. */
bool source_exists(const char *root, const char *path);

/* Whether this process may read root + path. */
bool source_readable(const char *root, const char *path);

/* Reads a file with a single integer; false when it does not exist or holds something else. */
bool source_int(const char *root, const char *path, int64_t *out);

/* The value of the first line "key : value" or "key=value" in a text; the caller frees it; NULL if
 * there is none. */
char *source_field(const char *text, const char *key);

/* The value of a line "key:  123 kB" of /proc/meminfo in bytes; -1 when there is none. */
int64_t source_meminfo_bytes(const char *root, const char *key);

/* Names in a folder that begin with `prefix`, sorted. Returns how many were written. */
size_t source_entries(const char *root, const char *folder, const char *prefix,
		      char (*names)[SOURCE_NAME_BYTES], size_t capacity);

/* Opens the root for functions that take its descriptor (base/process_tree.h); -1 on failure. */
int source_open_root(const char *root);
void source_close_root(int root_fd);

/* The CPU quota of the control groups above this process (versions 1 and 2) in processors; 0 =
 * unlimited or unknown. */
double source_cpu_quota(const char *root);

/* The lowest memory limit of the control groups above this process in bytes; -1 = none. */
int64_t source_memory_limit(const char *root);

/* Total processor time since boot, and the load averages, read by the sensors' code. */
bool source_cpu_time(const char *root, struct cpu_time *out);
bool source_load_averages(const char *root, double out[3]);

/* A source of power or temperature readings. */
struct instrument {
	const char *name; /* "cpu-energy" */
	bool present, readable;
	char where[128];  /* its file, or library and version; "" when absent */
	char reason[160]; /* why it cannot be used; of a GPU that can, what is refused */
	char remedy[192];
};
enum { INSTRUMENT_COUNT = 3 };
void source_instruments(const char *root, struct instrument out[INSTRUMENT_COUNT]);

#endif
