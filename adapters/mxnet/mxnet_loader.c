/* Reads a RecordIO file as MXNet's own example image-classification/common/data.py does: shuffled
 * by its index, decoded by the iterator's threads, prefetched. python/own_loader.py describes the
 * requirements for the loaders of all frameworks. */
#include "adapters/mxnet/mxnet_loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

#define ITERATOR "ImageRecordIter"

enum { OPTIONS_MAX = 24, VALUE_BYTES = 32 };

struct options {
	const char *keys[OPTIONS_MAX], *values[OPTIONS_MAX];
	char text[OPTIONS_MAX][VALUE_BYTES];
	uint32_t count;
};

static void add_text(struct options *options, const char *key, const char *value)
{
	options->keys[options->count] = key;
	options->values[options->count++] = value;
}

static void add_number(struct options *options, const char *key, double value)
{
	char *text = options->text[options->count];

	snprintf(text, VALUE_BYTES, "%.9g", value);
	add_text(options, key, text);
}

static void add_integer(struct options *options, const char *key, int64_t value)
{
	char *text = options->text[options->count];

	snprintf(text, VALUE_BYTES, "%" PRId64, value);
	add_text(options, key, text);
}

/* Height and width of the network's input; for a flat input those of the sample. */
static void wanted_sides(const struct loader_data *data, const struct graph *graph,
			 int64_t sides[2])
{
	const struct shape *shape = &graph->values[graph_input(graph, 0)].shape;

	sides[0] = shape->rank == 4 ? shape->dims[2] : data->height;
	sides[1] = shape->rank == 4 ? shape->dims[3] : data->width;
}

enum prony_status mx_loader_supports(const struct loader_data *data, const struct graph *graph,
				     const struct recipe *recipe, struct error *why)
{
	const struct shape *shape = &graph->values[graph_input(graph, 0)].shape;
	int64_t sides[2], elements = shape_elements(shape);

	wanted_sides(data, graph, sides);
	if (strcmp(data->format, "recordio") != 0)
		return error_set(why, PRONY_UNSUPPORTED,
				 "input native: " ITERATOR " reads recordio, not %s", data->format);
	if (elements != recipe->batch * data->channels * sides[0] * sides[1])
		return error_set(why, PRONY_UNSUPPORTED,
				 "input native: a sample of %dx%" PRId64 "x%" PRId64
				 " does not fit the network's input",
				 data->channels, sides[0], sides[1]);
	/* To fill a batch the iterator goes through the file at most once more. */
	if (recipe->batch > data->count)
		return error_set(why, PRONY_UNSUPPORTED,
				 "input native: " ITERATOR " cannot fill a batch of %" PRId64
				 " from a file of %" PRId64 " samples",
				 recipe->batch, data->count);
	return PRONY_OK;
}

/* (value - mean) * scale / std, per channel. */
static void add_scaling(struct options *options, const struct loader_data *data)
{
	static const char *const means[] = {"mean_r", "mean_g", "mean_b", "mean_a"};
	static const char *const deviations[] = {"std_r", "std_g", "std_b", "std_a"};

	for (int i = 0; i < data->channels; i++) {
		add_number(options, means[i], data->mean[i] * data->scale);
		add_number(options, deviations[i], data->deviation[i]);
	}
	add_number(options, "scale", 1 / data->scale);
}

/* Views of photographs, as in the loaders of all frameworks (docs/datasets.md, Photographs). */
static void add_view(struct options *options, const struct loader_data *data,
		     const int64_t sides[2])
{
	if (data->height == sides[0] && data->width == sides[1])
		return;
	if (!data->training) {
		int64_t shorter = sides[0] < sides[1] ? sides[0] : sides[1];

		add_integer(options, "resize", shorter * 8 / 7);
		return;
	}
	add_integer(options, "random_resized_crop", 1);
	add_number(options, "min_random_area", 0.08);
	add_number(options, "max_random_area", 1);
	add_number(options, "min_aspect_ratio", 0.75);
	add_number(options, "max_aspect_ratio", 4. / 3);
	add_integer(options, "rand_mirror", 1);
}

static enum prony_status find_creator(const struct mx_api *api, const void **out, struct error *err)
{
	const void **creators;
	uint32_t count = 0;
	enum prony_status status =
		mx_check(api, api->MXListDataIters(&count, &creators), "list iterators", err);

	for (uint32_t i = 0; status == PRONY_OK && i < count; i++) {
		const char *name = "", *text, **names, **types, **texts;
		uint32_t arguments;

		status = mx_check(api,
				  api->MXDataIterGetIterInfo(creators[i], &name, &text, &arguments,
							     &names, &types, &texts),
				  "describe an iterator", err);
		if (status == PRONY_OK && strcmp(name, ITERATOR) == 0) {
			*out = creators[i];
			return PRONY_OK;
		}
	}
	return status == PRONY_OK ? error_set(err, PRONY_UNSUPPORTED,
					      "input native: this MXNet has no " ITERATOR)
				  : status;
}

static enum prony_status create(struct mx_loader *loader, const struct loader_data *data,
				const struct recipe *recipe, const int64_t sides[2],
				struct error *err)
{
	const struct mx_api *api = loader->api;
	struct strbuf records, index, shape;
	struct options options = {.count = 0};
	const void *creator = NULL;
	enum prony_status status = find_creator(api, &creator, err);

	if (status != PRONY_OK)
		return status;
	strbuf_init(&records, 0);
	strbuf_init(&index, 0);
	strbuf_init(&shape, 0);
	strbuf_printf(&records, "%s/data.rec", data->paths[0]);
	strbuf_printf(&index, "%s/data.idx", data->paths[0]);
	strbuf_printf(&shape, "(%d,%" PRId64 ",%" PRId64 ")", data->channels, sides[0], sides[1]);
	add_text(&options, "path_imgrec", strbuf_text(&records));
	add_text(&options, "path_imgidx", strbuf_text(&index));
	add_text(&options, "data_shape", strbuf_text(&shape));
	add_integer(&options, "batch_size", recipe->batch);
	add_integer(&options, "preprocess_threads", recipe->threads);
	add_integer(&options, "shuffle", data->training);
	add_integer(&options, "seed", (int64_t)(recipe->seed & INT32_MAX));
	add_scaling(&options, data);
	add_view(&options, data, sides);
	status = mx_check(api,
			  api->MXDataIterCreateIter(creator, options.count, options.keys,
						    options.values, &loader->iterator),
			  "create " ITERATOR, err);
	strbuf_release(&records);
	strbuf_release(&index);
	strbuf_release(&shape);
	return status;
}

enum prony_status mx_loader_open(struct mx_loader *loader, const struct mx_api *api,
				 const struct loader_data *data, const struct graph *graph,
				 const struct recipe *recipe, struct error *err)
{
	int64_t sides[2];

	wanted_sides(data, graph, sides);
	*loader = (struct mx_loader){
		.api = api,
		.elements = (size_t)shape_elements(&graph->values[graph_input(graph, 0)].shape),
		.batch = recipe->batch,
		.classes = graph_classes(graph),
	};
	return create(loader, data, recipe, sides, err);
}

enum prony_status mx_loader_next(struct mx_loader *loader, struct error *err)
{
	const struct mx_api *api = loader->api;
	int more = 0;
	enum prony_status status =
		mx_check(api, api->MXDataIterNext(loader->iterator, &more), ITERATOR, err);

	if (status != PRONY_OK || more)
		return status;
	/* The epoch is over. Its last batch was completed from the next epoch. */
	status = mx_check(api, api->MXDataIterBeforeFirst(loader->iterator), ITERATOR, err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXDataIterNext(loader->iterator, &more), ITERATOR, err);
	return status != PRONY_OK || more
		       ? status
		       : error_set(err, PRONY_INVALID, ITERATOR " returned no batch");
}

/* Copies the values of the array that `read` returns, before the array is freed. */
static enum prony_status copy(const struct mx_loader *loader,
			      int (*get)(struct mx_iterator *iterator, struct mx_ndarray **out),
			      size_t elements, struct mx_ndarray *into, const float **values,
			      struct error *err)
{
	const struct mx_api *api = loader->api;
	struct mx_ndarray *array = NULL;
	void *data = NULL;
	enum prony_status status = mx_check(api, get(loader->iterator, &array), ITERATOR, err);

	if (status == PRONY_OK)
		status = mx_check(api, api->MXNDArrayWaitToRead(array), ITERATOR, err);
	if (status == PRONY_OK && mx_array_elements(api, array) != (int64_t)elements)
		status = error_set(err, PRONY_INVALID,
				   ITERATOR " returned %lld values instead of %zu",
				   (long long)mx_array_elements(api, array), elements);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXNDArrayGetData(array, &data), ITERATOR, err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXNDArraySyncCopyFromCPU(into, data, elements),
				  "copy the batch", err);
	*values = data;
	if (array)
		api->MXNDArrayFree(array); /* the iterator keeps the underlying data */
	return status;
}

enum prony_status mx_loader_take(struct mx_loader *loader, const struct mx_slot *slot,
				 struct error *err)
{
	const float *values;
	enum prony_status status = copy(loader, loader->api->MXDataIterGetData, loader->elements,
					slot->inputs[0], &values, err);

	if (status != PRONY_OK || !slot->labels[0])
		return status;
	status = copy(loader, loader->api->MXDataIterGetLabel, (size_t)loader->batch,
		      slot->labels[0], &values, err);
	for (int64_t i = 0; status == PRONY_OK && i < loader->batch; i++)
		if (!(values[i] >= 0 && values[i] < (float)loader->classes))
			status = error_set(err, PRONY_BAD_INPUT,
					   "the file has the label %g, but there are only %" PRId64
					   " classes",
					   (double)values[i], loader->classes);
	return status;
}

void mx_loader_release(struct mx_loader *loader)
{
	if (loader->iterator)
		loader->api->MXDataIterFree(loader->iterator);
	*loader = (struct mx_loader){.iterator = NULL};
}
