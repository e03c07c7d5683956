/* A fake PJRT plug-in that computes nothing. FAKE_PJRT names its fault: "null", "major", "short",
 * "initialize", "client", "devices", "option" (it is a CPU plug-in and takes no options). With any
 * other word it has two devices of the platform ABACUS. */
#include <stdlib.h>
#include <string.h>

#include "adapters/xla/pjrt_api.h"

static bool goes_wrong(const char *how)
{
	const char *asked = getenv("FAKE_PJRT");

	return asked && strcmp(asked, how) == 0;
}

/* Returns an error; any address serves as one. The error's text is the requested fault. */
static struct pjrt_error *error_of(const char *how)
{
	static char error;

	return goes_wrong(how) ? (struct pjrt_error *)&error : NULL;
}

static void error_destroy(struct pjrt_object_args *args)
{
	(void)args;
}

static void error_message(struct pjrt_text_args *args)
{
	args->text = "no such accelerator, and more that is not part of it";
	args->text_bytes = strlen("no such accelerator");
}

static struct pjrt_error *error_code(struct pjrt_code_args *args)
{
	args->code = PJRT_UNIMPLEMENTED;
	return NULL;
}

static struct pjrt_error *initialize(struct pjrt_empty_args *args)
{
	(void)args;
	return error_of("initialize");
}

static struct pjrt_error *client_create(struct pjrt_client_create_args *args)
{
	args->client = NULL;
	return args->option_count > 0 && goes_wrong("option") ? error_of("option")
							      : error_of("client");
}

static struct pjrt_error *devices(struct pjrt_devices_args *args)
{
	static struct pjrt_device *const two[2];

	args->devices = two;
	args->count = goes_wrong("devices") ? 0 : 2;
	return NULL;
}

static struct pjrt_error *name(struct pjrt_text_args *args)
{
	args->text = goes_wrong("option") ? "cpu" : "ABACUS";
	args->text_bytes = strlen(args->text);
	return NULL;
}

static struct pjrt_error *attributes(struct pjrt_attributes_args *args)
{
	args->count = 0;
	return NULL;
}

static struct pjrt_error *description(struct pjrt_description_args *args)
{
	args->description = NULL;
	return NULL;
}

static struct pjrt_error *number(struct pjrt_id_args *args)
{
	args->id = 0;
	return NULL;
}

const struct pjrt_api *GetPjrtApi(void);
__attribute__((visibility("default"))) const struct pjrt_api *GetPjrtApi(void)
{
	static struct pjrt_api api;

	api = (struct pjrt_api){
		.struct_size = goes_wrong("short") ? 200 : sizeof(api),
		.version = {.struct_size = sizeof(api.version),
			    .major = goes_wrong("major") ? 7 : PJRT_MAJOR,
			    .minor = 42},
		.error_destroy = error_destroy,
		.error_message = error_message,
		.error_code = error_code,
		.plugin_initialize = initialize,
		.client_create = client_create,
		.client_platform_name = name,
		.client_platform_version = name,
		.client_addressable_devices = devices,
		.plugin_attributes = attributes,
		.device_description = description,
		.description_id = number,
		.description_kind = name,
	};
	return goes_wrong("null") ? NULL : &api;
}
