#include "cell/device.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cell/cell.h"

#define CORES_MAX 65536
#define LETTERS "abcdefghijklmnopqrstuvwxyz"

static enum prony_status bad_device(const char *word, const char *what, struct error *err)
{
	return error_set(
		err, PRONY_USAGE,
		"device '%s': %s; write cpu (all cores), cpu:4 (four cores), cpu:4x2 (two ranks of "
		"four "
		"cores each), cuda:0, cuda:0+1 (two GPUs), or a name that the framework knows, "
		"such as gpu.1 or tpu:0",
		word, what);
}

/* A decimal number without sign or leading zero: one spelling for one device. */
static bool take_number(const char **text, long limit, long *out)
{
	size_t length = strspn(*text, "0123456789");
	long value = 0;

	if (length == 0 || length > 9 || (length > 1 && **text == '0'))
		return false;
	for (size_t i = 0; i < length; i++)
		value = 10 * value + ((*text)[i] - '0');
	if (value > limit)
		return false;
	*text += length;
	*out = value;
	return true;
}

/* One GPU or several: what follows "cuda:". */
static enum prony_status parse_gpus(const char *word, struct device *out, struct error *err)
{
	const char *rest = word + strlen("cuda:");
	uint64_t seen = 0;
	long number = 0;

	for (bool first = true; first || *rest == '+'; first = false) {
		rest += !first;
		if (!take_number(&rest, DEVICE_INDICES_MAX - 1, &number))
			return bad_device(word, "a GPU number is missing after ':' or '+'", err);
		if (seen & (UINT64_C(1) << number))
			return bad_device(word, "a GPU is named twice", err);
		seen |= UINT64_C(1) << number;
		out->indices[out->count++] = (int)number;
	}
	if (*rest)
		return bad_device(word, "unexpected text after the number", err);
	return PRONY_OK;
}

/* A library's own word: NAME, NAME:N or NAME.N. Only the library knows which there are, so a slip
 * in one of our words has to be caught here; gpu, tpu, npu and their like are no slips. */
static enum prony_status parse_other(const char *word, struct error *err)
{
	static const char *const ours[] = {"cpu", "cuda"};
	size_t length = strspn(word, LETTERS "0123456789_");
	const char *rest = word + length;
	char name[CELL_WORD_BYTES], what[64];
	long number = 0;

	if (length == 0 || !strchr(LETTERS, *word))
		return bad_device(word, "the name is missing or not in lower case", err);
	snprintf(name, sizeof name, "%.*s", (int)length, word);
	const char *near = word_nearest(name, ours, 2);
	if (!strcmp(name, "cuda") || !strcmp(name, "cpu"))
		return bad_device(word, "a number is missing after ':'", err);
	for (size_t i = 0; i < 2; i++)
		if (strncmp(name, ours[i], strlen(ours[i])) == 0)
			near = ours[i];
	if (near && (strlen(name) != 3 || strcmp(name + 1, "pu") != 0 || name[0] == 'c')) {
		snprintf(what, sizeof what, "unknown; did you mean %s?", near);
		return bad_device(word, what, err);
	}
	if (*rest && ((*rest != ':' && *rest != '.') ||
		      (rest++, !take_number(&rest, DEVICE_INDICES_MAX - 1, &number)) || *rest))
		return bad_device(word, "expected a number after the name", err);
	return PRONY_OK;
}

/* Cores, or ranks of cores: what follows "cpu:". */
static enum prony_status parse_cores(const char *word, struct device *out, struct error *err)
{
	const char *rest = word + strlen("cpu:");
	long cores = 0, ranks = 1;

	if (!take_number(&rest, CORES_MAX, &cores) || cores == 0)
		return bad_device(word, "the number of cores is missing after 'cpu:'", err);
	if (*rest == 'x' && (rest++, !take_number(&rest, DEVICE_INDICES_MAX, &ranks) || ranks < 2))
		return bad_device(word, "after 'x' comes the number of ranks, from 2 to 64", err);
	if (*rest)
		return bad_device(word, "unexpected text after the number", err);
	out->cores = (int)cores;
	out->ranks = (int)ranks;
	return PRONY_OK;
}

enum prony_status device_parse(const char *word, struct device *out, struct error *err)
{
	struct device device = {.kind = DEVICE_CPU, .ranks = 1};
	enum prony_status status = PRONY_OK;

	if (strlen(word) >= CELL_WORD_BYTES)
		return bad_device(word, "too long", err);
	if (!strncmp(word, "cpu:", 4)) {
		status = parse_cores(word, &device, err);
	} else if (!strncmp(word, "cuda:", 5)) {
		device.kind = DEVICE_CUDA;
		status = parse_gpus(word, &device, err);
	} else if (strcmp(word, "cpu") != 0) {
		device.kind = DEVICE_OTHER;
		status = parse_other(word, err);
	}
	if (status == PRONY_OK)
		*out = device;
	return status;
}

struct device device_of(const char *word)
{
	struct device device = {.kind = DEVICE_OTHER, .ranks = 1};
	device_parse(word, &device, NULL);
	return device;
}

bool device_is_cpu(const char *word)
{
	return strncmp(word, "cpu", 3) == 0;
}
