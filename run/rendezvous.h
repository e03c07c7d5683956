/* How the ranks of a team find each other: a folder and free ports on 127.0.0.1. */
#ifndef PRONY_RUN_RENDEZVOUS_H
#define PRONY_RUN_RENDEZVOUS_H

#include "bundle/target.h"

/* Makes an empty folder in `parent` and finds free ports for target->world_size ranks. Another
 * program may take a port before its rank does; then the process fails and is repeated with other
 * ports. */
enum prony_status rendezvous_make(const char *parent, struct target *target, struct error *err);
/* Removes the folder. */
void rendezvous_remove(struct target *target);

#endif
