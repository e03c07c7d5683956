/* The graph as an MXNet symbol, and MXNet's own information about that symbol. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_SYMBOL_H
#define PRONY_ADAPTERS_MXNET_MXNET_SYMBOL_H

#include <jansson.h>

#include "adapters/mxnet/mxnet_api.h"
#include "base/strbuf.h"
#include "graph/graph.h"

/* Heads of a symbol with a loss. Without a loss the logits are the only head. The objective is
 * SoftmaxOutput's probabilities, the sum of squares, or the loss if some labels are ignored. */
enum mx_head { MX_HEAD_OBJECTIVE, MX_HEAD_LOGITS, MX_HEAD_COUNT };

/* Whether the loss ignores labels of -1. Labels of one dimension are all valid: mxnet_feed refuses
 * others. */
bool mx_ignores_labels(const struct graph *graph);

/* Appends to `reasons`, separated by "; ", every part of the forward graph that cannot be
 * translated to MXNet's operators. */
void mx_symbol_refusals(const struct graph *graph, struct strbuf *reasons);

/* Translates the graph. Variables have the names of the graph's values, nodes those of its nodes.
 * With `loss` the heads are those of enum mx_head, and the backward pass needs no head gradients:
 * SoftmaxOutput and MakeLoss create their own ((softmax - onehot) / batch; x), and the logits are
 * behind a BlockGrad. Without `dropout` the dropout nodes are omitted. The caller frees *out with
 * MXSymbolFree. */
enum prony_status mx_symbol_new(const struct mx_api *api, const struct graph *graph, bool loss,
				bool dropout, struct mx_symbol **out, struct error *err);

/* MXNet infers all shapes from those of the arguments. Compares the outputs with the graph's
 * (PRONY_MISMATCH), and counts multiply-accumulates of convolutions and matrix products on MXNet's
 * own nodes and shapes. */
enum prony_status mx_symbol_measure(const struct mx_api *api, const struct graph *graph,
				    struct mx_symbol *symbol, int64_t *macs, struct error *err);

/* Writes the fused nodes of a bound executor, "2 _sg_mkldnn_conv, 1 _sg_mkldnn_fully_connected", or
 * "none". */
enum prony_status mx_fused_nodes(const struct mx_api *api, struct mx_executor *executor, char *out,
				 size_t out_bytes, struct error *err);

/* The forward symbol that a bound executor runs, as MXNet's JSON; fused nodes have "subgraphs". */
enum prony_status mx_executor_symbol(const struct mx_api *api, struct mx_executor *executor,
				     json_t **out, struct error *err);

#endif
