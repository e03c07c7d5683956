/* The other functions of fake_dnnl.c: they say success (0). Weak, for it has some of its own. */
#include "adapters/native/cpu/onednn.h"

#define X(name)                                                                                    \
	__attribute__((weak)) int rest_##name(void) __asm__("dnnl_" #name);                        \
	int rest_##name(void)                                                                      \
	{                                                                                          \
		return 0;                                                                          \
	}
ONEDNN_FUNCTIONS(X)
