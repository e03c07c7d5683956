/* Tests pictures: reading of each kind, the message for each broken one, the part that becomes a
 * sample, and that partial or scaled decoding gives the same as decoding the whole. */
#include "datasets/image.h"
#include "datasets/image_internal.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

static const struct sample {
	const char *name, *message;
	int height, width;
} samples[] = {
	{"rgb.jpg", NULL, 40, 60},
	{"grey.jpg", NULL, 30, 40},
	{"cmyk.jpg", NULL, 30, 40},
	{"progressive.jpg", NULL, 40, 60},
	{"full-chroma.jpg", NULL, 21, 33},
	{"pixel.jpg", NULL, 1, 1},
	{"tall.jpg", NULL, 200, 3},
	{"rgb.png", NULL, 16, 20},
	{"grey.png", NULL, 16, 20},
	{"alpha.png", NULL, 10, 12},
	{"palette.png", NULL, 10, 12},
	{"truncated.jpg", "truncated: ", 0, 0},
	{"truncated-head.jpg", "truncated: ", 0, 0},
	{"no-end.jpg", "truncated: ", 0, 0},
	{"corrupt.jpg", "corrupt: ", 0, 0},
	{"20000.jpg", "too large: 20000 x 8 pixels", 0, 0},
	{"20000.png", "too large: 8 x 20000 pixels", 0, 0},
	{"truncated.png", "truncated: ", 0, 0},
	{"corrupt.png", "corrupt: ", 0, 0},
	{"text", "not an image: it begins with 3c 68 74 6d, not", 0, 0},
	{"empty", "not an image: the file is empty", 0, 0},
	{"two-bytes", "not an image: it begins with ff d8,", 0, 0},
};
enum { SAMPLES = COUNT(samples) };

static uint8_t *read_sample(const char *name, size_t *length)
{
	char *path = corpus_path("image", name), *bytes;

	assert_int_equal(file_read(path, 1 << 20, &bytes, length, NULL), PRONY_OK);
	return (uint8_t *)bytes;
}

TEST(each_sample)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *sample = &samples[i];
		SCOPED(image) image = {0};
		struct error err = ERROR_INIT;
		size_t length;
		uint8_t *bytes = read_sample(sample->name, &length);
		enum prony_status status =
			image_decode_whole("some/file", bytes, length, &image, &err);

		if (status != (sample->message ? PRONY_BAD_INPUT : PRONY_OK) ||
		    image.height != sample->height || image.width != sample->width)
			fail_msg("%s: status %d, %d x %d, %s", sample->name, status, image.width,
				 image.height, err.text);
		if (sample->message &&
		    (strncmp(err.text, "some/file: ", 11) != 0 ||
		     strncmp(err.text + 11, sample->message, strlen(sample->message)) != 0 ||
		     !strstr(err.text, "; replace the file, or remove it")))
			fail_msg("%s: %s", sample->name, err.text);
		free(bytes);
	}
}

/* Cuts and changes the file at every seventh position. */
static void cut_and_change(const char *name, uint8_t *bytes, size_t length)
{
	(void)name;
	for (size_t cut = 0; cut < length; cut += 7) {
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, cut), 0);
		bytes[cut] ^= 0x41;
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, length), 0);
		bytes[cut] ^= 0x41;
	}
}

TEST(the_seed_corpus_runs)
{
	assert_int_equal(corpus_run("image", cut_and_change), SAMPLES);
}

/* The generator's picture is bluish at its lower right edge and dark at its upper left edge. This
 * test finds colours in the wrong order or inverted. */
TEST(colours_are_in_their_places)
{
	static const char *const names[] = {"rgb.jpg", "progressive.jpg", "full-chroma.jpg",
					    "rgb.png", "cmyk.jpg"};

	for (size_t i = 0; i < COUNT(names); i++) {
		SCOPED(image) image;
		size_t length;
		uint8_t *bytes = read_sample(names[i], &length);

		assert_int_equal(image_decode_whole("x", bytes, length, &image, NULL), PRONY_OK);
		const uint8_t *pixel = image.pixels + 3 * (2 * image.width + 16);
		/* x 16, y 2: red 80, green 14, blue 94 and up to 40 for the check. */
		if (abs(pixel[0] - 80) > 24 || abs(pixel[1] - 14) > 24 || abs(pixel[2] - 54) > 50)
			fail_msg("%s: %d %d %d", names[i], pixel[0], pixel[1], pixel[2]);
		free(bytes);
	}
}

/* Grey values become three equal planes. */
TEST(grey_is_three_times_the_same)
{
	size_t length;
	SCOPED(image) image;
	uint8_t *bytes = read_sample("grey.jpg", &length);

	assert_int_equal(image_decode_whole("x", bytes, length, &image, NULL), PRONY_OK);
	for (int i = 0; i < image.height * image.width; i++)
		assert_true(image.pixels[3 * i] == image.pixels[3 * i + 1] &&
			    image.pixels[3 * i] == image.pixels[3 * i + 2]);
	free(bytes);
}

/* At full size a part is bit for bit the same as in the whole picture. */
TEST(a_part_is_what_the_whole_has_there)
{
	enum { SIDE = 28 };
	static const char *const names[] = {"rgb.jpg", "progressive.jpg", "full-chroma.jpg",
					    "cmyk.jpg", "grey.jpg"};
	uint8_t part[3 * SIDE * SIDE], of_whole[sizeof(part)];
	int parts = 0;

	for (size_t i = 0; i < COUNT(names); i++) {
		SCOPED(image) image;
		size_t length;
		uint8_t *bytes = read_sample(names[i], &length);

		assert_int_equal(image_decode_whole("x", bytes, length, &image, NULL), PRONY_OK);
		for (uint64_t draw = 0; draw < 40; draw++) {
			struct image_view view = {
				.height = SIDE, .width = SIDE, .random = draw > 0, .draw = draw};
			struct image_box box;

			image_box_of(&view, image.height, image.width, &box);
			assert_true(box.x.step < 2 && box.y.step < 2);
			parts += box.x.high - box.x.low < image.width / 2;
			assert_int_equal(image_decode("x", bytes, length, &view, part, NULL),
					 PRONY_OK);
			image_view_pixels(image.pixels, image.height, image.width, false, &view,
					  of_whole);
			if (memcmp(part, of_whole, sizeof(part)) != 0)
				fail_msg("%s: draw %d differs", names[i], (int)draw);
		}
		free(bytes);
	}
	assert_true(parts > 20);
}

static double noise_db(const uint8_t *a, const uint8_t *b, size_t count)
{
	double squares = 0;

	for (size_t i = 0; i < count; i++)
		squares += (a[i] - b[i]) * (a[i] - b[i]);
	return 10 * log10(255.0 * 255 * (double)count / (squares + 1e-9));
}

/* Scaled decoding leaves a smooth picture unchanged. */
TEST(scaled_decoding_keeps_the_picture)
{
	static const int sides[] = {18, 9, 4};
	static uint8_t scaled[3 * 18 * 18], of_whole[sizeof(scaled)];
	SCOPED(image) image;
	size_t length;
	uint8_t *bytes = read_sample("progressive.jpg", &length);

	assert_int_equal(image_decode_whole("x", bytes, length, &image, NULL), PRONY_OK);
	for (size_t i = 0; i < 3; i++) {
		struct image_view view = {.height = sides[i], .width = sides[i]};
		size_t count = 3 * (size_t)(sides[i] * sides[i]);
		struct image_box box;

		image_box_of(&view, image.height, image.width, &box);
		assert_true(box.x.step >= (i == 0 ? 1 : 2 << i) * 0.8);
		assert_int_equal(image_decode("x", bytes, length, &view, scaled, NULL), PRONY_OK);
		image_view_pixels(image.pixels, image.height, image.width, false, &view, of_whole);
		if (noise_db(scaled, of_whole, count) < 24)
			fail_msg("side %d: %.1f dB", sides[i], noise_db(scaled, of_whole, count));
	}
	free(bytes);
}

/* The sizes to which other programs resize before they cut the centre: 256 for 224, 342 for 299. */
TEST(the_centre_is_that_of_others)
{
	static const struct {
		int height, width, side;
		double start_x, start_y, step_x, step_y;
	} cases[] = {
		{375, 500, 224, 58 * 500.0 / 341, 16 * 375.0 / 256, 500.0 / 341, 375.0 / 256},
		{500, 375, 224, 16 * 375.0 / 256, 58 * 500.0 / 341, 375.0 / 256, 500.0 / 341},
		{342, 342, 299, 22, 22, 1, 1},
		{256, 256, 224, 16, 16, 1, 1},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct image_view view = {.height = cases[i].side, .width = cases[i].side};
		struct image_box box;

		image_box_of(&view, cases[i].height, cases[i].width, &box);
		assert_true(fabs(box.x.start - cases[i].start_x) < 1e-9);
		assert_true(fabs(box.y.start - cases[i].start_y) < 1e-9);
		assert_true(fabs(box.x.step - cases[i].step_x) < 1e-9);
		assert_true(fabs(box.y.step - cases[i].step_y) < 1e-9);
		assert_true(box.x.low == 0 && box.x.high == cases[i].width && !box.mirrored);
	}
}

/* Random parts lie inside the picture, have the promised areas and shapes, and are mirrored half of
 * the time. */
TEST(random_parts_are_as_promised)
{
	enum { DRAWS = 4000 };
	double smallest = 1, largest = 0;
	int mirrored = 0;

	for (uint64_t draw = 0; draw < DRAWS; draw++) {
		struct image_view view = {
			.height = 224, .width = 224, .random = true, .draw = draw};
		struct image_box box;

		image_box_of(&view, 375, 500, &box);
		int width = box.x.high - box.x.low, height = box.y.high - box.y.low;
		double area = (double)width * height / (375 * 500), shape = (double)width / height;

		assert_true(box.x.low >= 0 && box.x.high <= 500 && box.y.low >= 0 &&
			    box.y.high <= 375);
		assert_true(shape > 0.74 && shape < 1.35 && area > 0.078 && area <= 1);
		smallest = fmin(smallest, area);
		largest = fmax(largest, area);
		mirrored += box.mirrored;
	}
	assert_true(smallest < 0.1 && largest > 0.9);
	assert_in_range(mirrored, DRAWS * 45 / 100, DRAWS * 55 / 100);
}

/* Weights that add up to one leave a uniform picture unchanged; a view of the same size leaves
 * every picture unchanged. */
TEST(resampling_keeps_what_is_even)
{
	uint8_t pixels[3 * 30 * 50], planes[3 * 40 * 40], same[3 * 30 * 50];
	struct image_span across = {.step = 1, .high = 50}, down = {.step = 1, .high = 30};
	struct image image = {.height = 30, .width = 50, .pixels = pixels};
	struct image_box box = {.x = across, .y = down};
	struct random random;

	memset(pixels, 201, sizeof(pixels));
	for (uint64_t draw = 0; draw < 50; draw++) {
		struct image_view view = {
			.height = 40, .width = 40, .random = draw > 0, .draw = draw};

		image_view_pixels(pixels, 30, 50, false, &view, planes);
		for (size_t i = 0; i < sizeof(planes); i++)
			assert_int_equal(planes[i], 201);
	}
	random_init(&random, 1);
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)random_below(&random, 256);
	image_resample(&image, &box, 30, 50, same);
	for (size_t i = 0; i < sizeof(pixels); i++)
		assert_int_equal(same[i % 3 * 1500 + i / 3], pixels[i]);
	box.mirrored = true;
	image_resample(&image, &box, 30, 50, same);
	for (size_t i = 0; i < 1500; i++)
		assert_int_equal(same[i / 50 * 50 + 49 - i % 50], pixels[3 * i]);
}

/* A picture written as PNG is read back unchanged. */
TEST(png_keeps_every_pixel)
{
	uint8_t pixels[3 * 17 * 9], *bytes;
	struct image image = {0};
	struct random random;
	size_t length;

	random_init(&random, 2);
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)random_below(&random, 256);
	for (int channels = 1; channels <= 3; channels += 2) {
		image_encode_png(pixels, 9, 17, channels, &bytes, &length);
		assert_int_equal(image_decode_whole("x", bytes, length, &image, NULL), PRONY_OK);
		assert_true(image.height == 9 && image.width == 17);
		for (int i = 0; i < 3 * 17 * 9; i++)
			assert_int_equal(image.pixels[i], pixels[channels == 1 ? i / 3 : i]);
		image_release(&image);
		free(bytes);
	}
}
