/* The adapter of TensorFlow 2.x and 1.15, one source for both libraries. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TENSORFLOW_H
#define PRONY_ADAPTERS_TENSORFLOW_TENSORFLOW_H

#include "adapters/adapter.h"

extern const struct adapter adapter_tensorflow, adapter_tensorflow1;

#endif
