/* The kinds of devices that the executor native was built for. */
#include "adapters/native/backend.h"

const struct backend *const native_backends[] = {&backend_cpu, &backend_cuda, NULL};
