/* XLA through the PJRT C interface: any plug-in of it. */
#ifndef PRONY_ADAPTERS_XLA_XLA_H
#define PRONY_ADAPTERS_XLA_XLA_H

#include "adapters/adapter.h"

extern const struct adapter adapter_xla;

#endif
