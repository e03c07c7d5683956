/* The kinds of devices that the executor native was built for. */
#include "adapters/native/backend.h"
#include "adapters/native/cpu/cpu.h"

const struct backend *const native_backends[] = {&backend_cpu, NULL};
