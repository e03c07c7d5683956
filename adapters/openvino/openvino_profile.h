/* Profiles of OpenVINO's CPU plug-in. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_PROFILE_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_PROFILE_H

#include "adapters/adapter.h"
#include "adapters/openvino/openvino_internal.h"

/* Keeps a copy of the ONNX file's bytes and the recipe for a second compilation. `graph` is the
 * graph that the file was written from, borrowed; NULL if there is none. */
enum prony_status ov_profile_keep(struct ov_state *ov, const void *model, size_t length,
				  const struct graph *graph, const struct recipe *recipe,
				  struct error *err);
void ov_profile_release(struct ov_state *ov);

extern const struct adapter_profile ov_adapter_profile;

#endif
