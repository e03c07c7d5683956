/* Attention and its gradients, planned by the real cuDNN for an H200 on a machine without a GPU.
 * Its engines are compiled at run time, for which cuDNN wants a driver: planning_driver.c. */
#include "tests/unit/unit_test.h"

#include "adapters/native/cuda/attention_plan.h"
#include "adapters/native/cuda/conv_plan.h"

#define DEVICE_FILE "tests/cuda/device-h200.json"

static const struct size {
	int64_t samples, heads, tokens, width;
} sizes[] = {{8, 12, 1024, 64}, {32, 12, 128, 64}, {1, 12, 197, 64}, {2, 2, 33, 32}};

/* Arrays one behind the other, or q, k and v as parts of one product. */
static struct attention_problem problem_of(const struct size *size, bool parts)
{
	struct attention_problem p;

	memset(&p, 0, sizeof(p));
	p.samples = size->samples;
	p.heads = size->heads;
	p.queries = p.keys = size->tokens;
	p.width = size->width;
	p.type = DTYPE_BF16;
	for (int i = 0; i < ATTENTION_TENSORS; i++) {
		int64_t row = p.heads * p.width * (parts && i <= ATTENTION_V ? 3 : 1);
		const int64_t strides[] = {p.queries * row, p.width, row, 1};

		memcpy(p.strides[i], strides, sizeof(strides));
	}
	return p;
}

static void plan(const struct cudnn *cudnn, cudnn_descriptor device,
		 const struct attention_problem *p)
{
	struct cudnn_plan made;
	struct error err = ERROR_INIT;

	check(attention_plan_make(cudnn, NULL, device, p, "attention", &made, &err), &err);
	assert_true(made.workspace <= ATTENTION_WORKSPACE_BYTES);
	cudnn_plan_release(cudnn, &made);
}

TEST(attention_is_planned)
{
	struct cudnn cudnn;
	cudnn_descriptor device;
	struct error err = ERROR_INIT;
	struct cudnn_plan none;
	struct attention_problem wrong = problem_of(&sizes[0], false);
	size_t length;
	char *text, version[32];
	enum prony_status status = cudnn_load(&cudnn, "/usr/local/cuda/lib64", &err);

	if (status == PRONY_MISSING) {
		print_message("# %s\n", err.text);
		skip();
	}
	check(status, &err);
	check(file_read(test_text("%s/%s", getenv("PRONY_SOURCE"), DEVICE_FILE), 1 << 16, &text,
			&length, &err),
	      &err);
	check(conv_device(&cudnn, text, &device, &err), &err);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct attention_problem p = problem_of(&sizes[i], i % 2 == 0);

		p.causal = p.stats = true;
		plan(&cudnn, device, &p);
		p.gradient = true;
		plan(&cudnn, device, &p);
		p.causal = p.gradient = p.stats = false;
		p.type = DTYPE_F16;
		plan(&cudnn, device, &p);
		p.gradient = true;
		plan(&cudnn, device, &p);
	}
	for (int gradient = 0; gradient < 2; gradient++) {
		struct attention_problem p = problem_of(&sizes[0], true);

		p.causal = p.stats = true;
		p.gradient = gradient;
		p.ratio = 0.1;
		plan(&cudnn, device, &p);
	}
	wrong.width--; /* cuDNN wants a multiple of 8 */
	assert_int_equal(
		attention_plan_make(&cudnn, NULL, device, &wrong, "attention", &none, &err),
		PRONY_UNSUPPORTED);
	cudnn_version_text(&cudnn, version, sizeof(version));
	print_message("# cuDNN %s: %zu plans\n", version, 4 * COUNT(sizes) + 2);
	free(text);
	cudnn.BackendDestroyDescriptor(device);
}
