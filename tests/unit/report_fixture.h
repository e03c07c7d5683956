/* Stored runs with invented data for tests of reports: the same bytes every time. */
#ifndef PRONY_TESTS_REPORT_FIXTURE_H
#define PRONY_TESTS_REPORT_FIXTURE_H

#include "store/store.h"

/* Makes two comparisons (lenet train and forward) of five frameworks, with every outcome: ok, ok
 * but equal to another, unsupported, a mismatch, crashed after one good process, missing. Reasons
 * and logs contain what hostile frameworks would print. `machine` 0 or 1: two machines, the second
 * 1.5 times as fast. stored_run_release releases the run. */
void report_fixture_init(struct stored_run *run, int machine);

#define FIXTURE_EVIL "</script><script>alert(1)</script> \"x\", 'y' | `z` \033[31mred\033[0m \xff"

#endif
