/* Text as tokens: labels are the bytes that follow, and each part of the text is used as it is
 * meant. */
#include "datasets/format.h"
#include "datasets/text.h"
#include "unit_test.h"

enum { BYTES = 200, LENGTH = 4, BATCH = 3, COUNT_OF_BATCHES = 2 };
enum { ALL = COUNT_OF_BATCHES * BATCH * LENGTH };

static const struct dataset *write_text(struct arena *arena, size_t bytes)
{
	char path[] = "/tmp/prony-text-XXXXXX.txt", text[BYTES];
	const struct dataset *dataset;
	struct error err = ERROR_INIT;
	int descriptor = mkstemps(path, 4);

	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)(i + 1);
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, text, bytes), bytes);
	close(descriptor);
	check(text_dataset(path, arena, &dataset, &err), &err);
	return dataset;
}

static void remove_text(const struct dataset *dataset)
{
	char *path = dataset_file_path(&dataset->files[0], dataset->folder);

	unlink(path);
	free(path);
}

static const struct batch_request evaluation = {
	.batch = BATCH, .rank = 1, .dims = {LENGTH}, .classes = TEXT_CLASSES, .seed = 3};

TEST(labels_are_the_next_bytes)
{
	int64_t tokens[ALL], labels[ALL], again[ALL], second[ALL / 2], unused[ALL / 2];
	struct batch_request request = evaluation;
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	const struct dataset *text = write_text(&arena, BYTES);
	/* Evaluation: bytes 181 to 200, as four sequences in order, then again from the first. */
	check(text_batches(text, text->folder, &request, COUNT_OF_BATCHES, tokens, labels, &err),
	      &err);
	for (int i = 0; i < ALL; i++) {
		assert_int_equal(tokens[i], 181 + i % 16);
		assert_int_equal(labels[i], tokens[i] + 1);
	}
	request.training = true;
	check(text_batches(text, text->folder, &request, COUNT_OF_BATCHES, again, labels, &err),
	      &err);
	for (int i = 0; i < ALL; i++)
		assert_true(again[i] >= 1 && again[i] <= 179 && labels[i] == again[i] + 1);
	/* Batch 1 is the same when it is read alone. */
	request.first = 1;
	check(text_batches(text, text->folder, &request, 1, second, unused, &err), &err);
	assert_memory_equal(second, again + ALL / 2, sizeof(second));
	remove_text(text);
}

TEST(short_and_unsuitable_texts_are_refused)
{
	int64_t tokens[ALL], labels[ALL];
	struct error err = ERROR_INIT;
	struct data_source *source;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	const struct dataset *text = write_text(&arena, 31);
	expect_error(text_batches(text, text->folder, &evaluation, 1, tokens, labels, &err),
		     PRONY_BAD_INPUT, &err, "its evaluation part has 4 bytes");
	char *path = dataset_file_path(&text->files[0], text->folder);
	const char *paths[] = {path};
	const struct data_shard shard = {.paths = paths, .classes = TEXT_CLASSES};
	expect_error(data_format_find("text")->open(&shard, &source, &err), PRONY_BAD_INPUT, &err,
		     "text has no samples of one size");
	remove_text(text);
	expect_error(text_dataset(path, &arena, &text, &err), PRONY_BAD_INPUT, &err, path);
	free(path);
}
