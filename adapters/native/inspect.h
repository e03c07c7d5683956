/* Gives the native executor's benchmark access to a session's program. */
#ifndef PRONY_ADAPTERS_NATIVE_INSPECT_H
#define PRONY_ADAPTERS_NATIVE_INSPECT_H

#include "adapters/adapter.h"
#include "adapters/native/program.h"

/* The program of a session after build and a step; the session owns it. */
struct program *native_program(const struct session *session);

#endif
