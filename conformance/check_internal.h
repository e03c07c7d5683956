/* Private to worker-check: what its sources share. */
#ifndef PRONY_CONFORMANCE_CHECK_INTERNAL_H
#define PRONY_CONFORMANCE_CHECK_INTERNAL_H

#include "client/client.h"
#include "conformance/check.h"
#include "plan/plan.h"
#include "run/workload.h"

/* Slots of the session with and of the session without shared memory: a worker may not count on
 * one. */
enum { CHECK_SLOTS = 4, CHECK_SLOTS_FILES = 3, CHECK_RECORDS = 64 };

struct checker {
	const struct check_spec *spec;
	const struct check_sink *sink;
	char *folder; /* temporary; bundles lie below it */
	const struct network *const *networks;
	size_t network_count, network; /* the one that sessions take */
	int checks, failures;
	bool stopped; /* ordinary work failed */

	/* What it said at hello. */
	unsigned stages; /* bit set of enum stage */
	unsigned precisions;
	unsigned profiles;		/* bit set of enum protocol_profile */
	bool profiled;			/* the next session announces that one will be asked for */
	char device[TARGET_WORD_BYTES]; /* that it is asked for */
	bool device_found;
	enum precision precision; /* that it is asked for */
};

/* One worker process with its bundle. */
struct check_session {
	struct checker *checker;
	const char *name; /* "shared memory": before each check's name */
	struct client_spec spec;
	struct client *client;
	struct plan_cell cell;
	struct workload work;
	char *bundle;  /* folder */
	bool prepared; /* cell and work are there */
	bool refused;  /* it does not support the network */
};

/* One thing that a worker is asked to do; PRONY_OK or why it failed. */
struct check_step {
	const char *name;
	enum prony_status (*run)(struct check_session *session, struct error *why);
	bool training; /* left out where the stage is forward: a parent does not ask for it then */
};

/* A cell of a network for the worker under check; `stage` and precision as it offers them. */
void check_cell(const struct checker *checker, const struct network *network, enum stage stage,
		struct plan_cell *out);
/* The stage with most to check among those that it offers. */

/* Starts a worker with a bundle of mlp that is not written yet. */
enum prony_status check_session_start(struct checker *checker, const char *name, int slots,
				      bool shared_memory, struct check_session *out,
				      struct error *err);
/* Asks it to close where that is due and ends it; release follows in any case. */
void check_session_end(struct check_session *session, struct client_end *end);
void check_session_release(struct check_session *session);

/* Reports one check, with the figures of a gate (borrowed; NULL: none). */
void check_report(struct checker *checker, const char *session, const char *name,
		  enum check_outcome outcome, const char *detail, const struct gate_check *figures,
		  size_t figure_count);
/* The same by a status. The return value is an error only when it is our own or an interruption. */
enum prony_status check_conclude(struct checker *checker, const char *session, const char *name,
				 enum prony_status status, const struct error *why,
				 struct error *err);
/* "none of mlp, lenet": a failure. */
void check_none_supported(struct checker *checker, const char *session);

/* Runs steps until one fails; *passed says whether all went well. */
enum prony_status check_steps(struct check_session *session, const struct check_step *steps,
			      bool *passed, struct error *err);

/* Sends a request; every duration in the reply must fit in the time that passed. New reference. */
enum prony_status check_ask(struct check_session *session, enum protocol_verb verb, json_t *members,
			    json_t **reply, struct error *why);

/* The steps that bring a worker to a network that is fed; the first keeps what it says of itself.
 */
enum prony_status check_hello(struct check_session *session, struct error *why);
enum prony_status check_supports(struct check_session *session, struct error *why);
enum prony_status check_open(struct check_session *session, struct error *why);
enum prony_status check_build(struct check_session *session, struct error *why);

/* The last step: it replies to close, ends with exit code 0 and leaves nothing running. Also after
 * requests that it had to refuse. */
enum prony_status check_close(struct check_session *session, struct error *why);
enum prony_status check_feed(struct check_session *session, struct error *why);

/* Groups of checks, in the order in which they run. */
enum prony_status check_work(struct checker *checker, const char *name, int slots,
			     bool shared_memory, struct error *err);
enum prony_status check_hostile(struct checker *checker, struct error *err);
enum prony_status check_numeric(struct checker *checker, struct error *err);

#endif
