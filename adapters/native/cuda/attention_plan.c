#include "adapters/native/cuda/attention_plan.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Names of tensors within a graph: 1 + enum attention_array, numbers of the host, inner values. */
enum { UID_SCALE = 1 + ATTENTION_ARRAYS, UID_MASKED, UID_KEPT, UID_GROWTH, UID_INNER };

enum { OPERATIONS_MAX = 32 };

struct making {
	struct plan_build b;
	const struct attention_problem *problem;
	cudnn_descriptor operations[OPERATIONS_MAX];
	int64_t count, inner; /* inner values so far */
};

static cudnn_descriptor packed(struct making *m, int64_t uid, int type, int64_t rows,
			       int64_t columns)
{
	const struct attention_problem *p = m->problem;
	struct plan_tensor t = {.uid = uid,
				.type = type,
				.dims = {p->samples, p->heads, rows, columns},
				.strides = {p->heads * rows * columns, rows * columns, columns, 1},
				.is_virtual = uid >= UID_INNER};

	return plan_tensor(&m->b, &t);
}

/* An inner value for each pair of a query and a key. */
static cudnn_descriptor scores(struct making *m, int type)
{
	return packed(m, UID_INNER + m->inner++, type, m->problem->queries, m->problem->keys);
}

/* One number for each query: an inner value, or an array. */
static cudnn_descriptor column(struct making *m, int64_t uid)
{
	return packed(m, uid ? uid : UID_INNER + m->inner++, CUDNN_DATA_FLOAT, m->problem->queries,
		      1);
}

static cudnn_descriptor number(struct making *m, int64_t uid)
{
	return plan_tensor(&m->b, &(struct plan_tensor){.uid = uid,
							.type = CUDNN_DATA_FLOAT,
							.dims = {1, 1, 1, 1},
							.strides = {1, 1, 1, 1},
							.by_value = true});
}

/* q, k, v, y or a gradient, T x d; transposed: d x T in the same memory. */
static cudnn_descriptor array(struct making *m, enum attention_array i, bool transposed,
			      bool is_virtual)
{
	const struct attention_problem *p = m->problem;
	const int64_t *strides = p->strides[i];
	bool of_keys =
		i == ATTENTION_K || i == ATTENTION_V || i == ATTENTION_DK || i == ATTENTION_DV;
	int64_t rows = of_keys ? p->keys : p->queries;
	int row = transposed ? 3 : 2;
	struct plan_tensor t = {.uid = is_virtual ? UID_INNER + m->inner++ : 1 + (int64_t)i,
				.type = plan_data_type(p->type),
				.dims = {p->samples, p->heads},
				.strides = {strides[0], strides[1]},
				.is_virtual = is_virtual};

	t.dims[row] = rows;
	t.strides[row] = strides[2];
	t.dims[5 - row] = p->width;
	t.strides[5 - row] = strides[3];
	return plan_tensor(&m->b, &t);
}

static void append(struct making *m, cudnn_descriptor operation)
{
	m->operations[m->count++] = operation;
}

/* Appends y = mode(x, second) and returns y. */
static cudnn_descriptor function(struct making *m, int mode, cudnn_descriptor x,
				 cudnn_descriptor second, cudnn_descriptor y)
{
	append(m, plan_pointwise(&m->b, &(struct plan_function){
						.mode = mode, .x = x, .second = second, .y = y}));
	return y;
}

/* Appends c = a b, products of matrices, and returns c. */
static cudnn_descriptor product(struct making *m, cudnn_descriptor a, cudnn_descriptor b,
				cudnn_descriptor c)
{
	int type = CUDNN_DATA_FLOAT;
	cudnn_descriptor how = plan_part(&m->b, CUDNN_BACKEND_MATMUL_DESCRIPTOR), made;

	plan_set(&m->b, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	plan_finalise(&m->b, how, "product");
	made = plan_part(&m->b, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	plan_finalise(&m->b, made, "product");
	append(m, made);
	return c;
}

/* Appends the reduction of each row and returns its result. */
static cudnn_descriptor reduce(struct making *m, int operator, cudnn_descriptor x)
{
	int type = CUDNN_DATA_FLOAT;
	cudnn_descriptor how = plan_part(&m->b, CUDNN_BACKEND_REDUCTION_DESCRIPTOR), made;
	cudnn_descriptor y = column(m, 0);

	plan_set(&m->b, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
		 &operator);
	plan_set(&m->b, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	plan_finalise(&m->b, how, "reduction");
	made = plan_part(&m->b, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	plan_finalise(&m->b, made, "reduction");
	append(m, made);
	return y;
}

/* Appends the transposition of x's last two dimensions into `y`, and returns it. */
static cudnn_descriptor transpose(struct making *m, cudnn_descriptor x, cudnn_descriptor y)
{
	cudnn_descriptor made = plan_part(&m->b, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	plan_finalise(&m->b, made, "transposition");
	append(m, made);
	return y;
}

/* The scores in the type of activations, keys x queries. */
static cudnn_descriptor transpose_scores(struct making *m, cudnn_descriptor x)
{
	const struct attention_problem *p = m->problem;
	struct plan_tensor t = {
		.uid = UID_INNER + m->inner++,
		.type = plan_data_type(p->type),
		.dims = {p->samples, p->heads, p->keys, p->queries},
		.strides = {p->heads * p->queries * p->keys, p->queries * p->keys, 1, p->keys},
		.is_virtual = true};

	return transpose(m, x, plan_tensor(&m->b, &t));
}

/* The place of each score on an axis. */
static cudnn_descriptor places(struct making *m, cudnn_descriptor x, int64_t axis)
{
	cudnn_descriptor y = scores(m, CUDNN_DATA_INT32);

	append(m, plan_pointwise(&m->b, &(struct plan_function){.mode = CUDNN_POINTWISE_GEN_INDEX,
								.math = CUDNN_DATA_INT32,
								.axis = axis,
								.x = x,
								.y = y}));
	return y;
}

/* Scores of keys behind the query become minus infinity. */
static cudnn_descriptor mask(struct making *m, cudnn_descriptor x)
{
	cudnn_descriptor row = places(m, x, 2), key = places(m, x, 3);
	cudnn_descriptor seen = scores(m, CUDNN_DATA_BOOLEAN), y = scores(m, CUDNN_DATA_FLOAT);

	append(m, plan_pointwise(&m->b, &(struct plan_function){.mode = CUDNN_POINTWISE_CMP_GE,
								.math = CUDNN_DATA_BOOLEAN,
								.x = row,
								.second = key,
								.y = seen}));
	append(m,
	       plan_pointwise(&m->b, &(struct plan_function){.mode = CUDNN_POINTWISE_BINARY_SELECT,
							     .x = x,
							     .second = number(m, UID_MASKED),
							     .third = seen,
							     .y = y}));
	return y;
}

/* One number in the device's memory. */
static cudnn_descriptor word_of(struct making *m, enum attention_array i)
{
	return plan_tensor(&m->b, &(struct plan_tensor){.uid = 1 + (int64_t)i,
							.type = CUDNN_DATA_INT64,
							.dims = {1, 1, 1, 1},
							.strides = {1, 1, 1, 1}});
}

/* 1 for each weight that is kept and 0 for the others. */
static cudnn_descriptor drops(struct making *m)
{
	int distribution = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
	double kept = 1 - m->problem->ratio;
	cudnn_descriptor how = plan_part(&m->b, CUDNN_BACKEND_RNG_DESCRIPTOR), made;
	cudnn_descriptor y = scores(m, CUDNN_DATA_FLOAT);

	plan_set(&m->b, how, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1,
		 &distribution);
	plan_set(&m->b, how, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1,
		 &kept);
	plan_finalise(&m->b, how, "dropout");
	made = plan_part(&m->b, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RNG_YDESC, y);
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RNG_SEED, word_of(m, ATTENTION_SEED));
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
		      word_of(m, ATTENTION_OFFSET));
	plan_set_part(&m->b, made, CUDNN_ATTR_OPERATION_RNG_DESC, how);
	plan_finalise(&m->b, made, "dropout");
	append(m, made);
	return y;
}

/* x mask growth, the result in that type. */
static cudnn_descriptor drop(struct making *m, cudnn_descriptor x, cudnn_descriptor mask,
			     cudnn_descriptor growth, int type)
{
	x = function(m, CUDNN_POINTWISE_MUL, x, mask, scores(m, CUDNN_DATA_FLOAT));
	return function(m, CUDNN_POINTWISE_MUL, x, growth, scores(m, type));
}

static void forward(struct making *m)
{
	cudnn_descriptor q = array(m, ATTENTION_Q, false, false);
	cudnn_descriptor s =
		product(m, q, array(m, ATTENTION_K, true, false), scores(m, CUDNN_DATA_FLOAT));
	cudnn_descriptor most, exponential, sum;
	int type = plan_data_type(m->problem->type);

	s = function(m, CUDNN_POINTWISE_MUL, s, number(m, UID_SCALE), scores(m, CUDNN_DATA_FLOAT));
	if (m->problem->causal)
		s = mask(m, s);
	most = reduce(m, CUDNN_REDUCE_TENSOR_MAX, s);
	s = function(m, CUDNN_POINTWISE_SUB, s, most, scores(m, CUDNN_DATA_FLOAT));
	exponential = function(m, CUDNN_POINTWISE_EXP, s, NULL, scores(m, CUDNN_DATA_FLOAT));
	sum = reduce(m, CUDNN_REDUCE_TENSOR_ADD, exponential);
	/* The engines want this value even where nobody reads it. */
	function(m, CUDNN_POINTWISE_ADD, most,
		 function(m, CUDNN_POINTWISE_LOG, sum, NULL, column(m, 0)),
		 column(m, m->problem->stats ? 1 + ATTENTION_STATS : 0));
	s = function(m, CUDNN_POINTWISE_DIV, exponential, sum,
		     scores(m, m->problem->ratio > 0 ? CUDNN_DATA_FLOAT : type));
	if (m->problem->ratio > 0)
		s = drop(m, s, drops(m), number(m, UID_GROWTH), type);
	product(m, s, array(m, ATTENTION_V, false, false), array(m, ATTENTION_Y, false, false));
}

/* The exponentials of the scores, divided by their sums: computed again. */
static cudnn_descriptor weights(struct making *m, cudnn_descriptor q, cudnn_descriptor k,
				cudnn_descriptor scale)
{
	cudnn_descriptor s = product(m, q, k, scores(m, CUDNN_DATA_FLOAT));

	s = function(m, CUDNN_POINTWISE_MUL, s, scale, scores(m, CUDNN_DATA_FLOAT));
	s = function(m, CUDNN_POINTWISE_SUB, s, column(m, 1 + ATTENTION_STATS),
		     scores(m, CUDNN_DATA_FLOAT));
	if (m->problem->causal)
		s = mask(m, s);
	return function(m, CUDNN_POINTWISE_EXP, s, NULL, scores(m, CUDNN_DATA_FLOAT));
}

static void gradient(struct making *m)
{
	const struct attention_problem *p = m->problem;
	cudnn_descriptor q = array(m, ATTENTION_Q, false, false);
	cudnn_descriptor k = array(m, ATTENTION_K, true, false);
	cudnn_descriptor dy = array(m, ATTENTION_DY, false, false);
	cudnn_descriptor scale = number(m, UID_SCALE), growth = NULL, kept = NULL, sums, share, ds;

	if (p->ratio > 0) {
		growth = number(m, UID_GROWTH);
		kept = drops(m);
	}
	/* sums = (1 - ratio) sum of dy y; the engines want the product without dropout, too. */
	sums = function(m, CUDNN_POINTWISE_MUL, dy, array(m, ATTENTION_Y, false, false),
			packed(m, UID_INNER + m->inner++, CUDNN_DATA_FLOAT, p->queries, p->width));
	sums = reduce(m, CUDNN_REDUCE_TENSOR_ADD, sums);
	sums = function(m, CUDNN_POINTWISE_MUL, sums, number(m, UID_KEPT),
			column(m, 1 + ATTENTION_ROW_SUMS));
	share = weights(m, q, k, scale);
	product(m,
		transpose_scores(m, kept ? drop(m, share, kept, growth, CUDNN_DATA_FLOAT) : share),
		dy, array(m, ATTENTION_DV, false, false));
	/* ds = (dy v' mask - sums) share growth scale */
	ds = product(m, dy, array(m, ATTENTION_V, true, false), scores(m, CUDNN_DATA_FLOAT));
	if (kept)
		ds = function(m, CUDNN_POINTWISE_MUL, ds, kept, scores(m, CUDNN_DATA_FLOAT));
	ds = function(m, CUDNN_POINTWISE_SUB, ds, sums, scores(m, CUDNN_DATA_FLOAT));
	ds = function(m, CUDNN_POINTWISE_MUL, ds, share, scores(m, CUDNN_DATA_FLOAT));
	if (kept)
		ds = function(m, CUDNN_POINTWISE_MUL, ds, growth, scores(m, CUDNN_DATA_FLOAT));
	ds = function(m, CUDNN_POINTWISE_MUL, ds, scale, scores(m, CUDNN_DATA_FLOAT));
	product(m, transpose_scores(m, ds), q, array(m, ATTENTION_DK, false, false));
	function(m, CUDNN_POINTWISE_IDENTITY,
		 product(m, ds, transpose(m, k, array(m, ATTENTION_K, false, true)),
			 packed(m, 1 + ATTENTION_DQ_SUMS, CUDNN_DATA_FLOAT, p->queries, p->width)),
		 NULL, array(m, ATTENTION_DQ, false, false));
}

static const char *word(const struct attention_problem *problem)
{
	return problem->gradient ? "gradient of the attention" : "attention";
}

/* The first of the heuristics' plans for a finalised graph that can be made. */
static bool search(const struct cudnn *cudnn, cudnn_handle handle, cudnn_descriptor device,
		   cudnn_descriptor graph, int mode, struct cudnn_plan *out)
{
	cudnn_descriptor made[PLAN_CONFIGURATIONS_MAX];
	int made_count, count = plan_heuristics(cudnn, handle ? NULL : device, graph, mode, made,
						&made_count);
	bool found = false;

	for (int i = 0; i < made_count; i++) {
		struct plan_build b = {.cudnn = cudnn, .plan = out};

		if (!found && i < count) {
			*out = (struct cudnn_plan){.engine = -1};
			plan_of_configuration(&b, handle, device, made[i]);
			found = plan_finish(&b, ATTENTION_WORKSPACE_BYTES);
			if (found) {
				out->parts[out->part_count++] = made[i];
				continue;
			}
		}
		(void)cudnn->BackendDestroyDescriptor(made[i]);
	}
	return found;
}

enum prony_status attention_plan_make(const struct cudnn *cudnn, cudnn_handle handle,
				      cudnn_descriptor device,
				      const struct attention_problem *problem, const char *name,
				      struct cudnn_plan *out, struct error *err)
{
	struct cudnn_plan parts = {0};
	struct making m = {.b = {.cudnn = cudnn, .plan = &parts}, .problem = problem};
	cudnn_descriptor graph;
	enum prony_status status;

	if (problem->gradient)
		gradient(&m);
	else
		forward(&m);
	graph = plan_graph(&m.b, handle, m.operations, m.count);
	status = cudnn_check(cudnn, m.b.status, m.b.what, name, err);
	if (status == PRONY_OK && !search(cudnn, handle, device, graph, CUDNN_HEUR_MODE_A, out) &&
	    !search(cudnn, handle, device, graph, CUDNN_HEUR_MODE_FALLBACK, out))
		status = error_set(err, PRONY_UNSUPPORTED, "cuDNN has no plan for the %s '%s'",
				   word(problem), name);
	if (status != PRONY_OK) {
		cudnn_plan_release(cudnn, &parts);
		return status;
	}
	/* A plan may refer to its graph as long as it is used. */
	memcpy(out->parts + out->part_count, parts.parts,
	       (size_t)parts.part_count * sizeof(parts.parts[0]));
	out->part_count += parts.part_count;
	return PRONY_OK;
}

enum prony_status attention_plan_run(const struct cudnn *cudnn, cudnn_handle handle,
				     const struct attention_problem *problem,
				     const struct cudnn_plan *plan, float scale,
				     void *const data[ATTENTION_ARRAYS], void *workspace,
				     const char *name, struct error *err)
{
	/* cudnn-frontend passes the lowest number before 9.10. */
	float kept = (float)(1 - problem->ratio), growth = (float)(1 / (1 - problem->ratio)),
	      masked = cudnn->GetVersion() < 91000 ? -FLT_MAX : -INFINITY;
	int64_t ids[ATTENTION_ARRAYS + 4], count = 0;
	void *addresses[ATTENTION_ARRAYS + 4];

	for (int i = 0; i < ATTENTION_ARRAYS; i++) {
		if (!data[i])
			continue;
		ids[count] = 1 + i;
		addresses[count++] = data[i];
	}
	ids[count] = UID_SCALE;
	addresses[count++] = &scale;
	if (problem->causal) {
		ids[count] = UID_MASKED;
		addresses[count++] = &masked;
	}
	if (problem->gradient) {
		ids[count] = UID_KEPT;
		addresses[count++] = &kept;
	}
	if (problem->ratio > 0) {
		ids[count] = UID_GROWTH;
		addresses[count++] = &growth;
	}
	return plan_run(cudnn, handle, plan, ids, addresses, count, workspace, word(problem), name,
			err);
}
