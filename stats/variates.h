/* Random numbers of the distributions that posteriors have. */
#ifndef PRONY_STATS_VARIATES_H
#define PRONY_STATS_VARIATES_H

#include "base/random.h"

/* With so many degrees of freedom (>= 1, rounded): exactly up to 30, of which fewer take the first
 * normal ones of more; beyond by the cube of a normal one (Wilson and Hilferty, PNAS 17, 1931),
 * which is as good there and costs no more for more. */
double chi_squared_variate(struct random *random, double freedom);

/* What a share may be of which `with` and `without` were counted, under Jeffreys' prior; either may
 * be more by what was known before, and is rounded to halves. */
double share_variate(struct random *random, double with, double without);

#endif
