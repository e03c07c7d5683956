#include "datasets/format.h"

#include <inttypes.h>

#include "datasets/byte_stream.h"

enum prony_status data_label_error(const char *path, int64_t offset, int64_t label, int64_t classes,
				   struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: offset %" PRId64 ": label %" PRId64 ", but there are %" PRId64
			 " classes; " DATA_REMEDY,
			 path, offset, label, classes);
}
