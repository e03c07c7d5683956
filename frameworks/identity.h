/* What decides what a framework computes, as far as it can be seen before it is started. */
#ifndef PRONY_FRAMEWORKS_IDENTITY_H
#define PRONY_FRAMEWORKS_IDENTITY_H

#include <stdbool.h>

#include "base/digest.h"
#include "frameworks/registry.h"

/*
 * Adds to the digest what describes the framework here (its descriptor's bytes, environment,
 * version) and every file that was installed for it. False where the files are not ours to list:
 * named by the user, discovered on the machine, started by a command or descriptor of the user's.
 */
bool framework_identity(const struct framework_place *place, struct digest *digest);

#endif
