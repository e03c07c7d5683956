#include "adapters/xla/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "graph/layout.h"

/* Between the graph's order and the port's. */
static void rearrange(float *to, const float *from, const struct shape *shape,
		      const struct port *port, bool back)
{
	const struct arrangement arrangement =
		arrangement_make(shape->rank, shape->dims, layout_axes(port->layout));

	arrangement_copy(&arrangement, shape_elements(shape), from, to, back);
}

/* To the nearest, ties to even; NaN stays one. */
static uint16_t to_bf16(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static enum prony_status new_floats(const struct shape *shape, float **out, struct error *err)
{
	int64_t count = shape_elements(shape);

	*out = count < 0 ? NULL : calloc((size_t)count + 1, sizeof(**out));
	if (!*out)
		return error_set(err, PRONY_NOMEM, "no memory for a copy of %lld numbers",
				 (long long)count);
	return PRONY_OK;
}

enum prony_status buffer_from_floats(const struct pjrt *pjrt, const float *data,
				     const struct shape *shape, const struct port *port,
				     struct pjrt_buffer **out, struct error *err)
{
	bool narrow = port->hlo.type == HLO_BF16;
	float *copy = NULL;
	enum prony_status status = PRONY_OK;

	if (narrow || port->layout != LAYOUT_PLAIN) {
		status = new_floats(shape, &copy, err);
		if (status != PRONY_OK)
			return status;
		rearrange(copy, data, shape, port, false);
	}
	if (narrow) /* in place: each is half as large */
		for (int64_t i = 0; i < shape_elements(shape); i++) {
			uint16_t half = to_bf16(copy[i]);

			memcpy((char *)copy + (size_t)i * sizeof(half), &half, sizeof(half));
		}
	status = pjrt_upload(pjrt, copy ? copy : data, narrow ? PJRT_BF16 : PJRT_F32,
			     &port->hlo.shape, out, err);
	free(copy);
	return status;
}

enum prony_status buffer_to_floats(const struct pjrt *pjrt, struct pjrt_buffer *buffer,
				   const struct port *port, const struct shape *shape, float *out,
				   struct error *err)
{
	size_t count = (size_t)shape_elements(shape);
	bool narrow = port->hlo.type == HLO_BF16;
	float *copy;
	enum prony_status status;

	if (!narrow && port->layout == LAYOUT_PLAIN)
		return pjrt_download(pjrt, buffer, shape->rank, out, count * sizeof(*out), err);
	status = new_floats(shape, &copy, err);
	if (status != PRONY_OK)
		return status;
	status = pjrt_download(pjrt, buffer, shape->rank, copy,
			       count * (narrow ? sizeof(uint16_t) : sizeof(float)), err);
	for (size_t i = count; status == PRONY_OK && narrow && i-- > 0;) {
		uint16_t half;

		memcpy(&half, (char *)copy + i * sizeof(half), sizeof(half));
		copy[i] = from_bf16(half);
	}
	if (status == PRONY_OK)
		rearrange(out, copy, shape, port, true);
	free(copy);
	return status;
}

enum prony_status buffer_of_zeros(const struct pjrt *pjrt, const struct port *port,
				  struct pjrt_buffer **out, struct error *err)
{
	float *zeros;
	enum prony_status status = new_floats(&port->hlo.shape, &zeros, err);

	if (status != PRONY_OK)
		return status;
	status = pjrt_upload(pjrt, zeros, PJRT_F32, &port->hlo.shape, out, err);
	free(zeros);
	return status;
}
