/* The bundle of a user's model file run unchanged: case.json has "model" instead of "graph". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "bundle/case_internal.h"

static json_t *port_to_json(const struct tensor *port, bool shaped)
{
	json_t *dims = json_array();

	for (int i = 0; i < port->shape.rank; i++)
		json_array_append_new(dims, json_integer(port->shape.dims[i]));
	json_t *json =
		json_pack("{s:s, s:s}", "name", port->name, "dtype", dtype_name(port->dtype));
	if (json && shaped)
		json_object_set(json, "shape", dims);
	json_decref(dims);
	return json;
}

static json_t *ports_to_json(const struct tensor_set *ports, bool shaped)
{
	json_t *array = json_array();

	for (size_t i = 0; i < ports->count; i++)
		json_array_append_new(array, port_to_json(&ports->tensors[i], shaped));
	return array;
}

/* Writes the file itself, or a link to the file that bundles of the same work share. */
static enum prony_status put_file(const struct model_file *model, const char *folder,
				  const char *shared, struct error *err)
{
	char *path = path_join(folder, BUNDLE_MODEL_FILE);
	enum prony_status status = PRONY_OK;

	if (shared && !file_exists(shared))
		status = file_write_atomic(shared, model->bytes, model->length, err);
	if (status == PRONY_OK && shared)
		unlink(path);
	if (status == PRONY_OK && (!shared || link(shared, path) != 0))
		status = file_write_atomic(path, model->bytes, model->length, err);
	free(path);
	return status;
}

static enum prony_status copy_file(const char *from, const char *to, struct error *err)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct stat about;
	void *bytes = MAP_FAILED;
	enum prony_status status;

	if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0)
		bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED)
		return error_set(err, PRONY_IO, "%s: cannot be read, or is empty", from);
	status = file_write_atomic(to, bytes, (size_t)about.st_size, err);
	munmap(bytes, (size_t)about.st_size);
	return status;
}

/* A hard link, or one to a copy on the bundle's file system: engines refuse external data that are
 * symbolic links out of the model's folder. */
static enum prony_status link_data(const struct model_data *data, const char *path,
				   const char *shared, struct error *err)
{
	char *copy = shared ? memory_printf("%s.%s", shared, data->name) : NULL;
	enum prony_status status = PRONY_OK;

	unlink(path);
	if (link(data->path, path) != 0) {
		if (copy && !file_exists(copy))
			status = copy_file(data->path, copy, err);
		if (status == PRONY_OK && (!copy || link(copy, path) != 0))
			status = copy_file(data->path, path, err);
	}
	free(copy);
	return status;
}

/* Puts a file with weights into the bundle, whose own files it must not replace. */
static enum prony_status put_data(const struct model_data *data, const char *folder,
				  const char *shared, struct error *err)
{
	static const char *const own[] = {BUNDLE_CASE_FILE,  BUNDLE_MODEL_FILE,
					  BUNDLE_INPUT_FILE, BUNDLE_RECORDS_FILE,
					  BUNDLE_READ_FILE,  BUNDLE_PROFILE_FILE};
	enum prony_status status;
	char *path;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(data->name, own[i]) == 0)
			return error_set(err, PRONY_UNSUPPORTED,
					 "a file with weights of the model is called %s, as one of "
					 "the case bundle: rename it",
					 own[i]);
	path = path_join(folder, data->name);
	status = link_data(data, path, shared, err);
	free(path);
	return status;
}

enum prony_status bundle_write_model(const char *folder, const struct recipe *recipe,
				     const struct model_file *model,
				     const struct tensor_set *batches,
				     const struct bundle_shared *shared, json_t *cell,
				     struct error *err)
{
	enum prony_status status = put_file(model, folder, shared ? shared->weights : NULL, err);
	json_t *names = json_array();

	for (size_t i = 0; status == PRONY_OK && i < model->data_count; i++) {
		status = put_data(&model->data[i], folder, shared ? shared->weights : NULL, err);
		json_array_append_new(names, json_string(model->data[i].name));
	}
	if (status == PRONY_OK)
		status = case_put_set(batches, folder, BUNDLE_INPUT_FILE,
				      shared ? shared->input : NULL, err);
	if (status != PRONY_OK) {
		json_decref(names);
		return status;
	}
	json_t *document = json_pack("{s:i, s:{s:s, s:s, s:s, s:s}, s:o, s:{s:o, s:o}}", "schema",
				     BUNDLE_SCHEMA, "files", "model", BUNDLE_MODEL_FILE, "input",
				     BUNDLE_INPUT_FILE, "records", BUNDLE_RECORDS_FILE, "read",
				     BUNDLE_READ_FILE, "recipe", recipe_to_json(recipe), "model",
				     "inputs", ports_to_json(&model->inputs, true), "outputs",
				     ports_to_json(&model->outputs, false));

	if (document && cell)
		json_object_set(document, "cell", cell);
	if (document && model->data_count > 0)
		json_object_set(json_object_get(document, "model"), "external", names);
	json_decref(names);
	/* Written last: a folder with a case.json is a complete bundle. */
	status = case_write(folder, document, err);
	json_decref(document);
	return status;
}

static enum prony_status read_port(const json_t *row, bool shaped, struct arena *arena,
				   struct tensor *out, struct error *err)
{
	const char *name, *word;
	json_t *dims = NULL;
	enum prony_status status = json_get_string(row, "name", &name, err);

	if (status == PRONY_OK)
		status = json_get_string(row, "dtype", &word, err);
	if (status == PRONY_OK && shaped)
		status = json_get_array(row, "shape", &dims, err);
	if (status != PRONY_OK)
		return status;
	*out = (struct tensor){.name = arena_strdup(arena, name)};
	if (dtype_parse(word, &out->dtype) != 0)
		return error_set(err, PRONY_BAD_INPUT, "unknown \"dtype\" of %.80s: \"%.40s\"",
				 name, word);
	if (json_array_size(dims) > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "\"shape\" of %.80s has too many dimensions (%zu)", name,
				 json_array_size(dims));
	for (size_t i = 0; i < json_array_size(dims); i++)
		out->shape.dims[out->shape.rank++] = json_integer_value(json_array_get(dims, i));
	if (shaped && tensor_bytes(out) <= 0)
		return error_set(err, PRONY_BAD_INPUT, "invalid \"shape\" of %.80s", name);
	return PRONY_OK;
}

static enum prony_status read_ports(const json_t *model, const char *key, bool shaped,
				    struct arena *arena, struct tensor_set *out, struct error *err)
{
	json_t *rows;
	enum prony_status status = json_get_array(model, key, &rows, err);

	if (status != PRONY_OK)
		return status;
	size_t count = json_array_size(rows);
	if (count < 1 || count > MODEL_FILE_PORTS_MAX)
		return error_set(err, PRONY_BAD_INPUT,
				 "\"%s\" has %zu entries; it must have 1 to %d", key, count,
				 MODEL_FILE_PORTS_MAX);
	out->tensors = arena_array(arena, count, sizeof(struct tensor));
	for (out->count = 0; out->count < count && status == PRONY_OK; out->count++)
		status = read_port(json_array_get(rows, out->count), shaped, arena,
				   &out->tensors[out->count], err);
	return status;
}

enum prony_status case_read_model(const json_t *document, const char *folder, struct bundle *bundle,
				  struct error *err)
{
	json_t *model;
	enum prony_status status = json_get_object(document, "model", &model, err);

	if (status == PRONY_OK)
		status = read_ports(model, "inputs", true, &bundle->arena, &bundle->model.inputs,
				    err);
	if (status == PRONY_OK)
		status = read_ports(model, "outputs", false, &bundle->arena, &bundle->model.outputs,
				    err);
	if (status == PRONY_OK && json_object_get(model, "external"))
		bundle->model.data_folder = arena_strdup(&bundle->arena, folder);
	return status;
}

/* Sorts the inputs: all of slot 0, then all of slot 1, and so on, each in the model's order. */
static enum prony_status arrange_batches(struct bundle *bundle, const struct tensor_set *file,
					 struct error *err)
{
	const struct tensor_set *ports = &bundle->model.inputs;
	size_t count = ports->count * (size_t)bundle->recipe.slots;

	if (file->count != count)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu tensors; the model's inputs times \"slots\" of the "
				 "recipe is %zu",
				 file->count, count);
	bundle->inputs.tensors = arena_try_array(&bundle->arena, count, sizeof(struct tensor), err);
	if (!bundle->inputs.tensors)
		return PRONY_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct tensor *port = &ports->tensors[i % ports->count];
		char name[2 * BUNDLE_NAME_BYTES];

		snprintf(name, sizeof(name), BUNDLE_INPUT_ROLE ".%zu.%zu", i / ports->count,
			 i % ports->count);
		const struct tensor *tensor = tensor_find(file, name);
		if (!tensor)
			return error_set(err, PRONY_BAD_INPUT, "%s is missing", name);
		enum prony_status status =
			case_check_tensor(tensor, port->dtype, &port->shape, err);
		if (status != PRONY_OK)
			return status;
		bundle->inputs.tensors[i] = *tensor;
		bundle->inputs.tensors[i].name = port->name;
	}
	bundle->inputs.count = count;
	return PRONY_OK;
}

enum prony_status case_read_model_files(const char *model, const char *input, struct bundle *bundle,
					struct error *err)
{
	struct tensor_set set;
	enum prony_status status = file_read(model, BUNDLE_MODEL_MAX_BYTES, &bundle->model_bytes,
					     &bundle->model.length, err);

	bundle->model.bytes = bundle->model_bytes;
	if (status == PRONY_OK)
		status = safetensors_map_file(input, &bundle->arena, &bundle->input_map, &set, err);
	if (status != PRONY_OK)
		return status;
	status = arrange_batches(bundle, &set, err);
	if (status != PRONY_OK)
		error_prefix(err, "%s", input);
	return status;
}
