/* A TensorFlow session: its configuration, and what it reports about itself. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_SESSION_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_SESSION_H

#include "adapters/tensorflow/tf_emit.h"
#include "bundle/target.h"

struct tf_configuration {
	int intra_threads, inter_threads; /* threads in an operation; parallel operations */
	bool xla;			  /* XLA compiles clusters of operations */
	int gpu;			  /* number of the GPU to use; -1: none */
	const struct target *rank;	  /* one of several ranks; NULL: the only one */
};

struct tf_running {
	struct tf_graph *graph;
	struct tf_session *session;
	int ranks; /* that share a step's gradients */
};

/* Starts a session on an empty graph; the next run includes operations appended later. The first
 * session of a process fixes the threads of all sessions. The session of one of several ranks is
 * that of a server, which runs until the process ends: TensorFlow cannot stop one. Call
 * tf_session_close afterwards, also after a failure. */
enum prony_status tf_session_open(struct tf_running *running, const struct tf_api *api,
				  const struct tf_configuration *configuration, struct error *err);
void tf_session_close(struct tf_running *running, const struct tf_api *api);

/* *count gets the number of devices of that type ("CPU", "GPU") in the session. */
enum prony_status tf_session_devices(const struct tf_running *running, const struct tf_api *api,
				     const char *type, int *count, struct error *err);

/* *out gets the MXCSR of the thread that runs operations; 0 if there is none or it was not
 * observed. */
enum prony_status tf_session_mxcsr(const struct tf_running *running, const struct tf_api *api,
				   uint32_t *out, struct error *err);

#endif
