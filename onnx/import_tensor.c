/* Reads the numbers of an ONNX tensor: from its fields, from raw bytes or from another file. */
#include "onnx/import_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/node_internal.h"

/* Short names of protoc-c's enumerators. */
enum {
	TYPE_FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
	TYPE_UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
	TYPE_INT8 = ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
	TYPE_UINT16 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT16,
	TYPE_INT16 = ONNX__TENSOR_PROTO__DATA_TYPE__INT16,
	TYPE_INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
	TYPE_INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
	TYPE_BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
	TYPE_FLOAT16 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
	TYPE_DOUBLE = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
	TYPE_UINT32 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT32,
	TYPE_UINT64 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT64,
	TYPE_BFLOAT16 = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16,
};

bool constant_is_float_type(int32_t type)
{
	return type == TYPE_FLOAT || type == TYPE_FLOAT16 || type == TYPE_DOUBLE ||
	       type == TYPE_BFLOAT16;
}

/* Bytes of an element in raw data; 0 for types that are not numbers. */
static size_t element_bytes(int32_t type)
{
	switch (type) {
	case TYPE_UINT8:
	case TYPE_INT8:
	case TYPE_BOOL:
		return 1;
	case TYPE_UINT16:
	case TYPE_INT16:
	case TYPE_FLOAT16:
	case TYPE_BFLOAT16:
		return 2;
	case TYPE_FLOAT:
	case TYPE_INT32:
	case TYPE_UINT32:
		return 4;
	case TYPE_INT64:
	case TYPE_UINT64:
	case TYPE_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

/* IEEE 754 binary16; exact. */
static float half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16, out;
	float value;

	if (exponent == 0) {
		value = (float)fraction * 0x1p-24f;
		memcpy(&out, &value, sizeof(out));
		out |= sign;
	} else if (exponent == 31) {
		out = sign | 0x7f800000 | (uint32_t)fraction << 13;
	} else {
		out = sign | (uint32_t)(exponent + 112) << 23 | (uint32_t)fraction << 13;
	}
	memcpy(&value, &out, sizeof(value));
	return value;
}

static float bfloat_value(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

/* Element i of raw little-endian data, which need not be aligned. */
static float raw_float(const uint8_t *raw, int64_t i, int32_t type)
{
	uint16_t bits;
	double wide;
	float value;

	switch (type) {
	case TYPE_FLOAT16:
		memcpy(&bits, raw + 2 * i, sizeof(bits));
		return half_value(bits);
	case TYPE_BFLOAT16:
		memcpy(&bits, raw + 2 * i, sizeof(bits));
		return bfloat_value(bits);
	case TYPE_DOUBLE:
		memcpy(&wide, raw + 8 * i, sizeof(wide));
		return (float)wide;
	default:
		memcpy(&value, raw + 4 * i, sizeof(value));
		return value;
	}
}

static int64_t raw_int(const uint8_t *raw, int64_t i, int32_t type)
{
#define LOAD(ctype)                                                                                \
	do {                                                                                       \
		ctype value;                                                                       \
		memcpy(&value, raw + (int64_t)sizeof(value) * i, sizeof(value));                   \
		return (int64_t)value;                                                             \
	} while (0)
	switch (type) {
	case TYPE_UINT8:
		LOAD(uint8_t);
	case TYPE_INT8:
		LOAD(int8_t);
	case TYPE_BOOL:
		return raw[i] != 0;
	case TYPE_UINT16:
		LOAD(uint16_t);
	case TYPE_INT16:
		LOAD(int16_t);
	case TYPE_INT32:
		LOAD(int32_t);
	case TYPE_UINT32:
		LOAD(uint32_t);
	case TYPE_UINT64:
		LOAD(uint64_t);
	default:
		LOAD(int64_t);
	}
#undef LOAD
}

/* Count of the field that ONNX stores this type in; half floats are in int32_data. */
static size_t field_count(const Onnx__TensorProto *tensor, int32_t type)
{
	switch (type) {
	case TYPE_FLOAT:
		return tensor->n_float_data;
	case TYPE_DOUBLE:
		return tensor->n_double_data;
	case TYPE_INT64:
		return tensor->n_int64_data;
	case TYPE_UINT32:
	case TYPE_UINT64:
		return tensor->n_uint64_data;
	default:
		return tensor->n_int32_data;
	}
}

static float field_float(const Onnx__TensorProto *tensor, int64_t i, int32_t type)
{
	if (type == TYPE_DOUBLE)
		return (float)tensor->double_data[i];
	return type == TYPE_FLOAT16 ? half_value((uint16_t)tensor->int32_data[i])
				    : bfloat_value((uint16_t)tensor->int32_data[i]);
}

static int64_t field_int(const Onnx__TensorProto *tensor, int64_t i, int32_t type)
{
	return type == TYPE_UINT32 || type == TYPE_UINT64 ? (int64_t)tensor->uint64_data[i]
							  : tensor->int32_data[i];
}

/*
 * Borrows the numbers if they have the type and alignment that prony uses; otherwise returns false.
 */
static bool borrow(const Onnx__TensorProto *tensor, const uint8_t *raw, struct constant *out)
{
	if (out->type == TYPE_FLOAT && (raw == NULL || (uintptr_t)raw % _Alignof(float) == 0))
		out->floats = raw ? (const float *)(const void *)raw : tensor->float_data;
	else if (out->type == TYPE_INT64 && raw == NULL)
		out->ints = tensor->int64_data;
	else
		return false;
	return true;
}

/* Reads raw little-endian numbers, or those in the tensor's fields if `raw` is NULL. */
static enum prony_status take_numbers(const Onnx__TensorProto *tensor, const uint8_t *raw,
				      struct arena *arena, struct constant *out, struct error *err)
{
	size_t room = (size_t)out->count + 1;

	if (borrow(tensor, raw, out))
		return PRONY_OK;
	if (out->is_float) {
		float *floats = arena_try_array(arena, room, sizeof(*floats), err);

		for (int64_t i = 0; floats && i < out->count; i++)
			floats[i] = raw ? raw_float(raw, i, out->type)
					: field_float(tensor, i, out->type);
		out->floats = floats;
		return floats ? PRONY_OK : PRONY_NOMEM;
	}
	int64_t *ints = arena_try_array(arena, room, sizeof(*ints), err);

	for (int64_t i = 0; ints && i < out->count; i++)
		ints[i] = raw ? raw_int(raw, i, out->type) : field_int(tensor, i, out->type);
	out->ints = ints;
	return ints ? PRONY_OK : PRONY_NOMEM;
}

/* Where a tensor is stored in another file. */
struct outside {
	const char *location;
	int64_t offset, length; /* length -1: to the end */
};

static enum prony_status read_outside(const Onnx__TensorProto *tensor, const char *name,
				      struct outside *out, struct error *err)
{
	*out = (struct outside){.location = NULL, .length = -1};
	for (size_t i = 0; i < tensor->n_external_data; i++) {
		const char *key = tensor->external_data[i]->key;
		const char *value = tensor->external_data[i]->value;
		int64_t *number;
		char *end;

		if (key == NULL || value == NULL)
			continue;
		if (strcmp(key, "location") == 0)
			out->location = value;
		if (strcmp(key, "offset") != 0 && strcmp(key, "length") != 0)
			continue;
		number = key[0] == 'o' ? &out->offset : &out->length;
		errno = 0;
		*number = strtoll(value, &end, 10);
		if (errno != 0 || end == value || *end != '\0' || *number < 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "tensor '%s': %s '%.40s' of its external data must be a "
					 "non-negative integer",
					 name, key, value);
	}
	if (out->location == NULL || out->location[0] == '\0')
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s': its external data has no location", name);
	return PRONY_OK;
}

/* Whether a part of the path is "..". */
static bool has_parent(const char *path)
{
	for (const char *part = path; part != NULL; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
			return true;
	}
	return false;
}

static bool is_below(const char *path, const char *folder)
{
	char root[PATH_MAX];
	size_t length;

	if (folder == NULL || realpath(folder, root) == NULL)
		return false;
	length = strlen(root);
	return strncmp(path, root, length) == 0 &&
	       (path[length] == '/' || (length == 1 && root[0] == '/'));
}

/* Finds the real path of a file below the model's folder. Absolute paths, ".." and links out of the
 * folder are refused: a model must not make prony read other files of the user. If the model itself
 * is a link, the folder of the real file is the model's, too. */
static enum prony_status find_outside(const struct outside *outside, const char *name,
				      const struct onnx_folders *folders, char path[PATH_MAX],
				      struct error *err)
{
	char joined[PATH_MAX];
	int length;

	if (folders == NULL)
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s' has external data, which is not supported for a "
				 "model in memory",
				 name);
	length = snprintf(joined, sizeof(joined), "%s/%s", folders->beside, outside->location);
	if (length < 0 || (size_t)length >= sizeof(joined))
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s': the path of its external data is too long", name);
	if (outside->location[0] == '/' || has_parent(outside->location))
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s': external data '%.200s' is outside the model's "
				 "folder",
				 name, outside->location);
	if (realpath(joined, path) == NULL)
		return error_errno(err, PRONY_BAD_INPUT, errno,
				   "tensor '%s': external data '%.200s'", name, outside->location);
	if (!is_below(path, folders->beside) && !is_below(path, folders->real))
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s': external data '%.200s' is a link to a file outside "
				 "the model's folder",
				 name, outside->location);
	return PRONY_OK;
}

struct onnx_folders onnx_folders_of(const char *path, struct arena *arena)
{
	struct onnx_folders folders = {.beside = "."};
	const char *slash = path ? strrchr(path, '/') : NULL;
	char real[PATH_MAX];

	if (slash)
		folders.beside = arena_printf(arena, "%.*s", (int)(slash - path + 1), path);
	if (path && realpath(path, real) && strrchr(real, '/') > real) {
		*strrchr(real, '/') = '\0';
		folders.real = arena_strdup(arena, real);
	}
	return folders;
}

enum prony_status onnx_tensor_data_file(const Onnx__TensorProto *tensor, const char *name,
					const struct onnx_folders *folders, struct arena *arena,
					struct model_data *out, struct error *err)
{
	struct outside outside;
	char path[PATH_MAX];
	enum prony_status status = read_outside(tensor, name, &outside, err);

	if (status == PRONY_OK)
		status = find_outside(&outside, name, folders, path, err);
	if (status == PRONY_OK && strchr(outside.location, '/'))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "tensor '%s': external data '%.200s' is not beside the model",
				   name, outside.location);
	if (status == PRONY_OK)
		*out = (struct model_data){arena_strdup(arena, outside.location),
					   arena_strdup(arena, path)};
	return status;
}

static enum prony_status read_range(int fd, uint8_t *out, int64_t bytes, int64_t offset)
{
	while (bytes > 0) {
		ssize_t got = pread(fd, out, (size_t)bytes, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return PRONY_IO;
		out += got;
		bytes -= got;
		offset += got;
	}
	return PRONY_OK;
}

/* Reads the `bytes` bytes of a tensor's external data into the arena. */
static enum prony_status load_outside(const Onnx__TensorProto *tensor, const char *name,
				      const struct onnx_folders *folders, int64_t bytes,
				      struct arena *arena, const uint8_t **out, struct error *err)
{
	struct outside outside;
	char path[PATH_MAX];
	struct stat about;
	uint8_t *data;
	enum prony_status status = read_outside(tensor, name, &outside, err);
	int fd;

	if (status == PRONY_OK)
		status = find_outside(&outside, name, folders, path, err);
	if (status != PRONY_OK)
		return status;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return error_errno(err, PRONY_BAD_INPUT, errno, "tensor '%s': external data '%s'",
				   name, outside.location);
	status = PRONY_OK;
	if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || outside.offset > about.st_size ||
	    bytes > about.st_size - outside.offset ||
	    (outside.length >= 0 && outside.length != bytes))
		status = error_set(err, PRONY_BAD_INPUT,
				   "tensor '%s' needs %lld bytes from byte %lld of '%.200s', but "
				   "the file or the range is too short",
				   name, (long long)bytes, (long long)outside.offset,
				   outside.location);
	data = status == PRONY_OK ? arena_try_array(arena, (size_t)bytes + 1, 1, err) : NULL;
	if (status == PRONY_OK && data == NULL)
		status = PRONY_NOMEM;
	if (status == PRONY_OK && read_range(fd, data, bytes, outside.offset) != PRONY_OK)
		status = error_set(err, PRONY_IO, "tensor '%s': cannot read '%s'", name, path);
	close(fd);
	*out = data;
	return status;
}

static enum prony_status read_shape(const Onnx__TensorProto *tensor, const char *name,
				    struct constant *out, struct error *err)
{
	if (tensor->n_dims > TENSOR_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s' has %zu dimensions; at most %d are supported", name,
				 tensor->n_dims, TENSOR_MAX_RANK);
	out->shape = shape_make((int)tensor->n_dims, tensor->dims);
	out->count = shape_elements(&out->shape);
	if (out->count < 0 || out->count > INT64_MAX / 8)
		return error_set(err, PRONY_BAD_INPUT,
				 "tensor '%s': a dimension is negative or the size overflows",
				 name);
	return PRONY_OK;
}

int64_t onnx_tensor_outside_bytes(const Onnx__TensorProto *tensor)
{
	struct constant c;

	if (tensor->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL ||
	    read_shape(tensor, "", &c, NULL) != PRONY_OK)
		return 0;
	return c.count * (int64_t)element_bytes(tensor->data_type);
}

enum prony_status onnx_tensor_read(const Onnx__TensorProto *tensor, const char *name,
				   const struct onnx_folders *folders, struct arena *arena,
				   struct constant *out, struct error *err)
{
	struct constant c = {.type = tensor->data_type, .initializer = -1};
	size_t size = element_bytes(c.type);
	const uint8_t *raw = tensor->raw_data.data;
	bool external = tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	enum prony_status status = read_shape(tensor, name, &c, err);

	if (status != PRONY_OK)
		return status;
	c.is_float = constant_is_float_type(c.type);
	if (size == 0) {
		c.count = -1;
		*out = c;
		return PRONY_OK;
	}
	if (external) {
		status = load_outside(tensor, name, folders, c.count * (int64_t)size, arena, &raw,
				      err);
	} else if (tensor->has_raw_data) {
		if (tensor->raw_data.len != (size_t)c.count * size)
			status = error_set(err, PRONY_BAD_INPUT,
					   "tensor '%s' has %zu bytes, but its shape needs %lld",
					   name, tensor->raw_data.len,
					   (long long)c.count * (long long)size);
	} else if (field_count(tensor, c.type) != (size_t)c.count) {
		status = error_set(err, PRONY_BAD_INPUT,
				   "tensor '%s' has %zu numbers, but its shape needs %lld", name,
				   field_count(tensor, c.type), (long long)c.count);
	}
	if (status == PRONY_OK)
		status = take_numbers(tensor, external || tensor->has_raw_data ? raw : NULL, arena,
				      &c, err);
	if (status == PRONY_OK)
		*out = c;
	return status;
}
