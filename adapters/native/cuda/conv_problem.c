/* What is to be planned: a convolution of the graph in a precision. */
#include <stdio.h>
#include <string.h>

#include "adapters/native/cuda/conv_plan.h"

const char *conv_kind_word(enum conv_kind kind)
{
	static const char *const words[] = {"forward", "input gradient", "weight gradient"};

	return words[kind];
}

struct conv_problem conv_problem_of(const struct graph *graph, int n, enum conv_kind kind,
				    enum dtype type, bool strict)
{
	const struct node *node = &graph->nodes[n];
	const struct attributes *a = &node->attributes;
	bool back = node->op == OP_CONV_TRANSPOSE;
	struct conv_problem problem;

	/* Padding bytes too: equal problems are compared by their bytes. */
	memset(&problem, 0, sizeof(problem));
	problem.kind = kind;
	problem.type = problem.w_type = type;
	problem.strict = strict;
	problem.channels_last = !strict;
	for (int i = 0; i < 4; i++) {
		problem.x[i] =
			graph->values[back ? node->outputs[0] : node->inputs[0]].shape.dims[i];
		problem.w[i] = graph->values[node->inputs[1]].shape.dims[i];
		problem.y[i] =
			graph->values[back ? node->inputs[0] : node->outputs[0]].shape.dims[i];
	}
	for (int i = 0; i < 2; i++) {
		problem.strides[i] = a->strides[i];
		problem.dilations[i] = a->dilations[i];
		problem.before[i] = a->pads[i];
		problem.after[i] = a->pads[2 + i];
	}
	return problem;
}

void conv_problem_key(const struct conv_problem *problem, char out[CONV_KEY_BYTES])
{
	const int64_t *x = problem->x, *w = problem->w, *y = problem->y;

	snprintf(out, CONV_KEY_BYTES,
		 "%s %s %s%s %s x %lld %lld %lld %lld w %lld %lld %lld %lld y %lld %lld "
		 "strides %lld %lld dilations %lld %lld before %lld %lld after %lld %lld%s%s%s",
		 conv_kind_word(problem->kind), dtype_name(problem->type),
		 dtype_name(problem->w_type), problem->strict ? " strict" : "",
		 problem->channels_last ? "nhwc" : "nchw", (long long)x[0], (long long)x[1],
		 (long long)x[2], (long long)x[3], (long long)w[0], (long long)w[1],
		 (long long)w[2], (long long)w[3], (long long)y[2], (long long)y[3],
		 (long long)problem->strides[0], (long long)problem->strides[1],
		 (long long)problem->dilations[0], (long long)problem->dilations[1],
		 (long long)problem->before[0], (long long)problem->before[1],
		 (long long)problem->after[0], (long long)problem->after[1],
		 problem->sum ? " sum" : "", problem->bias ? " bias" : "",
		 problem->relu ? " relu" : "");
}

unsigned conv_forbidden_notes(const struct conv_problem *problem)
{
	/* Neither is tf32: operands of fewer bits, or sums. */
	const unsigned reduced = 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
				 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;

	if (!problem->strict)
		return reduced;
	return reduced | 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_FFT |
	       1u << CUDNN_NUMERICAL_NOTE_WINOGRAD | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
	       1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
	       1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
}
