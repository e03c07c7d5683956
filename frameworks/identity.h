/* A digest of everything that determines what a framework computes, without starting it. */
#ifndef PRONY_FRAMEWORKS_IDENTITY_H
#define PRONY_FRAMEWORKS_IDENTITY_H

#include <stdbool.h>

#include "base/digest.h"
#include "frameworks/registry.h"

/* Adds to the digest the framework's descriptor, environment and version, and every installed file.
 * False when prony did not install the files: named by the user, discovered on the machine, or
 * started by the user's own command or descriptor. */
bool framework_identity(const struct framework_location *place, struct digest *digest);

#endif
