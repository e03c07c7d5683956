/* Copies values between host memory, in graph order, and a device, in the program's layout. */
#ifndef PRONY_ADAPTERS_XLA_BUFFERS_H
#define PRONY_ADAPTERS_XLA_BUFFERS_H

#include "adapters/xla/emit.h"
#include "adapters/xla/pjrt.h"

/* `shape` is the shape in the graph; the port gives layout and type (F32 or BF16). */
enum prony_status buffer_from_floats(const struct pjrt *pjrt, const float *data,
				     const struct shape *shape, const struct port *port,
				     struct pjrt_buffer **out, struct error *err);
/* For a tensor of a batch: F32 as above, or integers, which become I32. */
enum prony_status buffer_from_tensor(const struct pjrt *pjrt, const struct tensor *tensor,
				     const struct port *port, struct pjrt_buffer **out,
				     struct error *err);
enum prony_status buffer_to_floats(const struct pjrt *pjrt, struct pjrt_buffer *buffer,
				   const struct port *port, const struct shape *shape, float *out,
				   struct error *err);
enum prony_status buffer_of_zeros(const struct pjrt *pjrt, const struct port *port,
				  struct pjrt_buffer **out, struct error *err);

#endif
