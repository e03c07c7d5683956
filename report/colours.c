/* The colour of each framework on pages and charts. */
#include "report/colours.h"

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

/* Each is the farthest from all colours before it, in OKLab (Ottosson, 2020). */
static const char *const spare[COLOURS_SPARE] = {
	"#7d73f5", "#738ccd", "#057daf", "#5f825f", "#966ea0", "#a546b9", "#d74b3c",
	"#af4b55", "#c850aa", "#5a6e87", "#508c00", "#f0556e", "#a06e46", "#789673",
	"#d24678", "#5f5fdc", "#c373aa", "#418791", "#2d73d2", "#af8282", "#9b7d00",
	"#8c64c3", "#be6e00", "#a56973", "#697daa", "#a573f5", "#008c5f", "#875f82",
};

/* Returns the fixed colour of a framework; NULL if it has none. */
static const char *known_colour(const char *framework)
{
	for (size_t i = 0; i < COUNT(known); i++)
		if (!strcmp(known[i].framework, framework))
			return known[i].colour;
	return NULL;
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
	size_t other_count = 0;
	for (size_t i = 0; i < count; i++) {
		out[i] = known_colour(frameworks[i]);
		if (!out[i])
			others[other_count++] = (struct other){frameworks[i], i};
	}
	qsort(others, other_count, sizeof *others, by_name);
	for (size_t i = 0; i < other_count; i++)
		out[others[i].number] = spare[i % COLOURS_SPARE];
	free(others);
}
