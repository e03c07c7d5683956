/* The work of a cell: graph, weights, batches, bundles, and the results that the reference expects.
 * Cells that differ only in their framework share one work, so that it is computed once and is the
 * same, bit for bit. */
#ifndef PRONY_RUN_WORKLOAD_H
#define PRONY_RUN_WORKLOAD_H

#include "parity/answers.h"
#include "run/workload_key.h"

struct workload {
	char key[CELL_KEY_BYTES]; /* the cell's key without its framework */
	int64_t reference_bytes;  /* most memory for the reference; half of the machine's memory by
				     default */
	const struct cache *answers; /* the reference's answers of earlier runs; may be NULL */
	struct arena arena;
	/*
	 * For the timed process. The weights of a model file are the network's own (zoo/source.h).
	 */
	struct graph graph;
	struct tensor_set weights, inputs, labels;
	/* Ranks that share each batch, of which bundles hold the parts; graphs, batches and
	 * recipes here are of the whole batch. */
	int ranks;
	/* A model file that is run unchanged (model_work.h) has no graph, weights, labels, loss or
	 * gate. Its engines are compared with the outputs of one of them for slot 0. */
	bool is_model;
	struct model_file model;
	struct tensor_set outputs; /* empty if no cell was gated in this run */
	struct tensor_set changes; /* of a quantised file's outputs (parity/agreement.h) */
	bool has_loss_expectation;
	double loss_mean, loss_deviation;
	double loss_global; /* of ranks that normalise by the statistics of the whole batch; NAN */
	char loss_key[DIGEST_HEX_BYTES]; /* "" before it was looked for among the answers */
	/* The gate's case. Until the learning rate is settled, it is the highest one... */
	bool has_gate_case;
	char gate_key[DIGEST_HEX_BYTES]; /* hash of all that the reference's answers depend on */
	struct recipe gate_recipe;
	struct network gate_network;
	uint64_t gate_seed; /* of its batches and caches */
	struct graph gate_graph;
	struct tensor_set gate_weights, gate_inputs, gate_labels;
	/* Decode: the logits of each step by the reference's forward pass of the whole prefix. */
	struct tensor prefix_logits[GATE_UPDATES];
	/* ... and the reference's answers. */
	struct gate_reference gate;
	bool has_gate;
	/* The answers of ranks that normalise by the statistics of the whole batch; without any
	 * where there is no such normalisation, or one rank. */
	struct gate_reference gate_global;
	char *files; /* folder of the files that its bundles share; NULL: each bundle has its own */
};

/* Builds graph, weights and the timed batches (not yet the expectations). */
enum prony_status workload_init(struct workload *work, const struct plan_cell *cell, uint64_t seed,
				struct error *err);
void workload_release(struct workload *work);

/* Makes its bundles share one file of weights and one of batches, in `folder`, which is emptied
 * first. workload_drop_files and workload_release remove them; bundles that are kept stay complete.
 */
enum prony_status workload_share_files(struct workload *work, const char *folder,
				       struct error *err);
void workload_drop_files(struct workload *work);

/* Fills in the request for the batches of a cell, from number 0 on. */
void workload_request(const struct plan_cell *cell, int64_t batch, uint64_t seed,
		      struct batch_request *out);

/* Makes the gate's case and its key; computes no answers. */
enum prony_status workload_need_gate_case(struct workload *work, const struct plan_cell *cell,
					  uint64_t seed, struct error *err);
/* Computes the reference's answers if they are missing. `control` may be NULL; its expected cost is
 * set here. If there is no memory for the loss, its mean is NAN and its deviation infinite. */
enum prony_status workload_need_gate(struct workload *work, const struct plan_cell *cell,
				     uint64_t seed, struct reference_control *control,
				     struct error *err);
/* Frees the gate's answers, which are as large as the parameters. */
void workload_drop_gate(struct workload *work);
enum prony_status workload_need_loss(struct workload *work, const struct plan_cell *cell,
				     struct reference_control *control, struct error *err);

/* Writes the bundle of the gate or of the timed process into a new folder. */
enum prony_status workload_write_bundle(const struct workload *work, const struct plan_cell *cell,
					bool gate, const char *folder, struct error *err);

#endif
