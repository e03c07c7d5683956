/* A look inside a session of the native executor, for its benchmark. */
#ifndef PRONY_ADAPTERS_NATIVE_INSPECT_H
#define PRONY_ADAPTERS_NATIVE_INSPECT_H

#include "adapters/adapter.h"
#include "adapters/native/program.h"

/* The program of a session that was built and stepped; it stays the session's. */
struct program *native_program(const struct session *session);

#endif
