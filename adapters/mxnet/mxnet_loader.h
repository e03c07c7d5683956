/* MXNet's ImageRecordIter on a RecordIO file (input native). */
#ifndef PRONY_ADAPTERS_MXNET_MXNET_LOADER_H
#define PRONY_ADAPTERS_MXNET_MXNET_LOADER_H

#include "adapters/mxnet/mxnet_model.h"
#include "bundle/loader_data.h"

struct mx_loader {
	const struct mx_api *api;
	struct mx_iterator *iterator; /* NULL: not open */
	size_t elements;	      /* per batch */
	int64_t batch, classes;
};

enum prony_status mx_loader_supports(const struct loader_data *data, const struct graph *graph,
				     const struct recipe *recipe, struct error *why);

/* Creates the iterator, which starts to load. */
enum prony_status mx_loader_open(struct mx_loader *loader, const struct mx_api *api,
				 const struct loader_data *data, const struct graph *graph,
				 const struct recipe *recipe, struct error *err);
enum prony_status mx_loader_next(struct mx_loader *loader, struct error *err);

/* Copies the current batch into a slot's arrays; PRONY_BAD_INPUT if a label is not a class. */
enum prony_status mx_loader_take(struct mx_loader *loader, const struct mx_slot *slot,
				 struct error *err);
void mx_loader_release(struct mx_loader *loader);

#endif
