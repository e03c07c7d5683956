/* Tests the record formats that frameworks read: the message for each broken file, and round trips
 * in memory. The round trips cover cases that whole conversions (tests/e2e/test_convert.py) meet
 * only by chance. */
#include "datasets/crc32c.h"
#include "datasets/datum.h"
#include "datasets/format.h"
#include "datasets/writer.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

static const struct sample {
	const char *name, *format, *message;
} samples[] = {
	{"lmdb", "lmdb", NULL},
	{"recordio", "recordio", NULL},
	{"tfrecord", "tfrecord", NULL},
	{"lmdb-short", "lmdb", "truncated: "},
	{"lmdb-root", "lmdb", "offset 0: the page is neither a branch nor a leaf"},
	{"recordio-short", "recordio", "truncated: "},
	{"recordio-label", "recordio", "offset 0: the record is not an IRHeader with one label"},
	{"recordio-flag", "recordio", "offset 0: unexpected part of a record"},
	{"tfrecord-short", "tfrecord", "truncated: "},
	{"tfrecord-sum", "tfrecord", "offset 12: corrupt: wrong checksum of a record"},
	{"tfrecord-length-sum", "tfrecord",
	 "offset 0: corrupt: wrong checksum of the length of a record"},
};
enum { SAMPLES = COUNT(samples) };

TEST(each_sample)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		char *path = corpus_path("records", samples[i].name);
		struct error err = ERROR_INIT;
		int64_t bytes;
		enum prony_status status = data_format_verify(data_format_find(samples[i].format),
							      path, 10, NULL, &bytes, &err);

		if (status != (samples[i].message ? PRONY_BAD_INPUT : PRONY_OK))
			fail_msg("%s: status %d, %s", samples[i].name, status, err.text);
		if (samples[i].message && (strncmp(err.text, path, strlen(path)) != 0 ||
					   !strstr(err.text, samples[i].message) ||
					   !strstr(err.text, "prony data convert")))
			fail_msg("%s: %s", samples[i].name, err.text);
	}
}

static void cut_and_change(const char *name, uint8_t *bytes, size_t length)
{
	(void)name;
	for (size_t cut = 0; cut < length; cut += 37) {
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, cut), 0);
		bytes[cut] ^= 0x21;
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, length), 0);
		bytes[cut] ^= 0x21;
	}
}

TEST(the_seed_corpus_runs)
{
	assert_int_equal(corpus_run("records", cut_and_change), SAMPLES);
}

/* RFC 3720, appendix B.4, and the check value of CRC catalogues. */
TEST(check_sums_are_castagnoli)
{
	uint8_t zeros[32] = {0}, ones[32], rising[32];

	memset(ones, 0xff, sizeof(ones));
	for (int i = 0; i < 32; i++)
		rising[i] = (uint8_t)i;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(zeros, 32), 0x8a9136aa);
	assert_int_equal(crc32c(ones, 32), 0x62a8ab43);
	assert_int_equal(crc32c(rising, 32), 0x46dd794e);
	assert_int_equal(crc32c("", 0), 0);
}

/* The magic number in a record's own bytes is cut out and put back, at any position. */
TEST(recordio_survives_its_magic_number)
{
	static const uint8_t magic[] = {0x0a, 0x23, 0xd7, 0xce};
	const struct data_format *format = data_format_find("recordio");
	SCOPED(byte_buffer) note = {0};
	struct data_sink *sink = calloc(1, format->writer->sink_bytes);
	struct error err = ERROR_INIT;
	uint8_t bytes[80] = {0x89, 'P', 'N', 'G'};

	memcpy(bytes + 8, magic, 4);  /* at a multiple of four */
	memcpy(bytes + 12, magic, 4); /* immediately after */
	memcpy(bytes + 30, magic, 4); /* between */
	memcpy(bytes + 76, magic, 4); /* at the end */
	sink->folder = test_folder();
	check(format->writer->open(sink, NULL, &err), &err);
	for (size_t i = 0; i < sizeof(bytes) - 4; i++) {
		struct data_record record = {
			.bytes = bytes, .length = sizeof(bytes) - i, .encoded = true, .label = 3};

		sink->written = (int64_t)i;
		check(format->writer->put(sink, &record, &err), &err);
	}
	check(format->writer->commit(sink, &note, &err), &err);
	format->writer->close(sink);
	free(sink);
	char *path = test_path("data.rec");
	const char *paths[] = {path};
	const struct data_shard shard = {.paths = paths, .classes = 4};
	struct data_source *source;
	SCOPED(data_record) read = {0};
	check(format->open(&shard, &source, &err), &err);
	assert_int_equal(source->count, sizeof(bytes) - 4);
	for (int64_t i = 0; i < source->count; i++) {
		check(format->record(source, i, &read, &err), &err);
		assert_int_equal(read.length, sizeof(bytes) - (size_t)i);
		assert_memory_equal(read.bytes, bytes, read.length);
		assert_int_equal(read.label, 3);
	}
	format->close(source);
}

/* A Datum written by Caffe's own protobuf: channels 1, height 2, width 2, data, label 7. */
TEST(datum_is_that_of_caffe)
{
	static const uint8_t caffe[] = {0x08, 1,    0x10, 2,	0x18, 2,    0x22,
					4,    0xde, 0xad, 0xbe, 0xef, 0x28, 7};
	SCOPED(byte_buffer) out = {0};
	SCOPED(data_record) record = {0};

	assert_true(datum_read(caffe, sizeof(caffe), &record));
	assert_true(record.dims[0] == 1 && record.dims[1] == 2 && record.dims[2] == 2);
	assert_true(record.label == 7 && record.length == 4 && !record.encoded);
	datum_write(&record, &out);
	assert_int_equal(out.length, sizeof(caffe));
	assert_memory_equal(out.bytes, caffe, sizeof(caffe));
	/* Fewer pixels than the shape requires. */
	out.bytes[3] = 3;
	assert_false(datum_read(out.bytes, out.length, &record));
}
