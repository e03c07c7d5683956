#include "adapters/mxnet/mxnet_ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process.h"

#define DESCRIPTORS_MAX 256
#define HELPER_END_NS INT64_C(2000000000)

static void ignore_command(int head, const char *body, void *context)
{
	(void)head;
	(void)body;
	(void)context;
}

/* The process of a helper, until the ranks have left. */
static _Noreturn void serve(const char *role, const char *library, pid_t rank)
{
	struct mx_api api;
	struct mx_store *store = NULL;
	struct error err = ERROR_INIT;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != rank)
		_exit(EXIT_FAILURE);
	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++)
		close(fd); /* the channels of the rank */
	setenv("DMLC_ROLE", role, 1);
	enum prony_status status = mx_api_load(&api, library, &err);
	if (status == PRONY_OK)
		status = mx_check(&api, api.MXKVStoreCreate("dist_sync", &store), role, &err);
	if (status == PRONY_OK)
		status = mx_check(&api, api.MXKVStoreRunServer(store, ignore_command, NULL), role,
				  &err);
	/* The log of the rank. */
	if (status != PRONY_OK && write(STDERR_FILENO, err.text, strlen(err.text)) < 0)
		_exit(EXIT_FAILURE);
	_exit(status == PRONY_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void set_number(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof text, "%d", value);
	setenv(name, text, 1);
}

enum prony_status mx_ranks_start(struct mx_ranks *ranks, const struct target *target,
				 const char *library, struct error *err)
{
	static const char *const roles[MX_HELPERS] = {"scheduler", "server"};
	pid_t self = getpid();

	if (target->world_size == 1)
		return PRONY_OK;
	if (target->rendezvous.ports[0] == 0)
		return error_set(err, PRONY_PROTOCOL, "hello: rendezvous has no port");
	ranks->count = target->world_size;
	setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
	set_number("DMLC_PS_ROOT_PORT", target->rendezvous.ports[0]);
	set_number("DMLC_NUM_WORKER", target->world_size);
	set_number("DMLC_NUM_SERVER", 1);
	setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
	setenv("DMLC_INTERFACE", "lo", 1);
	setenv("DMLC_ROLE", "worker", 1);
	for (int i = 0; target->rank == 0 && i < MX_HELPERS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			serve(roles[i], library, self);
		if (pid < 0)
			return error_set(err, PRONY_IO, "cannot start MXNet's %s", roles[i]);
		ranks->helpers[i] = pid;
	}
	return PRONY_OK;
}

enum prony_status mx_ranks_join(struct mx_ranks *ranks, const struct mx_api *api, struct error *err)
{
	return ranks->count ? mx_check(api, api->MXKVStoreCreate("dist_sync", &ranks->store),
				       "join the other ranks", err)
			    : PRONY_OK;
}

enum prony_status mx_ranks_attach(struct mx_ranks *ranks, struct mx_model *model, struct error *err)
{
	const struct mx_api *api = model->api;
	enum prony_status status = PRONY_OK;

	if (!ranks->store)
		return PRONY_OK;
	ranks->keys =
		arena_array(&model->arena, (size_t)model->parameter_count, sizeof ranks->keys[0]);
	for (int i = 0; status == PRONY_OK && i < model->parameter_count; i++) {
		ranks->keys[i] = i;
		status = mx_check(api,
				  api->MXKVStoreInit(ranks->store, 1, &ranks->keys[i],
						     &model->parameters[i].weight),
				  "make an entry of the store", err);
	}
	model->ranks = ranks;
	return status;
}

enum prony_status mx_ranks_sum(const struct mx_ranks *ranks, const struct mx_model *model,
			       struct error *err)
{
	const struct mx_api *api = model->api;
	int result = 0;

	/* With the priorities of MXNet's own Trainer: the first layers are needed first. */
	for (int i = 0; result == 0 && i < model->parameter_count; i++) {
		result = api->MXKVStorePush(ranks->store, 1, &ranks->keys[i],
					    &model->parameters[i].gradient, -i);
		if (result == 0)
			result = api->MXKVStorePull(ranks->store, 1, &ranks->keys[i],
						    &model->parameters[i].gradient, -i);
	}
	return result == 0 ? PRONY_OK : mx_check(api, result, "sum the gradients", err);
}

void mx_ranks_release(struct mx_ranks *ranks, const struct mx_api *api)
{
	struct process_end end;
	struct error ignored = ERROR_INIT;
	bool left = ranks->store && api->MXKVStoreFree(ranks->store) == 0;

	for (int i = 0; i < MX_HELPERS; i++) {
		if (ranks->helpers[i] == 0)
			continue;
		if (left &&
		    process_wait(ranks->helpers[i], HELPER_END_NS, &end, &ignored) == PRONY_OK)
			continue;
		kill(ranks->helpers[i], SIGKILL);
		process_wait(ranks->helpers[i], -1, &end, &ignored);
	}
	*ranks = (struct mx_ranks){.count = 0};
}
