/* Convolutions, also transposed ones: tries layouts and implementations, and chooses the best. */
#include <string.h>

#include "adapters/native/cpu/cpu.h"

/* Padding channels to whole vectors may multiply the work of a small layer (LeNet's 20 -> 50
 * channels: 2.05). Above this factor the layout without padding is tried. */
#define PADDED_WORK_MAX 1.5

struct geometry {
	dnnl_dims_t x, w, y, bias;
	struct sliding_window window;
	int w_rank;
	enum dtype type; /* of the factors and of the result */
	bool has_bias, wants_dx;
	bool transposed; /* a ConvTranspose; the library's weights have outputs first there too */
	struct chain chain;
	const_dnnl_memory_desc_t
		target; /* layout of the operand that the result is added to, or NULL */
};

/* One way to compute a layer: forward and, when training, both gradients, over agreed layouts. */
struct candidate {
	dnnl_primitive_desc_t forward, backward_data, backward_weights;
	int grade; /* the worst grade of the three; -1 = impossible */
};

static void candidate_release(const struct lowering *l, struct candidate *candidate)
{
	dnnl_primitive_desc_t owned[] = {candidate->forward, candidate->backward_data,
					 candidate->backward_weights};

	for (int i = 0; i < 3; i++) {
		if (owned[i])
			cpu_onednn(l)->primitive_desc_destroy(owned[i]);
	}
	*candidate = (struct candidate){.grade = -1};
}

static struct geometry geometry_make(const struct lowering *l, int n, bool allow_sum)
{
	const struct node *node = &l->graph->nodes[n];
	const struct attributes *a = &node->attributes;
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	const struct shape *w = &l->graph->values[node->inputs[1]].shape;
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	struct geometry g = {
		.w_rank = a->group > 1 ? 5 : 4, .type = l->data, .wants_dx = l->nodes[n].wants_dx};
	int from = a->group > 1;

	g.transposed = node->op == OP_CONV_TRANSPOSE;
	if (a->group > 1) /* groups x outputs of a group x inputs of a group x H x W */
		g.w[0] = a->group;
	for (int i = 0; i < 4; i++) {
		g.x[i] = x->dims[i];
		g.y[i] = y->dims[i];
		g.w[from + i] = w->dims[i];
	}
	g.w[from] = y->dims[1] / a->group;
	g.w[from + 1] = x->dims[1] / a->group;
	g.window = cpu_window(l, node);
	g.chain = lower_chain(l, n, !g.transposed, allow_sum);
	if (g.chain.sum != OPERAND_NONE)
		g.target = cpu_desc(l, g.chain.sum);
	g.has_bias =
		g.chain.batch_norm >= 0 || (node->input_count > 2 && node->inputs[2] != VALUE_NONE);
	g.bias[0] = y->dims[1];
	return g;
}

/* Creates the primitive descriptors over the given layouts of source and destination. */
static dnnl_status_t candidate_create(const struct lowering *l, const struct geometry *g,
				      const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
				      struct candidate *out)
{
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	const_dnnl_memory_desc_t weights = cpu_any(l, g->type, g->w_rank, g->w);
	/* Sums and the weights themselves are always fp32. */
	const_dnnl_memory_desc_t gradient = cpu_any(l, DTYPE_F32, g->w_rank, g->w);
	const_dnnl_memory_desc_t bias =
		g->has_bias ? cpu_row_major(l, DTYPE_F32, 1, g->bias) : NULL;
	dnnl_alg_kind_t algorithm =
		g->transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
	dnnl_status_t status = (g->transposed ? dnn->deconvolution_forward_primitive_desc_create
					      : dnn->convolution_forward_primitive_desc_create)(
		&out->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, algorithm, src,
		weights, bias, dst, g->window.strides, g->window.dilations, g->window.before,
		g->window.after, cpu_attributes(l, &g->chain));

	if (status != dnnl_success || !l->training)
		return status;
	src = dnn->primitive_desc_query_md(out->forward, dnnl_query_src_md, 0);
	dst = dnn->primitive_desc_query_md(out->forward, dnnl_query_dst_md, 0);
	status = (g->transposed ? dnn->deconvolution_backward_weights_primitive_desc_create
				: dnn->convolution_backward_weights_primitive_desc_create)(
		&out->backward_weights, dnn->engine, algorithm, src, gradient, bias, dst,
		g->window.strides, g->window.dilations, g->window.before, g->window.after,
		out->forward, attributes);
	if (status != dnnl_success || !g->wants_dx)
		return status;
	return (g->transposed ? dnn->deconvolution_backward_data_primitive_desc_create
			      : dnn->convolution_backward_data_primitive_desc_create)(
		&out->backward_data, dnn->engine, algorithm, src, weights, dst, g->window.strides,
		g->window.dilations, g->window.before, g->window.after, out->forward, attributes);
}

static void candidate_grade(const struct lowering *l, struct candidate *candidate)
{
	dnnl_primitive_desc_t made[] = {candidate->forward, candidate->backward_data,
					candidate->backward_weights};

	candidate->grade = 2;
	for (int i = 0; i < 3; i++) {
		int grade = made[i] ? cpu_grade(l, made[i], 1) : 2;

		if (grade < candidate->grade)
			candidate->grade = grade;
	}
}

/* Tries a candidate over two layouts. Grade -1, without an error, if the library has no code for
 * it. */
static enum prony_status candidate_try(const struct lowering *l, const struct geometry *g,
				       const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
				       struct candidate *out, struct error *err)
{
	dnnl_status_t created;

	*out = (struct candidate){.grade = -1};
	created = candidate_create(l, g, src, dst, out);
	if (created == dnnl_success)
		candidate_grade(l, out);
	else
		candidate_release(l, out);
	return created == dnnl_out_of_memory
		       ? onednn_check(created, "primitive descriptor", "convolution", err)
		       : PRONY_OK;
}

/* Replaces `best` by `other` if its grade is at least `enough`; releases the loser. */
static void prefer(const struct lowering *l, struct candidate *best, struct candidate *other,
		   int enough)
{
	if (other->grade >= 0 && other->grade >= enough) {
		struct candidate loser = *best;

		*best = *other;
		*other = loser;
	}
	candidate_release(l, other);
}

/* The ratio of work with padded channels to work without padding. */
static double padded_work(const struct lowering *l, const struct candidate *candidate)
{
	const dnnl_query_t sides[] = {dnnl_query_src_md, dnnl_query_dst_md};
	double work = 1;

	for (int i = 0; i < 2; i++) {
		const_dnnl_memory_desc_t desc =
			cpu_onednn(l)->primitive_desc_query_md(candidate->forward, sides[i], 0);
		struct layout layout = cpu_layout(cpu_onednn(l), desc);
		int64_t channels = layout.dims[1], block = layout.block ? layout.block : 1;

		work *= (double)((channels + block - 1) / block * block) / (double)channels;
	}
	return work;
}

/* Tries a candidate with source and destination in the layout of a tag, and chooses it if its grade
 * is at least `enough`. */
static enum prony_status choose_tag(const struct lowering *l, const struct geometry *g,
				    dnnl_format_tag_t tag, int enough, struct candidate *best,
				    struct error *err)
{
	struct layout x = cpu_tagged(l, g->type, 4, g->x, tag);
	struct layout y = cpu_tagged(l, g->type, 4, g->y, tag);
	struct candidate other = {.grade = -1};
	enum prony_status status =
		candidate_try(l, g, cpu_desc_of(l, &x), cpu_desc_of(l, &y), &other, err);

	prefer(l, best, &other, enough);
	return status;
}

/*
 * The library's own choice, with these exceptions:
 * - the input keeps its layout, without a reorder, if that costs no grade;
 * - channels last, which need no padding, replace blocked channels that are mostly padding;
 * - other layouts are tried if the library would use reference code. Without AVX-512 it has no
 *   other code for the gradient of LeNet's first weights in the layouts that it chooses.
 */
static enum prony_status choose(const struct lowering *l, const struct geometry *g, int x,
				struct candidate *best, struct error *err)
{
	const dnnl_format_tag_t plain[] = {dnnl_nhwc, dnnl_nchw};
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_memory_desc_t present = cpu_desc(l, x);
	const_dnnl_memory_desc_t any_x = cpu_any(l, g->type, 4, g->x);
	const_dnnl_memory_desc_t any_y = g->target ? g->target : cpu_any(l, g->type, 4, g->y);
	struct candidate other = {.grade = -1};
	enum prony_status status = candidate_try(l, g, any_x, any_y, best, err);

	if (status == PRONY_OK && lower_layout(l, x)->type == g->type &&
	    (best->grade < 0 ||
	     !dnn->memory_desc_equal(
		     dnn->primitive_desc_query_md(best->forward, dnnl_query_src_md, 0), present))) {
		status = candidate_try(l, g, present, any_y, &other, err);
		prefer(l, best, &other, best->grade);
	}
	if (status == PRONY_OK && !g->target && best->grade >= 0 &&
	    padded_work(l, best) > PADDED_WORK_MAX)
		status = choose_tag(l, g, dnnl_nhwc, 2, best, err);
	for (int i = 0; i < 2 && status == PRONY_OK && !g->target && best->grade < 1; i++)
		status = choose_tag(l, g, plain[i], best->grade + 1, best, err);
	return status;
}

/* Chooses with the longest possible chain of nodes that the primitive can also compute. */
static enum prony_status choose_chain(const struct lowering *l, int n, struct geometry *g,
				      struct candidate *best, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = choose(l, g, l->nodes[n].src, best, err);

	if (status == PRONY_OK && best->grade < 1 && g->target) {
		candidate_release(l, best);
		*g = geometry_make(l, n, false);
		status = choose(l, g, l->nodes[n].src, best, err);
	}
	if (status == PRONY_OK && best->grade < 0 && g->chain.count > 0) {
		g->chain = (struct chain){.batch_norm = -1, .sum = OPERAND_NONE};
		g->has_bias = node->input_count > 2 && node->inputs[2] != VALUE_NONE;
		status = choose(l, g, l->nodes[n].src, best, err);
	}
	return status;
}

/* Chooses fp32 if the library has only reference code, or none, for the wanted type. */
static enum prony_status choose_type(const struct lowering *l, int n, struct geometry *g,
				     struct candidate *best, struct error *err)
{
	enum prony_status status = choose_chain(l, n, g, best, err);
	struct candidate other = {.grade = -1};
	struct geometry strict;

	if (status != PRONY_OK || l->data == DTYPE_F32 || best->grade > 0)
		return status;
	strict = geometry_make(l, n, false);
	strict.type = DTYPE_F32;
	status = choose_chain(l, n, &strict, &other, err);
	if (status != PRONY_OK || other.grade <= best->grade) {
		candidate_release(l, &other);
		return status;
	}
	candidate_release(l, best);
	*best = other;
	*g = strict;
	return PRONY_OK;
}

/* Whether the library has special depthwise code for every pass. Its other code treats each channel
 * as a dense group, or is reference code. */
static bool candidate_is_depthwise(const struct lowering *l, const struct candidate *candidate)
{
	dnnl_primitive_desc_t made[] = {candidate->forward, candidate->backward_data,
					candidate->backward_weights};

	for (int i = 0; i < 3; i++) {
		const char *name = "";

		if (made[i] && (cpu_onednn(l)->primitive_desc_query(
					made[i], dnnl_query_impl_info_str, 0, &name) ||
				!strstr(name, "dw")))
			return false;
	}
	return candidate->grade >= 0;
}

static void count_macs(struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];

	l->macs += operator_row(node->op)->macs(l->graph, node);
}

/* The weights outside: as in the graph. A ConvTranspose has inputs before outputs there. */
static struct layout weights_outside(const struct geometry *g)
{
	int last = g->w_rank - 1, out = g->w_rank - 4, in = g->w_rank - 3;
	int64_t strides[5] = {0};

	if (!g->transposed)
		return layout_row_major(DTYPE_F32, g->w_rank, g->w);
	strides[last] = 1;
	strides[last - 1] = g->w[last];
	strides[out] = g->w[last - 1] * g->w[last];
	strides[in] = strides[out] * g->w[out];
	if (out > 0)
		strides[0] = strides[in] * g->w[in];
	return layout_strided(DTYPE_F32, g->w_rank, g->w, strides);
}

enum prony_status cpu_conv(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct geometry g;
	struct candidate best = {.grade = -1};
	struct layout outside;
	bool depthwise = cpu_is_depthwise(l, n), done = false;
	enum prony_status status;

	if (depthwise && l->data == DTYPE_F32)
		return cpu_depthwise(l, n, err);
	g = geometry_make(l, n, true);
	status = lower_value(l, node->inputs[0], node->name, &l->nodes[n].src, err);
	if (status == PRONY_OK && !l->training && cpu_is_winograd(l, n)) {
		count_macs(l, n);
		return cpu_winograd(l, n, &done, err);
	}
	if (status == PRONY_OK)
		status = choose_type(l, n, &g, &best, err);
	if (status != PRONY_OK) {
		candidate_release(l, &best);
		return status;
	}
	if (depthwise && !candidate_is_depthwise(l, &best)) {
		candidate_release(l, &best);
		return cpu_depthwise(l, n, err);
	}
	if (best.grade < 0)
		return error_set(err, PRONY_UNSUPPORTED,
				 "oneDNN has no implementation here for convolution '%s'",
				 node->name);
	l->nodes[n].work->forward = best.forward;
	l->nodes[n].work->backward_data = best.backward_data;
	l->nodes[n].work->backward_weights = best.backward_weights;
	count_macs(l, n);
	if (l->training && cpu_is_winograd(l, n))
		status = cpu_winograd(l, n, &done, err);
	if (status != PRONY_OK || done)
		return status;
	outside = weights_outside(&g);
	return cpu_weighted_forward(l, n, &outside, &g.chain, err);
}

/* Whether prony's own depthwise loops compute a pass of a convolution for which the library has
 * `pd`. */
static bool own_depthwise(const struct node_state *state, const_dnnl_primitive_desc_t pd)
{
	return state->work->detail && !pd;
}

enum prony_status cpu_conv_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node_state *state = &l->nodes[l->graph->nodes[n].differentiates];

	return own_depthwise(state, state->work->backward_weights)
		       ? cpu_depthwise_grad_weight(l, n, err)
		       : cpu_weighted_grad_weight(l, n, err);
}

/* Prony's own loops read and write the layouts of the forward pass. */
enum prony_status cpu_conv_grad_input(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	enum prony_status status;
	int dy, dx;

	if (!state->work->winograd_gradient && !own_depthwise(state, state->work->backward_data))
		return cpu_weighted_grad_input(l, n, err);
	status = lower_as(l, l->values[node->inputs[0]].operand, lower_layout(l, state->dst),
			  node->name, &dy, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, lower_layout(l, state->src), REGION_PLANNED,
					 &dx, err);
	if (status != PRONY_OK)
		return status;
	if (state->work->winograd_gradient)
		cpu_winograd_grad_input(l, n, dx, dy);
	else
		cpu_depthwise_grad_input(l, n, dx, dy);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
