/* Makes random inputs and the bundle of a model file that is run unchanged. */
#include "run/model_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/random.h"
#include "bundle/bundle.h"
#include "parity/agreement.h"

/* Integers that index no table are below this. */
#define INTEGERS 10

/* Returns a random 16-bit real number of magnitude 1/8 to 1: sign, exponent and fraction are
 * random. */
static uint16_t random_half(struct random *random, int first_exponent, int fraction_bits)
{
	uint64_t exponent = (uint64_t)first_exponent + random_below(random, 3);
	uint64_t fraction = random_below(random, UINT64_C(1) << fraction_bits);

	return (uint16_t)(random_below(random, 2) << 15 | exponent << fraction_bits | fraction);
}

/* `rows`: integers are below it. */
static void draw(const struct tensor *tensor, uint64_t rows, struct random *random)
{
	int64_t count = shape_elements(&tensor->shape);

	for (int64_t i = 0; i < count; i++) {
		switch (tensor->dtype) {
		case DTYPE_F32:
			((float *)tensor->data)[i] = (float)random_normal(random);
			break;
		case DTYPE_F64:
			((double *)tensor->data)[i] = random_normal(random);
			break;
		case DTYPE_F16:
			((uint16_t *)tensor->data)[i] = random_half(random, 12, 10);
			break;
		case DTYPE_BF16:
			((uint16_t *)tensor->data)[i] = random_half(random, 124, 7);
			break;
		case DTYPE_I32:
			((int32_t *)tensor->data)[i] = (int32_t)random_below(random, rows);
			break;
		case DTYPE_I64:
			((int64_t *)tensor->data)[i] = (int64_t)random_below(random, rows);
			break;
		default: /* U8, which may be a bool */
			((uint8_t *)tensor->data)[i] = (uint8_t)random_below(random, 2);
			break;
		}
	}
}

/* Copies a batch; its real numbers get noise. */
static void draw_again(const struct tensor *tensor, const struct tensor *from,
		       struct random *random)
{
	int64_t count = shape_elements(&tensor->shape);

	memcpy(tensor->data, from->data, (size_t)tensor_bytes(from));
	for (int64_t i = 0; i < count && tensor->dtype == DTYPE_F32; i++)
		((float *)tensor->data)[i] *= (float)(1 + AGREEMENT_NOISE * random_normal(random));
}

bool model_work_is_quantised(const struct plan_cell *cell)
{
	enum precision precision = cell->network->file->precision;

	return precision == PRECISION_INT8 || precision == PRECISION_MIXED;
}

enum prony_status model_work_init(struct workload *work, const struct plan_cell *cell,
				  uint64_t seed, struct error *err)
{
	enum prony_status status = network_model_ports(cell->network, cell->recipe.batch,
						       &work->arena, &work->model, err);
	size_t ports = work->model.inputs.count, slots = (size_t)cell->recipe.slots;

	if (status == PRONY_OK)
		status = network_model_bytes(cell->network, &work->model, err);
	if (status != PRONY_OK)
		return status;
	work->is_model = true;
	work->inputs.tensors = arena_array(&work->arena, ports * slots, sizeof(struct tensor));
	for (size_t i = 0; i < ports * slots && status == PRONY_OK; i++) {
		const struct tensor *port = &work->model.inputs.tensors[i % ports];
		const char *name = arena_printf(&work->arena, BUNDLE_INPUT_ROLE ".%zu.%zu",
						i / ports, i % ports);
		struct random random;
		int64_t rows;
		struct input_fill fill = network_model_fill(cell->network, i % ports, &rows);

		status = tensor_new(&work->arena, name, port->dtype, &port->shape,
				    &work->inputs.tensors[i], err);
		if (status != PRONY_OK)
			break;
		random_init_named(&random, seed, name);
		if (i >= MODEL_BATCHES * ports && model_work_is_quantised(cell)) {
			draw_again(&work->inputs.tensors[i],
				   &work->inputs.tensors[i % (MODEL_BATCHES * ports)], &random);
		} else {
			draw(&work->inputs.tensors[i], rows > 0 ? (uint64_t)rows : INTEGERS,
			     &random);
			status = input_fill_apply(&fill, &work->inputs.tensors[i], rows, seed, name,
						  err);
		}
		work->inputs.count++;
	}
	return status;
}

enum prony_status model_work_write_bundle(const struct workload *work, const struct plan_cell *cell,
					  const char *folder, struct error *err)
{
	char *file = work->files ? path_join(work->files, BUNDLE_MODEL_FILE) : NULL;
	char *input = work->files ? path_join(work->files, BUNDLE_INPUT_FILE) : NULL;
	const struct bundle_shared shared = {.weights = file, .input = input};
	json_t *about = json_pack("{s:s, s:s}", "key", cell->key, "hash", cell->hash);
	enum prony_status status = directory_make(folder, err);

	if (status == PRONY_OK)
		status = bundle_write_model(folder, &cell->recipe, &work->model, &work->inputs,
					    &shared, about, err);
	json_decref(about);
	free(file);
	free(input);
	return status;
}
