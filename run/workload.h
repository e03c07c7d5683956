/*
 * The work of a cell: graph, weights, batches, bundles, and what the reference expects of them.
 * Cells that differ only in their framework share one, so that it is computed once and is bit for
 * bit the same for all.
 */
#ifndef PRONY_RUN_WORKLOAD_H
#define PRONY_RUN_WORKLOAD_H

#include "parity/answers.h"
#include "plan/plan.h"

struct workload {
	char key[CELL_KEY_BYTES]; /* the cell's key without its framework */
	int64_t reference_bytes; /* that the reference may take; half of the machine's unless set */
	const struct cache *answers; /* of the reference, kept between runs; NULL unless set */
	struct arena arena;
	/* Full batch, for the timed process. */
	struct graph graph;
	struct tensor_set weights, inputs, labels;
	/* A user's file as it is, instead of graph, weights, labels, loss and gate (model_work.h):
	 * what its engines have in common is the outputs of one of them, for slot 0. */
	bool is_model;
	struct model_file model;
	struct tensor_set outputs; /* none: nobody was gated in this run */
	bool has_loss_expectation;
	double loss_mean, loss_deviation;
	/* Gate batch: the case (until its rate is settled, the recipe's is the highest)... */
	bool has_gate_case;
	char gate_key[DIGEST_HEX_BYTES]; /* of everything that the reference's answers come from */
	struct recipe gate_recipe;
	struct graph gate_graph;
	struct tensor_set gate_inputs, gate_labels;
	/* ... and what the reference says. */
	struct gate_reference gate;
	bool has_gate;
	char *files; /* folder of what its bundles share; NULL: each has files of its own */
};

/* Builds graph, weights and the timed batches (not yet the expectations). */
enum prony_status workload_init(struct workload *work, const struct plan_cell *cell, uint64_t seed,
				struct error *err);
void workload_release(struct workload *work);

/* From now on its bundles share one file of weights and one of batches, in `folder`, which is made
 * anew. They go with workload_drop_files or the workload; a bundle that is kept stays whole. */
enum prony_status workload_share_files(struct workload *work, const char *folder,
				       struct error *err);
void workload_drop_files(struct workload *work);

/* The batches of a cell, from number 0 on. */
void workload_request(const struct plan_cell *cell, int64_t batch, uint64_t seed,
		      struct batch_request *out);

/* What cells of the same work have in common: the key without framework, loop and when to wait. */
void workload_key(const struct plan_cell *cell, char key[CELL_KEY_BYTES]);

/* What the gate runs, and its key; computes nothing of the network. */
enum prony_status workload_need_gate_case(struct workload *work, const struct plan_cell *cell,
					  uint64_t seed, struct error *err);
/* Computes what is not there yet; cheap when it is. `watch` may be NULL; what is expected of it is
 * set here. A loss that there is no memory for has the mean NAN and an infinite deviation. */
enum prony_status workload_need_gate(struct workload *work, const struct plan_cell *cell,
				     uint64_t seed, struct reference_watch *watch,
				     struct error *err);
/* Gives the memory of the gate's answers back; they are as large as the parameters. */
void workload_drop_gate(struct workload *work);
enum prony_status workload_need_loss(struct workload *work, const struct plan_cell *cell,
				     struct reference_watch *watch, struct error *err);

/* Writes the bundle of the gate or of the timed process into a new folder. */
enum prony_status workload_write_bundle(const struct workload *work, const struct plan_cell *cell,
					bool gate, const char *folder, struct error *err);

#endif
