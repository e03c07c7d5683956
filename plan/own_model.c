/* Finds or makes the ONNX file of a user's own model of PyTorch or Keras. */
#include "plan/own_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "frameworks/registry.h"

#define EXPORT_SECONDS 900
#define OUTPUT_BYTES 4096
#define SOURCE_BYTES_MAX ((size_t)4 << 20)
#define MANIFEST_BYTES_MAX ((size_t)4 << 20) /* also of an error */

/* One model: its word taken apart, where it is exported and how. Strings are in the arena. */
struct own_model {
	struct arena arena;
	const char *path, *name;     /* name: "" = the only one in the file */
	const char *script, *beside; /* what it imports */
	struct framework_location place;
	const struct network_texts *shapes; /* may be NULL */
	struct network_given rest;	    /* what is not for the exporter */
	const char *folder;		    /* of the export, in the cache */
};

/* The part of a word behind ".py"; NULL if there is none. */
static const char *behind_ending(const char *word)
{
	const char *colon = strrchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : strlen(word);

	return length > 3 && strncmp(word + length - 3, ".py", 3) == 0 ? word + length : NULL;
}

bool own_model_is(const char *word)
{
	return behind_ending(word) != NULL;
}

/* Whether a line of the file imports Keras. A word in a text of several lines may fool it: then
 * Keras' environment, which has PyTorch, exports the model. */
static bool imports_keras(const char *path)
{
	static const char *const beginnings[] = {"import keras", "from keras"};
	char *text = NULL;
	size_t length;
	bool found = false;

	if (file_read(path, SOURCE_BYTES_MAX, &text, &length, NULL) != PRONY_OK)
		return false;
	for (const char *line = text; line && !found; line = strchr(line, '\n')) {
		line += strspn(line, " \t\n");
		for (int i = 0; i < 2; i++) {
			size_t bytes = strlen(beginnings[i]);

			found |= strncmp(line, beginnings[i], bytes) == 0 &&
				 strchr(" .\t\r\n,;", line[bytes]);
		}
	}
	free(text);
	return found;
}

static enum prony_status locate(struct own_model *own, const struct registry *registry,
				struct error *err)
{
	bool keras = imports_keras(own->path);
	const struct framework *framework = keras ? framework_find(registry, "keras3", "torch")
						  : framework_find(registry, "pytorch", NULL);
	enum prony_status status;
	char *share = path_share();

	own->script = arena_printf(&own->arena, "%s/python/export_model.py", share ? share : "");
	own->beside = arena_printf(&own->arena, "%s/python/export_keras.py", share ? share : "");
	free(share);
	if (!framework || framework->broken || !file_exists(own->script))
		return error_set(err, PRONY_MISSING,
				 "its framework's descriptor or %s is missing; install the program "
				 "again, or set PRONY_SHARE",
				 own->script);
	status = framework_locate(framework, "", &own->arena, &own->place, err);
	if (status == PRONY_OK && own->place.origin == ORIGIN_NONE)
		status = error_set(err, PRONY_MISSING, "%s needs %s: %s",
				   keras ? "a model of Keras" : "a model in Python",
				   keras ? "keras3:torch" : "pytorch", own->place.reason);
	return status;
}

/* A folder for each model, interpreter and set of shapes, so that the cache does not grow with the
 * changes of a file. */
static void name_folder(struct own_model *own)
{
	char *home = path_cache_home(), *real = realpath(own->path, NULL), key[DIGEST_HEX_BYTES];
	struct digest digest;

	digest_begin(&digest);
	digest_add_text(&digest, real);
	digest_add_text(&digest, own->name);
	digest_add_text(&digest, own->place.interpreter);
	digest_add_text(&digest, own->place.version);
	digest_add_tree(&digest, own->script);
	digest_add_tree(&digest, own->beside);
	for (size_t i = 0; own->shapes && i < own->shapes->count; i++)
		digest_add_text(&digest, own->shapes->texts[i]);
	digest_end(&digest, key);
	own->folder = arena_printf(&own->arena, "%s/models/%.32s", home, key);
	free(real);
	free(home);
}

/* Reads what the exporter says of an export; NULL if there is none. */
static json_t *read_manifest(const char *folder)
{
	json_t *manifest = NULL;
	char *path = path_join(folder, "manifest.json");

	if (json_read_file(path, MANIFEST_BYTES_MAX, &manifest, NULL) != PRONY_OK)
		manifest = NULL;
	free(path);
	return manifest;
}

/* Whether all files that the export read are as they were. */
static bool is_current(const json_t *manifest)
{
	const json_t *sources = json_object_get(manifest, "sources"), *source;
	size_t i;

	json_array_foreach(sources, i, source)
	{
		struct file_stamp stamp = file_stamp(json_string_or(source, "path", ""));

		if (stamp.bytes != json_int_or(source, "bytes", -1) ||
		    stamp.changed_ns != json_int_or(source, "changed_ns", -1))
			return false;
	}
	return json_array_size(sources) > 0;
}

/* The exporter's own message, or else the end of what it printed. */
static enum prony_status explain(const char *folder, const struct process_end *end,
				 const char *output, struct error *err)
{
	char *path = path_join(folder, "error"), *text = NULL, how[64];
	size_t length, shown = 600;

	if (file_read(path, MANIFEST_BYTES_MAX, &text, &length, NULL) == PRONY_OK) {
		error_set(err, PRONY_BAD_INPUT, "%s", text);
	} else {
		process_end_text(end, how, sizeof(how));
		length = strlen(output);
		error_set(err, PRONY_BAD_INPUT, "its export ended with %s: %s", how,
			  output + (length > shown ? length - shown : 0));
	}
	free(path);
	free(text);
	return PRONY_BAD_INPUT;
}

static enum prony_status run_exporter(struct own_model *own, const char *folder, struct error *err)
{
	size_t shapes = own->shapes ? own->shapes->count : 0;
	const char **argv = arena_array(&own->arena, shapes + 6, sizeof(*argv));
	struct process_spec spec = {.argv = argv, .new_group = true};
	struct process_end end = {0};
	char *output = NULL;
	enum prony_status status;

	argv[0] = own->place.interpreter;
	argv[1] = own->script;
	argv[2] = own->path;
	argv[3] = own->name;
	argv[4] = folder;
	for (size_t i = 0; i < shapes; i++)
		argv[5 + i] = own->shapes->texts[i];
	status = process_run(&spec, EXPORT_SECONDS * INT64_C(1000000000), OUTPUT_BYTES, &output,
			     &end, err);
	if (status == PRONY_OK && (end.signalled || end.code != 0))
		status = explain(folder, &end, output, err);
	free(output);
	return status;
}

/* Exports into a new folder, which then takes the place of the old one. */
static enum prony_status export_model(struct own_model *own, struct error *err)
{
	char *home = path_cache_home(), *parent = path_join(home, "models");
	const char *fresh = arena_printf(&own->arena, "%s/models/new-XXXXXX", home);
	enum prony_status status = directory_make(parent, err);

	if (status == PRONY_OK && !mkdtemp((char *)fresh))
		status = error_set(err, PRONY_IO, "cannot make a folder in %s", parent);
	if (status == PRONY_OK)
		status = run_exporter(own, fresh, err);
	if (status == PRONY_OK)
		status = directory_remove(own->folder, err);
	if (status == PRONY_OK && rename(fresh, own->folder) != 0)
		status = error_set(err, PRONY_IO, "cannot rename %s to %s", fresh, own->folder);
	if (status != PRONY_OK)
		directory_remove(fresh, NULL);
	free(parent);
	free(home);
	return status;
}

/* Names the lines of the model whose Python values the trace froze. */
static void remark_frozen(struct network_file *file, const char *lines)
{
	char *before = file->remark;

	if (!*lines)
		return;
	file->remark = memory_printf("%s%s%s: at %s the model turns tensors into Python values "
				     "(if, int, float): the exported network keeps the values of "
				     "one batch",
				     before ? before : "", before ? "\n" : "", file->name, lines);
	free(before);
}

static enum prony_status open_export(struct own_model *own, const json_t *manifest,
				     struct network_file **out, struct error *err)
{
	const char *slash = strrchr(own->path, '/');
	const char *title = arena_printf(&own->arena, "%s:%s", slash ? slash + 1 : own->path,
					 json_string_or(manifest, "name", own->name));
	const json_t *used = json_object_get(manifest, "shapes_used");
	char *path = path_join(own->folder, "model.onnx");
	enum prony_status status = network_file_open_as(path, title, &own->rest, out, err);

	for (size_t i = 0; own->shapes && i < own->shapes->count; i++)
		own->shapes->used[i] |= json_is_true(json_array_get(used, i));
	free(path);
	if (status != PRONY_OK)
		return status;
	status = own_model_check(*out, own->folder, json_string_or(manifest, "version", "PyTorch"),
				 err);
	if (status != PRONY_OK) {
		network_file_free(*out);
		*out = NULL;
	} else {
		remark_frozen(*out, json_string_or(manifest, "frozen", ""));
	}
	return status;
}

enum prony_status own_model_open(const struct registry *registry, const char *word,
				 const struct network_given *given, struct network_file **out,
				 struct error *err)
{
	const char *rest = behind_ending(word);
	struct own_model own = {.shapes = given ? &given->shapes : NULL};
	struct error why = ERROR_INIT;
	json_t *manifest = NULL;
	enum prony_status status;

	if (given)
		own.rest.fills = given->fills;
	arena_init(&own.arena, 0);
	own.path = arena_strndup(&own.arena, word, (size_t)(rest - word));
	own.name = *rest == ':' ? rest + 1 : "";
	status = file_exists(own.path) ? locate(&own, registry, &why)
				       : error_set(&why, PRONY_BAD_INPUT, "No such file");
	if (status == PRONY_OK) {
		name_folder(&own);
		manifest = read_manifest(own.folder);
		if (!manifest || !is_current(manifest)) {
			json_decref(manifest);
			status = export_model(&own, &why);
			manifest = status == PRONY_OK ? read_manifest(own.folder) : NULL;
		}
	}
	if (status == PRONY_OK && !manifest)
		status = error_set(&why, PRONY_IO, "its export in %s cannot be read", own.folder);
	if (status == PRONY_OK)
		status = open_export(&own, manifest, out, &why);
	if (status != PRONY_OK)
		error_set(err, status, "%s: %s", word, why.text);
	json_decref(manifest);
	arena_release(&own.arena);
	return status;
}
