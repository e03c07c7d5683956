/* The colour of each framework on pages and charts. */
#include "report/colours.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Chosen by annealing for the largest distance between the nearest two (0.10), starting from
 * colours like those of the frameworks' own logos. */
static const struct {
	const char *framework, *colour;
} known[] = {
	{"native", "#808690"},
	{"null", "#808690"},
	{"fake", "#808690"},
	{"pytorch", "#ff1400"},
	{"tensorflow", "#af8750"},
	{"tensorflow1", "#7d6e00"},
	{"tensorflow-python", "#b45000"},
	{"keras3:tensorflow", "#d2144b"},
	{"keras3:jax", "#6469b4"},
	{"keras3:torch", "#a54b87"},
	{"keras2:tensorflow", "#c86978"},
	{"keras2:theano", "#879600"},
	{"keras2:cntk", "#82645f"},
	{"keras2:mxnet", "#009bb9"},
	{"mxnet", "#0f8cf5"},
	{"onnxruntime", "#007d32"},
	{"openvino", "#8746dc"},
	{"xla", "#00a500"},
	{"jax", "#c800a5"},
	{"theano", "#0fa073"},
	{"chainer", "#af6ecd"},
	{"paddle", "#195ff0"},
	{"cntk", "#007878"},
	{"caffe", "#e16900"},
	{"caffe2", "#f0469b"},
};

/* Each is the farthest from all colours before it. */
static const char *const spare[COLOURS_SPARE] = {
	"#7d73f5", "#738ccd", "#057daf", "#5f825f", "#966ea0", "#a546b9", "#d74b3c",
	"#af4b55", "#c850aa", "#5a6e87", "#508c00", "#f0556e", "#a06e46", "#789673",
	"#d24678", "#5f5fdc", "#c373aa", "#418791", "#2d73d2", "#af8282", "#9b7d00",
	"#8c64c3", "#be6e00", "#a56973", "#697daa", "#a573f5", "#008c5f", "#875f82",
};

struct oklab {
	double l, a, b;
};

/* Converts an sRGB byte to linear light, from 0 to 1. */
static double linear(unsigned long byte)
{
	double share = (double)(byte & 0xff) / 255;
	return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
}

static struct oklab oklab_of(const char *colour)
{
	unsigned long rgb = strtoul(colour + 1, NULL, 16);
	double red = linear(rgb >> 16), green = linear(rgb >> 8), blue = linear(rgb);
	double l = cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
	double m = cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
	double s = cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
	return (struct oklab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
			      1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
			      0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double colours_distance(const char *a, const char *b)
{
	struct oklab x = oklab_of(a), y = oklab_of(b);
	return sqrt((x.l - y.l) * (x.l - y.l) + (x.a - y.a) * (x.a - y.a) +
		    (x.b - y.b) * (x.b - y.b));
}

/* Returns the fixed colour of a framework; NULL if it has none. */
static const char *known_colour(const char *framework, size_t length)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (strlen(known[i].framework) == length &&
		    !strncmp(known[i].framework, framework, length))
			return known[i].colour;
	return NULL;
}

/* Returns the colour that a spelling's colour should be near: its framework's, or one chosen by a
 * hash of its bytes (FNV-1a). */
static const char *model_of(const char *framework)
{
	const char *own = known_colour(framework, strcspn(framework, "@+"));
	uint32_t hash = 2166136261U;
	for (const char *c = framework; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619U;
	return own ? own : spare[hash % COLOURS_SPARE];
}

/* Returns the nearest of the least-used spare colours. */
static const char *take_spare(const char *model, size_t used[COLOURS_SPARE])
{
	size_t best = 0;
	for (size_t i = 1; i < COLOURS_SPARE; i++)
		if (used[i] < used[best] ||
		    (used[i] == used[best] &&
		     colours_distance(spare[i], model) < colours_distance(spare[best], model)))
			best = i;
	used[best]++;
	return spare[best];
}

struct other {
	const char *framework;
	size_t number;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct other *)a)->framework, ((const struct other *)b)->framework);
}

void colours_assign(const char *const *frameworks, size_t count, const char **out)
{
	struct other *others = memory_alloc((count + 1) * sizeof *others);
	size_t used[COLOURS_SPARE] = {0}, other_count = 0;
	for (size_t i = 0; i < count; i++) {
		out[i] = known_colour(frameworks[i], strlen(frameworks[i]));
		if (!out[i])
			others[other_count++] = (struct other){frameworks[i], i};
	}
	qsort(others, other_count, sizeof *others, by_name);
	for (size_t i = 0; i < other_count; i++)
		out[others[i].number] = take_spare(model_of(others[i].framework), used);
	free(others);
}
