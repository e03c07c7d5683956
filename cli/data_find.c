/* Finds data sets by name. */
#include "cli/data.h"

const struct dataset *data_find(const char *name, struct error *err)
{
	const struct dataset *dataset = dataset_find(name);

	if (dataset)
		return dataset;
	const char *nearest = dataset_nearest(name);
	error_set(err, PRONY_USAGE, "no data set '%s'%s%s%s; 'prony data list' lists the data sets",
		  name, nearest ? " (did you mean '" : "", nearest ? nearest : "",
		  nearest ? "'?)" : "");
	return NULL;
}
