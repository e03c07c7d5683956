#include "datasets/datum.h"

#include <string.h>

#include "datasets/image.h"

enum { CHANNELS = 1, HEIGHT = 2, WIDTH = 3, DATA = 4, LABEL = 5, ENCODED = 7 };

void datum_write(const struct data_record *record, struct byte_buffer *out)
{
	for (int i = 0; i < 3; i++)
		protobuf_add_number(out, CHANNELS + i, (uint64_t)record->dims[i]);
	protobuf_add_bytes(out, DATA, record->bytes, record->length);
	protobuf_add_number(out, LABEL, (uint64_t)record->label);
	if (record->encoded)
		protobuf_add_number(out, ENCODED, 1);
}

static bool fits(const struct data_record *record)
{
	int64_t values = 1;

	if (record->encoded)
		return image_kind_of(record->bytes, record->length) != IMAGE_NONE;
	if (record->dims[0] != 1 && record->dims[0] != IMAGE_CHANNELS)
		return false;
	for (int i = 0; i < 3; i++) {
		if (record->dims[i] < 1 || record->dims[i] > IMAGE_SIDE_MAX)
			return false;
		values *= record->dims[i];
	}
	return values == (int64_t)record->length;
}

bool datum_read(const uint8_t *bytes, size_t length, struct data_record *out)
{
	struct protobuf_reader reader = {bytes, bytes + length};
	struct protobuf_field field;
	bool broken = false;

	out->encoded = false;
	out->length = 0;
	out->label = 0;
	memset(out->dims, 0, sizeof(out->dims));
	while (protobuf_next(&reader, &field, &broken)) {
		if (field.number >= CHANNELS && field.number <= WIDTH && !field.is_bytes)
			out->dims[field.number - CHANNELS] = (int64_t)field.value;
		else if (field.number == DATA && field.is_bytes) {
			data_record_reserve(out, field.length);
			if (field.length > 0)
				memcpy(out->bytes, field.bytes, field.length);
			out->length = field.length;
		} else if (field.number == LABEL && !field.is_bytes)
			out->label = (int32_t)field.value;
		else if (field.number == ENCODED && !field.is_bytes)
			out->encoded = field.value != 0;
	}
	return !broken && out->length > 0 && out->label >= 0 && fits(out);
}
