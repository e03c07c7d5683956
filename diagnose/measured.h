/* Stored measurements of this machine, valid until they are repeated. */
#ifndef PRONY_DIAGNOSE_MEASURED_H
#define PRONY_DIAGNOSE_MEASURED_H

#include <jansson.h>

#include "base/error.h"

/* Stores one part ("ceilings", "noise"; borrowed) for the machine of a record in
 * DATA/machines/KEY.json, with the time and the surroundings (store/machine_figures.h). KEY is a
 * digest of must_match. */
enum prony_status measured_keep(const json_t *record, const char *part, json_t *value,
				struct error *err);

/* Copies the stored parts of the record's machine into the record, as informational.measured. Does
 * nothing when there are none or they cannot be read. store/machine_figures.h reads them there. */
void measured_add(json_t *record);

/* A part in the record; NULL when it was never measured. Borrowed. */
const json_t *measured_part(const json_t *record, const char *part);

#endif
