/* Writes reductions, windows, gathers, convolutions and products. */
#include <assert.h>

#include "adapters/xla/hlo_internal.h"

/* Returns the neutral element: 0 for "add", minus infinity for "maximum". */
static struct hlo neutral(struct hlo_text *h, const char *op, enum hlo_type type)
{
	return op[0] == 'a' ? hlo_number(h, (struct hlo){.type = type, .shape = hlo_scalar}, 0)
			    : hlo_minus_infinity(h, type);
}

struct hlo hlo_reduce(struct hlo_text *h, const char *op, struct hlo x, const int *axes, int count)
{
	struct shape shape = {.rank = 0};
	struct hlo start, y;

	if (op[0] == 'a')
		x = hlo_convert(h, x, HLO_F32);
	for (int i = 0; i < x.shape.rank; i++) {
		bool reduced = false;

		for (int k = 0; k < count; k++)
			reduced |= axes[k] == i;
		if (!reduced)
			shape.dims[shape.rank++] = x.shape.dims[i];
	}
	start = neutral(h, op, x.type);
	y = hlo_begin(h, "reduce", x.type, &shape);
	strbuf_printf(&h->text, "(%%v%d init: %%v%d) applies stablehlo.%s across dimensions = [",
		      x.id, start.id, op);
	for (int i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%d", i > 0 ? ", " : "", axes[i]);
	strbuf_puts(&h->text, "]");
	return hlo_end(h, (const struct hlo[]){x, start}, 2, y);
}

static void write_array(struct hlo_text *h, const char *name, const int64_t *numbers, int count)
{
	strbuf_printf(&h->text, "%s = array<i64", name);
	for (int i = 0; i < count; i++)
		strbuf_printf(&h->text, "%s%lld", i > 0 ? ", " : ": ", (long long)numbers[i]);
	strbuf_puts(&h->text, ">");
}

static void write_window(struct hlo_text *h, const struct hlo_window *window, int rank,
			 bool dilation)
{
	strbuf_puts(&h->text, " <{padding = dense<[");
	for (int i = 0; i < rank; i++)
		strbuf_printf(&h->text, "%s[%lld, %lld]", i > 0 ? ", " : "",
			      (long long)window->low[i], (long long)window->high[i]);
	strbuf_printf(&h->text, "]> : tensor<%dx2xi64>, ", rank);
	if (dilation) {
		write_array(h, "window_dilations", window->dilation, rank);
		strbuf_puts(&h->text, ", ");
	}
	write_array(h, "window_dimensions", window->size, rank);
	write_array(h, ", window_strides", window->stride, rank);
	strbuf_puts(&h->text, "}>");
}

/* Writes a region that combines two scalars. */
static void write_region(struct hlo_text *h, enum hlo_type type, const char *op)
{
	struct hlo a = hlo_name(h, type, &hlo_scalar), b = hlo_name(h, type, &hlo_scalar), c;

	strbuf_printf(&h->text, "{\n  ^bb0(%%v%d: ", a.id);
	hlo_write_type(&h->text, type, &hlo_scalar);
	strbuf_printf(&h->text, ", %%v%d: ", b.id);
	hlo_write_type(&h->text, type, &hlo_scalar);
	strbuf_puts(&h->text, "):\n");
	c = op[0] == 'G' ? hlo_compare(h, op, a, b) : hlo_binary(h, op, a, b);
	strbuf_printf(&h->text, "  stablehlo.return %%v%d : ", c.id);
	hlo_write_type(&h->text, c.type, &hlo_scalar);
	strbuf_puts(&h->text, "\n  }");
}

struct hlo hlo_reduce_window(struct hlo_text *h, const char *op, struct hlo x,
			     const struct hlo_window *window)
{
	struct shape shape = x.shape;
	struct hlo start = neutral(h, op, x.type), y;

	for (int i = 0; i < shape.rank; i++)
		shape.dims[i] = (shape.dims[i] + window->low[i] + window->high[i] -
				 (window->size[i] - 1) * window->dilation[i] - 1) /
					window->stride[i] +
				1;
	y = hlo_begin(h, "\"stablehlo.reduce_window\"", x.type, &shape);
	strbuf_printf(&h->text, "(%%v%d, %%v%d)", x.id, start.id);
	write_window(h, window, shape.rank, true);
	strbuf_puts(&h->text, " (");
	write_region(h, x.type, op);
	strbuf_puts(&h->text, ")");
	return hlo_end(h, (const struct hlo[]){x, start}, 2, y);
}

struct hlo hlo_select_and_scatter(struct hlo_text *h, struct hlo x, struct hlo dy,
				  const struct hlo_window *window)
{
	struct hlo zero = neutral(h, "add", x.type);
	struct hlo dx = hlo_begin(h, "\"stablehlo.select_and_scatter\"", x.type, &x.shape);

	strbuf_printf(&h->text, "(%%v%d, %%v%d, %%v%d)", x.id, dy.id, zero.id);
	write_window(h, window, x.shape.rank, false);
	strbuf_puts(&h->text, " (");
	write_region(h, x.type, "GE");
	strbuf_puts(&h->text, ", ");
	write_region(h, x.type, "add");
	strbuf_puts(&h->text, ")");
	return hlo_end(h, (const struct hlo[]){x, dy, zero}, 3, dx);
}

/* Writes dimensions `first` to `end` - 1 as a named list. */
static void write_dimensions(struct hlo_text *h, const char *name, int first, int end)
{
	strbuf_printf(&h->text, "%s = [", name);
	for (int i = first; i < end; i++)
		strbuf_printf(&h->text, "%s%d", i > first ? ", " : "", i);
	strbuf_puts(&h->text, "]");
}

struct hlo hlo_rows(struct hlo_text *h, struct hlo table, struct hlo indices)
{
	struct shape shape = indices.shape;
	int64_t sizes[TENSOR_MAX_RANK] = {1};
	struct hlo y;

	for (int i = 1; i < table.shape.rank; i++)
		shape.dims[shape.rank++] = sizes[i] = table.shape.dims[i];
	y = hlo_begin(h, "\"stablehlo.gather\"", table.type, &shape);
	strbuf_printf(&h->text, "(%%v%d, %%v%d) {dimension_numbers = #stablehlo.gather<", table.id,
		      indices.id);
	write_dimensions(h, "offset_dims", indices.shape.rank, shape.rank);
	strbuf_printf(&h->text,
		      ", collapsed_slice_dims = [0], start_index_map = [0], "
		      "index_vector_dim = %d>",
		      indices.shape.rank);
	write_array(h, ", slice_sizes", sizes, table.shape.rank);
	strbuf_puts(&h->text, "}");
	return hlo_end(h, (const struct hlo[]){table, indices}, 2, y);
}

struct hlo hlo_add_rows(struct hlo_text *h, struct hlo dy, struct hlo indices,
			const struct shape *table)
{
	struct hlo zero = neutral(h, "add", dy.type), zeros = hlo_broadcast(h, zero, NULL, table);
	struct hlo sum = hlo_begin(h, "\"stablehlo.scatter\"", dy.type, table);

	strbuf_printf(&h->text,
		      "(%%v%d, %%v%d, %%v%d) <{scatter_dimension_numbers = #stablehlo.scatter<",
		      zeros.id, indices.id, dy.id);
	write_dimensions(h, "update_window_dims", indices.shape.rank, dy.shape.rank);
	strbuf_printf(&h->text,
		      ", inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
		      "index_vector_dim = %d>}> (",
		      indices.shape.rank);
	write_region(h, dy.type, "add");
	strbuf_puts(&h->text, ")");
	return hlo_end(h, (const struct hlo[]){zeros, indices, dy}, 3, sum);
}

static void write_precision(struct hlo_text *h, const char *before, const char *word,
			    const char *behind)
{
	if (h->exact)
		strbuf_printf(&h->text, "%s[%s HIGHEST%s, %s HIGHEST%s]", before, word, behind,
			      word, behind);
}

struct hlo hlo_convolution(struct hlo_text *h, struct hlo lhs, struct hlo rhs,
			   const struct hlo_conv *conv, enum hlo_type type,
			   const struct shape *shape)
{
	struct hlo y = hlo_begin(h, "convolution", type, shape);

	strbuf_printf(&h->text, "(%%v%d, %%v%d) dim_numbers = %s, window = {", lhs.id, rhs.id,
		      conv->dimensions);
	strbuf_printf(&h->text, "stride = [%lld, %lld], pad = [[%lld, %lld], [%lld, %lld]], ",
		      (long long)conv->stride[0], (long long)conv->stride[1],
		      (long long)conv->low[0], (long long)conv->high[0], (long long)conv->low[1],
		      (long long)conv->high[1]);
	strbuf_printf(&h->text, "lhs_dilate = [%lld, %lld], rhs_dilate = [%lld, %lld]} {",
		      (long long)conv->lhs_dilation[0], (long long)conv->lhs_dilation[1],
		      (long long)conv->rhs_dilation[0], (long long)conv->rhs_dilation[1]);
	strbuf_printf(&h->text, "batch_group_count = %lld : i64, feature_group_count = %lld : i64",
		      (long long)conv->batch_groups, (long long)conv->groups);
	write_precision(h, ", precision_config = ", "#stablehlo<precision", ">");
	strbuf_puts(&h->text, "}");
	h->macs += shape_elements(shape) * conv->terms;
	return hlo_end(h, (const struct hlo[]){lhs, rhs}, 2, y);
}

struct hlo hlo_dot(struct hlo_text *h, struct hlo a, int over_a, struct hlo b, int over_b,
		   enum hlo_type type)
{
	const struct shape shape = {.rank = 2,
				    .dims = {a.shape.dims[1 - over_a], b.shape.dims[1 - over_b]}};
	struct hlo y = hlo_begin(h, "dot_general", type, &shape);

	assert(a.shape.rank == 2 && b.shape.rank == 2);
	strbuf_printf(&h->text, " %%v%d, %%v%d, contracting_dims = [%d] x [%d]", a.id, b.id, over_a,
		      over_b);
	write_precision(h, ", precision = ", "", "");
	h->macs += h->repeat * shape_elements(&shape) * a.shape.dims[over_a];
	return hlo_end(h, (const struct hlo[]){a, b}, 2, y);
}

struct hlo hlo_matrices(struct hlo_text *h, struct hlo a, struct hlo b, enum hlo_type type)
{
	int rank = a.shape.rank;
	struct shape shape = a.shape;
	struct hlo y;

	assert(rank >= 2 && b.shape.rank == rank);
	shape.dims[rank - 1] = b.shape.dims[rank - 1];
	y = hlo_begin(h, "dot_general", type, &shape);
	strbuf_printf(&h->text, " %%v%d, %%v%d, ", a.id, b.id);
	if (rank > 2) {
		write_dimensions(h, "batching_dims", 0, rank - 2);
		strbuf_printf(&h->text, " x [%s], ", rank == 3 ? "0" : "0, 1");
	}
	strbuf_printf(&h->text, "contracting_dims = [%d] x [%d]", rank - 1, rank - 2);
	write_precision(h, ", precision = ", "", "");
	h->macs += h->repeat * shape_elements(&shape) * a.shape.dims[rank - 1];
	return hlo_end(h, (const struct hlo[]){a, b}, 2, y);
}
