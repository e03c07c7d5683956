/* The cache of the reference's answers between runs. Answers depend only on the inputs and on this
 * interpreter, so the key is a digest of both: after a change in parity/ or graph/ no old answer is
 * found. */
#ifndef PRONY_PARITY_ANSWERS_H
#define PRONY_PARITY_ANSWERS_H

#include "base/cache.h"
#include "parity/gate.h"

#define ANSWERS_CACHE "reference"
#define ANSWERS_LIMIT_BYTES (INT64_C(2) << 30)

/* The inputs of a reference. The recipe is the gate's recipe before its rate and
 * its clip_norm are settled. */
struct answers_case {
	const struct graph *graph; /* forward only */
	const struct recipe *recipe;
	const struct tensor_set *weights, *inputs, *labels;
	bool chosen; /* as in gate_rate_is_open */
};

/* Computes the key of an answer. `what` is the kind of answer ("gate", "loss"). Framework, device
 * and threads of the recipe are not part of the key, because the answers are the same for all; nor
 * is its precision as far as it does not matter. */
void answers_key(const char *what, const struct answers_case *of, char key[DIGEST_HEX_BYTES]);

/* Stores a reference with the settled rate and clip_norm of `gate`. A stage whose answers would
 * take more than half of the cache's limit is not stored; that is no error. */
enum prony_status answers_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				const struct gate_reference *reference, const struct recipe *gate,
				struct error *err);
/* Reads a stored reference and sets the rate and clip_norm of *gate; PRONY_MISSING if there is
 * none. Call gate_reference_release on *out. The weights are borrowed. */
enum prony_status answers_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			       const struct answers_case *of, struct gate_reference *out,
			       struct recipe *gate, struct error *err);

/* The same for the first loss of a timed process. */
enum prony_status answers_write_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				     double mean, double deviation, struct error *err);
enum prony_status answers_read_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				    double *mean, double *deviation, struct error *err);

#endif
