/* Profiles of MXNet. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_PROFILE_H
#define PRONY_ADAPTERS_MXNET_MXNET_PROFILE_H

#include <jansson.h>

#include "adapters/mxnet/mxnet_model.h"
#include "adapters/profile.h"

/* A node that an executor has run and that was waited for. */
struct mx_mark {
	int64_t at_ns; /* on the clock of the steps */
	const char *node;
	bool backward;
};

/* What is kept from begin to end. */
struct mx_profile {
	struct mx_model *model;
	struct mx_program *plain; /* in whose place are others that are looked at; else NULL */
	char *folder;
	int64_t (*now_ns)(void);
	struct arena arena; /* of the marks */
	struct mx_mark *marks;
	size_t count, room;
	size_t nodes;		      /* of its step that have run */
	size_t forward_nodes;	      /* of a forward pass; 0: not known yet */
	size_t outputs, step_outputs; /* reported in all, and in a step; 0: not known yet */
	int64_t marked_ns;	      /* when the engine ran our mark */
	json_t *optimised;	      /* the symbol that runs forward; which nodes became one */
};

/* As in struct adapter_profile; `slot` has been stepped on. */
enum prony_status mx_profile_begin(struct mx_profile *profile, struct mx_model *model, int slot,
				   int64_t (*now_ns)(void), struct error *err);
enum prony_status mx_profile_end(struct mx_profile *profile, const int64_t *instants, int64_t steps,
				 struct profile_log *log, struct error *err);
/* Of one that was begun and may not have ended; does nothing otherwise. */
void mx_profile_release(struct mx_profile *profile);

#endif
