/* Profiles of TensorFlow sessions. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_PROFILE_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_PROFILE_H

#include "adapters/profile.h"
#include "adapters/tensorflow/tf_model.h"

/* As in struct adapter_profile. */
enum prony_status tf_profile_begin(struct tf_model *model, struct error *err);
enum prony_status tf_profile_stepped(struct tf_model *model, int64_t step, struct profile_log *log,
				     struct error *err);
void tf_profile_end(struct tf_model *model, const int64_t *instants, struct profile_log *log);
/* Stops a profile that was begun and has not ended; otherwise does nothing. */
void tf_profile_stop(struct tf_model *model);

/* Adds the operations of a serialized RunMetadata as events of a step; begin_ns is on TensorFlow's
 * clock. Of the model it uses graph, t.made, updates and profile.threads. PRONY_INVALID if the
 * bytes are not a RunMetadata. */
enum prony_status tf_profile_read(const void *bytes, size_t length, struct tf_model *model,
				  int64_t step, struct profile_log *log, struct error *err);

#endif
