/* Reads what the kernel says under a root, so that a recorded machine can be read like this one. */
#ifndef PRONY_DIAGNOSE_SOURCES_H
#define PRONY_DIAGNOSE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sensors/watched.h"

#define SOURCE_NAME_BYTES 64

/* The file root + path without blanks at its ends; caller frees; NULL with the reason in err. */
char *source_text(const char *root, const char *path, struct error *err);

/* Whether root + path is there, of whatever kind. */
bool source_exists(const char *root, const char *path);

/* Whether this process may read root + path. */
bool source_readable(const char *root, const char *path);

/* A file that holds one whole number; false when it is not there or holds something else. */
bool source_int(const char *root, const char *path, int64_t *out);

/* The value of the first line "key : value" or "key=value" of a text; caller frees, NULL = none. */
char *source_field(const char *text, const char *key);

/* The value of a line "key:  123 kB" of /proc/meminfo in bytes; -1 when it is not there. */
int64_t source_meminfo_bytes(const char *root, const char *key);

/* Names in a folder that begin with `prefix`, sorted; how many were written. */
size_t source_entries(const char *root, const char *folder, const char *prefix,
		      char (*names)[SOURCE_NAME_BYTES], size_t capacity);

/* The root for what takes a folder's descriptor (base/process_tree.h); -1: it cannot be opened. */
int source_open_root(const char *root);
void source_close_root(int root_fd);

/* Processors' worth of time that the control groups above this process grant, versions 1 and 2;
 * 0 = unlimited or unknown. */
double source_cpu_quota(const char *root);

/* The least memory limit of the control groups above this process in bytes; -1 = none. */
int64_t source_memory_limit(const char *root);

/* Time of all processors since boot, and the load averages, as the sensors read them. */
bool source_cpu_time(const char *root, struct cpu_time *out);
bool source_load_averages(const char *root, double out[3]);

/* Where measurements of power and temperature come from. */
struct instrument {
	const char *name; /* "cpu-energy" */
	bool present, readable;
	char where[128];  /* its file; "" when absent */
	char reason[160]; /* why it cannot be used; "" when it can */
	char remedy[192];
};
enum { INSTRUMENT_COUNT = 3 };
void source_instruments(const char *root, struct instrument out[INSTRUMENT_COUNT]);

#endif
