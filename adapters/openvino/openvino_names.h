/* Finds the graph nodes behind the nodes of a compiled network. OpenVINO's passes name a result
 * after one of its parts or by a number ("Multiply_7493": a convolution with its batch
 * normalisation). The network keeps the names of all parts; the profile does not report them, but
 * an exported network does. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_NAMES_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_NAMES_H

#include "adapters/openvino/openvino_api.h"
#include "base/arena.h"
#include "graph/graph.h"

struct ov_names;

/* The value of OV_CACHE_ENCRYPTION with which the network must be compiled. */
const struct ov_encryption *ov_names_encryption(void);

/* Reads the names from a compiled network; the caller releases *out. PRONY_UNSUPPORTED when it
 * reports none. */
enum prony_status ov_names_ask(const struct ov_api *api, const struct ov_compiled *compiled,
			       struct ov_names **out, struct error *err);
/* Parses an exported model, OpenVINO's IR in XML. */
struct ov_names *ov_names_parse(const char *xml);
void ov_names_release(struct ov_names *names);

/* The index of the first graph node (among the forward ones) that a compiled node was made from or
 * prepares; -1 when there is none. `all` receives the names of all parts, "conv1 + conv1.bn", in
 * `arena`; it is unchanged for -1. */
int ov_names_find(const struct ov_names *names, const struct graph *graph, const char *node,
		  struct arena *arena, const char **all);

#endif
