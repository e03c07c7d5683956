/* ONNX Runtime behind the adapter table: forward only. */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ONNXRUNTIME_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ONNXRUNTIME_H

#include "adapters/adapter.h"

extern const struct adapter adapter_onnxruntime;

#endif
