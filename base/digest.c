#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdint.h>
#include <unistd.h>

#define DIGEST_READ_BYTES 65536

_Static_assert(DIGEST_HEX_BYTES == SHA256_DIGEST_STRING_LENGTH, "libmd writes as many");

void digest_bytes(const void *bytes, size_t length, char hex[DIGEST_HEX_BYTES])
{
	SHA256_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, bytes, length);
	SHA256End(&context, hex);
}

enum prony_status digest_file(const char *path, char hex[DIGEST_HEX_BYTES], struct error *err)
{
	uint8_t chunk[DIGEST_READ_BYTES];
	SHA256_CTX context;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, errno == ENOENT ? PRONY_BAD_INPUT : PRONY_IO, errno,
				   "cannot open %s", path);
	SHA256Init(&context);
	while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		SHA256Update(&context, chunk, (size_t)got);
	}
	int errnum = errno;
	close(fd);
	if (got < 0)
		return error_errno(err, PRONY_IO, errnum, "cannot read %s", path);
	SHA256End(&context, hex);
	return PRONY_OK;
}
