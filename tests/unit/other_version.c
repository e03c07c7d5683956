/* A fake library with every function that the adapters look up, in versions that they do not
 * support: MXNet 1.8.0, TensorFlow 2.3.0 (or OTHER_TENSORFLOW), and an ONNX Runtime without the
 * requested table of functions. */
#include <stdlib.h>
#include <string.h>

#include "adapters/mxnet/mxnet_api.h"
#include "adapters/onnxruntime/ort_api.h"
#include "adapters/tensorflow/tf_api.h"

#define EXPORTED __attribute__((visibility("default")))

static int answer(const char *function, int *out)
{
	if (strcmp(function, "MXGetVersion") == 0)
		*out = 10800;
	return 0;
}

#define X(function, arguments)                                                                     \
	EXPORTED int function(int *out);                                                           \
	int function(int *out)                                                                     \
	{                                                                                          \
		return answer(#function, out);                                                     \
	}
MX_FUNCTIONS(X)
X(MXGetLastError, )
X(omp_get_max_threads, )
X(omp_set_num_threads, )
#undef X

static const char *say(const char *function)
{
	return strcmp(function, "TF_Version") == 0 ? getenv("OTHER_TENSORFLOW") : NULL;
}

#define X(result, function, arguments)                                                             \
	EXPORTED const char *function(void);                                                       \
	const char *function(void)                                                                 \
	{                                                                                          \
		return say(#function);                                                             \
	}
TF_FUNCTIONS(X)
#undef X

static const struct ort_api *no_table(uint32_t version)
{
	(void)version;
	return NULL;
}

static const char *version(void)
{
	return "1.10.0";
}

EXPORTED const struct ort_api_base *OrtGetApiBase(void);
const struct ort_api_base *OrtGetApiBase(void)
{
	static const struct ort_api_base base = {.get_api = no_table,
						 .get_version_string = version};

	return &base;
}
