/* A session of TensorFlow: how it is configured, and what it then says of itself. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_SESSION_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_SESSION_H

#include "adapters/tensorflow/tf_emit.h"

struct tf_configuration {
	int intra_threads, inter_threads; /* in an operation; operations side by side */
	bool xla;			  /* clusters of operations are compiled */
	int gpu;			  /* number of the one to use; -1: none */
};

struct tf_running {
	struct tf_graph *graph;
	struct tf_session *session;
};

/*
 * Starts a session on a graph that is still empty: what is appended later is known to its next run.
 * The first session of a process fixes how many threads all of them have. tf_session_close
 * afterwards, also after a failure.
 */
enum prony_status tf_session_open(struct tf_running *running, const struct tf_api *api,
				  const struct tf_configuration *configuration, struct error *err);
void tf_session_close(struct tf_running *running, const struct tf_api *api);

/* How many devices of that type ("CPU", "GPU") the session has. */
enum prony_status tf_session_devices(const struct tf_running *running, const struct tf_api *api,
				     const char *type, int *count, struct error *err);

/* MXCSR of the thread that carries out operations; 0 where there is none or it was not met. */
enum prony_status tf_session_mxcsr(const struct tf_running *running, const struct tf_api *api,
				   uint32_t *out, struct error *err);

#endif
