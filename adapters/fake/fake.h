/*
 * A correct executor that fails on demand: it tests the parent and the parity gate. Never a result.
 * Options stand in the framework's spelling ("fake+crash-at=build") and in session->option, which
 * also reaches what happens before the recipe is known (hello).
 */
#ifndef PRONY_ADAPTERS_FAKE_FAKE_H
#define PRONY_ADAPTERS_FAKE_FAKE_H

#include "adapters/adapter.h"

extern const struct adapter adapter_fake;

#endif
