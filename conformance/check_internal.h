/* Private to worker-check: declarations shared by its sources. */
#ifndef PRONY_CONFORMANCE_CHECK_INTERNAL_H
#define PRONY_CONFORMANCE_CHECK_INTERNAL_H

#include "client/client.h"
#include "conformance/check.h"
#include "plan/plan.h"
#include "run/workload.h"

/*
 * Number of slots with and without shared memory; they differ, so that a worker cannot rely on one.
 */
enum { CHECK_SLOTS = 4, CHECK_SLOTS_FILES = 3, CHECK_RECORDS = 64 };

struct checker {
	const struct check_spec *spec;
	const struct check_sink *sink;
	char *folder; /* temporary folder of the bundles */
	const struct network *const *networks;
	size_t network_count, network; /* the network of ordinary sessions */
	int checks, failures;
	bool stopped; /* an ordinary check failed */

	/* What the worker reported in hello. */
	unsigned stages; /* bit set of enum stage */
	unsigned precisions;
	unsigned profiles;		/* bit set of enum protocol_profile */
	bool profiled;			/* the next session announces a profile */
	char device[TARGET_WORD_BYTES]; /* device requested from the worker */
	bool device_found;
	enum precision precision; /* that it is asked for */
};

/* One worker process with its bundle. */
struct check_session {
	struct checker *checker;
	const char *name; /* "shared memory": prefix of the checks' names */
	struct client_spec spec;
	struct client *client;
	struct plan_cell cell;
	struct workload work;
	char *bundle;  /* folder */
	bool prepared; /* cell and work are prepared */
	bool refused;  /* the worker does not support the network */
};

/* One step of a check: PRONY_OK, or why it failed. */
struct check_step {
	const char *name;
	enum prony_status (*run)(struct check_session *session, struct error *why);
	bool training; /* skipped in the stage forward, where a parent does not ask for it */
};

/* Makes the cell of a network for the worker, with a stage and a precision that it offers. */
void check_cell(const struct checker *checker, const struct network *network, enum stage stage,
		struct plan_cell *out);
/* The offered stage that can be checked most thoroughly. */

/* Starts a worker; its bundle of mlp is written later. */
enum prony_status check_session_start(struct checker *checker, const char *name, int slots,
				      bool shared_memory, struct check_session *out,
				      struct error *err);
/* Ends the worker, with a close request if it still expects one. The session must be released in
 * any case. */
void check_session_end(struct check_session *session, struct client_end *end);
void check_session_release(struct check_session *session);

/* Reports one check, with the figures of a gate (borrowed; NULL: none). */
void check_report(struct checker *checker, const char *session, const char *name,
		  enum check_outcome outcome, const char *detail, const struct gate_check *figures,
		  size_t figure_count);
/* The same for a status. Returns an error only for prony's own errors and interruptions. */
enum prony_status check_conclude(struct checker *checker, const char *session, const char *name,
				 enum prony_status status, const struct error *why,
				 struct error *err);
/* Reports "none of mlp, lenet" as a failure. */
void check_none_supported(struct checker *checker, const char *session);

/* Runs steps until one fails; *passed is true when all succeeded. */
enum prony_status check_steps(struct check_session *session, const struct check_step *steps,
			      bool *passed, struct error *err);

/* Sends a request. Every duration in the reply must fit into the elapsed time. New reference. */
enum prony_status check_ask(struct check_session *session, enum protocol_verb verb, json_t *members,
			    json_t **reply, struct error *why);

/* The steps up to a network with fed slots; the first one stores the worker's hello. */
enum prony_status check_hello(struct check_session *session, struct error *why);
enum prony_status check_supports(struct check_session *session, struct error *why);
enum prony_status check_open(struct check_session *session, struct error *why);
enum prony_status check_build(struct check_session *session, struct error *why);

/* The last step: the worker answers close, exits with code 0 and leaves no process behind. Also
 * used after refused requests. */
enum prony_status check_close(struct check_session *session, struct error *why);
enum prony_status check_feed(struct check_session *session, struct error *why);

/* Groups of checks, in order. */
enum prony_status check_work(struct checker *checker, const char *name, int slots,
			     bool shared_memory, struct error *err);
enum prony_status check_hostile(struct checker *checker, struct error *err);
enum prony_status check_numeric(struct checker *checker, struct error *err);

#endif
