#include "run/parts_of_ranks.h"

#include "graph/rebatch.h"

/* `each`: tensors of a batch. */
static void split(const struct tensor_set *whole, int each, int ranks, struct arena *arena,
		  struct tensor_set *out)
{
	*out = (struct tensor_set){
		.tensors =
			arena_array(arena, whole->count * (size_t)ranks + 1, sizeof *out->tensors),
		.count = whole->count * (size_t)ranks,
	};
	for (size_t i = 0; i < whole->count; i++)
		for (int rank = 0; rank < ranks; rank++) {
			size_t batch = i / (size_t)each, place = i % (size_t)each;
			struct tensor *part = &out->tensors[(batch * (size_t)ranks + (size_t)rank) *
								    (size_t)each +
							    place];

			*part = whole->tensors[i];
			part->shape.dims[0] /= ranks;
			part->data = (char *)part->data + rank * tensor_bytes(part);
		}
}

void parts_leave_out_alike(struct tensor_set *labels, int ranks)
{
	for (size_t i = 0; i < labels->count; i++) {
		int64_t *label = labels->tensors[i].data;
		int64_t part = shape_elements(&labels->tensors[i].shape) / ranks;

		/* Where only one of two is left out, both become that of rank 0. */
		for (int64_t k = part; k < part * ranks; k++)
			if ((label[k] < 0) != (label[k % part] < 0))
				label[k] = label[k % part];
	}
}

enum prony_status parts_of_ranks(const struct graph *graph, const struct tensor_set *inputs,
				 const struct tensor_set *labels, int ranks,
				 struct parts_of_ranks *out, struct error *err)
{
	int64_t batch = out->recipe.batch / ranks;

	arena_init(&out->arena, 0);
	out->recipe.batch = batch;
	split(inputs, graph_inputs(graph, NULL, 0), ranks, &out->arena, &out->inputs);
	split(labels, graph_labels(graph, NULL, 0), ranks, &out->arena, &out->labels);
	return graph_rebatch(graph, batch, &out->graph, err);
}

void parts_of_ranks_release(struct parts_of_ranks *parts)
{
	arena_release(&parts->arena);
	graph_release(&parts->graph);
}
