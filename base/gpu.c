#include "base/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loader.h"

#define ASK_LIMIT_NS INT64_C(20000000000)
/* cuda.h: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

static const char cuda_library[] = "libcuda.so.1", nvml_library[] = "libnvidia-ml.so.1";

/* Functions of cuda.h; 0 is CUDA_SUCCESS. */
struct cuda {
	int (*init)(unsigned flags);
	int (*error)(int code, const char **text);
	int (*count)(int *count);
	int (*device)(int *device, int index);
	int (*name)(char *name, int bytes, int device);
	int (*memory)(size_t *bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*uuid)(unsigned char bytes[16], int device);
};

static bool load_cuda(struct cuda *cuda, struct gpus *out)
{
	const struct loader_symbol symbols[] = {
		LOADER_SYMBOL(cuda->init, "cuInit"),
		LOADER_SYMBOL(cuda->error, "cuGetErrorString"),
		LOADER_SYMBOL(cuda->count, "cuDeviceGetCount"),
		LOADER_SYMBOL(cuda->device, "cuDeviceGet"),
		LOADER_SYMBOL(cuda->name, "cuDeviceGetName"),
		LOADER_SYMBOL(cuda->memory, "cuDeviceTotalMem_v2"),
		LOADER_SYMBOL(cuda->attribute, "cuDeviceGetAttribute"),
		LOADER_OPTIONAL(cuda->uuid, "cuDeviceGetUuid_v2"),
	};
	struct error err = ERROR_INIT;
	void *handle;

	if (loader_open(cuda_library, &handle, &err) != PRONY_OK) {
		snprintf(out->reason, sizeof(out->reason), "no NVIDIA driver (%s)", cuda_library);
		return false;
	}
	if (loader_resolve(handle, cuda_library, symbols, sizeof(symbols) / sizeof(symbols[0]),
			   &err) == PRONY_OK)
		return true;
	snprintf(out->reason, sizeof(out->reason), "%.150s", err.text);
	return false;
}

static void ask_uuid(const struct cuda *cuda, int device, struct gpu *out)
{
	unsigned char bytes[16];

	if (!cuda->uuid || cuda->uuid(bytes, device) != 0)
		return;
	for (size_t i = 0, used = 0; i < sizeof(bytes); i++)
		used += (size_t)snprintf(out->uuid + used, sizeof(out->uuid) - used, "%s%02x",
					 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					 bytes[i]);
}

static void ask_device(const struct cuda *cuda, int index, struct gpu *out)
{
	int device, major, minor;
	size_t bytes;

	snprintf(out->name, sizeof(out->name), "unknown");
	if (cuda->device(&device, index) != 0)
		return;
	if (cuda->name(out->name, (int)sizeof(out->name), device) != 0)
		snprintf(out->name, sizeof(out->name), "unknown");
	if (cuda->memory(&bytes, device) == 0)
		out->memory_bytes = (int64_t)bytes;
	if (cuda->attribute(&major, CAPABILITY_MAJOR, device) == 0 &&
	    cuda->attribute(&minor, CAPABILITY_MINOR, device) == 0)
		out->capability = 10 * major + minor;
	ask_uuid(cuda, device, out);
}

/* The driver's version, which only NVML tells; "" without it. */
static void ask_version(struct gpus *out)
{
	int (*init)(void), (*version)(char *text, unsigned bytes);
	const struct loader_symbol symbols[] = {
		LOADER_SYMBOL(init, "nvmlInit_v2"),
		LOADER_SYMBOL(version, "nvmlSystemGetDriverVersion"),
	};
	void *handle;

	if (loader_open(nvml_library, &handle, NULL) != PRONY_OK ||
	    loader_resolve(handle, nvml_library, symbols, 2, NULL) != PRONY_OK || init() != 0 ||
	    version(out->driver, sizeof(out->driver)) != 0)
		out->driver[0] = '\0';
}

static void ask_driver(struct gpus *out)
{
	struct cuda cuda;
	const char *text = NULL;
	int count = 0;

	if (!load_cuda(&cuda, out))
		return;
	int code = cuda.init(0);
	if (code == 0)
		code = cuda.count(&count);
	out->answered = true;
	if (code != 0)
		snprintf(out->reason, sizeof(out->reason), "the driver's error %d: %s", code,
			 cuda.error(code, &text) == 0 && text ? text : "unknown");
	else if (count == 0)
		snprintf(out->reason, sizeof(out->reason), "the driver lists none");
	out->count = count < GPUS_MAX ? count : GPUS_MAX;
	for (int i = 0; i < out->count; i++)
		ask_device(&cuda, i, &out->gpus[i]);
	ask_version(out);
}

/* Reads the child's answer; false if it crashed, or needed too long. */
static bool read_answer(int fd, struct gpus *out)
{
	int64_t until = clock_monotonic_ns() + ASK_LIMIT_NS, left = ASK_LIMIT_NS;
	size_t used = 0;

	for (; used < sizeof(*out) && left > 0; left = until - clock_monotonic_ns()) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (poll(&ready, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		ssize_t got = read(fd, (char *)out + used, sizeof(*out) - used);
		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	return used == sizeof(*out);
}

void gpus_ask(struct gpus *out)
{
	static const struct gpus silent = {
		.reason =
			"NVIDIA's driver does not answer: its library crashed, or took over 20 s"};
	int ends[2];

	*out = silent;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid_t child = fork();
	if (child == 0) {
		memset(out, 0, sizeof(*out)); /* padding is written too */
		ask_driver(out);
		/* Shorter than a pipe's buffer, so it is written at once. */
		_exit(write(ends[1], out, sizeof(*out)) == (ssize_t)sizeof(*out) ? 0 : 1);
	}
	close(ends[1]);
	if (child > 0 && !read_answer(ends[0], out))
		*out = silent;
	close(ends[0]);
	if (child > 0)
		kill(child, SIGKILL);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

const struct gpus *gpus_here(void)
{
	static struct gpus here;
	static bool asked;

	if (!asked)
		gpus_ask(&here);
	asked = true;
	return &here;
}

const char *gpu_uuid(int index)
{
	const struct gpus *here = gpus_here();

	return index < here->count && *here->gpus[index].uuid ? here->gpus[index].uuid : NULL;
}
