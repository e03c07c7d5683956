#include "sensors/gpu_instrument.h"

#include <stdio.h>

#include "base/gpu.h"
#include "base/process_tree.h"
#include "sensors/meters.h"

bool gpu_instrument(char *where, size_t where_bytes, char *said, size_t said_bytes)
{
	struct meters *meters = meters_open(PROCESS_HERE, "cuda:0", gpu_uuid);
	struct meters *other = meters_open(PROCESS_HERE, "gpu.0", gpu_uuid);
	const struct meters *used = meters->count > 0 ? meters : other;
	char versions[METER_TEXT_BYTES], why[SERIES_REASON_BYTES];
	bool found = used->count > 0;

	if (found) {
		bool nvml = used->source == &meter_nvml && nvml_versions(versions, why);
		snprintf(where, where_bytes, "%s",
			 nvml ? versions : "files of the kernel's driver");
		meters_refused(used, said, said_bytes);
	} else {
		snprintf(said, said_bytes, "%s", meters->reason);
	}
	meters_close(other);
	meters_close(meters);
	return found;
}
