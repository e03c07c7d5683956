#include "adapters/adapter.h"

#include <string.h>

#include "adapters/fake/fake.h"
#include "adapters/mxnet/mxnet.h"
#include "adapters/native/native.h"
#include "adapters/null.h"
#include "adapters/onnxruntime/onnxruntime.h"
#include "adapters/openvino/openvino.h"
#include "adapters/tensorflow/tensorflow.h"
#include "adapters/xla/xla.h"

const struct adapter *const adapter_registry[] = {
	&adapter_native,
	&adapter_mxnet,
	&adapter_onnxruntime,
	&adapter_openvino,
	&adapter_xla,
	&adapter_tensorflow,
	&adapter_tensorflow1,
	&adapter_null,
	&adapter_fake, /* for testing the harness */
	NULL,
};

const struct adapter *adapter_find(const char *name)
{
	for (size_t i = 0; name && adapter_registry[i]; i++)
		if (strcmp(adapter_registry[i]->name, name) == 0)
			return adapter_registry[i];
	return NULL;
}

enum prony_status adapter_check(const struct adapter *adapter, struct error *err)
{
	if (!adapter->name || !adapter->name[0] || !adapter->summary)
		return error_set(err, PRONY_INTERNAL, "an adapter has no name or summary");
	if (adapter->abi != ADAPTER_ABI)
		return error_set(err, PRONY_INTERNAL,
				 "adapter %s was written for version %u of the interface; this is "
				 "version %d",
				 adapter->name, (unsigned)adapter->abi, ADAPTER_ABI);
	if (adapter->absent_reason)
		return PRONY_OK;
	const struct {
		const char *name;
		bool present;
	} members[] = {
		{"probe", adapter->probe}, {"supports", adapter->supports},
		{"open", adapter->open},   {"build", adapter->build},
		{"feed", adapter->feed},   {"step", adapter->step},
		{"sync", adapter->sync},   {"read", adapter->read},
		{"close", adapter->close},
	};

	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		if (!members[i].present)
			return error_set(err, PRONY_INTERNAL, "adapter %s has no function %s",
					 adapter->name, members[i].name);
	return PRONY_OK;
}
