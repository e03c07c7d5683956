/* What the files of the summary share. */
#ifndef PRONY_REPORT_SUMMARY_INTERNAL_H
#define PRONY_REPORT_SUMMARY_INTERNAL_H

#include "report/summary.h"

/* Marks the rows of frameworks all of whose cells are missing, where there are many of them and
 * others are here. */
void summary_fold(struct summary *summary);

#endif
