/* What was measured of this machine once and holds until it is measured again. */
#ifndef PRONY_DIAGNOSE_MEASURED_H
#define PRONY_DIAGNOSE_MEASURED_H

#include <jansson.h>

#include "base/error.h"

/*
 * Keeps one part ("ceilings", "noise"; borrowed) for the machine that a record is of, in
 * DATA/machines/KEY.json beside the others, with the time and the surroundings
 * (store/machine_figures.h); KEY is a digest of must_match.
 */
enum prony_status measured_keep(const json_t *record, const char *part, json_t *value,
				struct error *err);

/* Puts what is kept for its machine into the record, as informational.measured; nothing where
 * nothing is kept, or cannot be read. store/machine_figures.h reads it there. */
void measured_add(json_t *record);

/* A part that stands there; NULL where it was never measured. Borrowed from the record. */
const json_t *measured_part(const json_t *record, const char *part);

#endif
