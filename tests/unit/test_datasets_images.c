/* Tests pictures in folders and tar files: order and labels do not depend on the container, batches
 * do not depend on the number of threads, and each wrong layout has its message. */
#include <sched.h>

#include "datasets/dataset.h"
#include "datasets/format.h"
#include "datasets/image_list.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

static const struct sample {
	const char *name, *message;
	size_t count;
} samples[] = {
	{"nested", NULL, 4},
	{"folders", NULL, 2},
	{"long-gnu", NULL, 1},
	{"long-pax", NULL, 1},
	{"flat", "images without classes; put each into a folder for its class", 0},
	{"empty", "contains no images", 0},
	{"nothing", "contains no images", 0},
	{"truncated", "offset 0: truncated: the member is longer than the file", 0},
	{"too-long", "offset 0: truncated: the member is longer than the file", 0},
	{"bad-sum", "offset 0: there is no tar header here", 0},
	{"tar-in-class", "a tar file inside the tar file of a class", 0},
	{"compressed", "compressed tar files are not supported", 0},
};
enum { SAMPLES = COUNT(samples) };

TEST(each_tar)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		char *path = corpus_path("tar", samples[i].name);
		struct image_list *list = NULL;
		struct error err = ERROR_INIT;
		enum prony_status status = image_list_open(path, 10, &list, &err);

		if (status != (samples[i].message ? PRONY_BAD_INPUT : PRONY_OK) ||
		    (list && list->count != samples[i].count))
			fail_msg("%s: status %d, %s", samples[i].name, status, err.text);
		if (samples[i].message && (strncmp(err.text, path, strlen(path)) != 0 ||
					   !strstr(err.text, samples[i].message)))
			fail_msg("%s: %s", samples[i].name, err.text);
		image_list_close(list);
	}
}

static void cut_it(const char *name, uint8_t *bytes, size_t length)
{
	(void)name;
	for (size_t cut = 0; cut < length; cut += 101)
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, cut), 0);
}

TEST(the_seed_corpus_runs)
{
	assert_int_equal(corpus_run("tar", cut_it), SAMPLES);
}

static void copy_file(const char *from, const char *folder, const char *name)
{
	char *path = test_keep(path_join(folder, name)), *bytes;
	size_t length;

	assert_int_equal(file_read(from, 1 << 24, &bytes, &length, NULL), PRONY_OK);
	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(path, bytes, length, NULL), PRONY_OK);
	free(bytes);
}

static void put_text(const char *folder, const char *name, const char *text)
{
	char *path = test_keep(path_join(folder, name));

	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
}

IN_FOLDER(folders_are_classes)
{
	char *picture = corpus_path("image", "pixel.jpg"), *a = test_path("n02");
	char *b = test_path("n01");
	struct image_list *list;
	struct error err = ERROR_INIT;

	copy_file(picture, a, "x.JPEG");
	copy_file(picture, b, "y.JPEG");
	copy_file(picture, b, "z.JPEG");
	put_text(*state, ".hidden", "");
	check(image_list_open(*state, 2, &list, &err), &err);
	static const char *const names[] = {"n01/y.JPEG", "n01/z.JPEG", "n02/x.JPEG"};
	assert_int_equal(list->count, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(list->entries[i].name, names[i]);
		assert_int_equal(list->entries[i].label, i / 2);
	}
	assert_string_equal(list->classes[1], "n02");
	image_list_close(list);
	expect_error(image_list_open(*state, 1, &list, &err), PRONY_BAD_INPUT, &err,
		     "it contains 2 classes, the last one n02, but the data set has 1");
	copy_file(picture, *state, "stray.JPEG");
	expect_error(image_list_open(*state, 2, &list, &err), PRONY_BAD_INPUT, &err,
		     "stray.JPEG is not in the folder of a class");
}

/* A file of labels and its result: labels of a.jpg, b.jpg and c.jpg, or a message. */
static const struct {
	const char *text, *message;
	int labels[3];
} label_files[] = {
	{"a.jpg 2\nb.jpg 0\nc.jpg 1\n", NULL, {2, 0, 1}},
	{"c.jpg\t1\r\na.jpg  2\r\n\r\nb.jpg 0", NULL, {2, 0, 1}},
	{"2\n0\n1\n", NULL, {2, 0, 1}},
	{"n03\nn01\nn02\n", NULL, {2, 0, 1}},
	{"a.jpg n01\nb.jpg n02\nc.jpg n01\n", NULL, {0, 1, 0}},
	{"a.jpg 2\nb.jpg 0\nc.jpg 3\n",
	 "line 3: label '3' is not one of the 3 classes, 0 to 2",
	 {0}},
	{"a.jpg 2\nb.jpg -1\nc.jpg 1\n", "line 2: label '-1' is not one of the 3 classes", {0}},
	{"a.jpg 2\nb.jpg 0\n", "2 labels, but", {0}},
	{"a.jpg 2\nb.jpg 0\nd.jpg 1\n", "no line for c.jpg of", {0}},
	{"a.jpg 2\nb.jpg 0\nbb.jpg 1\nc.jpg 1\n", "line 3: there is no such image: 'bb.jpg'", {0}},
	{"a.jpg 2\n0\nc.jpg 1\n", "line 2: there is no name before the label '0'", {0}},
	{"1\nb.jpg 0\n1\n",
	 "line 2: unexpected name, because the lines before have none: 'b.jpg'",
	 {0}},
	{"n01\n2\nn01\n", "line 2: a class name is expected, not a number: '2'", {0}},
	{"n1\nn2\nn3\n\n", NULL, {0, 1, 2}},
	{"", "0 labels, but", {0}},
};

IN_FOLDER(labels_in_a_file)
{
	static const char *const names[] = {"a.jpg", "b.jpg", "c.jpg"};
	char *picture = corpus_path("image", "pixel.jpg");

	for (int i = 0; i < 3; i++)
		copy_file(picture, *state, names[i]);
	for (size_t i = 0; i < COUNT(label_files); i++) {
		struct image_list *list = NULL;
		struct error err = ERROR_INIT;

		put_text(*state, "labels.txt", label_files[i].text);
		enum prony_status status = image_list_open(*state, 3, &list, &err);
		if (status != (label_files[i].message ? PRONY_BAD_INPUT : PRONY_OK) ||
		    (label_files[i].message && (!strstr(err.text, label_files[i].message) ||
						!strstr(err.text, "labels.txt: "))))
			fail_msg("%d: status %d, %s", (int)i, status, err.text);
		for (size_t k = 0; list && k < 3; k++)
			assert_int_equal(list->entries[k].label, label_files[i].labels[k]);
		image_list_close(list);
	}
}

/* ImageNet's validation pictures as published: a flat tar file, and a file of labels beside it. */
IN_FOLDER(labels_beside_a_tar)
{
	char *from = corpus_path("tar", "flat"), *path = test_path("ILSVRC2012_img_val.tar");
	struct image_list *list;
	struct error err = ERROR_INIT;

	copy_file(from, *state, "ILSVRC2012_img_val.tar");
	assert_int_equal(image_list_open(path, 1000, &list, &err), PRONY_BAD_INPUT);
	error_clear(&err);
	put_text(*state, "val.txt", "a.jpg 65\nb.jpg 970\n");
	check(image_list_open(path, 1000, &list, &err), &err);
	assert_int_equal(list->entries[0].label, 65);
	assert_int_equal(list->entries[1].label, 970);
	image_list_close(list);
}

enum { SIDE = 32, BATCH = 6, ELEMENTS = 3 * SIDE * SIDE };

static enum prony_status take(const struct dataset *dataset, const char *folder, bool training,
			      int64_t first, int count, float *x, int64_t *y, struct error *err)
{
	struct batch_request request = {.batch = BATCH,
					.rank = 3,
					.dims = {3, SIDE, SIDE},
					.classes = dataset->classes,
					.training = training,
					.seed = 3,
					.first = first};
	struct batch_stream *stream = NULL;
	enum prony_status status = batch_stream_open(dataset, folder, &request, &stream, err);

	if (status == PRONY_OK)
		status = batch_stream_next(stream, count, x, y, err);
	batch_stream_close(stream);
	return status;
}

static const struct dataset toy = {
	.name = "toy",
	.format = "images",
	.rank = 3,
	.dims = {3, 0, 0},
	.classes = 4,
	.train_count = 5,
	.evaluation_count = 3,
	.scale = 255,
	.mean = {0.5, 0.25, 0},
	.deviation = {1, 2, 0.5},
	.files = {{.name = "all", .is_folder = true}},
};

static void put_toy(const char *folder)
{
	static const char *const names[] = {"rgb.jpg",	       "grey.jpg",	  "cmyk.jpg",
					    "progressive.jpg", "full-chroma.jpg", "rgb.png",
					    "grey.png",	       "alpha.png"};

	for (size_t i = 0; i < 8; i++) {
		char *picture = corpus_path("image", names[i]);
		char *class_folder = test_text("%s/all/class%d", folder, (int)(i / 2));

		copy_file(picture, class_folder, names[i]);
	}
}

/* A batch is the same on one core and on all cores, alone and after others. */
IN_FOLDER(batches_do_not_depend_on_threads)
{
	size_t values = (size_t)ELEMENTS * BATCH;
	float *all = test_keep(memory_alloc(2 * values * sizeof(*all))),
	      *one = test_keep(memory_alloc(values * sizeof(*one)));
	int64_t labels[2 * BATCH], again[BATCH];
	struct error err = ERROR_INIT;
	cpu_set_t before, single;

	put_toy(*state);
	check(take(&toy, *state, true, 0, 2, all, labels, &err), &err);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&single);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&single) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &single);
	assert_int_equal(sched_setaffinity(0, sizeof(single), &single), 0);
	check(take(&toy, *state, true, 1, 1, one, again, &err), &err);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_memory_equal(all + values, one, values * sizeof(*one));
	assert_memory_equal(labels + BATCH, again, sizeof(again));
	/* The second epoch's parts differ from the first's. */
	for (size_t i = 0; i < BATCH; i++)
		for (size_t k = 0; k < BATCH; k++)
			assert_true(memcmp(all + i * ELEMENTS, one + k * ELEMENTS,
					   ELEMENTS * sizeof(*one)) != 0);
	/* Each channel is scaled in its own way. */
	for (int c = 0; c < 3; c++)
		for (int i = 0; i < SIDE * SIDE; i++) {
			double value =
				(double)all[c * SIDE * SIDE + i] * toy.deviation[c] + toy.mean[c];

			assert_true(value > -1e-6 && value < 1 + 1e-6);
		}
}

static void note_broken(void *context, const char *text)
{
	char *told = context;
	size_t length = strlen(told);

	snprintf(told + length, 4096 - length, "%s\n", text);
}

IN_FOLDER(broken_pictures_are_named_and_counted)
{
	static const char *const names[] = {"truncated.jpg", "text", "20000.jpg"};
	float *x = test_keep(memory_alloc(sizeof(*x) * ELEMENTS * BATCH));
	char *folder = test_path("all"), *last = test_keep(path_join(folder, "class3")),
	     told[4096] = "";
	struct data_findings findings = {.broken = note_broken, .context = told};
	struct error err = ERROR_INIT;
	int64_t y[BATCH], bytes;

	put_toy(*state);
	for (size_t i = 0; i < 3; i++) {
		char *picture = corpus_path("image", names[i]);

		copy_file(picture, last, names[i]);
	}
	assert_int_equal(
		data_format_verify(data_format_find("images"), folder, 4, &findings, &bytes, &err),
		PRONY_BAD_INPUT);
	assert_int_equal(findings.samples, 11);
	assert_int_equal(findings.count, 3);
	assert_has(told, "class3/truncated.jpg: truncated: ");
	assert_has(told, "class3/text: not an image: ");
	assert_has(told, "class3/20000.jpg: too large: 20000 x 8");
	error_clear(&err);
	/* The data set's row has eight samples. */
	expect_error(take(&toy, *state, false, 0, 1, x, y, &err), PRONY_BAD_INPUT, &err,
		     "contains 11 samples of 3x?x?, but data set toy has 8 of 3x?x?");
}

/* Tests the real pictures if they are beside the checkout. */
TEST(the_real_sample)
{
	char *place = memory_printf("%s/../shared/data", getenv("PRONY_SOURCE")), *folder = NULL;
	const struct dataset *sample = dataset_find("imagenet-sample");
	struct error err = ERROR_INIT;

	if (dataset_locate(sample, place, &folder, NULL) != PRONY_OK) {
		free(place);
		skip();
	}
	check(dataset_verify_file(sample, &sample->files[0], folder, NULL, &err), &err);
	float *x = test_keep(memory_alloc(sizeof(*x) * ELEMENTS * BATCH * 3));
	int64_t y[BATCH * 3];
	check(take(sample, folder, false, 0, 3, x, y, &err), &err);
	/* Evaluation begins after the first eighty, in the order of the classes. */
	for (int i = 0; i < BATCH * 3; i++)
		assert_int_equal(y[i], 80 + i);
	double sum = 0;
	for (int i = 0; i < ELEMENTS * BATCH * 3; i++)
		sum += (double)x[i];
	assert_true(sum / (ELEMENTS * BATCH * 3) > -0.6 && sum / (ELEMENTS * BATCH * 3) < 0.6);
	free(folder);
	free(place);
}
