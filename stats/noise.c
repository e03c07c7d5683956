#include "stats/noise.h"

#include <math.h>

#include "stats/contrast.h"
#include "stats/estimate.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */
#define KNOWN_P                                                                                    \
	0.995 /* from simulations (tests/unit/test_simulation.c): a lower value finds too little   \
	       */
#define MANY 1e9 /* enough rounds to know the spread exactly */

void noise_of(const double *a, const double *b, size_t rounds, struct noise *out)
{
	double squares = 0, n = (double)rounds;

	for (size_t i = 0; i < rounds; i++) {
		double log_ratio = log(b[i]) - log(a[i]);
		squares += log_ratio * log_ratio;
	}
	double spread = sqrt(squares / n), t = student_t_quantile(COVERAGE_P, n);
	double apart = fmax(expm1(t * spread / sqrt(NOISE_PAIRS)), NOISE_MIN);
	double most = spread * student_t_quantile(KNOWN_P, n) / student_t_quantile(KNOWN_P, MANY);
	double found = contrast_finds(most, NOISE_PAIRS, apart, NOISE_FOUND);
	*out = (struct noise){
		.spread = spread, .apart = apart, .floor = fmax(expm1(found) / 2, NOISE_MIN)};
}
