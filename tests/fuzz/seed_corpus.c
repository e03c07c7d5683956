#include "tests/fuzz/seed_corpus.h"

#include <dirent.h>

#include "base/files.h"
#include "tests/unit/unit_test.h"

#define LIMIT_BYTES ((size_t)16 << 20)

char *corpus_path(const char *corpus, const char *name)
{
	const char *source = getenv("PRONY_SOURCE");

	assert_non_null(source);
	return test_text("%s/tests/fuzz/corpus/%s%s%s", source, corpus, *name ? "/" : "", name);
}

size_t corpus_run(const char *corpus, corpus_more *more)
{
	char *folder = corpus_path(corpus, "");
	DIR *stream = opendir(folder);
	const struct dirent *entry;
	size_t files = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		struct error err = ERROR_INIT;
		size_t length;
		char *bytes;

		if (entry->d_name[0] == '.')
			continue;
		char *path = test_keep(path_join(folder, entry->d_name));
		if (file_read(path, LIMIT_BYTES, &bytes, &length, &err) != PRONY_OK)
			fail_msg("%s", err.text);
		assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)bytes, length), 0);
		if (more)
			more(entry->d_name, (uint8_t *)bytes, length);
		free(bytes);
		files++;
	}
	closedir(stream);
	return files;
}
