/* Profiles of ONNX Runtime, and the reader of its format. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_PROFILE_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_PROFILE_H

#include <jansson.h>

#include "adapters/adapter.h"
#include "adapters/onnxruntime/ort_internal.h"

/* Keeps a copy of the model for a second session. */
enum prony_status ort_profile_keep(struct ort_state *ort, const void *model, size_t length,
				   struct error *err);
void ort_profile_release(struct ort_state *ort);

/*
 * The nodes of the last `steps` runs in a file of ONNX Runtime's (an array of trace events: "Node"
 * with ts, dur in us and args.op_name, each run behind its nodes). Their times are put into the
 * steps: instants has begin and end of each. PRONY_INVALID where it is none, or has fewer runs.
 */
enum prony_status ort_profile_read(const json_t *events, const int64_t *instants, int64_t steps,
				   struct profile_log *log, struct error *err);

extern const struct adapter_profile ort_adapter_profile;

#endif
