/* Profiles of TensorFlow's sessions. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_PROFILE_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_PROFILE_H

#include "adapters/profile.h"
#include "adapters/tensorflow/tf_model.h"

/* As in struct adapter_profile. */
enum prony_status tf_profile_begin(struct tf_model *model, struct error *err);
enum prony_status tf_profile_stepped(struct tf_model *model, int64_t step, struct profile_log *log,
				     struct error *err);
void tf_profile_end(struct tf_model *model, const int64_t *instants, struct profile_log *log);
/* Of one that was begun and may not have ended; does nothing otherwise. */
void tf_profile_stop(struct tf_model *model);

/*
 * The operations in a serialized RunMetadata as events of a step; their beginnings are on
 * TensorFlow's clock. Of the model its graph, t.made, updates and profile.threads are used.
 * PRONY_INVALID where it is none.
 */
enum prony_status tf_profile_read(const void *bytes, size_t length, struct tf_model *model,
				  int64_t step, struct profile_log *log, struct error *err);

#endif
