/* A user's own model of PyTorch or Keras 3, -n model.py:NAME: exported to ONNX by
 * python/export_model.py in PyTorch's environment, or Keras' with PyTorch, kept in the cache, and
 * compared with the model's own logits. docs/models.md. */
#ifndef PRONY_PLAN_OWN_MODEL_H
#define PRONY_PLAN_OWN_MODEL_H

#include <stdbool.h>

#include "zoo/source.h"

struct registry;

/* Whether a word is FILE.py or FILE.py:NAME. */
bool own_model_is(const char *word);

/* Exports the model unless the cache has it with the same files and versions, and opens it. This
 * runs the user's file. The reference must give the logits of the model's own eager run, else
 * PRONY_MISMATCH; the figure is in file->remark. `given` (may be NULL) belongs to its inputs. *out:
 * as from network_file_open. PRONY_BAD_INPUT names file and line of a fault in the user's file;
 * PRONY_MISSING if the framework is not here. */
enum prony_status own_model_open(const struct registry *registry, const char *word,
				 const struct network_given *given, struct network_file **out,
				 struct error *err);

/* own_model_check.c: compares the reference's logits with those of the eager run in the folder of
 * an export. `by` is the framework and its version. */
enum prony_status own_model_check(struct network_file *file, const char *folder, const char *by,
				  struct error *err);

#endif
