/* Executes the verbs of the protocol; worker.c reads requests and sends the replies. */
#ifndef PRONY_WORKER_VERBS_H
#define PRONY_WORKER_VERBS_H

#include <jansson.h>
#include <stdbool.h>

#include "adapters/adapter.h"
#include "bundle/bundle.h"
#include "samples/protocol.h"
#include "worker/own_loader.h"
#include "worker/results.h"
#include "worker/ring.h"

/* The progress of the worker; each verb is allowed only at certain stages. */
enum progress {
	PROGRESS_STARTED,
	PROGRESS_GREETED, /* the framework is loaded */
	PROGRESS_OPENED,
	PROGRESS_BUILT,
	PROGRESS_RAN,	 /* at least one step */
	PROGRESS_FAILED, /* the adapter reported an error: only close is allowed */
};

struct worker {
	const struct adapter *adapter;
	struct session session;
	enum progress progress;
	struct results results;
	struct ring ring;
	struct own_loader own;
	struct probe probe;
	struct bundle bundle;
	char *folder;	      /* of the bundle; NULL before one is loaded */
	bool *fed;	      /* per slot, recipe.slots of them */
	int64_t record_count; /* of the current request; 0 unless it is run */
	bool close_owed;      /* probe was called, close was not */
};

void worker_init(struct worker *worker, const struct adapter *adapter, const char *library,
		 const char *option);
/* Closes the adapter if that is still required. */
void worker_release(struct worker *worker);

/* Serves one request (borrowed) and adds the members of its reply. After an error the reply's
 * members are ignored. PRONY_PROTOCOL: the request was wrong and changed nothing. */
enum prony_status worker_serve_verb(struct worker *worker, enum protocol_verb verb,
				    const json_t *request, json_t *reply, struct error *err);

/* Returns the status word of a reply for an error; never NULL. */
const char *worker_status_word(enum prony_status status);

#endif
