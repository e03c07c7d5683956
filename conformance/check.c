#include "conformance/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "conformance/check_internal.h"

static enum prony_status check_all(struct checker *checker, struct error *err)
{
	enum prony_status status = check_work(checker, "shared memory", CHECK_SLOTS, true, err);
	if (status == PRONY_OK && !checker->stopped)
		status = check_work(checker, "files", CHECK_SLOTS_FILES, false, err);
	if (status == PRONY_OK && !checker->stopped)
		status = check_hostile(checker, err);
	if (status == PRONY_OK && !checker->stopped && checker->spec->level == CHECK_NUMERIC)
		status = check_numeric(checker, err);
	return status;
}

enum prony_status worker_check(const struct check_spec *spec, const struct check_sink *sink,
			       struct error *err)
{
	const struct network *const usual[] = {zoo_find("mlp", NULL), zoo_find("lenet", NULL)};
	struct checker checker = {.spec = spec,
				  .sink = sink,
				  .networks = spec->network_count ? spec->networks : usual,
				  .network_count = spec->network_count ? spec->network_count : 2,
				  .precision = PRECISION_FP32};
	snprintf(checker.device, sizeof checker.device, "%s", spec->device ? spec->device : "cpu");
	enum prony_status status = PRONY_OK;
	if (spec->keep)
		checker.folder = memory_strdup(spec->keep);
	else
		status = directory_make_temporary("prony-check-", &checker.folder, err);
	if (status == PRONY_OK)
		status = check_all(&checker, err);
	if (checker.folder && !spec->keep)
		directory_remove(checker.folder, NULL);
	free(checker.folder);
	if (status == PRONY_OK && checker.failures)
		status = error_set(err, PRONY_MISMATCH, "%d of %d checks failed%s",
				   checker.failures, checker.checks,
				   checker.stopped ? "; later checks were not run" : "");
	return status;
}
