/* The adapter of Apache MXNet 1.9: forward, forward-backward, train. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_H
#define PRONY_ADAPTERS_MXNET_MXNET_H

#include "adapters/adapter.h"

extern const struct adapter adapter_mxnet;

#endif
