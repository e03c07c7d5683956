/* Tests the case bundle and safetensors: written data are read back; hostile files are refused. */
#include "bundle/bundle.h"
#include "graph/graph_json.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"
#include "zoo/zoo.h"

TEST(images_come_back)
{
	struct error err = ERROR_INIT;
	float numbers[] = {1, -0.0f, 3e38f};
	uint8_t byte = 7;
	int64_t label = INT64_MIN;
	struct tensor tensors[] = {
		{"a \"quoted\" name", DTYPE_F32, {1, {3}}, numbers},
		{"byte", DTYPE_U8, {0}, &byte},
		{"misaligned", DTYPE_I64, {2, {1, 1}}, &label},
		{"nothing", DTYPE_F64, {2, {0, 5}}, NULL},
	};
	struct tensor_set set = {tensors, COUNT(tensors)}, read;
	size_t bytes = safetensors_image_bytes(&set);
	unsigned char *image = test_keep(malloc(bytes));
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	check(safetensors_write_image(&set, image, bytes, &err), &err);
	/* The data starts at a multiple of 64. */
	assert_int_equal((8 + image[0] + 256 * image[1]) % 64, 0);
	check(safetensors_read_image(image, bytes, "image", &arena, &read, &err), &err);
	assert_int_equal(read.count, set.count);
	for (size_t i = 0; i < set.count; i++) {
		assert_string_equal(read.tensors[i].name, tensors[i].name);
		assert_int_equal(read.tensors[i].dtype, tensors[i].dtype);
		assert_true(shape_equal(&read.tensors[i].shape, &tensors[i].shape));
		if (tensors[i].data)
			assert_memory_equal(read.tensors[i].data, tensors[i].data,
					    (size_t)tensor_bytes(&tensors[i]));
	}
	assert_int_equal((uintptr_t)read.tensors[2].data % 8, 0);
	/* Nothing is copied if no copy is needed. */
	assert_true((unsigned char *)read.tensors[0].data > image &&
		    (unsigned char *)read.tensors[0].data < image + bytes);
	assert_int_equal(safetensors_write_image(&set, image, bytes - 1, &err), PRONY_INTERNAL);
	error_clear(&err);
	tensors[1].name = "misaligned";
	assert_int_equal(safetensors_image_bytes(&set), 0);
	assert_int_equal(safetensors_write_image(&set, image, bytes, &err), PRONY_BAD_INPUT);
	tensors[1].name = "byte";
	tensors[3].shape = (struct shape){2, {INT64_MAX, 2}};
	assert_int_equal(safetensors_image_bytes(&set), 0);
}

/* Data written through the tensors are in the image, and doubles are aligned. */
TEST(images_are_filled_in_place)
{
	struct error err = ERROR_INIT;
	double number = 0.1;
	struct tensor tensors[] = {{.name = "double", .dtype = DTYPE_F64},
				   {.name = "floats", .dtype = DTYPE_F32, .shape = {1, {3}}}};
	struct tensor_set set = {tensors, COUNT(tensors)}, read;
	size_t bytes = safetensors_image_bytes(&set);
	unsigned char *image = test_keep(aligned_alloc(64, (bytes + 63) / 64 * 64));
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	assert_int_equal(safetensors_lay_out(&set, image, bytes - 1, &err), PRONY_INTERNAL);
	error_clear(&err);
	assert_null(tensors[0].data);
	check(safetensors_lay_out(&set, image, bytes, &err), &err);
	assert_int_equal((uintptr_t)tensors[0].data % 64, 0);
	assert_ptr_equal(tensors[1].data, (unsigned char *)tensors[0].data + sizeof number);
	assert_ptr_equal((float *)tensors[1].data + 3, image + bytes);
	memcpy(tensors[0].data, &number, sizeof number);
	memcpy(tensors[1].data, (float[]){1, 2, 3}, 3 * sizeof(float));
	check(safetensors_read_image(image, bytes, "image", &arena, &read, &err), &err);
	assert_int_equal(read.count, 2);
	assert_memory_equal(read.tensors[0].data, &number, sizeof number);
	assert_memory_equal(read.tensors[1].data, ((float[]){1, 2, 3}), 3 * sizeof(float));
}

/* Reads a file of the format, made from the text of its header and a number of zero bytes. */
static enum prony_status read_text(const char *header, uint64_t header_bytes, size_t data_bytes,
				   struct error *err)
{
	size_t length = 8 + strlen(header) + data_bytes;
	unsigned char *image = test_keep(calloc(length, 1));
	struct tensor_set set;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	for (int i = 0; i < 8; i++)
		image[i] = (unsigned char)(header_bytes >> (8 * i));
	memcpy(image + 8, header, strlen(header));
	enum prony_status status =
		safetensors_read_image(image, length, "hostile", &arena, &set, err);
	return status;
}

static const struct {
	const char *header;
	size_t data_bytes;
	const char *message; /* a part of the message */
} hostile_images[] = {
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
	 12, "tensor b: data_offsets overlap"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
	 12, "tensor b: data_offsets leave a gap"},
	{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	 "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
	 2, "duplicate"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
	 "\"data_offsets\":[0,4]}}",
	 4, "do not match shape"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4611686018427387904,0],"
	 "\"data_offsets\":[0,0]}}",
	 0, "do not match shape"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],"
	 "\"data_offsets\":[0,4]}}",
	 4, "too big"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "two integers"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1,-1],\"data_offsets\":[0,4]}}", 4, "shape[0]"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "outside"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 7, "outside"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 9,
	 "the tensors end at 4"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 8, "two integers"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "shape"},
	{"{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "C64"},
	{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
	 "9 dimensions"},
	{"{\"a\":3}", 0, "must be an object"},
	{"[]", 0, "must be an object"},
	{"{\"a\":", 0, "hostile"},
};

TEST(hostile_images_are_refused)
{
	for (size_t i = 0; i < COUNT(hostile_images); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(read_text(hostile_images[i].header,
					   strlen(hostile_images[i].header),
					   hostile_images[i].data_bytes, &err),
				 PRONY_BAD_INPUT);
		if (!strstr(err.text, hostile_images[i].message) || !strstr(err.text, "hostile"))
			fail_msg("%s\nsays: %s", hostile_images[i].header, err.text);
	}
	static const uint64_t lengths[] = {3,	      1000,	  UINT64_C(1) << 40,
					   INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(read_text("{}", lengths[i], 0, &err), PRONY_BAD_INPUT);
	}
}

/* Every prefix of a good file, and a file with any one byte changed, is read or refused. */
TEST(damaged_images_never_crash)
{
	struct error err = ERROR_INIT;
	float numbers[] = {1, 2, 3, 4};
	struct tensor tensors[] = {{"a", DTYPE_F32, {2, {1, 2}}, numbers},
				   {"b", DTYPE_F32, {1, {2}}, numbers + 2}};
	struct tensor_set set = {tensors, 2};
	size_t bytes = safetensors_image_bytes(&set);
	unsigned char *image = test_keep(malloc(bytes)), *copy;

	check(safetensors_write_image(&set, image, bytes, &err), &err);
	for (size_t length = 0; length < bytes; length++) {
		struct tensor_set read;
		SCOPED(arena) arena;

		/* A block of exactly this size, so that a sanitizer finds a read past its end. */
		copy = malloc(length > 0 ? length : 1);
		memcpy(copy, image, length);
		arena_init(&arena, 0);
		assert_int_equal(safetensors_read_image(copy, length, "cut", &arena, &read, NULL),
				 PRONY_BAD_INPUT);
		free(copy);
	}
	for (size_t i = 0; i < bytes; i++) {
		for (int bit = 0; bit < 8; bit++) {
			image[i] ^= (unsigned char)(1 << bit);
			assert_int_equal(LLVMFuzzerTestOneInput(image, bytes), 0);
			image[i] ^= (unsigned char)(1 << bit);
		}
	}
}

TEST(the_seed_corpus_runs)
{
	assert_true(corpus_run("safetensors", NULL) >= 20);
}

/* A bundle of lenet with two batches in its own folder. */
struct fixture {
	struct arena arena;
	struct graph graph;
	struct recipe recipe;
	struct tensor_set weights, inputs, labels;
	char *folder;
};

static void make_batches(struct fixture *f, size_t count)
{
	struct error err = ERROR_INIT;
	const struct value *x = &f->graph.values[graph_input(&f->graph, 0)];
	const struct value *y = &f->graph.values[graph_label(&f->graph, 0)];

	f->inputs.tensors = arena_array(&f->arena, count, sizeof(struct tensor));
	f->labels.tensors = arena_array(&f->arena, count, sizeof(struct tensor));
	f->inputs.count = f->labels.count = count;
	for (size_t i = 0; i < count; i++) {
		check(tensor_new(&f->arena, "picture", DTYPE_F32, &x->shape, &f->inputs.tensors[i],
				 &err),
		      &err);
		check(tensor_new(&f->arena, "class", DTYPE_I64, &y->shape, &f->labels.tensors[i],
				 &err),
		      &err);
		((float *)f->inputs.tensors[i].data)[5] = (float)i + 0.5f;
		((int64_t *)f->labels.tensors[i].data)[1] = (int64_t)i + 3;
	}
}

static int setup(void **state)
{
	struct error err = ERROR_INIT;
	struct fixture *f = calloc(1, sizeof(*f));

	arena_init(&f->arena, 0);
	check(directory_make_temporary("prony-bundle-", &f->folder, &err), &err);
	check(zoo_build(zoo_find("lenet", NULL), 4, &f->graph, &err), &err);
	check(graph_initial_weights(&f->graph, 1, &f->arena, &f->weights, &err), &err);
	make_batches(f, 2);
	recipe_defaults(&f->recipe);
	f->recipe.batch = 4;
	f->recipe.slots = 2;
	check(bundle_write(f->folder, &f->recipe, &f->graph, &f->weights, &f->inputs, &f->labels,
			   NULL, NULL, &err),
	      &err);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct error err = ERROR_INIT;
	struct fixture *f = *state;

	check(directory_remove(f->folder, &err), &err);
	graph_release(&f->graph);
	arena_release(&f->arena);
	free(f->folder);
	free(f);
	return 0;
}

#define BUNDLE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

BUNDLE_TEST(bundles_come_back)
{
	struct error err = ERROR_INIT;
	char written[65], read[65];
	struct bundle bundle;

	check(bundle_open(f->folder, &bundle, &err), &err);
	check(graph_digest(&f->graph, written, &err), &err);
	check(graph_digest(&bundle.graph, read, &err), &err);
	assert_string_equal(written, read);
	assert_int_equal(bundle.recipe.batch, 4);
	assert_int_equal(bundle.recipe.seed, f->recipe.seed);
	assert_int_equal(bundle.weights.count, f->weights.count);
	for (size_t i = 0; i < f->weights.count; i++) {
		assert_string_equal(bundle.weights.tensors[i].name, f->weights.tensors[i].name);
		assert_memory_equal(bundle.weights.tensors[i].data, f->weights.tensors[i].data,
				    (size_t)tensor_bytes(&f->weights.tensors[i]));
	}
	assert_int_equal(bundle.inputs.count, 2);
	assert_int_equal(bundle.labels.count, 2);
	assert_true(((float *)bundle.inputs.tensors[1].data)[5] == 1.5f);
	assert_int_equal(((int64_t *)bundle.labels.tensors[1].data)[1], 4);
	/* The mapping is private: a worker's writes do not reach the file. */
	((float *)bundle.weights.tensors[0].data)[0] = 99;
	bundle_release(&bundle);
	check(bundle_open(f->folder, &bundle, &err), &err);
	assert_true(((float *)bundle.weights.tensors[0].data)[0] != 99);
	bundle_release(&bundle);
	bundle_release(&bundle);
	bundle_release(NULL);
}

static json_t *read_case(const struct fixture *f)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, BUNDLE_CASE_FILE));
	json_t *document = NULL;

	check(json_read_file(path, 1 << 24, &document, &err), &err);
	return document;
}

static void write_case(const struct fixture *f, const json_t *document)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, BUNDLE_CASE_FILE)),
	     *text = test_keep(json_dumps(document, 0));

	check(file_write_atomic(path, text, strlen(text), &err), &err);
}

BUNDLE_TEST(case_json_says_what_the_protocol_page_says)
{
	static const char *const members[] = {"schema",	    "files", "recipe", "graph",
					      "parameters", "macs",  "cell"};
	struct error err = ERROR_INIT;
	json_auto_t *cell = json_pack("{s:s}", "key", "pytorch/lenet");

	check(bundle_write(f->folder, &f->recipe, &f->graph, &f->weights, &f->inputs, &f->labels,
			   NULL, cell, &err),
	      &err);
	json_auto_t *document = read_case(f);
	for (size_t i = 0; i < COUNT(members); i++)
		if (!json_object_get(document, members[i]))
			fail_msg("no member %s", members[i]);
	assert_int_equal(json_object_size(document), COUNT(members));
	assert_int_equal(json_integer_value(json_object_get(document, "parameters")), 431080);
	assert_int_equal(json_integer_value(json_object_get(document, "macs")), 4 * 2293000);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(document, "files"), "weights")),
		BUNDLE_WEIGHTS_FILE);
}

/* Returns whether the type of a value is the schema's, a word or a list of words. */
static bool has_type(const json_t *type, const json_t *value)
{
	static const char *const words[] = {
		[JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
		[JSON_INTEGER] = "integer", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
		[JSON_FALSE] = "boolean",   [JSON_NULL] = "null",
	};
	const json_t *word;
	size_t i;

	if (json_is_string(type))
		return strcmp(json_string_value(type), words[json_typeof(value)]) == 0 ||
		       (strcmp(json_string_value(type), "number") == 0 && json_is_integer(value));
	json_array_foreach(type, i, word) if (has_type(word, value)) return true;
	return false;
}

/* Returns whether a value is among those of an enum. */
static bool is_listed(const json_t *list, const json_t *value)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item) if (json_equal(item, value)) return true;
	return false;
}

/* Fails unless the value follows the schema. It supports the part of JSON Schema that the case's
 * own schema uses. It is stricter if a member has no description: the page would be incomplete. */
static void conform(const json_t *root, const json_t *schema, json_t *value, const char *where)
{
	const char *reference = json_string_value(json_object_get(schema, "$ref")), *key;
	json_t *member, *list, *properties = json_object_get(schema, "properties");
	size_t i;

	if (reference) {
		assert_memory_equal(reference, "#/$defs/", 8);
		const json_t *definition =
			json_object_get(json_object_get(root, "$defs"), reference + 8);
		if (!definition)
			fail_msg("no definition %s", reference);
		conform(root, definition, value, where);
	}
	if ((list = json_object_get(schema, "type")) && !has_type(list, value))
		fail_msg("%s has the wrong type", where);
	if ((list = json_object_get(schema, "enum")) && !is_listed(list, value))
		fail_msg("%s is not in the list", where);
	if ((list = json_object_get(schema, "const")) && !json_equal(list, value))
		fail_msg("%s is not the constant", where);
	if ((list = json_object_get(schema, "minimum")) &&
	    json_number_value(value) < json_number_value(list))
		fail_msg("%s is too small", where);
	json_array_foreach(json_object_get(schema, "required"), i,
			   member) if (!json_object_get(value, json_string_value(member)))
		fail_msg("%s lacks %s", where, json_string_value(member));
	json_object_foreach(properties ? value : NULL, key, member)
	{
		if (!json_object_get(properties, key))
			fail_msg("%s: the schema does not know %s", where, key);
		conform(root, json_object_get(properties, key), member, key);
	}
	json_array_foreach(value, i, member) if (json_object_get(schema, "items"))
		conform(root, json_object_get(schema, "items"), member, where);
}

BUNDLE_TEST(case_json_follows_its_schema)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(getenv("PRONY_SOURCE"), "docs/schemas/case.schema.json"));
	json_t *schema, *document = read_case(f);

	check(json_read_file(path, 1 << 20, &schema, &err), &err);
	conform(schema, schema, document, "case.json");
	json_decref(document);
	json_decref(schema);
}

/* Opens the folder; it must be refused with a message that contains `part`. */
static void refuse(const struct fixture *f, const char *part)
{
	struct error err = ERROR_INIT;
	SCOPED(bundle) bundle;

	if (bundle_open(f->folder, &bundle, &err) == PRONY_OK)
		fail_msg("opened in spite of: %s", part);
	if (!strstr(err.text, part) || !strstr(err.text, f->folder))
		fail_msg("\"%s\" does not say \"%s\" and the file", err.text, part);
}

/* Writes the weights or batches of the fixture again after the test has changed them. */
static void rewrite(const struct fixture *f)
{
	struct error err = ERROR_INIT;

	check(bundle_write(f->folder, &f->recipe, &f->graph, &f->weights, &f->inputs, &f->labels,
			   NULL, NULL, &err),
	      &err);
}

static ino_t inode_of(const char *folder, const char *name)
{
	char *path = test_keep(path_join(folder, name));
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_ino;
}

BUNDLE_TEST(bundles_share_their_files)
{
	struct error err = ERROR_INIT;
	char *files = test_keep(path_join(f->folder, "files")),
	     *other = test_keep(path_join(f->folder, "other"));
	char *weights = test_keep(path_join(files, "w")), *input = test_keep(path_join(files, "i"));
	struct bundle_shared shared = {.weights = weights, .input = input};
	const char *const folders[] = {f->folder, other};
	SCOPED(bundle) bundle;

	check(directory_make(files, &err), &err);
	check(directory_make(other, &err), &err);
	for (size_t i = 0; i < COUNT(folders); i++) {
		check(bundle_write(folders[i], &f->recipe, &f->graph, &f->weights, &f->inputs,
				   &f->labels, &shared, NULL, &err),
		      &err);
		assert_int_equal(inode_of(folders[i], BUNDLE_WEIGHTS_FILE), inode_of(files, "w"));
		assert_int_equal(inode_of(folders[i], BUNDLE_INPUT_FILE), inode_of(files, "i"));
	}
	/* The bundle's data remain after the files have been removed. */
	check(directory_remove(files, &err), &err);
	check(bundle_open(other, &bundle, &err), &err);
}

BUNDLE_TEST(bundles_that_disagree_are_refused)
{
	size_t last = f->weights.count - 1;

	f->weights.count--;
	rewrite(f);
	refuse(f, "ip2.bias is missing; the graph needs it");
	f->weights.count++;
	f->weights.tensors[last].shape.dims[0] = 9;
	rewrite(f);
	refuse(f, "ip2.bias has shape 9 and type F32; the graph needs 10 and F32");
	f->weights.tensors[last].shape.dims[0] = 10;
	((int64_t *)f->labels.tensors[1].data)[2] = 10;
	rewrite(f);
	refuse(f, "label.1: element 2 is label 10");
	((int64_t *)f->labels.tensors[1].data)[2] = -2;
	rewrite(f);
	refuse(f, "label.1: element 2 is label -2");
	((int64_t *)f->labels.tensors[1].data)[2] = 0;
	f->labels.count = 1;
	rewrite(f);
	refuse(f, "2 batches of inputs, but 1 of labels");
	f->inputs.count = 1;
	rewrite(f);
	refuse(f, "1 batches, but \"slots\" of the recipe is 2");
	f->inputs.count = f->labels.count = 0;
	rewrite(f);
	refuse(f, "input.0 is missing");
	f->inputs.count = f->labels.count = 2;
	f->recipe.batch = 5;
	rewrite(f);
	refuse(f, "but the graph is for 4");
}

BUNDLE_TEST(hostile_case_files_are_refused)
{
	static const struct {
		const char *member, *key, *text, *message;
	} cases[] = {
		{"files", "weights", "\"../weights.safetensors\"", "file name without a folder"},
		{"files", "weights", "\"/etc/passwd\"", "file name without a folder"},
		{"files", "input", "\"\"", "file name without a folder"},
		{"files", "input", "7", "input"},
		{"files", "weights", "\"case.json\"", "case.json"},
		{"graph", "logits", "\"nobody\"", "nobody"},
		{"graph", "nodes", "{}", "nodes"},
		{"recipe", "stage", "\"walk\"", "walk"},
		{"recipe", "batch", "-1", "batch"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *document = read_case(f), *copy = json_deep_copy(document);
		json_t *value = json_loads(cases[i].text, JSON_DECODE_ANY, NULL);

		json_object_set_new(json_object_get(copy, cases[i].member), cases[i].key, value);
		write_case(f, copy);
		refuse(f, cases[i].message);
		write_case(f, document);
		json_decref(copy);
		json_decref(document);
	}
	json_t *document = read_case(f);
	json_object_set_new(document, "schema", json_integer(3));
	write_case(f, document);
	refuse(f, "\"schema\" is 3");
	json_object_clear(document);
	write_case(f, document);
	refuse(f, "schema");
	json_decref(document);
	struct error err = ERROR_INIT;
	SCOPED(bundle) bundle;
	assert_int_equal(bundle_open("/nonexistent", &bundle, &err), PRONY_BAD_INPUT);
}

/* Two inputs, one of integers, and a label for each token. */
BUNDLE_TEST(several_inputs_come_back)
{
	struct error err = ERROR_INIT;
	struct bundle bundle;

	graph_release(&f->graph);
	check(zoo_build(zoo_find("tagger", NULL), 4, &f->graph, &err), &err);
	check(graph_initial_weights(&f->graph, 1, &f->arena, &f->weights, &err), &err);
	check(batches_draw(&f->graph, 1, 0, 2, 0.2, &f->arena, &f->inputs, &f->labels, &err), &err);
	rewrite(f);
	check(bundle_open(f->folder, &bundle, &err), &err);
	assert_int_equal(bundle.inputs.count, 4);
	assert_int_equal(bundle.labels.count, 2);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(bundle.inputs.tensors[i].data, f->inputs.tensors[i].data,
				    (size_t)tensor_bytes(&f->inputs.tensors[i]));
	assert_memory_equal(bundle.labels.tensors[1].data, f->labels.tensors[1].data, 4 * 16 * 8);
	assert_string_equal(bundle.inputs.tensors[3].name, "input.1.1");
	assert_string_equal(bundle.labels.tensors[1].name, "label.1");
	bundle_release(&bundle);
	((int64_t *)f->inputs.tensors[2].data)[3] = 64;
	rewrite(f);
	refuse(f, "input.1.0: element 3 is index 64; the table has 64 rows");
	((int64_t *)f->inputs.tensors[2].data)[3] = 0;
	for (int i = 0; i < 4 * 16; i++)
		((int64_t *)f->labels.tensors[0].data)[i] = -1;
	rewrite(f);
	refuse(f, "label.0: every label is -1");
	f->inputs.count = 3;
	rewrite(f);
	refuse(f, "input.1.1 is missing");
}
