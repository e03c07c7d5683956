/* Copies between layouts and types, and fills. */
#include "adapters/native/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#include "adapters/native/cuda/kernels/arguments.h"

enum { TILE = 32 };

struct layout cuda_image(const struct lowering *l, enum dtype type, int rank, const int64_t *dims)
{
	return rank == 4 && l->program->device->precision != PRECISION_FP32
		       ? layout_channels_last(type, rank, dims)
		       : layout_row_major(type, rank, dims);
}

enum prony_status cuda_activation(struct lowering *l, int value, const char *name, int *out,
				  struct error *err)
{
	enum prony_status status = lower_value(l, value, name, out, err);
	const struct layout *own;
	struct layout wanted;

	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, *out);
	wanted = cuda_image(l, l->data, own->rank, own->dims);
	return lower_as(l, *out, &wanted, name, out, err);
}

enum prony_status cuda_new_image(struct lowering *l, enum dtype type, int rank, const int64_t *dims,
				 int *out, struct error *err)
{
	struct layout layout = cuda_image(l, type, rank, dims);

	return program_operand(l->program, &layout, REGION_PLANNED, out, err);
}

static void set_dim(struct copy_shape *s, int to, int from)
{
	s->dims[to] = s->dims[from];
	s->from[to] = s->from[from];
	s->to[to] = s->to[from];
}

static void swap_dims(struct copy_shape *s, int a, int b)
{
	struct copy_shape old = *s;

	set_dim(s, a, b);
	s->dims[b] = old.dims[a];
	s->from[b] = old.from[a];
	s->to[b] = old.to[a];
}

/* Sorts dimensions so that the target is written in order, and merges those that are adjacent on
 * both sides: fewer dimensions mean fewer divisions per element. */
static void simplify(struct copy_shape *s)
{
	int kept = 0, last = 0;

	for (int i = 0; i < s->rank; i++) {
		if (s->dims[i] == 1)
			continue;
		set_dim(s, kept, i);
		for (int k = kept++; k > 0 && s->to[k - 1] < s->to[k]; k--)
			swap_dims(s, k - 1, k);
	}
	for (int i = 1; i < kept; i++) {
		long long dims = s->dims[last] * s->dims[i];
		bool adjacent = s->from[last] == s->from[i] * s->dims[i] &&
				s->to[last] == s->to[i] * s->dims[i];

		set_dim(s, adjacent ? last : ++last, i);
		if (adjacent)
			s->dims[last] = dims;
	}
	if (kept == 0)
		s->dims[0] = 1;
	s->rank = last + 1;
}

static struct copy_shape shape_of(int rank, const int64_t *dims, const struct box *from,
				  const struct box *to)
{
	struct copy_shape s = {
		.rank = rank, .elements = 1, .from_start = from->start, .to_start = to->start};

	for (int i = 0; i < rank; i++) {
		s.dims[i] = dims[i];
		s.from[i] = from->strides[i];
		s.to[i] = to->strides[i];
		s.elements *= dims[i];
	}
	simplify(&s);
	return s;
}

/* Whether the copy transposes dense matrices; large ones are worth tiles. */
static bool is_transpose(const struct copy_shape *s, struct transpose_shape *out)
{
	int r = s->rank - 2; /* columns of the target's rows are at r + 1 */
	long long matrix;

	if ((s->rank != 2 && s->rank != 3) || s->from_start != 0 || s->to_start != 0)
		return false;
	matrix = s->dims[r] * s->dims[r + 1];
	*out = (struct transpose_shape){.batch = s->rank == 3 ? s->dims[0] : 1,
					.rows = s->dims[r + 1],
					.columns = s->dims[r]};
	return s->to[r + 1] == 1 && s->to[r] == s->dims[r + 1] && s->from[r] == 1 &&
	       s->from[r + 1] == s->dims[r] && s->dims[r] >= 4 && s->dims[r + 1] >= 4 &&
	       (s->rank == 2 || (s->from[0] == matrix && s->to[0] == matrix));
}

static const char *type_word(enum dtype type)
{
	return type == DTYPE_F16 ? "f16" : type == DTYPE_BF16 ? "bf16" : "f32";
}

/* A kernel and its third argument; the first two are the target and the source. */
struct copy_launch {
	char kernel[32];
	enum dtype suffix;
	bool tiles;
	int64_t threads; /* in all */
	struct copy_shape shape;
	struct transpose_shape matrices; /* if tiles */
};

static struct copy_launch plan_copy(enum dtype from, enum dtype to, const struct copy_shape *s)
{
	struct copy_launch plan = {.suffix = to, .threads = s->elements, .shape = *s};

	if (from == DTYPE_I32) {
		snprintf(plan.kernel, sizeof(plan.kernel), "copy_i32");
		plan.suffix = DTYPE_COUNT;
		return plan;
	}
	plan.tiles = is_transpose(s, &plan.matrices);
	if (plan.tiles)
		plan.threads = plan.matrices.batch * ((plan.matrices.rows + TILE - 1) / TILE) *
			       ((plan.matrices.columns + TILE - 1) / TILE) * CUDA_THREADS;
	snprintf(plan.kernel, sizeof(plan.kernel), "%s_%s_to", plan.tiles ? "transpose" : "copy",
		 type_word(from));
	return plan;
}

static void add_copy(struct lowering *l, const char *name, const char *what, int from, int to,
		     const struct copy_shape *s)
{
	struct copy_launch plan =
		plan_copy(lower_layout(l, from)->type, lower_layout(l, to)->type, s);
	struct work *work = cuda_kernel(l, name, what, plan.kernel, plan.suffix, plan.threads);

	cuda_operand(l, work, to);
	cuda_operand(l, work, from);
	if (plan.tiles)
		cuda_struct(l, work, &plan.matrices, sizeof(plan.matrices));
	else
		cuda_struct(l, work, &plan.shape, sizeof(plan.shape));
}

static struct box box_of(const struct layout *layout)
{
	struct box box = {0};

	memcpy(box.strides, layout->strides, sizeof(layout->strides));
	return box;
}

/* The shape of a copy between two layouts; PRONY_UNSUPPORTED between integers and others. */
static enum prony_status shape_between(const struct layout *from, const struct layout *to,
				       const char *name, struct copy_shape *out, struct error *err)
{
	struct box source = box_of(from), target = box_of(to);

	if ((from->type == DTYPE_I32) != (to->type == DTYPE_I32))
		return error_set(err, PRONY_UNSUPPORTED,
				 "'%s' converts between integers and floating-point numbers", name);
	*out = shape_of(from->rank, from->dims, &source, &target);
	return PRONY_OK;
}

enum prony_status cuda_copy(struct lowering *l, int from, int to, const char *name,
			    const char *what, struct error *err)
{
	struct copy_shape s;
	enum prony_status status =
		shape_between(lower_layout(l, from), lower_layout(l, to), name, &s, err);

	if (status == PRONY_OK)
		add_copy(l, name, what, from, to, &s);
	return status;
}

enum prony_status cuda_convert(struct program *program, int from, int to, struct error *err)
{
	struct device *device = program->device;
	struct operand *source = &program->operands[from], *target = &program->operands[to];
	struct copy_launch plan;
	struct copy_shape s;
	enum prony_status status =
		shape_between(&source->layout, &target->layout, "weights", &s, err);
	struct CUfunc_st *function;

	if (status != PRONY_OK)
		return status;
	plan = plan_copy(source->layout.type, target->layout.type, &s);
	status = cuda_find_kernel(device, plan.kernel, plan.suffix, &function, err);
	if (status == PRONY_OK)
		status = cuda_check(
			&device->driver,
			device->driver.LaunchKernel(
				function, cuda_grid(device, plan.threads), 1, 1, CUDA_THREADS, 1, 1,
				0, device->stream,
				(void *[]){&target->data, &source->data,
					   plan.tiles ? (void *)&plan.matrices : &plan.shape},
				NULL),
			"copy", "weights", err);
	return status == PRONY_OK ? program->backend->sync(device, err) : status;
}

void cuda_copy_box(struct lowering *l, const char *name, int rank, const int64_t *dims, int from,
		   const struct box *source, int to, const struct box *target)
{
	struct copy_shape s = shape_of(rank, dims, source, target);

	add_copy(l, name, "copy", from, to, &s);
}

void cuda_fill(struct lowering *l, const char *name, int operand, double value)
{
	const struct layout *layout = lower_layout(l, operand);
	int64_t elements = (int64_t)layout_elements(layout);
	struct work *work = cuda_kernel(l, name, "fill", "fill", layout->type, elements);

	cuda_operand(l, work, operand);
	cuda_float(l, work, value);
	cuda_long(l, work, elements);
}
