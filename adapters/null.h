/* The adapter that does nothing: what a measurement with it shows is the harness itself. */
#ifndef PRONY_ADAPTERS_NULL_H
#define PRONY_ADAPTERS_NULL_H

#include "adapters/adapter.h"

extern const struct adapter adapter_null;

#endif
