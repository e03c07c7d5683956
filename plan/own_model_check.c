/* Compares the imported network with the model's own eager run in its framework. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "bundle/safetensors.h"
#include "parity/bounds.h"
#include "parity/reference.h"
#include "plan/own_model.h"

#define EAGER_OUTPUT "eager output" /* as in python/export_model.py */

/* Replaces each row of logits by its softmax, or the logarithm of that. */
static void take_softmax(double *logits, int64_t rows, int64_t classes, bool logarithm)
{
	for (int64_t i = 0; i < rows; i++) {
		double *row = logits + i * classes, largest = row[0], sum = 0;

		for (int64_t k = 0; k < classes; k++)
			largest = fmax(largest, row[k]);
		for (int64_t k = 0; k < classes; k++)
			sum += exp(row[k] - largest);
		for (int64_t k = 0; k < classes; k++) {
			double value = row[k] - largest - log(sum);

			row[k] = logarithm ? value : exp(value);
		}
	}
}

static double root_mean_square(const double *values, int64_t count)
{
	double squares = 0;

	for (int64_t i = 0; i < count; i++)
		squares += values[i] * values[i];
	return sqrt(squares / (double)count);
}

/* Returns the largest difference over the root mean square, as the gate has it, and widens the
 * bound where a softmax is compared: an error d of a logit changes a probability p by at most 2pd,
 * and its logarithm by 2d. */
static double compare(const struct network_file *file, const struct graph *graph,
		      const double *logits, const float *eager, double *bound)
{
	int64_t count = shape_elements(&graph->values[graph->logits].shape);
	int64_t classes = graph_classes(graph);
	double *wanted = memory_alloc((size_t)count * sizeof(*wanted)), largest = 0, scale;
	bool negative = false;

	for (int64_t i = 0; i < count; i++) {
		wanted[i] = logits[i];
		negative |= eager[i] < 0;
	}
	if (file->softmax_left_out) {
		*bound *= fmax(1, 2 * root_mean_square(wanted, count));
		take_softmax(wanted, count / classes, classes, negative);
	}
	scale = root_mean_square(wanted, count);
	for (int64_t i = 0; i < count; i++) {
		double difference = fabs((double)eager[i] - wanted[i]);

		if (!(difference <= largest)) /* fmax would drop a NaN */
			largest = difference;
	}
	free(wanted);
	return scale > 0 ? largest / scale : largest;
}

static const struct tensor *find_tensor(const struct tensor_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcmp(set->tensors[i].name, name) == 0)
			return &set->tensors[i];
	return NULL;
}

/* Runs the reference on the eager run's batch; *difference and *bound are set. */
static enum prony_status evaluate(const struct network_file *file, const struct graph *graph,
				  const struct tensor_set *weights, const struct tensor_set *eager,
				  double *difference, double *bound, struct error *err)
{
	const struct tensor *output = find_tensor(eager, EAGER_OUTPUT);
	struct tensor inputs[NETWORK_MAX_INPUTS];
	int count = file->network.input_count;
	struct reference ref;
	struct recipe recipe;
	enum prony_status status;
	int64_t elements;

	for (int i = 0; i < count; i++) {
		const struct tensor *input =
			find_tensor(eager, network_input_name(&file->network, i));

		if (!input)
			return error_set(err, PRONY_MISMATCH,
					 "the export lacks a batch of its input %.80s",
					 network_input_name(&file->network, i));
		inputs[i] = *input;
	}
	recipe_defaults(&recipe);
	status = reference_init(&ref, graph, weights, err);
	if (status == PRONY_OK)
		status = reference_feed(
			&ref, (struct batch){.inputs = inputs, .input_count = count}, err);
	if (status == PRONY_OK)
		status = reference_forward(&ref, &recipe, false, err);
	if (status == PRONY_OK) {
		const double *logits = reference_value(&ref, graph->logits, &elements);

		if (!output || shape_elements(&output->shape) != elements)
			status = error_set(err, PRONY_MISMATCH,
					   "the imported network has other outputs than the model");
		else
			*difference = compare(file, graph, logits, output->data, bound);
	}
	reference_release(&ref);
	return status;
}

/* Adds a line to what is said of the network. */
static void add_remark(struct network_file *file, const char *by, double difference, double bound)
{
	char *before = file->remark;

	if (file->reason)
		file->remark =
			memory_printf("%s%s%s: has no graph, so nothing compares it with "
				      "its eager run in %s",
				      before ? before : "", before ? "\n" : "", file->name, by);
	else
		file->remark = memory_printf("%s%s%s: the reference gives the logits of its eager "
					     "run in %s to %.2g (at most %.2g)",
					     before ? before : "", before ? "\n" : "", file->name,
					     by, difference, bound);
	free(before);
}

enum prony_status own_model_check(struct network_file *file, const char *folder, const char *by,
				  struct error *err)
{
	char *path = path_join(folder, "eager.safetensors");
	double difference = 0, bound = 0;
	struct tensor_set eager, weights;
	struct mapped_file map = {0};
	struct graph graph = {0};
	enum prony_status status = PRONY_OK;
	struct arena arena;

	arena_init(&arena, 0);
	if (!file->reason)
		status = safetensors_map_file(path, &arena, &map, &eager, err);
	if (status == PRONY_OK && !file->reason) {
		int64_t batch = eager.count ? eager.tensors[0].shape.dims[0] : 0;

		status = network_build(&file->network, batch, &graph, err);
		if (status == PRONY_OK)
			status = network_weights(&file->network, &graph, 0, &arena, &weights, err);
		if (status == PRONY_OK) {
			bound = parity_bounds_for(&graph, PRECISION_FP32).logits;
			status = evaluate(file, &graph, &weights, &eager, &difference, &bound, err);
		}
		graph_release(&graph);
		safetensors_unmap(&map);
	}
	if (status == PRONY_OK && !(difference <= bound))
		status = error_set(err, PRONY_MISMATCH,
				   "the imported network's logits differ by %.2g from those of the "
				   "model's own eager run in %s; rounding explains at most %.2g. "
				   "What forward() does beside the exported operators (dropout in "
				   "eval mode, Python's own branches) is lost",
				   difference, by, bound);
	if (status == PRONY_OK)
		add_remark(file, by, difference, bound);
	arena_release(&arena);
	free(path);
	return status;
}
