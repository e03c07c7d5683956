/* The library's functions, attributes of primitives, grades of implementations, and notes on the
 * chosen ones. */
#include <stdio.h>
#include <string.h>

#include "adapters/native/cpu/cpu.h"

/* An element-wise function in the library's form. */
struct function {
	dnnl_alg_kind_t forward, backward; /* backward over y if the slope is computed from it */
	double alpha, beta;		   /* the library's parameters of these names */
	size_t alpha_from, beta_from;	   /* or their offsets in struct attributes */
};

#define NUMBER(member) offsetof(struct attributes, member)

/* clang-format off */
static const struct function functions[OP_COUNT] = {
	[OP_RELU] = {dnnl_eltwise_relu, dnnl_eltwise_relu, 0, 0, 0, 0}, /* in chains only */
	[OP_TANH] = {dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_SIGMOID] = {dnnl_eltwise_logistic, dnnl_eltwise_logistic_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_HARD_SIGMOID] = {dnnl_eltwise_hardsigmoid, dnnl_eltwise_hardsigmoid, 0, 0,
			     NUMBER(alpha), NUMBER(beta)},
	[OP_HARD_SWISH] = {dnnl_eltwise_hardswish, dnnl_eltwise_hardswish, 1.0 / 6, 0.5, 0, 0},
	/* Version 2 has a zero gradient at both ends. */
	[OP_CLIP] = {dnnl_eltwise_clip_v2, dnnl_eltwise_clip_v2, 0, 0, NUMBER(min), NUMBER(max)},
	[OP_ELU] = {dnnl_eltwise_elu, dnnl_eltwise_elu, 0, 0, NUMBER(alpha), 0},
	[OP_LEAKY_RELU] = {dnnl_eltwise_relu, dnnl_eltwise_relu, 0, 0, NUMBER(alpha), 0},
	[OP_EXP] = {dnnl_eltwise_exp, dnnl_eltwise_exp_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_LOG] = {dnnl_eltwise_log, dnnl_eltwise_log, 0, 0, 0, 0},
	[OP_SQRT] = {dnnl_eltwise_sqrt, dnnl_eltwise_sqrt_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_GELU] = {dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_erf, 0, 0, 0, 0},
	[OP_POW] = {dnnl_eltwise_pow, dnnl_eltwise_pow, 1, 0, 0, NUMBER(exponent)},
	[OP_SWISH] = {dnnl_eltwise_swish, dnnl_eltwise_swish, 0, 0, NUMBER(alpha), 0},
	[OP_NEG] = {dnnl_eltwise_linear, dnnl_eltwise_linear, -1, 0, 0, 0},
};
static const struct function gelu_tanh = {dnnl_eltwise_gelu_tanh, dnnl_eltwise_gelu_tanh, 0, 0, 0, 0};
/* clang-format on */

static float number_of(const struct attributes *a, double number, size_t from)
{
	return (float)(from ? *(const double *)((const char *)a + from) : number);
}

struct eltwise_function cpu_function(enum op op, const struct node *node, bool training)
{
	const struct function *f = &functions[op];

	if (op == OP_GELU && node->attributes.approximate)
		f = &gelu_tanh;
	return (struct eltwise_function){
		.algorithm = training ? f->backward : f->forward,
		.alpha = number_of(&node->attributes, f->alpha, f->alpha_from),
		.beta = number_of(&node->attributes, f->beta, f->beta_from)};
}

bool cpu_has_function(enum op op)
{
	return functions[op].forward != 0;
}

static dnnl_status_t append(const struct lowering *l, const struct node *node,
			    dnnl_post_ops_t chain)
{
	struct eltwise_function f;

	if (node->op == OP_BATCH_NORM)
		return dnnl_success; /* in the weights */
	if (node->op == OP_ADD)
		return cpu_onednn(l)->post_ops_append_sum(chain, 1, 0, cpu_type(l->data));
	f = cpu_function(node->op, node, false);
	return cpu_onednn(l)->post_ops_append_eltwise(chain, f.algorithm, f.alpha, f.beta);
}

static dnnl_status_t set_chain(const struct lowering *l, const struct chain *chain,
			       dnnl_primitive_attr_t attributes)
{
	const struct onednn *dnn = cpu_onednn(l);
	dnnl_post_ops_t post = NULL;
	dnnl_status_t status = dnn->post_ops_create(&post);

	for (int i = 0; status == dnnl_success && i < chain->count; i++)
		status = append(l, &l->graph->nodes[chain->nodes[i]], post);
	if (status == dnnl_success)
		status = dnn->primitive_attr_set_post_ops(attributes, post);
	if (post)
		dnn->post_ops_destroy(post);
	return status;
}

const_dnnl_primitive_attr_t cpu_attributes(const struct lowering *l, const struct chain *chain)
{
	const struct onednn *dnn = cpu_onednn(l);
	struct device *device = l->program->device;
	dnnl_primitive_attr_t attributes = NULL;
	bool plain = !chain || chain->count == 0;
	dnnl_status_t status;

	if (plain && device->attributes)
		return device->attributes;
	status = dnn->primitive_attr_create(&attributes);
	if (status == dnnl_success)
		status = dnn->primitive_attr_set_scratchpad_mode(attributes,
								 dnnl_scratchpad_mode_user);
	if (status == dnnl_success)
		status = dnn->primitive_attr_set_fpmath_mode(attributes, dnnl_fpmath_mode_strict);
	if (status == dnnl_success && !plain)
		status = set_chain(l, chain, attributes);
	if (status != dnnl_success)
		device->failed = status;
	if (attributes)
		cpu_keep(device, NULL, attributes);
	if (plain)
		device->attributes = attributes;
	return attributes;
}

static const char *implementation(const struct lowering *l, const_dnnl_primitive_desc_t pd)
{
	const char *name = NULL;

	if (!pd || cpu_onednn(l)->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name))
		return "-";
	return name;
}

/* The implementations of a layer's forward pass, and of the gradient of its input. */
static const char *forward(const struct lowering *l, const struct node_state *state)
{
	if (state->work->winograd)
		return "winograd";
	return !state->work->forward && state->work->detail
		       ? "own"
		       : implementation(l, state->work->forward);
}

static const char *data_gradient(const struct lowering *l, int n)
{
	if (l->nodes[n].work->backward_data && l->nodes[n].work->winograd_gradient)
		return "winograd";
	return implementation(l, l->nodes[n].work->backward_data);
}

int cpu_grade(const struct lowering *l, const_dnnl_primitive_desc_t pd, int gemm_grade)
{
	const char *name = implementation(l, pd);

	if (strstr(name, "brg"))
		return 2;
	if (strstr(name, "gemm"))
		return strstr(name, "ref") ? 0 : gemm_grade;
	return strstr(name, "ref") || strstr(name, "simple") ? 0 : 2;
}

void cpu_note(struct lowering *l, int n, const int *fused, int count)
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
				  state->work->winograd ? forward(l, state)
							: implementation(l, state->work->forward),
				  data_gradient(l, n),
				  implementation(l, state->work->backward_weights));
	else
		length = snprintf(l->notes + l->notes_length, room, "%s%s=%s; ",
				  l->graph->nodes[n].name, with, forward(l, state));
	if (length > 0 && (size_t)length < room)
		l->notes_length += (size_t)length;
	else
		l->notes[l->notes_length] = '\0'; /* whole entries only */
}

static bool reads_bf16(const struct lowering *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
	const_dnnl_memory_desc_t desc = cpu_onednn(l)->primitive_desc_query_md(pd, what, 0);

	return desc && onednn_type(cpu_onednn(l), desc) == dnnl_bf16;
}

static bool is_product(enum op op)
{
	return op == OP_CONV || op == OP_CONV_TRANSPOSE || op == OP_GEMM || op == OP_MATMUL ||
	       operator_row(op)->onnx_export == ONNX_EXPORT_RECURRENT;
}

/* Whether a product uses one of prony's own loops, which are fp32. */
static bool own_product(const struct lowering *l, int n)
{
	return is_product(l->graph->nodes[n].op) && l->nodes[n].work->detail &&
	       !l->nodes[n].work->forward;
}

/* Whether all factors of the product, forward and backward, are bf16. */
static bool multiplies_bf16(const struct lowering *l, int n)
{
	const struct node_state *state = &l->nodes[n];
	bool recurrent = operator_row(l->graph->nodes[n].op)->onnx_export == ONNX_EXPORT_RECURRENT;

	if (!state->work->forward || !reads_bf16(l, state->work->forward, dnnl_query_src_md) ||
	    !reads_bf16(l, state->work->forward, dnnl_query_weights_md))
		return false;
	if (recurrent) /* its gradients are fp32 outside, by definition */
		return !state->work->backward_data ||
		       reads_bf16(l, state->work->backward_data, dnnl_query_weights_md);
	if (state->work->backward_weights &&
	    (!reads_bf16(l, state->work->backward_weights, dnnl_query_src_md) ||
	     !reads_bf16(l, state->work->backward_weights, dnnl_query_diff_dst_md)))
		return false;
	return !state->work->backward_data ||
	       (reads_bf16(l, state->work->backward_data, dnnl_query_weights_md) &&
		reads_bf16(l, state->work->backward_data, dnnl_query_diff_dst_md));
}

/* Appends a name, or dots once if there is no room. */
static void add_name(struct lowering *l, size_t *length, const char *name)
{
	const size_t room = sizeof(l->types) - sizeof("...; ");
	size_t needed = strlen(name) + 2;

	if (*length + needed < room)
		*length += (size_t)snprintf(l->types + *length, sizeof(l->types) - *length, " %s,",
					    name);
	else if (l->types[*length - 1] != '.')
		*length += (size_t)snprintf(l->types + *length, sizeof(l->types) - *length, "...");
}

enum prony_status cpu_check_types(struct lowering *l, struct error *err)
{
	int products = 0, low = 0, others = 0;
	size_t length;

	if (l->data != DTYPE_BF16)
		return PRONY_OK;
	for (int n = 0; n < l->graph->forward_count; n++) {
		if (!l->nodes[n].work->forward && !own_product(l, n))
			continue;
		if (!is_product(l->graph->nodes[n].op)) {
			others += !reads_bf16(l, l->nodes[n].work->forward, dnnl_query_src_md);
			continue;
		}
		products++;
		low += multiplies_bf16(l, n);
	}
	length = (size_t)snprintf(l->types, sizeof(l->types), "bf16 in %d of %d products%s", low,
				  products, low < products || others > 0 ? ", fp32 in" : "; ");
	if (low < products || others > 0) {
		for (int n = 0; n < l->graph->forward_count; n++) {
			const struct node *node = &l->graph->nodes[n];

			if ((l->nodes[n].work->forward || own_product(l, n)) &&
			    (is_product(node->op) ? !multiplies_bf16(l, n)
						  : !reads_bf16(l, l->nodes[n].work->forward,
								dnnl_query_src_md)))
				add_name(l, &length, node->name);
		}
		if (l->types[length - 1] == ',')
			length--;
		snprintf(l->types + length, sizeof(l->types) - length, "; ");
	}
	if (low == 0)
		return error_set(err, PRONY_UNSUPPORTED, "precision bf16: %s", l->types);
	return PRONY_OK;
}
