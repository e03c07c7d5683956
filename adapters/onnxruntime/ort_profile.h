/* Profiles of ONNX Runtime, and the reader of its output file. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_PROFILE_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_PROFILE_H

#include <jansson.h>

#include "adapters/adapter.h"
#include "adapters/onnxruntime/ort_internal.h"

/* Keeps a copy of the model for a second session. */
enum prony_status ort_profile_keep(struct ort_state *ort, const void *model, size_t length,
				   struct error *err);
void ort_profile_release(struct ort_state *ort);

/* Reads the nodes of the last `steps` runs from ONNX Runtime's file (an array of trace events:
 * "Node" with ts, dur in us and args.op_name, each run after its nodes). Their times are mapped
 * into the steps; instants has begin and end of each step. PRONY_INVALID when it is not such a file
 * or has fewer runs. */
enum prony_status ort_profile_read(const json_t *events, const int64_t *instants, int64_t steps,
				   struct profile_log *log, struct error *err);

extern const struct adapter_profile ort_adapter_profile;

#endif
