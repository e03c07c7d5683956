#include "frameworks/registry.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/nearest.h"
#include "frameworks/internal.h"

#define NEAREST_MAX 64
#define ALL_TRAINING (1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN)

const struct framework framework_registry[] = {
	{.name = "native",
	 .summary = "our own executor on oneDNN: the floor under every other number",
	 .kind = FRAMEWORK_LIBRARY,
	 .adapter = "native",
	 .options = "",
	 .library_pattern = "*/data/lib/libdnnl.so.3*",
	 .distribution = "onednn-cpu-gomp",
	 .stages = ALL_TRAINING,
	 .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_BF16,
	 .essential = true},
	{.name = "onnxruntime",
	 .summary = "ONNX Runtime through its C interface, forward only",
	 .kind = FRAMEWORK_LIBRARY,
	 .adapter = "onnxruntime",
	 .options = "nospin",
	 .library_pattern = "onnxruntime/capi/libonnxruntime.so.*",
	 .distribution = "onnxruntime",
	 .stages = 1u << STAGE_FORWARD,
	 .precisions = 1u << PRECISION_FP32,
	 .essential = true},
	{.name = "mxnet",
	 .summary = "Apache MXNet 1.9 through its C interface, symbolic",
	 .kind = FRAMEWORK_LIBRARY,
	 .adapter = "mxnet",
	 .options = "nosubgraph",
	 .library_pattern = "mxnet/libmxnet.so",
	 .distribution = "mxnet",
	 .stages = ALL_TRAINING,
	 .precisions = 1u << PRECISION_FP32,
	 .essential = true},
	{.name = "pytorch",
	 .summary = "PyTorch through its Python interface, eager or compiled",
	 .kind = FRAMEWORK_PYTHON,
	 .adapter = "pytorch",
	 .options = "channels_last,compile,fused",
	 .recomputes = "compile",
	 .module = "torch",
	 .distribution = "torch",
	 .stages = ALL_TRAINING,
	 .precisions = (1u << PRECISION_COUNT) - 1,
	 .cuda = true,
	 .pythons = "3.12,3.11"},
	{.name = "null",
	 .summary = "computes nothing: what the harness itself costs",
	 .kind = FRAMEWORK_BUILTIN,
	 .adapter = "null",
	 .stages = ALL_TRAINING,
	 .precisions = (1u << PRECISION_COUNT) - 1,
	 .harness_only = true,
	 .computes_nothing = true},
	{.name = "fake",
	 .summary = "a small executor of our own that fails on request, to test the harness",
	 .kind = FRAMEWORK_BUILTIN,
	 .adapter = "fake",
	 .stages = ALL_TRAINING,
	 .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_TF32,
	 .harness_only = true},
};

const size_t framework_count = sizeof(framework_registry) / sizeof(framework_registry[0]);

_Static_assert(sizeof(framework_registry) / sizeof(framework_registry[0]) <= NEAREST_MAX,
	       "framework_nearest has room for every name");

const struct framework *framework_find(const char *name)
{
	for (size_t i = 0; name && i < framework_count; i++)
		if (strcmp(framework_registry[i].name, name) == 0)
			return &framework_registry[i];
	return NULL;
}

const char *framework_nearest(const char *name)
{
	const char *names[NEAREST_MAX];

	for (size_t i = 0; i < framework_count; i++)
		names[i] = framework_registry[i].name;
	return word_nearest(name, names, framework_count);
}

const char *framework_origin_name(enum framework_origin origin)
{
	static const char *const names[] = {
		[ORIGIN_NONE] = "none",		  [ORIGIN_NAMED] = "named",
		[ORIGIN_INSTALLED] = "installed", [ORIGIN_DISCOVERED] = "discovered",
		[ORIGIN_BUILTIN] = "builtin",
	};

	return (unsigned)origin < sizeof(names) / sizeof(names[0]) ? names[origin] : "?";
}

bool framework_environment_valid(const char *environment)
{
	if (environment[0] == '.' || strlen(environment) > 60)
		return false;
	for (const char *c = environment; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return true;
}

const char *framework_spelling(const struct framework *framework, const char *environment,
			       struct arena *arena)
{
	if (!environment || !*environment)
		return framework->name;
	return arena_printf(arena, "%s@%s", framework->name, environment);
}

const char *framework_folder(const struct framework *framework, const char *environment,
			     struct arena *arena)
{
	char *home = path_data_home();
	const char *folder = arena_printf(arena, "%s/frameworks/%s", home,
					  framework_spelling(framework, environment, arena));

	free(home);
	return folder;
}

const char *framework_variable(const char *name, const char *environment, const char *suffix,
			       struct arena *arena)
{
	bool named = environment && *environment;
	char *variable = arena_printf(arena, "PRONY_%s%s%s_%s", name, named ? "_" : "",
				      named ? environment : "", suffix);

	for (char *c = variable; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
	return variable;
}

bool manifest_read(const char *folder, struct arena *arena, struct manifest *out)
{
	const char *path = arena_printf(arena, "%s/%s", folder, MANIFEST_NAME);
	json_t *document = NULL;

	*out = (struct manifest){.lock = "", .lock_sha256 = "", .version = "", .entry = ""};
	if (json_read_file(path, MANIFEST_BYTES_MAX, &document, NULL) != PRONY_OK)
		return false;
	out->lock = arena_strdup(arena, json_string_or(document, "lock", ""));
	out->lock_sha256 = arena_strdup(arena, json_string_or(document, "lock_sha256", ""));
	out->version = arena_strdup(arena, json_string_or(document, "version", ""));
	out->entry = arena_strdup(arena, json_string_or(document, "entry", ""));
	json_decref(document);
	return out->entry[0] != '\0';
}

enum prony_status manifest_write(const char *folder, const char *framework,
				 const struct manifest *manifest, struct error *err)
{
	char *path = path_join(folder, MANIFEST_NAME);
	json_t *document = json_pack("{ss ss ss ss ss}", "framework", framework, "version",
				     manifest->version, "lock", manifest->lock, "lock_sha256",
				     manifest->lock_sha256, "entry", manifest->entry);
	char *text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;
	enum prony_status status =
		text ? file_write_atomic(path, text, strlen(text), err)
		     : error_set(err, PRONY_BAD_INPUT, "%s: the lock's text is not UTF-8", path);

	free(text);
	json_decref(document);
	free(path);
	return status;
}
