/* The native executor: oneDNN 3 on the CPU, the lower bound for the times of all frameworks. */
#ifndef PRONY_ADAPTERS_NATIVE_NATIVE_H
#define PRONY_ADAPTERS_NATIVE_NATIVE_H

#include "adapters/adapter.h"

/* session.library is the path of a libdnnl.so.3; it is loaded by probe and never closed. */
extern const struct adapter adapter_native;

#endif
