/* Prints a run in the format of the benchmark that its suite repeats. */
#ifndef PRONY_CLI_FORM_H
#define PRONY_CLI_FORM_H

#include "report/form.h"

/* form_write with the layers of zoo networks, for a run loaded with intervals and series. */
void form_text(const struct stored_run *run, enum form form, struct strbuf *out);

#endif
