/* The file that MXNet's profiler writes. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_TRACE_H
#define PRONY_ADAPTERS_MXNET_MXNET_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* An operator that its engine ran. */
struct mx_trace_event {
	const char *name;	  /* "Convolution", "_sg_mkldnn_conv", "multi_sgd_update" */
	int64_t begin_us, end_us; /* since 1970 */
};

struct mx_trace {
	struct mx_trace_event *events; /* as they began */
	size_t count;
};

/*
 * Operators (events of category "operator", begins "B" and ends "E" behind one another) of a file
 * of MXNet 1.9, which is nearly JSON: a second one of a process begins with a comma, and numbers of
 * threads have 64 bits. `text` is changed. Lists and names are put into `arena`. PRONY_INVALID
 * where it is none.
 */
enum prony_status mx_trace_read(char *text, size_t length, struct arena *arena,
				struct mx_trace *out, struct error *err);

#endif
