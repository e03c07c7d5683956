/* The adapter that computes nothing: measuring it shows the overhead of the harness. */
#ifndef PRONY_ADAPTERS_NULL_H
#define PRONY_ADAPTERS_NULL_H

#include "adapters/adapter.h"

extern const struct adapter adapter_null;

#endif
