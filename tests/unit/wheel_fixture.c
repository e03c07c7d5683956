#include "wheel_fixture.h"

#define ZLIB_CONST
#include <zlib.h>

#include "base/digest.h"
#include "unit_test.h"

#define FILES_MAX 8

static void put(struct strbuf *out, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		strbuf_putc(out, (char)(value & 0xff));
		value >>= 8;
	}
}

static char *pack(const struct wheel_file *file, size_t *length)
{
	size_t bytes = strlen(file->text);
	char *packed = memory_alloc(bytes + 256);
	z_stream stream = {.next_in = (const unsigned char *)file->text, .avail_in = (uInt)bytes};

	*length = bytes;
	memcpy(packed, file->text, bytes);
	if (!file->deflate)
		return packed;
	stream.next_out = (unsigned char *)packed;
	stream.avail_out = (uInt)bytes + 256;
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	*length = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

/* Writes the members that a file's header and its directory entry have in common. */
static void put_common(struct strbuf *out, const struct wheel_file *file, size_t packed)
{
	uint32_t bytes = (uint32_t)strlen(file->text);

	put(out, file->flags, 2);
	put(out, file->method ? file->method : file->deflate ? 8 : 0, 2);
	put(out, 0, 4); /* time and date */
	put(out,
	    file->crc ? file->crc : (uint32_t)crc32(0, (const unsigned char *)file->text, bytes),
	    4);
	put(out, file->packed_bytes ? file->packed_bytes : (uint32_t)packed, 4);
	put(out, file->bytes ? file->bytes : bytes, 4);
	put(out, (uint32_t)strlen(file->name), 2);
}

void wheel_make(const struct wheel_file *files, size_t count, struct strbuf *out)
{
	size_t start = out->length, offsets[FILES_MAX], packed[FILES_MAX];

	assert_true(count <= FILES_MAX);
	for (size_t i = 0; i < count; i++) {
		char *bytes = pack(&files[i], &packed[i]);
		offsets[i] = out->length - start;
		put(out, 0x04034b50, 4);
		put(out, 20, 2);
		put_common(out, &files[i], packed[i]);
		put(out, 0, 2);
		strbuf_puts(out, files[i].name);
		strbuf_add(out, bytes, packed[i]);
		free(bytes);
	}
	size_t directory = out->length - start;
	for (size_t i = 0; i < count; i++) {
		put(out, 0x02014b50, 4);
		put(out, 20, 2);
		put(out, 20, 2);
		put_common(out, &files[i], packed[i]);
		put(out, 0, 4); /* lengths of extra field and comment */
		put(out, 0, 8); /* disk, attributes */
		put(out, files[i].offset ? files[i].offset : (uint32_t)offsets[i], 4);
		strbuf_puts(out, files[i].name);
	}
	size_t directory_bytes = out->length - start - directory;
	put(out, 0x06054b50, 4);
	put(out, 0, 4);
	put(out, (uint32_t)count, 2);
	put(out, (uint32_t)count, 2);
	put(out, (uint32_t)directory_bytes, 4);
	put(out, (uint32_t)directory, 4);
	put(out, 0, 2);
}

void wheel_write(const char *folder, const char *name, const char *version, const char *path,
		 const char *text, char sha256[65])
{
	char *metadata =
		memory_printf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version);
	char *tags = memory_printf("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
				   "Tag: py3-none-any\n");
	char *names[] = {memory_printf("%s-%s.dist-info/METADATA", name, version),
			 memory_printf("%s-%s.dist-info/WHEEL", name, version),
			 memory_printf("%s-%s.dist-info/RECORD", name, version)};
	const struct wheel_file files[] = {{.name = path, .text = text, .deflate = true},
					   {.name = names[0], .text = metadata},
					   {.name = names[1], .text = tags},
					   {.name = names[2], .text = ""}};
	char *target = memory_printf("%s/%s-%s-py3-none-any.whl", folder, name, version);
	struct strbuf wheel;

	strbuf_init(&wheel, 0);
	wheel_make(files, 4, &wheel);
	digest_bytes(strbuf_text(&wheel), wheel.length, sha256);
	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(target, strbuf_text(&wheel), wheel.length, NULL),
			 PRONY_OK);
	strbuf_release(&wheel);
	free(target);
	for (int i = 0; i < 3; i++)
		free(names[i]);
	free(tags);
	free(metadata);
}
