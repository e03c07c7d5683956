#include "worker/loop.h"

#include "base/clock.h"

int64_t loop_records(const struct loop_plan *plan)
{
	return plan->steps / plan->every + (plan->steps % plan->every != 0);
}

static enum prony_status make_step(const struct loop_plan *plan, const struct adapter *adapter,
				   struct session *session, int slot, struct error *err)
{
	if (plan->ring)
		return ring_step(plan->ring, adapter, session, slot, err);
	return plan->own ? own_loader_step(plan->own, adapter, session, slot, err)
			 : adapter->step(session, slot, err);
}

enum prony_status loop_run(const struct adapter *adapter, struct session *session,
			   const struct loop_plan *plan, struct step_record *records,
			   struct error *err)
{
	int64_t left = plan->steps, until_sync = plan->every;
	int slot = plan->slot;
	enum prony_status status = adapter->sync(session, err);

	if (status != PRONY_OK)
		return status;
	int64_t begin_ns = clock_monotonic_ns();
	while (left > 0) {
		status = make_step(plan, adapter, session, slot, err);
		if (status != PRONY_OK)
			return status;
		slot = slot + 1 < plan->slots ? slot + 1 : 0;
		if (--left > 0 && --until_sync > 0)
			continue;
		status = adapter->sync(session, err);
		if (status != PRONY_OK)
			return status;
		int64_t end_ns = clock_monotonic_ns();
		*records++ = (struct step_record){.begin_ns = begin_ns, .end_ns = end_ns};
		begin_ns = end_ns;
		until_sync = plan->every;
	}
	return PRONY_OK;
}
