/*
 * The reference's answers as they are kept between runs. They depend on what was fed and on this
 * interpreter alone, so that their key is a digest of both: a changed source of parity/ or graph/
 * finds nothing.
 */
#ifndef PRONY_PARITY_ANSWERS_H
#define PRONY_PARITY_ANSWERS_H

#include "base/cache.h"
#include "parity/gate.h"

#define ANSWERS_CACHE "reference"
#define ANSWERS_LIMIT_BYTES (INT64_C(2) << 30)

/* What a reference is computed from; the recipe is that of the gate before its rate is settled. */
struct answers_case {
	const struct graph *graph; /* forward only */
	const struct recipe *recipe;
	const struct tensor_set *weights, *inputs, *labels;
	bool chosen; /* as in gate_rate_is_open */
};

/* `what` tells kinds of answers apart ("gate", "loss"). Framework, device and threads of the recipe
 * do not count: the answers are the same for all. */
void answers_key(const char *what, const struct answers_case *of, char key[DIGEST_HEX_BYTES]);

/*
 * Stores a reference with the rate that was settled. Not that of a stage whose answers would take
 * more than half of the cache's limit: that is no error.
 */
enum prony_status answers_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				const struct gate_reference *reference, double learning_rate,
				struct error *err);
/* PRONY_MISSING when there is none. gate_reference_release *out; the weights are borrowed. */
enum prony_status answers_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			       const struct answers_case *of, struct gate_reference *out,
			       double *learning_rate, struct error *err);

/* The same for the first loss of a timed process. */
enum prony_status answers_write_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				     double mean, double deviation, struct error *err);
enum prony_status answers_read_loss(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
				    double *mean, double *deviation, struct error *err);

#endif
