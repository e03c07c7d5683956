/* One worker process brought from its start to a network that is built and fed. */
#ifndef PRONY_RUN_SESSION_H
#define PRONY_RUN_SESSION_H

#include "client/client.h"
#include "run/run.h"
#include "run/workload.h"

/* Everything that driving one cell's processes needs. */
struct drive {
	const struct run_settings *settings;
	const struct run_caller *caller;
	const struct plan_cell *cell;
	size_t index; /* of the cell in the plan */
	struct workload *work;
	const char *folder; /* of its bundle */
	const int *cpus;
	int cpu_count;
	int round, replicate;
	bool profile; /* its worker will be asked for one */
};

/* What a worker said of itself on the way; tells and times. */
struct session_facts {
	int64_t spawn_ns, import_ns, open_ns, build_ns, feed_ns;
	int64_t threads, mxcsr; /* RECORD_NONE when not stated */
	char precision[16];
	int64_t parameters, macs; /* -1 when it cannot say */
	unsigned profiles;	  /* that it can give: bits of enum protocol_profile */
	char no_layers[256];	  /* why it has no layers; "" when it does not say */
	json_t *details;	  /* version, libraries, settings, notes...; owned */
};

/*
 * hello, supports, open, build, feed of all slots. Fails with PRONY_INVALID when precision, threads
 * or device did not take effect as asked. Announces each stage as an event.
 */
enum prony_status session_prepare(const struct drive *drive, struct client *client,
				  const struct recipe *recipe, const char *folder,
				  struct session_facts *facts, struct error *err);
void session_facts_release(struct session_facts *facts);

/* Starts guard and worker for a bundle; `records` is the capacity for step records, `input` that of
 * the bundle's recipe. */
enum prony_status session_start(const struct drive *drive, struct client_spec *spec,
				const char *folder, size_t records, enum input_mode input,
				struct client **out, struct error *err);

/* Reads one scalar or tensor by name from what the worker gives; PRONY_PROTOCOL when it is not
 * there. */
enum prony_status session_read_loss(struct client *client, double *loss, struct error *err);

/* An error of the caller, which ends the run; the events of single stages give none. */
enum prony_status run_emit(const struct run_caller *caller, const struct run_event *event,
			   struct error *err);
void drive_event(const struct drive *drive, enum run_event_kind kind, const char *text);
/* What a framework says of itself (borrowed); NULL: nothing. */
enum prony_status emit_framework(const struct run_caller *caller, size_t cell,
				 const json_t *details, struct error *err);

/* Reads `what` into the arena: the next read leaves it as it is. */
enum prony_status session_read_kept(struct client *client, const char *what, struct arena *arena,
				    struct tensor_set *out, struct error *err);

#endif
