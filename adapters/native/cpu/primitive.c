#include <stdio.h>
#include <string.h>

#include "adapters/native/lower/lower_internal.h"

enum prony_status lower_attributes(const struct lowering *l, bool relu, dnnl_primitive_attr_t *out,
				   struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_post_ops_t chain = NULL;
	dnnl_status_t status = dnn->primitive_attr_create(&attributes);

	if (status == dnnl_success)
		status = dnn->primitive_attr_set_scratchpad_mode(attributes,
								 dnnl_scratchpad_mode_user);
	if (status == dnnl_success)
		status = dnn->primitive_attr_set_fpmath_mode(attributes, dnnl_fpmath_mode_strict);
	if (status == dnnl_success && relu) {
		status = dnn->post_ops_create(&chain);
		if (status == dnnl_success)
			status = dnn->post_ops_append_eltwise(chain, dnnl_eltwise_relu, 0, 0);
		if (status == dnnl_success)
			status = dnn->primitive_attr_set_post_ops(attributes, chain);
		if (chain)
			dnn->post_ops_destroy(chain);
	}
	if (status == dnnl_success) {
		*out = attributes;
		return PRONY_OK;
	}
	if (attributes)
		dnn->primitive_attr_destroy(attributes);
	return onednn_check(status, "attributes", "primitive", err);
}

static const char *implementation(const struct lowering *l, const_dnnl_primitive_desc_t pd)
{
	const char *name = NULL;

	if (!pd || l->dnn->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name))
		return "-";
	return name;
}

/* What computes the forward pass of a layer, and the gradient of its input. */
static const char *forward(const struct lowering *l, const struct node_state *state)
{
	if (state->winograd)
		return "winograd";
	return !state->forward && state->detail ? "own" : implementation(l, state->forward);
}

static const char *data_gradient(const struct lowering *l, int n)
{
	if (l->nodes[n].backward_data && l->nodes[n].winograd_gradient)
		return "winograd";
	return implementation(l, l->nodes[n].backward_data);
}

int lower_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade)
{
	const char *name = implementation(l, pd);

	if (strstr(name, "brg"))
		return 2;
	if (strstr(name, "gemm"))
		return strstr(name, "ref") ? 0 : gemm_grade;
	return strstr(name, "ref") || strstr(name, "simple") ? 0 : 2;
}

void lower_note(struct lowering *l, int n, const int *fused, int count)
{
	const struct node_state *state = &l->nodes[n];
	size_t room = sizeof(l->notes) - l->notes_length;
	char with[96] = "";
	int length = 0;

	for (int i = 0; i < count && (size_t)length < sizeof(with); i++) {
		const char *name = operator_name(l->graph->nodes[fused[i]].op);

		length += snprintf(with + length, sizeof(with) - (size_t)length, "+%s", name);
	}
	if (l->training)
		length = snprintf(l->notes + l->notes_length, room, "%s%s=%s,%s,%s; ",
				  l->graph->nodes[n].name, with,
				  state->winograd ? forward(l, state)
						  : implementation(l, state->forward),
				  data_gradient(l, n), implementation(l, state->backward_weights));
	else
		length = snprintf(l->notes + l->notes_length, room, "%s%s=%s; ",
				  l->graph->nodes[n].name, with, forward(l, state));
	if (length > 0 && (size_t)length < room)
		l->notes_length += (size_t)length;
	else
		l->notes[l->notes_length] = '\0'; /* whole entries only */
}
