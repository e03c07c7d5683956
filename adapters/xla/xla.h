/* The adapter of XLA, through the PJRT C interface, for any PJRT plug-in. */
#ifndef PRONY_ADAPTERS_XLA_XLA_H
#define PRONY_ADAPTERS_XLA_XLA_H

#include "adapters/adapter.h"

extern const struct adapter adapter_xla;

#endif
