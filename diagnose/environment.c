#include "diagnose/environment.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { VALUE_LIMIT_BYTES = 1024 };

/* Prefixes end in '_'; other entries are whole names. Sources: the manuals of OpenMP, oneDNN, MKL,
 * OpenBLAS, CUDA, cuDNN, NCCL, glibc, jemalloc and each framework's page on environment variables.
 */
static const char *const settings[] = {
	"OMP_",
	"GOMP_",
	"KMP_",
	"MKL_",
	"OPENBLAS_",
	"GOTO_",
	"BLIS_",
	"VECLIB_",
	"NUMEXPR_",
	"DNNL_",
	"ONEDNN_",
	"CUDA_",
	"CUDNN_",
	"CUBLAS_",
	"NCCL_",
	"NVIDIA_",
	"HIP_",
	"ROCR_",
	"TF_XLA_",
	"TF_ENABLE_",
	"TF_DISABLE_",
	"TF_GPU_",
	"TF_CUDNN_",
	"TF_CUDA_",
	"TF_FORCE_",
	"TF_NUM_",
	"TF_ONEDNN_",
	"TF_MKL_",
	"TF_CPU_",
	"TF_LAYOUT_",
	"TF_INTRA_",
	"TF_INTER_",
	"TF_USE_",
	"TF_AUTO_",
	"TF_DETERMINISTIC_OPS",
	"XLA_",
	"NPROC",
	"JAX_",
	"TORCH_",
	"TORCHINDUCTOR_",
	"PYTORCH_",
	"TRITON_",
	"ATEN_",
	"MXNET_",
	"CHAINER_",
	"CUPY_",
	"FLAGS_",
	"ORT_",
	"OV_",
	"OPENVINO_",
	"KERAS_BACKEND",
	"THEANO_FLAGS",
	"MALLOC_",
	"GLIBC_TUNABLES",
	"LD_PRELOAD",
	"LD_BIND_NOW",
	"PYTHONHASHSEED",
	"PYTHONOPTIMIZE",
	"TBB_",
};
/* Used only when compiling an extension, not at run time; PyTorch's container images set them. */
static const char *const of_builds[] = {"TORCH_CUDA_ARCH_LIST", "TORCH_EXTENSIONS_DIR"};
static const char *const paths[] = {"LD_LIBRARY_PATH", "PYTHONPATH", "PRONY_"};
static const char *const secrets[] = {"TOKEN",	    "SECRET", "PASSWORD", "PASSWD",
				      "CREDENTIAL", "_KEY",   "APIKEY"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool listed(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(list[i]);
		bool prefix = list[i][length - 1] == '_';

		if (prefix ? strncmp(name, list[i], length) == 0 : strcmp(name, list[i]) == 0)
			return true;
	}
	return false;
}

static bool may_be_secret(const char *name)
{
	for (size_t i = 0; i < COUNT(secrets); i++)
		if (strcasestr(name, secrets[i]))
			return true;
	return false;
}

static json_t *collect(const char *const *list, size_t count)
{
	json_t *object = json_object();

	for (char **row = environ; row && *row; row++) {
		const char *equals = strchr(*row, '=');

		if (!equals)
			continue;
		char *name = memory_printf("%.*s", (int)(equals - *row), *row);
		if (listed(name, list, count) && !may_be_secret(name) &&
		    !listed(name, of_builds, COUNT(of_builds))) {
			size_t length = strnlen(equals + 1, VALUE_LIMIT_BYTES);
			json_t *value = json_stringn(equals + 1, length);

			json_object_set_new(object, name,
					    value ? value : json_string("(not UTF-8)"));
		}
		free(name);
	}
	return object;
}

json_t *environment_settings(void)
{
	return collect(settings, COUNT(settings));
}

json_t *environment_paths(void)
{
	return collect(paths, COUNT(paths));
}

bool instruction_flag_matters(const char *flag)
{
	/* Names as in the kernel's cpufeatures.h and hwcap.c; a prefix covers its family. */
	static const char *const prefixes[] = {"sse4", "avx", "amx", "sve"};
	static const char *const names[] = {"sse2",	 "ssse3",    "fma",  "fma4",  "f16c",
					    "bmi2",	 "vaes",     "gfni", "asimd", "asimdhp",
					    "asimddp",	 "asimdfhm", "i8mm", "sme2",  "smef64f64",
					    "smei16i64", "bf16",     "fphp", "vsx",   "altivec"};

	for (size_t i = 0; i < COUNT(prefixes); i++)
		if (strncmp(flag, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(flag, names[i]) == 0)
			return true;
	return false;
}
