/* A correct executor that fails on demand, to test the parent and the parity gate. It never gives a
 * result. Options are in the framework's spelling ("fake+crash-at=build") and in session->option,
 * which also applies before the recipe is known (hello). */
#ifndef PRONY_ADAPTERS_FAKE_FAKE_H
#define PRONY_ADAPTERS_FAKE_FAKE_H

#include "adapters/adapter.h"

extern const struct adapter adapter_fake;

#endif
