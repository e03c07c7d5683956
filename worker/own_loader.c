#include "worker/own_loader.h"

#include "base/clock.h"

void own_loader_begin(struct own_loader *own)
{
	own->wait_ns = own->copy_ns = 0;
}

enum prony_status own_loader_step(struct own_loader *own, const struct adapter *adapter,
				  struct session *session, int slot, struct error *err)
{
	int64_t begin_ns = clock_monotonic_ns();
	enum prony_status status = adapter->loader->next(session, err);
	int64_t taken_ns = clock_monotonic_ns();

	own->wait_ns += taken_ns - begin_ns;
	if (status != PRONY_OK || own->only_load)
		return status;
	status = adapter->loader->take(session, slot, err);
	own->copy_ns += clock_monotonic_ns() - taken_ns;
	return status == PRONY_OK ? adapter->step(session, slot, err) : status;
}
