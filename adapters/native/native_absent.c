/* The adapter native without oneDNN's headers; compiled in place of native.c. */
#include "adapters/native/native.h"

const struct adapter adapter_native = {
	.abi = ADAPTER_ABI,
	.name = "native",
	.summary = "prony's own executor on oneDNN 3 or CUDA: the lower bound for all frameworks",
	.absent_reason = "prony was built without the headers of oneDNN 3; run tools/setup or set "
			 "-Donednn_include, then build again",
};
