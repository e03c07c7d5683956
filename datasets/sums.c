/* Reads and writes SHA256SUMS, as sha256sum does. */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "datasets/writer.h"

enum prony_status writer_sum_files(const char *folder, const char *const *names, size_t count,
				   struct byte_buffer *sums, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		char *path = path_join(folder, names[i]), hex[DIGEST_HEX_BYTES];

		status = digest_file(path, hex, err);
		if (status == PRONY_OK) {
			char *line = memory_printf("%s  %s\n", hex, names[i]);

			byte_buffer_add(sums, line, strlen(line));
			free(line);
		}
		free(path);
	}
	return status;
}

enum prony_status writer_write_sums(const char *folder, const char *const *names, size_t count,
				    struct error *err)
{
	char *path = path_join(folder, WRITER_SUMS);
	struct byte_buffer sums = {0};
	enum prony_status status = writer_sum_files(folder, names, count, &sums, err);

	if (status == PRONY_OK)
		status = file_write_atomic(path, sums.bytes, sums.length, err);
	byte_buffer_release(&sums);
	free(path);
	return status;
}
