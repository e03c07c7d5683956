/* OpenVINO behind the adapter table: forward only. */
#ifndef PRONY_ADAPTERS_OPENVINO_OPENVINO_H
#define PRONY_ADAPTERS_OPENVINO_OPENVINO_H

#include "adapters/adapter.h"

extern const struct adapter adapter_openvino;

#endif
