/* Calls a PJRT plug-in through its C interface. */
#include "adapters/xla/pjrt.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loader.h"

#define HEAD(type) .struct_size = sizeof(struct type)

static void copy_text(char *out, size_t out_bytes, const char *text, size_t length)
{
	snprintf(out, out_bytes, "%.*s", (int)(length < out_bytes ? length : out_bytes - 1),
		 text ? text : "");
}

/* Converts an error of PJRT and destroys it. */
static enum prony_status check(const struct pjrt *pjrt, struct pjrt_error *error, const char *what,
			       struct error *err)
{
	struct pjrt_text_args message = {HEAD(pjrt_text_args), .object = error};
	struct pjrt_code_args code = {HEAD(pjrt_code_args), .error = error};
	struct pjrt_object_args destroy = {HEAD(pjrt_object_args), .object = error};
	enum prony_status status = PRONY_INVALID;
	char text[ERROR_TEXT_BYTES];

	if (!error)
		return PRONY_OK;
	pjrt->api->error_message(&message);
	copy_text(text, sizeof(text), message.text, message.text_bytes);
	if (!pjrt->api->error_code(&code) && code.code == PJRT_UNIMPLEMENTED)
		status = PRONY_UNSUPPORTED;
	else if (code.code == PJRT_RESOURCE_EXHAUSTED)
		status = PRONY_OUT_OF_MEMORY;
	error_set(err, status, "XLA failed (%s): %s", what, text);
	pjrt->api->error_destroy(&destroy);
	return status;
}

/* Destroys an object; errors are ignored. */
static void destroy(const struct pjrt *pjrt, pjrt_object_function *function, void *object)
{
	struct pjrt_object_args args = {HEAD(pjrt_object_args), .object = object};

	if (object)
		check(pjrt, function(&args), "destroy", NULL);
}

static enum prony_status await(const struct pjrt *pjrt, struct pjrt_event *event, const char *what,
			       struct error *err)
{
	struct pjrt_object_args args = {HEAD(pjrt_object_args), .object = event};
	enum prony_status status;

	if (!event)
		return PRONY_OK;
	status = check(pjrt, pjrt->api->event_await(&args), what, err);
	destroy(pjrt, pjrt->api->event_destroy, event);
	return status;
}

enum prony_status pjrt_load(struct pjrt *pjrt, const char *path, struct error *err)
{
	const struct pjrt_api *(*get_api)(void) = NULL;
	const struct loader_symbol symbols[] = {LOADER_SYMBOL(get_api, "GetPjrtApi")};
	struct pjrt_empty_args initialize = {HEAD(pjrt_empty_args)};
	const struct pjrt_api *api;
	void *library;
	enum prony_status status = loader_open(path, &library, err);

	if (status == PRONY_OK)
		status = loader_resolve(library, path, symbols, 1, err);
	if (status != PRONY_OK)
		return status;
	api = get_api();
	if (!api)
		return error_set(err, PRONY_MISSING, "%s: GetPjrtApi returned no interface", path);
	if (api->version.major != PJRT_MAJOR)
		return error_set(err, PRONY_MISSING,
				 "%s has version %d.%d of the PJRT interface; version %d.x is "
				 "needed",
				 path, api->version.major, api->version.minor, PJRT_MAJOR);
	if (api->struct_size < sizeof(struct pjrt_api))
		return error_set(err, PRONY_MISSING,
				 "%s has version %d.%d of the PJRT interface, whose table has %zu "
				 "bytes instead of %zu; use a newer plug-in",
				 path, api->version.major, api->version.minor, api->struct_size,
				 sizeof(struct pjrt_api));
	pjrt->api = api;
	return check(pjrt, api->plugin_initialize(&initialize), "initialise the plug-in", err);
}

/* Creates the client. The CPU plug-in makes four devices of one processor unless an option sets the
 * number. Plug-ins that refuse the option are started without it. *refusal: the reason of the
 * refusal; "" if the option was accepted. */
static enum prony_status create_client(struct pjrt *pjrt, struct error *refusal, struct error *err)
{
	static const char name[] = "cpu_device_count";
	const struct pjrt_named_value option = {
		HEAD(pjrt_named_value),	  .name = name,	    .name_bytes = sizeof(name) - 1,
		.type = PJRT_VALUE_INT64, .value.int64 = 1, .value_count = 1,
	};
	struct pjrt_client_create_args args = {HEAD(pjrt_client_create_args), .options = &option,
					       .option_count = 1};
	struct error why = ERROR_INIT;

	if (check(pjrt, pjrt->api->client_create(&args), "start a client", refusal) != PRONY_OK) {
		args = (struct pjrt_client_create_args){HEAD(pjrt_client_create_args)};
		check(pjrt, pjrt->api->client_create(&args), "start a client", &why);
	}
	if (why.code != PRONY_OK) /* the plug-in's hardware is not present */
		return error_set(err, PRONY_MISSING, "%s", why.text);
	pjrt->client = args.client;
	return PRONY_OK;
}

enum prony_status pjrt_start(struct pjrt *pjrt, struct error *err)
{
	struct pjrt_devices_args devices = {HEAD(pjrt_devices_args)};
	struct pjrt_text_args name = {HEAD(pjrt_text_args)};
	struct error refusal = ERROR_INIT;
	enum prony_status status = create_client(pjrt, &refusal, err);

	if (status != PRONY_OK)
		return status;
	devices.client = pjrt->client;
	name.object = pjrt->client;
	status = check(pjrt, pjrt->api->client_addressable_devices(&devices), "list devices", err);
	if (status == PRONY_OK)
		status = check(pjrt, pjrt->api->client_platform_name(&name),
			       "get the platform's name", err);
	if (status != PRONY_OK)
		return status;
	pjrt->devices = devices.devices;
	pjrt->device_count = devices.count;
	copy_text(pjrt->platform, sizeof(pjrt->platform), name.text, name.text_bytes);
	if (pjrt_is_cpu(pjrt) && refusal.code != PRONY_OK)
		return error_set(err, PRONY_MISSING,
				 "the plug-in does not accept cpu_device_count=1: %s",
				 refusal.text);
	if (devices.count == 0)
		return error_set(err, PRONY_MISSING, "XLA has no device");
	return pjrt_choose(pjrt, 0, NULL, 0, err);
}

bool pjrt_is_cpu(const struct pjrt *pjrt)
{
	return strcmp(pjrt->platform, "cpu") == 0 || strcmp(pjrt->platform, "Host") == 0;
}

enum prony_status pjrt_choose(struct pjrt *pjrt, size_t index, char *kind, size_t kind_bytes,
			      struct error *err)
{
	struct pjrt_description_args of = {HEAD(pjrt_description_args)};
	struct pjrt_id_args id = {HEAD(pjrt_id_args)};
	struct pjrt_text_args text = {HEAD(pjrt_text_args)};
	enum prony_status status;

	if (index >= pjrt->device_count)
		return error_set(err, PRONY_UNSUPPORTED,
				 "XLA has %zu devices, so there is no device %zu",
				 pjrt->device_count, index);
	of.device = pjrt->devices[index];
	status = check(pjrt, pjrt->api->device_description(&of), "describe a device", err);
	id.description = text.object = of.description;
	if (status == PRONY_OK)
		status = check(pjrt, pjrt->api->description_id(&id), "get a device's number", err);
	if (status == PRONY_OK)
		status =
			check(pjrt, pjrt->api->description_kind(&text), "get a device's name", err);
	if (status != PRONY_OK)
		return status;
	pjrt->device = pjrt->devices[index];
	pjrt->device_id = id.id;
	if (kind)
		copy_text(kind, kind_bytes, text.text, text.text_bytes);
	return PRONY_OK;
}

void pjrt_stop(struct pjrt *pjrt)
{
	if (pjrt->api)
		destroy(pjrt, pjrt->api->client_destroy, pjrt->client);
	pjrt->client = NULL;
}

void pjrt_platform_version(const struct pjrt *pjrt, char *out, size_t out_bytes)
{
	struct pjrt_text_args args = {HEAD(pjrt_text_args), .object = pjrt->client};

	out[0] = '\0';
	if (check(pjrt, pjrt->api->client_platform_version(&args), "get the version", NULL) ==
	    PRONY_OK)
		copy_text(out, out_bytes, args.text, args.text_bytes);
}

bool pjrt_attribute(const struct pjrt *pjrt, const char *name, char *out, size_t out_bytes)
{
	struct pjrt_attributes_args args = {HEAD(pjrt_attributes_args)};
	const struct pjrt_named_value *found = NULL;
	size_t used = 0;

	if (check(pjrt, pjrt->api->plugin_attributes(&args), "get attributes", NULL) != PRONY_OK)
		return false;
	for (size_t i = 0; i < args.count; i++)
		if (args.attributes[i].name_bytes == strlen(name) &&
		    memcmp(args.attributes[i].name, name, strlen(name)) == 0)
			found = &args.attributes[i];
	if (!found)
		return false;
	out[0] = '\0';
	if (found->type == PJRT_VALUE_STRING)
		copy_text(out, out_bytes, found->value.string, found->value_count);
	else if (found->type == PJRT_VALUE_INT64)
		snprintf(out, out_bytes, "%lld", (long long)found->value.int64);
	for (size_t i = 0; found->type > PJRT_VALUE_INT64 && i < found->value_count; i++) {
		if (used < out_bytes)
			used += (size_t)snprintf(out + used, out_bytes - used, "%s%lld",
						 i > 0 ? "." : "",
						 (long long)found->value.int64s[i]);
	}
	return true;
}

enum prony_status pjrt_compile(const struct pjrt *pjrt, const char *text, size_t bytes,
			       struct pjrt_executable **out, struct error *err)
{
	/* CompileOptionsProto{executable_build_options{num_replicas: 1 num_partitions: 1
	 * device_assignment{replica_count: 1 computation_count: 1
	 * computation_devices{replica_device_ids: ID}}}} */
	const char options[] = {0x1a, 14, 0x20, 1, 0x28, 1, 0x4a, 8,
				0x08, 1,  0x10, 1, 0x1a, 2, 0x08, (char)pjrt->device_id};
	static const char format[] = "mlir";
	const struct pjrt_program program = {
		HEAD(pjrt_program),
		.code = (char *)(uintptr_t)text, /* read only */
		.code_bytes = bytes,
		.format = format,
		.format_bytes = sizeof(format) - 1,
	};
	struct pjrt_compile_args args = {
		HEAD(pjrt_compile_args), .client = pjrt->client,	  .program = &program,
		.options = options,	 .option_bytes = sizeof(options),
	};
	enum prony_status status = check(pjrt, pjrt->api->client_compile(&args), "compile", err);

	if (status == PRONY_OK)
		*out = args.executable;
	return status;
}

enum prony_status pjrt_optimised(const struct pjrt *pjrt, struct pjrt_executable *executable,
				 char **out, size_t *bytes, struct error *err)
{
	static const char format[] = "hlo_with_config";
	struct pjrt_loaded_args loaded = {HEAD(pjrt_loaded_args), .loaded = executable};
	struct pjrt_program program = {HEAD(pjrt_program)};
	struct pjrt_optimised_args args = {HEAD(pjrt_optimised_args), .program = &program};
	enum prony_status status =
		check(pjrt, pjrt->api->executable_program(&loaded), "get the executable", err);

	if (status != PRONY_OK)
		return status;
	args.executable = loaded.executable;
	status = check(pjrt, pjrt->api->program_optimised(&args), "get the compiled program's size",
		       err);
	if (status == PRONY_OK && (program.format_bytes != sizeof(format) - 1 ||
				   memcmp(program.format, format, sizeof(format) - 1) != 0))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "XLA returned its compiled program in the unknown format %.*s",
				   (int)program.format_bytes, program.format);
	if (status == PRONY_OK && !(program.code = malloc(program.code_bytes)))
		status = error_set(err, PRONY_NOMEM, "no memory for the program that XLA compiled");
	if (status == PRONY_OK)
		status = check(pjrt, pjrt->api->program_optimised(&args),
			       "get the compiled program", err);
	destroy(pjrt, pjrt->api->program_destroy, loaded.executable);
	if (status == PRONY_OK) {
		*out = program.code;
		*bytes = program.code_bytes;
	} else {
		free(program.code);
	}
	return status;
}

void pjrt_executable_free(const struct pjrt *pjrt, struct pjrt_executable *executable)
{
	destroy(pjrt, pjrt->api->executable_destroy, executable);
}

enum prony_status pjrt_upload(const struct pjrt *pjrt, const void *data, enum pjrt_element type,
			      const struct shape *shape, struct pjrt_buffer **out,
			      struct error *err)
{
	struct pjrt_from_host_args args = {
		HEAD(pjrt_from_host_args),
		.client = pjrt->client,
		.data = data,
		.type = type,
		.dims = shape->dims,
		.rank = (size_t)shape->rank,
		.semantics = PJRT_IMMUTABLE_ONLY_DURING_CALL,
		.device = pjrt->device,
	};
	enum prony_status status =
		check(pjrt, pjrt->api->buffer_from_host(&args), "copy to the device", err);

	if (status != PRONY_OK)
		return status;
	status = await(pjrt, args.done, "copy to the device", err);
	if (status == PRONY_OK)
		*out = args.buffer;
	else
		pjrt_free(pjrt, args.buffer);
	return status;
}

enum prony_status pjrt_download(const struct pjrt *pjrt, struct pjrt_buffer *buffer, int rank,
				void *data, size_t bytes, struct error *err)
{
	int64_t order[TENSOR_MAX_RANK];
	struct pjrt_layout layout = {
		HEAD(pjrt_layout),
		.tiled = {.struct_size = sizeof(layout.tiled),
			  .minor_to_major = order,
			  .minor_to_major_count = (size_t)rank},
		.type = PJRT_LAYOUT_TILED,
	};
	struct pjrt_to_host_args args = {HEAD(pjrt_to_host_args), .buffer = buffer,
					 .host_layout = &layout};
	enum prony_status status;

	for (int i = 0; i < rank; i++)
		order[i] = rank - 1 - i;
	status = check(pjrt, pjrt->api->buffer_to_host(&args), "get the size", err);
	if (status == PRONY_OK && args.bytes != bytes)
		status = error_set(err, PRONY_INVALID, "XLA returned %zu bytes instead of %zu",
				   args.bytes, bytes);
	if (status != PRONY_OK)
		return status;
	args.data = data;
	status = check(pjrt, pjrt->api->buffer_to_host(&args), "copy from the device", err);
	return status == PRONY_OK ? await(pjrt, args.event, "copy from the device", err) : status;
}

int64_t pjrt_elements(const struct pjrt *pjrt, struct pjrt_buffer *buffer)
{
	struct pjrt_dimensions_args args = {HEAD(pjrt_dimensions_args), .buffer = buffer};
	int64_t elements = 1;

	if (check(pjrt, pjrt->api->buffer_dimensions(&args), "get the shape", NULL) != PRONY_OK)
		return -1;
	for (size_t i = 0; i < args.rank; i++)
		elements *= args.dims[i];
	return elements;
}

enum prony_status pjrt_wait(const struct pjrt *pjrt, struct pjrt_buffer *buffer, struct error *err)
{
	struct pjrt_ready_args args = {HEAD(pjrt_ready_args), .buffer = buffer};
	enum prony_status status =
		check(pjrt, pjrt->api->buffer_ready_event(&args), "wait for a result", err);

	return status == PRONY_OK ? await(pjrt, args.event, "run", err) : status;
}

void pjrt_free(const struct pjrt *pjrt, struct pjrt_buffer *buffer)
{
	destroy(pjrt, pjrt->api->buffer_destroy, buffer);
}

enum prony_status pjrt_execute(const struct pjrt *pjrt, struct pjrt_executable *executable,
			       struct pjrt_buffer *const *arguments, size_t argument_count,
			       struct pjrt_buffer **results, struct error *err)
{
	struct pjrt_execute_options options = {HEAD(pjrt_execute_options)};
	struct pjrt_execute_args args = {
		HEAD(pjrt_execute_args), .executable = executable, .options = &options,
		.arguments = &arguments, .device_count = 1,	   .argument_count = argument_count,
		.results = &results,
	};

	return check(pjrt, pjrt->api->executable_execute(&args), "run", err);
}
