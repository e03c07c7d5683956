/* Configures, starts and inspects a TensorFlow session. */
#include "adapters/tensorflow/tf_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/threads.h"

#define CONFIG_BYTES 4096  /* of which each of 64 ranks takes 26 */
#define PROBE_ALIGNMENT 64 /* TensorFlow needs this to use memory without a copy */

/* A serialized ConfigProto (tensorflow/core/protobuf/config.proto), or a message of which it is a
 * part; the numbers below are field numbers. */
struct config {
	unsigned char bytes[CONFIG_BYTES];
	size_t length;
};

static void put(struct config *config, const char *bytes, size_t length)
{
	memcpy(config->bytes + config->length, bytes, length);
	config->length += length;
}

static void put_varint(struct config *config, size_t value)
{
	for (; value > 127; value >>= 7)
		config->bytes[config->length++] = (unsigned char)(value | 128);
	config->bytes[config->length++] = (unsigned char)value;
}

static void put_number(struct config *config, int field, int value)
{
	put_varint(config, (size_t)field << 3);
	put_varint(config, (size_t)value);
}

static void put_part(struct config *config, int field, const void *bytes, size_t length)
{
	put_varint(config, (size_t)field << 3 | 2);
	put_varint(config, length);
	put(config, bytes, length);
}

static void put_text(struct config *config, int field, const char *text)
{
	put_part(config, field, text, strlen(text));
}

static struct config write_config(const struct tf_configuration *c)
{
	/* device_count (1) { key (1) "GPU", value (2) 0 } */
	static const char no_gpu[] = "\x0a\x07\x0a\x03GPU\x10\x00";
	/* graph_options (10) { optimizer_options (3) { global_jit_level (5) ON_1 } } */
	static const char jit[] = "\x52\x04\x1a\x02\x28\x01";
	struct config config = {.length = 0};
	char gpu[16], options[32];

	put_number(&config, 2, c->intra_threads);
	put_number(&config, 5, c->inter_threads);
	if (c->gpu < 0) {
		put(&config, no_gpu, sizeof(no_gpu) - 1);
	} else {
		/* gpu_options (6) { allow_growth (4) true, visible_device_list (5) "N" } */
		int digits = snprintf(gpu, sizeof(gpu), "%d", c->gpu);
		int length = snprintf(options, sizeof(options), "\x32%c\x20\x01\x2a%c%s",
				      digits + 4, digits, gpu);
		put(&config, options, (size_t)length);
	}
	if (c->xla)
		put(&config, jit, sizeof(jit) - 1);
	if (c->rank) {
		struct config experimental = {.length = 0};

		/* device_filters (4): this rank's; experimental (16) { collective_group_leader (1)
		 * }
		 */
		snprintf(options, sizeof(options), "/job:worker/task:%d", c->rank->rank);
		put_text(&config, 4, options);
		put_text(&experimental, 1, "/job:worker/replica:0/task:0");
		put_part(&config, 16, experimental.bytes, experimental.length);
	}
	return config;
}

/* A ServerDef (tensorflow/core/protobuf/tensorflow_server.proto) { cluster (1), job_name (2),
 * task_index (3), default_session_config (4), protocol (5) }, where the cluster is { job (1) { name
 * (1), tasks (2) { key (1), value (2) } } }. */
static struct config write_server(const struct target *rank, const struct config *session)
{
	struct config server = {.length = 0}, cluster = {.length = 0}, job = {.length = 0};
	char address[32];

	put_text(&job, 1, "worker");
	for (int i = 0; i < rank->world_size; i++) {
		struct config task = {.length = 0};

		snprintf(address, sizeof(address), "127.0.0.1:%d", rank->rendezvous.ports[1 + i]);
		put_number(&task, 1, i);
		put_text(&task, 2, address);
		put_part(&job, 2, task.bytes, task.length);
	}
	put_part(&cluster, 1, job.bytes, job.length);
	put_part(&server, 1, cluster.bytes, cluster.length);
	put_text(&server, 2, "worker");
	put_number(&server, 3, rank->rank);
	put_part(&server, 4, session->bytes, session->length);
	put_text(&server, 5, "grpc");
	return server;
}

/* Starts the server by which the ranks find each other; *options get it as their target. */
static enum prony_status join_ranks(const struct tf_api *api, const struct target *rank,
				    const struct config *session,
				    struct tf_session_options *options, struct error *err)
{
	struct config definition = write_server(rank, session);
	struct tf_server *server =
		api->TF_NewServer(definition.bytes, definition.length, api->status);
	enum prony_status status = tf_check(api, "make a server", err);

	if (status != PRONY_OK)
		return status;
	api->TF_ServerStart(server, api->status);
	api->TF_SetTarget(options, api->TF_ServerTarget(server));
	return tf_check(api, "start a server", err);
}

enum prony_status tf_session_open(struct tf_running *running, const struct tf_api *api,
				  const struct tf_configuration *configuration, struct error *err)
{
	struct config config = write_config(configuration);
	struct tf_session_options *options = api->TF_NewSessionOptions();
	enum prony_status status;

	running->graph = api->TF_NewGraph();
	api->TF_SetConfig(options, config.bytes, config.length, api->status);
	status = tf_check(api, "set the configuration", err);
	running->ranks = configuration->rank ? configuration->rank->world_size : 1;
	if (status == PRONY_OK && configuration->rank)
		status = join_ranks(api, configuration->rank, &config, options, err);
	if (status == PRONY_OK) {
		running->session = api->TF_NewSession(running->graph, options, api->status);
		status = tf_check(api, "start a session", err);
	}
	api->TF_DeleteSessionOptions(options);
	return status;
}

void tf_session_close(struct tf_running *running, const struct tf_api *api)
{
	if (running->session) {
		api->TF_CloseSession(running->session, api->status);
		api->TF_DeleteSession(running->session, api->status);
	}
	if (running->graph)
		api->TF_DeleteGraph(running->graph);
	*running = (struct tf_running){0};
}

enum prony_status tf_session_devices(const struct tf_running *running, const struct tf_api *api,
				     const char *type, int *count, struct error *err)
{
	struct tf_device_list *list = api->TF_SessionListDevices(running->session, api->status);
	enum prony_status status = tf_check(api, "list devices", err);
	int found = 0;

	for (int i = 0; status == PRONY_OK && i < api->TF_DeviceListCount(list); i++) {
		const char *have = api->TF_DeviceListType(list, i, api->status);

		status = tf_check(api, "get a device", err);
		found += status == PRONY_OK && strcmp(have, type) == 0;
	}
	if (list)
		api->TF_DeleteDeviceList(list);
	if (status == PRONY_OK)
		*count = found;
	return status;
}

/* Frees a tensor's memory and stores the MXCSR of the releasing thread. */
static void visit(void *data, size_t bytes, void *argument)
{
	(void)bytes;
	*(uint32_t *)argument = threads_mxcsr();
	free(data);
}

static enum prony_status assign_once(const struct tf_running *running, const struct tf_api *api,
				     struct tf_output placeholder,
				     const struct tf_operation *assign, struct tf_tensor *value,
				     struct error *err)
{
	api->TF_SessionRun(running->session, NULL, &placeholder, &value, 1, NULL, NULL, 0, &assign,
			   1, NULL, api->status);
	api->TF_DeleteTensor(value);
	return tf_check(api, "look at its thread", err);
}

/* A variable is assigned a tensor over prony's memory, and then another one. The second assignment
 * releases prony's memory on the thread that runs operations. */
enum prony_status tf_session_mxcsr(const struct tf_running *running, const struct tf_api *api,
				   uint32_t *out, struct error *err)
{
	struct tf_emit e = {.api = api, .graph = running->graph, .scope = "thread"};
	const struct shape shape = {.rank = 1, .dims = {PROBE_ALIGNMENT / sizeof(float)}};
	struct tf_output placeholder =
		tf_op(&e, "Placeholder", NULL, 0,
		      TF_WITH(TF_TYPE("dtype", TF_TYPE_FLOAT), tf_shape("shape", &shape)));
	struct tf_output handle =
		tf_op(&e, "VarHandleOp", NULL, 0,
		      TF_WITH(TF_TYPE("dtype", TF_TYPE_FLOAT), tf_shape("shape", &shape),
			      TF_TEXT("shared_name", "prony_thread")));
	struct tf_operation *assign =
		tf_binary(&e, "AssignVariableOp", handle, placeholder).operation;
	void *data = aligned_alloc(PROBE_ALIGNMENT, PROBE_ALIGNMENT);
	static uint32_t found; /* static, because it may be written after the return */
	enum prony_status status;

	if (e.error.code != PRONY_OK || !data) {
		free(data);
		return error_set(err, data ? e.error.code : PRONY_NOMEM, "%s",
				 data ? e.error.text : "no memory");
	}
	memset(data, 0, PROBE_ALIGNMENT);
	status = assign_once(running, api, placeholder, assign,
			     api->TF_NewTensor(TF_TYPE_FLOAT, shape.dims, 1, data, PROBE_ALIGNMENT,
					       visit, &found),
			     err);
	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		struct tf_tensor *other = tf_tensor_new(api, TF_TYPE_FLOAT, &shape, err);

		if (!other)
			return PRONY_OUT_OF_MEMORY;
		memset(api->TF_TensorData(other), 0, PROBE_ALIGNMENT);
		status = assign_once(running, api, placeholder, assign, other, err);
	}
	if (status == PRONY_OK)
		*out = found;
	return status;
}
