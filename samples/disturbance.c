#include "samples/disturbance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIELD(member) offsetof(struct process_record, member)
#define PERCENT 100
#define PER_MIB (1. / 1048576)
#define END_OTHERS "close other programs (see prony doctor)"
#define FREE_MEMORY "free memory, or use smaller batches"

/* Limits: docs/sensors.md, "A busy machine". */
const struct disturbance_cause disturbance_causes[DISTURBANCE_CAUSES] = {
	{"busy", FIELD(foreign_share), 0.05, true, "other programs took up to", "% of their cores",
	 PERCENT, END_OTHERS},
	{"busy", FIELD(foreign_elsewhere), 0.25, true, "other programs took up to",
	 "% of the other cores", PERCENT, END_OTHERS},
	{"busy", FIELD(gpu_processes), 1, true, "other programs were on their GPU: up to",
	 "processes", 1, END_OTHERS},
	{"steal", FIELD(steal_share), 0.05, true, "the host took up to", "% of their cores",
	 PERCENT, "use a dedicated host"},
	{"quota", FIELD(quota_share), 0.01, false, "a control group's quota stopped them for up to",
	 "% of the time", PERCENT, "give prony whole cores (cpuset) instead of a quota"},
	{"heat", FIELD(thermal_share), 0.01, false, "heat slowed their cores for up to",
	 "% of the time", PERCENT, "cool the machine, or lower its clock"},
	{"heat", FIELD(gpu_heat_held), 0.01, false, "heat slowed their GPU for up to",
	 "% of the time", PERCENT, "cool the machine, or lower its clock"},
	{"clock", FIELD(frequency_drop), 0.05, false, "the clock of their cores was up to",
	 "% below its maximum", PERCENT, "fix the clock (governor performance, boost off)"},
	{"memory", FIELD(pressure_memory), 0.01, false, "processes waited for memory for up to",
	 "% of the time", PERCENT, FREE_MEMORY},
	{"memory", FIELD(swap_rate), 1048576, false, "up to", "MiB/s were swapped in and out",
	 PER_MIB, FREE_MEMORY},
};
const size_t disturbance_cause_count = sizeof disturbance_causes / sizeof disturbance_causes[0];

double disturbance_figure(const struct process_record *record,
			  const struct disturbance_cause *cause)
{
	double figure;

	memcpy(&figure, (const char *)record + cause->offset, sizeof figure);
	return figure;
}

unsigned disturbance_seen(const struct process_record *record)
{
	unsigned seen = 0;

	for (size_t i = 0; i < disturbance_cause_count; i++)
		if (disturbance_figure(record, &disturbance_causes[i]) >
		    disturbance_causes[i].limit)
			seen |= 1U << i;
	return seen;
}

bool disturbance_by_others(unsigned seen)
{
	for (size_t i = 0; i < disturbance_cause_count; i++)
		if (seen >> i & 1 && disturbance_causes[i].others)
			return true;
	return false;
}

double disturbance_taken(const struct process_record *record)
{
	return isnan(record->foreign_share) && isnan(record->steal_share)
		       ? NAN
		       : fmax(record->foreign_share, 0) + fmax(record->steal_share, 0);
}

void disturbance_words(unsigned seen, char *out, size_t out_bytes)
{
	const char *last = "";
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < disturbance_cause_count; i++) {
		const char *word = disturbance_causes[i].word;
		if (!(seen >> i & 1) || !strcmp(word, last) || used >= out_bytes)
			continue;
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", *last ? "+" : "",
					 word);
		last = word;
	}
}
