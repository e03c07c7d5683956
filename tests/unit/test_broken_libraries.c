/* Tests libraries that adapters cannot use: absent, truncated, not a library, another version. Each
 * is `missing`; the message has the path and the error of the loader or the library. Needs no
 * framework. */
#include "adapters/adapter.h"
#include "unit_test.h"

/* PRONY_TENSORFLOW1_LIBPYTHON, which tensorflow1 loads before its own library, exists on every
 * machine. */
#define ANY_LIBRARY "libm.so.6"

static const char *const names[] = {"tensorflow",  "tensorflow1", "mxnet",
				    "onnxruntime", "openvino",	  "xla"};
#define NAMES (COUNT(names))

static void assert_missing(const char *name, const char *library, const char *says)
{
	const struct adapter *adapter = adapter_find(name);
	struct error err = ERROR_INIT;
	struct probe found;

	assert_non_null(adapter);
	struct session session = {.library = library,
				  .private_data = calloc(1, adapter->private_size)};
	target_defaults(&session.target);
	enum prony_status status = adapter->probe(&session, &found, &err);
	adapter->close(&session);
	free(session.private_data);
	if (status != PRONY_MISSING || !strstr(err.text, says) ||
	    (library && !strstr(err.text, library)))
		fail_msg("%s: %s: %s", name, prony_status_text(status), err.text);
}

TEST(test_none)
{
	for (size_t i = 0; i < NAMES; i++) {
		char variable[64], *at = variable;

		snprintf(variable, sizeof(variable), "PRONY_%s_LIBRARY", names[i]);
		for (; *at; at++)
			*at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
		assert_missing(names[i], NULL, variable);
		assert_missing(names[i], "/nonexistent/library.so", "No such file or directory");
	}
}

/* A text file, the head of a library, and a library truncated in the middle. */
TEST(test_damaged)
{
	struct error err = ERROR_INIT;
	char *folder = NULL, *path, *bytes = NULL;
	size_t length = 0;

	check(directory_make_temporary("prony-damaged", &folder, &err), &err);
	check(file_read(getenv("OTHER_VERSION"), 1 << 20, &bytes, &length, &err), &err);
	path = test_keep(path_join(folder, "damaged.so"));
	for (size_t i = 0; i < NAMES; i++) {
		check(file_write_atomic(path, "not a library at all\n", 21, &err), &err);
		assert_missing(names[i], path, "too short");
		check(file_write_atomic(path, bytes, 16, &err), &err);
		assert_missing(names[i], path, "too short");
		check(file_write_atomic(path, bytes, length / 2, &err), &err);
		assert_missing(names[i], path, "is truncated");
	}
	/* The library that must be loaded first is checked as well. */
	setenv("PRONY_TENSORFLOW1_LIBPYTHON", path, 1);
	assert_missing("tensorflow1", path, "is truncated");
	setenv("PRONY_TENSORFLOW1_LIBPYTHON", ANY_LIBRARY, 1);
	directory_remove(folder, NULL);
	free(bytes);
	free(folder);
}

TEST(test_other_libraries)
{
	for (size_t i = 0; i < NAMES; i++)
		assert_missing(names[i], ANY_LIBRARY, "has no function");
}

TEST(test_other_versions)
{
	const char *other = getenv("OTHER_VERSION");

	assert_missing("mxnet", other, "MXNet 1.8.0 in");
	assert_missing("onnxruntime", other, "ONNX Runtime 1.10.0 in");
	setenv("OTHER_TENSORFLOW", "1.15.5", 1);
	assert_missing("tensorflow", other, "TensorFlow 1.15.5 in");
	setenv("OTHER_TENSORFLOW", "2.21.0", 1);
	assert_missing("tensorflow1", other, "TensorFlow 2.21.0 in");
	/* OpenVINO's library reports no version before its functions have been found. */
	assert_missing("openvino", other, "has no function ov_");
	assert_missing("xla", other, "has no function GetPjrtApi");
}

int main(void)
{
	setenv("PRONY_TENSORFLOW1_LIBPYTHON", ANY_LIBRARY, 1);
	return unit_tests_run(NULL, NULL);
}
