#include "stats/variates.h"

#include <math.h>

#define EXACT_FREEDOM 30

double chi_squared_variate(struct random *random, double freedom)
{
	double sum = 0, part = 2 / (9 * freedom);
	long whole = lround(freedom);

	if (freedom > EXACT_FREEDOM)
		return freedom * pow(fmax(1 - part + sqrt(part) * random_normal(random), 0), 3);
	for (long i = 0; i < whole; i++) {
		double normal = random_normal(random);
		sum += normal * normal;
	}
	return sum;
}

/* Beta(a, b) is X / (X + Y) of chi squared X and Y with 2a and 2b degrees of freedom; Jeffreys'
 * prior is a half of each. */
double share_variate(struct random *random, double with, double without)
{
	double x = chi_squared_variate(random, 2 * with + 1);
	double y = chi_squared_variate(random, 2 * without + 1);

	return x / (x + y);
}
