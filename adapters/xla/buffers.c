/* Copies values between host memory and a PJRT device. */
#include "adapters/xla/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/bf16.h"

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

	if (narrow || port->order.rank > 0) {
		status = new_floats(shape, &copy, err);
		if (status != PRONY_OK)
			return status;
		arrangement_copy(&port->order, shape_elements(shape), data, copy, false);
	}
	if (narrow) /* in place: an element of bf16 is half as large */
		for (int64_t i = 0; i < shape_elements(shape); i++) {
			uint16_t half = bf16_from_float(copy[i]);

			memcpy((char *)copy + (size_t)i * sizeof(half), &half, sizeof(half));
		}
	status = pjrt_upload(pjrt, copy ? copy : data, narrow ? PJRT_BF16 : PJRT_F32,
			     &port->hlo.shape, out, err);
	free(copy);
	return status;
}

enum prony_status buffer_from_tensor(const struct pjrt *pjrt, const struct tensor *tensor,
				     const struct port *port, struct pjrt_buffer **out,
				     struct error *err)
{
	int64_t count = shape_elements(&tensor->shape);
	const int64_t *wide = tensor->data;
	enum prony_status status;
	int32_t *copy;

	if (tensor->dtype == DTYPE_F32)
		return buffer_from_floats(pjrt, tensor->data, &tensor->shape, port, out, err);
	if (tensor->dtype == DTYPE_I32)
		return pjrt_upload(pjrt, tensor->data, PJRT_S32, &tensor->shape, out, err);
	copy = calloc((size_t)count + 1, sizeof(*copy));
	if (!copy)
		return error_set(err, PRONY_NOMEM, "no memory for a copy of %lld numbers",
				 (long long)count);
	for (int64_t i = 0; i < count; i++)
		copy[i] = (int32_t)wide[i];
	status = pjrt_upload(pjrt, copy, PJRT_S32, &tensor->shape, out, err);
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

	if (!narrow && port->order.rank == 0)
		return pjrt_download(pjrt, buffer, shape->rank, out, count * sizeof(*out), err);
	status = new_floats(shape, &copy, err);
	if (status != PRONY_OK)
		return status;
	status = pjrt_download(pjrt, buffer, shape->rank, copy,
			       count * (narrow ? sizeof(uint16_t) : sizeof(float)), err);
	for (size_t i = count; status == PRONY_OK && narrow && i-- > 0;) {
		uint16_t half;

		memcpy(&half, (char *)copy + i * sizeof(half), sizeof(half));
		copy[i] = bf16_to_float(half);
	}
	if (status == PRONY_OK)
		arrangement_copy(&port->order, (int64_t)count, copy, out, true);
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
