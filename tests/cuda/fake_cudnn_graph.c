/* The fake of cuDNN: tensors, operations and graphs, checked and read as they are finalised. */
#include "tests/cuda/fake_cudnn.h"

#include <string.h>

static int finalize_tensor(const struct fake_descriptor *d)
{
	const int64_t *dims = fake_entry(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->data;
	const int64_t *strides = fake_entry(d, CUDNN_ATTR_TENSOR_STRIDES)->data;
	int64_t alignment = *(int64_t *)fake_entry(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)->data;
	int type = fake_word(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0);

	for (int i = 0; i < 4; i++)
		if (dims[i] < 1 || strides[i] < 1)
			return fake_fail(CUDNN_STATUS_BAD_PARAM,
					 "a dimension or stride is not positive");
	if (alignment < 1 || (alignment & (alignment - 1)))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "the alignment is no power of two");
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16 &&
	    type != CUDNN_DATA_INT32 && type != CUDNN_DATA_INT64 && type != CUDNN_DATA_BOOLEAN)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no such type");
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_convolution(const struct fake_descriptor *d)
{
	if (*(int64_t *)fake_entry(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)->data != 2 ||
	    fake_word(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0) != CUDNN_CROSS_CORRELATION ||
	    fake_word(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 0) != CUDNN_DATA_FLOAT)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED,
				 "the fake correlates on two axes and sums in fp32");
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_pointwise(const struct fake_descriptor *d)
{
	static const struct {
		int mode, math;
	} modes[] = {
		{CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT},
		{CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN},
		{CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32},
		{CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT},
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i].mode == fake_word(d, CUDNN_ATTR_POINTWISE_MODE, -1) &&
		    modes[i].math == fake_word(d, CUDNN_ATTR_POINTWISE_MATH_PREC, -1))
			return CUDNN_STATUS_SUCCESS;
	return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no such function in that type");
}

/* The child of a type, or NULL. */
static const struct fake_descriptor *typed(const struct fake_descriptor *d, int attribute, int type)
{
	const struct fake_descriptor *child = fake_child(d, attribute);

	return child && child->type == type ? child : NULL;
}

bool fake_tensor_read(const struct fake_descriptor *operation, int attribute,
		      struct fake_tensor *out)
{
	const struct fake_descriptor *d =
		typed(operation, attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const struct fake_entry *is_virtual, *by_value;

	if (!d)
		return false;
	is_virtual = fake_entry(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
	by_value = fake_entry(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
	*out = (struct fake_tensor){
		.uid = *(int64_t *)fake_entry(d, CUDNN_ATTR_TENSOR_UNIQUE_ID)->data,
		.alignment = *(int64_t *)fake_entry(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)->data,
		.type = fake_word(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
		.is_virtual = is_virtual && *(bool *)is_virtual->data,
		.by_value = by_value && *(bool *)by_value->data,
	};
	memcpy(out->dims, fake_entry(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->data, sizeof(out->dims));
	memcpy(out->strides, fake_entry(d, CUDNN_ATTR_TENSOR_STRIDES)->data, sizeof(out->strides));
	return true;
}

static bool shapes_agree(const struct fake_problem *p)
{
	const int64_t *x = p->x.dims, *w = p->w.dims, *y = p->y.dims;

	if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] || y[1] % (x[1] / w[1]))
		return false;
	for (int i = 0; i < 2; i++)
		if (y[2 + i] !=
		    (x[2 + i] + p->pre[i] + p->post[i] - p->dilations[i] * (w[2 + i] - 1) - 1) /
				    p->strides[i] +
			    1)
			return false;
	return true;
}

static const struct convolution_names {
	int descriptor;
	enum fake_kind kind;
	int alpha, beta, convolution, x, w, y;
} convolutions[] = {
#define NAMES(d, kind, a, x, w, y)                                                                 \
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_##d##_DESCRIPTOR,                                     \
	 kind,                                                                                     \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_ALPHA,                                             \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_BETA,                                              \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_CONV_DESC,                                         \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_##x,                                               \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_##w,                                               \
	 CUDNN_ATTR_OPERATION_CONVOLUTION_##a##_##y},
	NAMES(FORWARD, FAKE_FORWARD, FORWARD, X, W, Y)
		NAMES(BACKWARD_DATA, FAKE_GRAD_INPUT, BWD_DATA, DX, W, DY)
			NAMES(BACKWARD_FILTER, FAKE_GRAD_WEIGHT, BWD_FILTER, X, DW, DY)
#undef NAMES
};

static int read_convolution(const struct fake_descriptor *d, struct fake_problem *p)
{
	const struct convolution_names *names = convolutions;
	const struct fake_descriptor *shape;

	while (names->descriptor != d->type)
		names++;
	shape = typed(d, names->convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	*p = (struct fake_problem){
		.kind = names->kind,
		.alpha = *(float *)fake_entry(d, names->alpha)->data,
		.beta = *(float *)fake_entry(d, names->beta)->data,
	};
	if (!shape || !fake_tensor_read(d, names->x, &p->x) ||
	    !fake_tensor_read(d, names->w, &p->w) || !fake_tensor_read(d, names->y, &p->y))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor is of another type");
	memcpy(p->pre, fake_entry(shape, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->data,
	       sizeof(p->pre));
	memcpy(p->post, fake_entry(shape, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->data,
	       sizeof(p->post));
	memcpy(p->strides, fake_entry(shape, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->data,
	       sizeof(p->strides));
	memcpy(p->dilations, fake_entry(shape, CUDNN_ATTR_CONVOLUTION_DILATIONS)->data,
	       sizeof(p->dilations));
	for (int i = 0; i < 2; i++)
		if (p->strides[i] < 1 || p->dilations[i] < 1 || p->pre[i] < 0 || p->post[i] < 0)
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "stride, dilation or padding");
	p->out = p->kind == FAKE_FORWARD ? p->y : p->kind == FAKE_GRAD_INPUT ? p->x : p->w;
	return shapes_agree(p) ? CUDNN_STATUS_SUCCESS
			       : fake_fail(CUDNN_STATUS_BAD_PARAM, "is_valid_spatial_dim");
}

/* Appends a pointwise operation to the problem: the bias, or the maximum with 0. */
static int append_pointwise(const struct fake_descriptor *d, struct fake_problem *p)
{
	const struct fake_descriptor *what = typed(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
						   CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	struct fake_tensor x;

	if (!what || !fake_tensor_read(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &x))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor is of another type");
	if (p->kind != FAKE_FORWARD || x.uid != p->out.uid || !x.is_virtual)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
				 "a pointwise operation must read the virtual result before it");
	if (fake_word(what, CUDNN_ATTR_POINTWISE_MODE, -1) != CUDNN_POINTWISE_ADD &&
	    fake_word(what, CUDNN_ATTR_POINTWISE_MODE, -1) != CUDNN_POINTWISE_RELU_FWD)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
				 "behind a convolution the fake adds and cuts off");
	if (fake_word(what, CUDNN_ATTR_POINTWISE_MODE, -1) == CUDNN_POINTWISE_ADD) {
		struct fake_tensor second;

		if (p->has_bias || p->has_relu ||
		    !fake_tensor_read(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &second))
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
					 "the fake adds a bias once, before a maximum");
		if (memcmp(second.dims, p->y.dims, sizeof(second.dims)) == 0 && !p->has_sum) {
			p->has_sum = true;
			p->z = second;
		} else if (second.dims[0] == 1 && second.dims[1] == p->y.dims[1] &&
			   second.dims[2] == 1 && second.dims[3] == 1) {
			p->has_bias = true;
			p->bias = second;
		} else {
			return fake_fail(
				CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
				"the fake adds a tensor, then one number for each channel");
		}
	} else {
		p->has_relu = true;
	}
	return fake_tensor_read(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &p->out) &&
			       memcmp(p->out.dims, p->y.dims, sizeof(p->y.dims)) == 0
		       ? CUDNN_STATUS_SUCCESS
		       : fake_fail(CUDNN_STATUS_BAD_PARAM, "the result has another shape");
}

static int read_graph(struct fake_descriptor *d)
{
	const struct fake_entry *operations = fake_entry(d, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	struct fake_descriptor *const *list = operations->data;
	const struct fake_tensor *tensors[FAKE_OPERANDS];
	int status = CUDNN_STATUS_SUCCESS, count;

	if (list[0]->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
	    list[0]->type == CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR ||
	    list[0]->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
		return fake_network_read(d, &d->problem.network);
	for (int64_t i = 0; i < operations->count && status == CUDNN_STATUS_SUCCESS; i++) {
		bool pointwise = list[i]->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;

		if (pointwise != (i > 0))
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
					 "one convolution first, then pointwise operations");
		status = pointwise ? append_pointwise(list[i], &d->problem)
				   : read_convolution(list[i], &d->problem);
	}
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	count = fake_operands(&d->problem, tensors);
	for (int i = 0; i < count; i++)
		for (int k = 0; k <= i; k++)
			if (tensors[i]->is_virtual || (k < i && tensors[k]->uid == tensors[i]->uid))
				return fake_fail(
					CUDNN_STATUS_BAD_PARAM,
					"a tensor in memory is virtual, or two have one id");
	return CUDNN_STATUS_SUCCESS;
}

int fake_read(struct fake_descriptor *d)
{
	struct fake_problem unused;

	switch (d->type) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
		return finalize_tensor(d);
	case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
		return finalize_convolution(d);
	case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
		return finalize_pointwise(d);
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return read_graph(d);
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
	case CUDNN_BACKEND_RNG_DESCRIPTOR:
	case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
	case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
		return CUDNN_STATUS_SUCCESS; /* judged within its graph */
	default:
		return read_convolution(d, &unused);
	}
}

int64_t fake_extent(const struct fake_tensor *t)
{
	int64_t last = 0;

	for (int i = 0; i < 4; i++)
		last += (t->dims[i] - 1) * t->strides[i];
	return (last + 1) * (t->type == CUDNN_DATA_INT64 ? 8 : t->type == CUDNN_DATA_FLOAT ? 4 : 2);
}

int fake_operands(const struct fake_problem *problem, const struct fake_tensor *out[FAKE_OPERANDS])
{
	int count = 0;

	out[count++] = problem->kind == FAKE_GRAD_INPUT ? &problem->y : &problem->x;
	out[count++] = problem->kind == FAKE_GRAD_WEIGHT ? &problem->y : &problem->w;
	if (problem->has_sum)
		out[count++] = &problem->z;
	if (problem->has_bias)
		out[count++] = &problem->bias;
	out[count++] = &problem->out;
	return count;
}
