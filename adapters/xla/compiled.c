/* Reads the types in a program that XLA compiled. */
#include "adapters/xla/compiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/compiled.pb-c.h"

/* PrimitiveType of xla_data.proto */
enum { TYPE_F16, TYPE_F32, TYPE_BF16, TYPES };
static const struct {
	int number;
	const char *name;
} types[TYPES] = {[TYPE_F16] = {10, "f16"}, [TYPE_F32] = {11, "f32"}, [TYPE_BF16] = {16, "bf16"}};

/* Number of values by type, and of results of products by type. */
struct counts {
	int values[TYPES], products[TYPES];
};

static void count_types(const PronyHlo__Module *module, struct counts *counts)
{
	for (size_t c = 0; c < module->n_computations; c++) {
		const PronyHlo__Computation *computation = module->computations[c];

		for (size_t i = 0; i < computation->n_instructions; i++) {
			const PronyHlo__Instruction *one = computation->instructions[i];
			bool product = strcmp(one->opcode, "dot") == 0 ||
				       strcmp(one->opcode, "convolution") == 0;

			for (int t = 0; one->shape && t < TYPES; t++) {
				if (one->shape->element_type != types[t].number)
					continue;
				counts->values[t]++;
				counts->products[t] += product;
			}
		}
	}
}

static void describe(const int counts[TYPES], const char *what, char *text, size_t text_bytes)
{
	size_t length = (size_t)snprintf(text, text_bytes, "%s", what);

	for (int t = 0; t < TYPES && length < text_bytes; t++)
		if (counts[t] > 0)
			length += (size_t)snprintf(text + length, text_bytes - length, " %d %s",
						   counts[t], types[t].name);
}

enum prony_status compiled_check(const struct pjrt *pjrt, struct pjrt_executable *executable,
				 enum precision asked, char *text, size_t text_bytes,
				 struct error *err)
{
	struct counts counts = {0};
	char values[64], products[64];
	struct error why = ERROR_INIT;
	char *bytes = NULL;
	size_t length = 0;
	enum prony_status status = pjrt_optimised(pjrt, executable, &bytes, &length, &why);

	if (status != PRONY_OK && status != PRONY_NOMEM) { /* not every plug-in gives it */
		snprintf(text, text_bytes, "types of values unknown: %.120s", why.text);
		return PRONY_OK;
	}
	if (status != PRONY_OK)
		return error_set(err, status, "%s", why.text);
	PronyHlo__ModuleWithConfig *read =
		prony_hlo__module_with_config__unpack(NULL, length, (const uint8_t *)bytes);
	free(bytes);
	if (!read || !read->hlo_module) {
		if (read)
			prony_hlo__module_with_config__free_unpacked(read, NULL);
		snprintf(text, text_bytes,
			 "types of values unknown: XLA's description cannot be read");
		return PRONY_OK;
	}
	count_types(read->hlo_module, &counts);
	prony_hlo__module_with_config__free_unpacked(read, NULL);
	describe(counts.values, "values", values, sizeof(values));
	describe(counts.products, "products", products, sizeof(products));
	snprintf(text, text_bytes, "as compiled: %s, %s", values, products);
	bool narrow = counts.values[TYPE_BF16] > 0 || counts.values[TYPE_F16] > 0;
	if (asked == PRECISION_BF16 ? counts.values[TYPE_BF16] == 0 : narrow)
		return error_set(err, PRONY_INVALID, "precision %s did not take effect; %s",
				 precision_name(asked), text);
	return PRONY_OK;
}
