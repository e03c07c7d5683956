/* Reads the file that MXNet's profiler writes. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_TRACE_H
#define PRONY_ADAPTERS_MXNET_MXNET_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* An operator that MXNet's engine ran. */
struct mx_trace_event {
	const char *name;	  /* "Convolution", "_sg_mkldnn_conv", "multi_sgd_update" */
	int64_t begin_us, end_us; /* since 1970 */
};

struct mx_trace {
	struct mx_trace_event *events; /* in order of their begin */
	size_t count;
};

/* Reads the operators of a profile of MXNet 1.9: events of category "operator", each begin "B"
 * directly followed by its end "E". The file is not quite JSON: the second file of a process begins
 * with a comma, and thread numbers have 64 bits. `text` is changed. Lists and names are allocated
 * in `arena`. PRONY_INVALID if the text is not such a file. */
enum prony_status mx_trace_read(char *text, size_t length, struct arena *arena,
				struct mx_trace *out, struct error *err);

#endif
