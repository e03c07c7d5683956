/* Targets to and from JSON. */
#include "bundle/target.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cell/device.h"

/* Workers of one run; a larger number means a damaged request. */
#define WORLD_SIZE_MAX 65536

void target_defaults(struct target *target)
{
	*target = (struct target){.device = "cpu", .world_size = 1};
}

void target_set_device(struct target *target, const char *spelling)
{
	snprintf(target->device, sizeof target->device, "%s",
		 device_of(spelling).kind == DEVICE_CPU ? "cpu" : spelling);
}

bool target_has_option(const struct target *target, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = target->options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && strncmp(at, word, length) == 0)
			return true;
	return false;
}

static json_t *words_of(const char *options)
{
	json_t *words = json_array();

	for (const char *at = options; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");

		if (length > 0)
			json_array_append_new(words, json_stringn(at, length));
		at += length;
	}
	return words;
}

/* All ranks are on this machine, so the local rank is the rank. */
static void add_rendezvous(const struct target *target, json_t *out)
{
	json_t *ports = json_array();

	for (int i = 0; i <= target->world_size && i <= TARGET_RANKS_MAX; i++)
		json_array_append_new(ports, json_integer(target->rendezvous.ports[i]));
	json_object_set_new(out, "local_rank", json_integer(target->rank));
	json_object_set_new(out, "rendezvous",
			    json_pack("{s:s, s:s, s:o}", "folder", target->rendezvous.folder,
				      "address", "127.0.0.1", "ports", ports));
}

json_t *target_to_json(const struct target *target)
{
	json_t *out = json_pack("{s:s, s:s, s:o, s:i, s:i}", "device", target->device, "backend",
				target->backend, "options", words_of(target->options), "rank",
				target->rank, "world_size", target->world_size);

	if (target->world_size > 1)
		add_rendezvous(target, out);
	return out;
}

static enum prony_status read_word(const json_t *json, const char *key, char *out,
				   struct error *err)
{
	const char *text;
	enum prony_status status = json_get_string(json, key, &text, err);

	if (status != PRONY_OK)
		return status;
	if (strlen(text) >= TARGET_WORD_BYTES)
		return error_set(err, PRONY_BAD_INPUT, "\"%s\" is longer than %d bytes", key,
				 TARGET_WORD_BYTES - 1);
	snprintf(out, TARGET_WORD_BYTES, "%s", text);
	return PRONY_OK;
}

static enum prony_status read_options(const json_t *json, char *out, struct error *err)
{
	json_t *words;
	size_t used = 0;
	enum prony_status status = json_get_array(json, "options", &words, err);

	out[0] = '\0';
	for (size_t i = 0; status == PRONY_OK && i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));
		size_t length = word ? strlen(word) : 0;

		if (length == 0 || strchr(word, ','))
			return error_set(
				err, PRONY_BAD_INPUT,
				"\"options\"[%zu] must be a non-empty string without a comma", i);
		if (used + length + 2 > TARGET_WORD_BYTES)
			return error_set(err, PRONY_BAD_INPUT,
					 "\"options\" are longer than %d bytes",
					 TARGET_WORD_BYTES - 1);
		used += (size_t)snprintf(out + used, TARGET_WORD_BYTES - used, "%s%s",
					 used > 0 ? "," : "", word);
	}
	return status;
}

static enum prony_status read_place(const json_t *json, struct target *target, struct error *err)
{
	int64_t rank = 0, world = 0;
	enum prony_status status = json_get_int(json, "rank", &rank, err);

	if (status == PRONY_OK)
		status = json_get_int(json, "world_size", &world, err);
	if (status != PRONY_OK)
		return status;
	if (world < 1 || world > WORLD_SIZE_MAX || rank < 0 || rank >= world)
		return error_set(err, PRONY_BAD_INPUT,
				 "\"rank\" is %lld and \"world_size\" %lld; rank must be less than "
				 "world_size, and that at most %d",
				 (long long)rank, (long long)world, WORLD_SIZE_MAX);
	target->rank = (int)rank;
	target->world_size = (int)world;
	const json_t *rendezvous = json_object_get(json, "rendezvous");
	const json_t *ports = json_object_get(rendezvous, "ports");
	snprintf(target->rendezvous.folder, sizeof target->rendezvous.folder, "%s",
		 json_string_or(rendezvous, "folder", ""));
	for (size_t i = 0; i < json_array_size(ports) && i <= TARGET_RANKS_MAX; i++) {
		json_int_t port = json_integer_value(json_array_get(ports, i));
		target->rendezvous.ports[i] = port > 0 && port <= UINT16_MAX ? (int)port : 0;
	}
	return PRONY_OK;
}

enum prony_status target_from_json(const json_t *json, struct target *out, struct error *err)
{
	struct target target = {.world_size = 1};
	enum prony_status status = read_word(json, "device", target.device, err);

	if (status == PRONY_OK && !target.device[0])
		status = error_set(err, PRONY_BAD_INPUT, "\"device\" is empty");
	if (status == PRONY_OK)
		status = read_word(json, "backend", target.backend, err);
	if (status == PRONY_OK)
		status = read_options(json, target.options, err);
	if (status == PRONY_OK)
		status = read_place(json, &target, err);
	if (status == PRONY_OK)
		*out = target;
	return status;
}
