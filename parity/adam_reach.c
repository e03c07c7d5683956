/* The extremes of AdamW's updates. */
#include <math.h>

#include "parity/gate_internal.h"

/*
 * An update is h = m / (sqrt(s) + epsilon) with m = sum of a_i g_i and s = sum of c_i g_i^2, the
 * corrections of bias included. Over the box of the possible gradients:
 *
 * - If m <= 0 in the whole box, the largest h is at a corner: 1 / -h is convex over positive
 * linear.
 * - Else h is pseudoconcave where m > 0 (linear over convex), so every stationary point is the
 *   largest. It has g_i = mu a_i / c_i for all gradients that are not at an end of their interval,
 *   with one mu for all: mu m = s + epsilon sqrt(s). So it is on the path g_i(mu) = mu a_i / c_i,
 *   cut to the intervals, which is straight between the mu where a gradient meets an end.
 */
struct update_of {
	int steps;
	double a[GATE_UPDATES], c[GATE_UPDATES], epsilon;
	const double *low, *high;
};

/* Sums at a point: of the gradients, and of those alone that the path moves there. */
struct point {
	double m, s;
	double fixed_m, fixed_s, free; /* m = fixed_m + mu free, s = fixed_s + mu^2 free */
};

static struct point point_at(const struct update_of *u, double mu)
{
	struct point p = {0};

	for (int i = 0; i < u->steps; i++) {
		double ratio = u->a[i] / u->c[i], at = mu * ratio;
		double g = fmin(fmax(at, u->low[i]), u->high[i]);

		p.m += u->a[i] * g;
		p.s += u->c[i] * g * g;
		if (at > u->low[i] && at < u->high[i]) {
			p.free += u->a[i] * ratio;
		} else {
			p.fixed_m += u->a[i] * g;
			p.fixed_s += u->c[i] * g * g;
		}
	}
	return p;
}

static double value_of(const struct update_of *u, double m, double s)
{
	double divisor = sqrt(s) + u->epsilon;

	return divisor > 0 ? m / divisor : 0;
}

static double largest_at_corner(const struct update_of *u)
{
	double largest = -INFINITY;

	for (int corner = 0; corner < 1 << u->steps; corner++) {
		double m = 0, s = 0;

		for (int i = 0; i < u->steps; i++) {
			double g = corner >> i & 1 ? u->high[i] : u->low[i];

			m += u->a[i] * g;
			s += u->c[i] * g * g;
		}
		largest = fmax(largest, value_of(u, m, s));
	}
	return largest;
}

/* Returns the mu > `from` of the stationary point, if it is on the straight part that begins there:
 * mu fixed_m = fixed_s + epsilon sqrt(fixed_s + mu^2 free), which is a quadratic equation. */
static double stationary(const struct update_of *u, double from, double end)
{
	struct point p = point_at(u, isfinite(end) ? (from + end) / 2 : 2 * from + 1);
	double e2 = u->epsilon * u->epsilon, m = p.fixed_m, s = p.fixed_s;
	double root = s * (m * m + p.free * (s - e2)), divisor = m * m - e2 * p.free;
	double mu = (m * s + u->epsilon * sqrt(fmax(root, 0))) / divisor;

	return m > 0 && divisor > 0 ? fmin(fmax(mu, from), end) : end;
}

double gate_adam_most(const struct recipe *recipe, int steps, const double *low, const double *high)
{
	double beta1 = recipe->beta1, beta2 = recipe->beta2, from = 0, end = INFINITY, most = 0;
	double rest1 = (1 - beta1) / (1 - pow(beta1, steps));
	double rest2 = (1 - beta2) / (1 - pow(beta2, steps));
	struct update_of u = {.steps = steps, .epsilon = recipe->epsilon, .low = low, .high = high};

	for (int i = steps - 1; i >= 0; i--, rest1 *= beta1, rest2 *= beta2) {
		u.a[i] = rest1;
		u.c[i] = rest2;
		most += rest1 * high[i];
	}
	if (most <= 0)
		return largest_at_corner(&u);
	/* The straight part on which mu m - s - epsilon sqrt(s) becomes positive. */
	for (int i = 0; i < 2 * steps; i++) {
		double mu =
			(i < steps ? low[i] : high[i - steps]) * u.c[i % steps] / u.a[i % steps];
		struct point p = point_at(&u, mu);

		if (mu <= 0)
			continue;
		if (mu * p.m <= p.s + u.epsilon * sqrt(p.s))
			from = fmax(from, mu);
		else
			end = fmin(end, mu);
	}
	double mu = stationary(&u, from, end);
	struct point p = point_at(&u, isfinite(mu) ? mu : from);
	return value_of(&u, p.m, p.s);
}
