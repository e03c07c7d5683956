/* Private to the verbs: what their sources share. */
#ifndef PRONY_WORKER_VERBS_INTERNAL_H
#define PRONY_WORKER_VERBS_INTERNAL_H

#include "worker/loop.h"
#include "worker/verbs.h"

/* Records a failure of the adapter: its state is then unknown, so only close is allowed. Returns
 * `status`. */
enum prony_status verbs_adapter_result(struct worker *w, enum prony_status status, const char *call,
				       struct error *err);

/* Sets a member; takes the value's reference. */
void verbs_add(json_t *object, const char *key, json_t *value);
/* Adds the nanoseconds since an instant. */
void verbs_add_duration(json_t *reply, const char *key, int64_t begin_ns);

/* Calls to the adapter for a graph or for a model file run unchanged: verbs_work.c. */
enum prony_status verbs_supports(const struct worker *w, struct error *why);
enum prony_status verbs_build(struct worker *w, struct built *built, struct error *err);
enum prony_status verbs_feed(struct worker *w, int slot, int64_t batch, struct error *err);
/* Returns the outputs of the last step as a separate image. */
enum prony_status verbs_read_outputs(struct worker *w, struct arena *arena, void **image,
				     size_t *bytes, struct error *err);

/* Reads an integer member in [0, limit). */
enum prony_status verbs_get_index(const json_t *request, const char *key, int64_t limit,
				  int64_t *out, struct error *err);
/* Reads steps and slot of a request; every slot that they use must hold a batch. */
enum prony_status verbs_parse_steps(struct worker *w, const json_t *request, struct loop_plan *plan,
				    struct error *err);

/* Runs steps and writes the framework's report about each to a file: verbs_profile.c. */
enum prony_status verbs_profile(struct worker *w, const json_t *request, json_t *reply,
				struct error *err);

enum prony_status verbs_hello(struct worker *w, const json_t *request, json_t *reply,
			      struct error *err);

#endif
