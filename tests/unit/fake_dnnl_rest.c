/* The other functions of fake_dnnl.c: they return success (0). They are weak because fake_dnnl.c
 * defines some of them itself. */
#include "adapters/native/cpu/onednn.h"

#define X(name)                                                                                    \
	__attribute__((weak)) int rest_##name(void) __asm__("dnnl_" #name);                        \
	int rest_##name(void)                                                                      \
	{                                                                                          \
		return 0;                                                                          \
	}
ONEDNN_FUNCTIONS(X)
