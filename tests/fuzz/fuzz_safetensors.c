/* Fuzz target: safetensors images. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "bundle/safetensors.h"

/* Checks that an accepted image can be written and read back, the same byte for byte. */
static void exercise(const struct tensor_set *set, struct arena *arena)
{
	struct error err = ERROR_INIT;
	struct tensor_set again;
	size_t bytes = safetensors_image_bytes(set);
	void *image = malloc(bytes > 0 ? bytes : 1);

	if (!image || bytes == 0 || safetensors_write_image(set, image, bytes, &err) != PRONY_OK ||
	    safetensors_read_image(image, bytes, "copy", arena, &again, &err) != PRONY_OK ||
	    again.count != set->count)
		abort();
	for (size_t i = 0; i < set->count; i++) {
		const struct tensor *a = &set->tensors[i], *b = &again.tensors[i];

		if (strcmp(a->name, b->name) != 0 || a->dtype != b->dtype ||
		    !shape_equal(&a->shape, &b->shape) ||
		    memcmp(a->data, b->data, (size_t)tensor_bytes(a)) != 0)
			abort();
		if ((uintptr_t)a->data % dtype_bytes(a->dtype) != 0)
			abort();
	}
	free(image);
}

/* Returns 0. Aborts if an accepted image is not the same after being written. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct error err = ERROR_INIT;
	struct arena arena;
	struct tensor_set set;

	arena_init(&arena, (size_t)64 * 1024 * 1024);
	if (safetensors_read_image(bytes, length, "input", &arena, &set, &err) == PRONY_OK)
		exercise(&set, &arena);
	else if (err.code == PRONY_OK || err.text[0] == '\0')
		abort();
	arena_release(&arena);
	return 0;
}
