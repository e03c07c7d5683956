/* Resize, and Upsample of opsets before 10. */
#include <math.h>
#include <string.h>

#include "graph/edit_internal.h"
#include "graph/resize.h"
#include "onnx/import_internal.h"

/* The factor of an axis, from the scales or the sizes; 0 if it is no whole number. */
static int64_t factor_of(const struct constant *numbers, const struct shape *x, int axis)
{
	double factor = numbers->is_float ? (double)numbers->floats[axis]
					  : (double)numbers->ints[axis] / (double)x->dims[axis];

	return factor >= 1 && factor <= GRAPH_MAX_DIM && factor == floor(factor) ? (int64_t)factor
										 : 0;
}

/* The factors of height and width; false after a refusal. */
static bool read_factors(struct importer *im, const struct file_node *node, const struct shape *x,
			 int64_t out[2])
{
	bool upsample = strcmp(node->proto->op_type, "Upsample") == 0;
	const Onnx__AttributeProto *scales = onnx_attribute(node->proto, "scales");
	/* Resize has the region before the scales from opset 11 on. */
	size_t place = upsample || im->model->facts.opset < 11 ? 1 : import_has(node, 3) ? 3 : 2;
	struct constant numbers = {.is_float = true, .initializer = -1};
	const struct constant *given = &numbers;

	if (scales != NULL && upsample) { /* until opset 8 */
		numbers.floats = scales->floats;
		numbers.count = (int64_t)scales->n_floats;
	} else if (!import_need_constant(im, node, place, &given)) {
		return false;
	}
	if (given->count == 4 && factor_of(given, x, 0) == 1 && factor_of(given, x, 1) == 1) {
		out[0] = factor_of(given, x, 2);
		out[1] = factor_of(given, x, 3);
		if (out[0] > 0 && out[1] > 0)
			return true;
	}
	import_refuse(im, node,
		      "only height and width can be resized, each to a whole multiple of its size");
	return false;
}

/* With whole factors, nearest is repetition for these coordinates and ways of rounding. */
static bool repeats(const char *coordinates, const char *nearest, const int64_t *factors)
{
	bool by_two = factors[0] <= 2 && factors[1] <= 2;

	if (strcmp(coordinates, "asymmetric") == 0)
		return strcmp(nearest, "floor") == 0 ||
		       (by_two && strcmp(nearest, "round_prefer_floor") == 0);
	return strstr(coordinates, "half_pixel") && strncmp(nearest, "round_prefer", 12) == 0;
}

void import_resize(struct importer *im, const struct file_node *node)
{
	bool old = strcmp(node->proto->op_type, "Upsample") == 0 || im->model->facts.opset < 11;
	char mode[16], coordinates[32], nearest[32];
	struct attributes a;
	int x;

	operator_default_attributes(OP_RESIZE, &a);
	onnx_text(node->proto, "mode", "nearest", mode, sizeof(mode));
	onnx_text(node->proto, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
		  coordinates, sizeof(coordinates));
	onnx_text(node->proto, "nearest_mode", old ? "floor" : "round_prefer_floor", nearest,
		  sizeof(nearest));
	if (!import_need_value(im, node, 0, 4, &x) ||
	    !read_factors(im, node, import_shape(im, x), a.strides))
		return;
	a.mode = strcmp(mode, "linear") == 0 ? RESIZE_LINEAR : RESIZE_NEAREST;
	if (strcmp(coordinates, "align_corners") == 0)
		a.coordinates = RESIZE_ALIGN_CORNERS;
	if (onnx_attribute(node->proto, "axes") || onnx_int(node->proto, "antialias", 0) ||
	    (a.mode == RESIZE_NEAREST && strcmp(mode, "nearest") != 0) ||
	    (a.mode == RESIZE_NEAREST ? !repeats(coordinates, nearest, a.strides)
				      : a.coordinates != RESIZE_ALIGN_CORNERS &&
						!strstr(coordinates, "half_pixel"))) {
		import_refuse(im, node, "mode '%s' with '%s' and '%s' is not supported", mode,
			      coordinates, nearest);
		return;
	}
	import_set(im, node, 0, import_append(im, node, OP_RESIZE, &x, 1, &a));
}
