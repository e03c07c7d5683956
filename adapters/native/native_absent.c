/* The adapter native without oneDNN's headers; compiled in place of native.c. */
#include "adapters/native/native.h"

const struct adapter adapter_native = {
	.abi = ADAPTER_ABI,
	.name = "native",
	.summary = "our own executor over oneDNN 3: the floor under every other number",
	.absent_reason = "prony was built without the headers of oneDNN 3; set -Donednn_include or "
			 "run tools/setup, and build again",
};
