/* A run in the form of the benchmark that its suite repeats. */
#ifndef PRONY_CLI_FORM_H
#define PRONY_CLI_FORM_H

#include "report/form.h"

/* form_write with the layers of the zoo's networks, for a run that has its intervals and series. */
void form_text(const struct stored_run *run, enum form form, struct strbuf *out);

#endif
