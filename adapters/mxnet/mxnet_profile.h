/* Profiles of MXNet's operators by node. */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_PROFILE_H
#define PRONY_ADAPTERS_MXNET_MXNET_PROFILE_H

#include <jansson.h>

#include "adapters/mxnet/mxnet_model.h"
#include "adapters/profile.h"

/* A node that an executor has run and whose end was awaited. */
struct mx_mark {
	int64_t at_ns; /* on the clock of the steps */
	const char *node;
	bool backward;
};

/* Data that are kept from begin to end. */
struct mx_profile {
	struct mx_model *model;
	struct mx_program *plain; /* while executors with a callback replace it; else NULL */
	char *folder;
	int64_t (*now_ns)(void);
	struct arena arena; /* for the marks */
	struct mx_mark *marks;
	size_t count, room;
	size_t nodes;		      /* that have run in the current step */
	size_t forward_nodes;	      /* in a forward pass; 0: not known yet */
	size_t outputs, step_outputs; /* reported in total, and per step; 0: not known yet */
	int64_t marked_ns;	      /* when the engine ran prony's marker */
	json_t *optimised; /* the forward symbol that runs; shows which nodes were fused */
};

/* As in struct adapter_profile; a step has run on `slot` before. */
enum prony_status mx_profile_begin(struct mx_profile *profile, struct mx_model *model, int slot,
				   int64_t (*now_ns)(void), struct error *err);
enum prony_status mx_profile_end(struct mx_profile *profile, const int64_t *instants, int64_t steps,
				 struct profile_log *log, struct error *err);
/* Releases a profile that was begun and possibly not ended; does nothing otherwise. */
void mx_profile_release(struct mx_profile *profile);

#endif
