#include "store/machine_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"

/* A member of informational.measured; NULL if absent. */
static const json_t *measured(const json_t *environment, const char *part)
{
	const json_t *informational = json_object_get(environment, "informational");
	return json_object_get(json_object_get(informational, "measured"), part);
}

double machine_noise_floor(const json_t *environment)
{
	double floor = json_real_or(measured(environment, "noise"), "floor", NAN);
	return floor > 0 && floor < 10 ? floor : NAN;
}

double machine_noise(const json_t *environment)
{
	double apart = json_real_or(measured(environment, "noise"), "apart", NAN);
	return apart > 0 && apart < 10 ? apart : machine_noise_floor(environment);
}

const char *machine_noise_measured_at(const json_t *environment)
{
	return json_string_value(json_object_get(measured(environment, "noise"), "measured_at"));
}

double machine_noise_age_days(const json_t *environment, int64_t wall_ns)
{
	const double ns_per_second = 1e9, seconds_per_day = 86400;
	const char *when = machine_noise_measured_at(environment);
	struct tm utc = {.tm_isdst = 0};

	if (!when || !strptime(when, "%Y-%m-%dT%H:%M:%SZ", &utc))
		return NAN;
	return ((double)wall_ns / ns_per_second - (double)timegm(&utc)) / seconds_per_day;
}

json_t *machine_surroundings(const json_t *environment)
{
	static const struct {
		const char *section, *name;
	} rows[] = {
		{"must_match", "cpu_model"},	   {"must_match", "threads_usable"},
		{"should_match", "kernel"},	   {"should_match", "microcode"},
		{"should_match", "governor"},	   {"should_match", "frequency_driver"},
		{"should_match", "boost"},	   {"should_match", "intel_no_turbo"},
		{"should_match", "smt"},	   {"should_match", "virtual_machine"},
		{"should_match", "nvidia_driver"},
	};
	json_t *found = json_object();

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *section = json_object_get(environment, rows[i].section);
		json_t *value = json_object_get(section, rows[i].name);
		if (value)
			json_object_set(found, rows[i].name, value);
	}
	return found;
}

const json_t *machine_noise_surroundings(const json_t *environment)
{
	const json_t *then = json_object_get(measured(environment, "noise"), "surroundings");
	return json_is_object(then) ? then : NULL;
}

static double ceiling(const json_t *environment, const char *name, int64_t cores)
{
	const json_t *ceilings = measured(environment, "ceilings");
	const json_t *row = json_object_get(ceilings, name);
	int64_t of_machine = json_int_or(ceilings, "cores", 0);
	double one = json_real_or(row, "one", NAN), all = json_real_or(row, "all", NAN);

	if (!(one > 0) || !(all > 0) || cores < 1)
		return NAN;
	if (cores == 1)
		return one;
	return cores >= of_machine ? all : fmin(all, one * (double)cores);
}

double machine_peak_flops(const json_t *environment, const char *precision, int64_t cores)
{
	char name[32];
	double loop, product;

	if (!strcmp(precision, "tf32"))
		precision = "fp32";
	snprintf(name, sizeof name, "fma_%.8s", precision);
	loop = ceiling(environment, name, cores);
	snprintf(name, sizeof name, "matrix_%.8s", precision);
	product = ceiling(environment, name, cores);
	return fmax(loop, product); /* fmax of a number and NaN is the number */
}

double machine_bandwidth(const json_t *environment, int64_t cores)
{
	return cores > 0 ? ceiling(environment, "bandwidth", cores)
			 : ceiling(environment, "gpu_bandwidth", 1);
}

double machine_gpu_peak_flops(const json_t *environment, const char *precision)
{
	char name[32];

	snprintf(name, sizeof name, "gpu_matrix_%.8s", precision);
	return ceiling(environment, name, 1);
}
