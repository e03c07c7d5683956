/* The job of a batch system (Slurm, PBS, LSF) that this process belongs to. */
#ifndef PRONY_DIAGNOSE_JOB_H
#define PRONY_DIAGNOSE_JOB_H

#include <jansson.h>

/* Adds to the record's informational part what the variables of the job say (docs/store.md): node,
 * job, array_task, partition, nodes_allocated, all texts. Adds nothing outside of a job. PBS and
 * LSF do not name the node, so it is the record's host there. `root`: as in machine_record. */
void job_add(json_t *informational, const char *root);

#endif
