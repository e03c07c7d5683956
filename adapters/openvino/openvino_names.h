/*
 * What the nodes of a compiled network were made of. OpenVINO's passes name what they make after
 * one of its parts, or by a number ("Multiply_7493": a convolution with its batch normalisation
 * folded in); each keeps the names of all, which the profile does not say and a compiled network
 * that is exported does.
 */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_NAMES_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_NAMES_H

#include "adapters/openvino/openvino_api.h"
#include "base/arena.h"
#include "graph/graph.h"

struct ov_names;

/* The value of OV_CACHE_ENCRYPTION with which a network has to be compiled to be asked. */
const struct ov_encryption *ov_names_encryption(void);

/* Asks a compiled network; the caller releases *out. PRONY_UNSUPPORTED when it says nothing. */
enum prony_status ov_names_ask(const struct ov_api *api, const struct ov_compiled *compiled,
			       struct ov_names **out, struct error *err);
/* Of the text of an exported model, OpenVINO's IR in XML. */
struct ov_names *ov_names_parse(const char *xml);
void ov_names_release(struct ov_names *names);

/*
 * The first node of the graph that a node of the compiled network was made of, or was added to
 * prepare, its place among the forward ones; -1 when of none. `all` gets the names of all that the
 * first kind was made of, "conv1 + conv1.bn", in `arena`; it is left alone with -1.
 */
int ov_names_find(const struct ov_names *names, const struct graph *graph, const char *node,
		  struct arena *arena, const char **all);

#endif
