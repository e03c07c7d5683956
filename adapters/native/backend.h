/*
 * The interface between native and a kind of device, as one table. Planning (lower/, program.c)
 * decides order, fusion, lifetimes and memory and knows no library; a backend appends commands for
 * its library and runs them. cpu/cpu.c is the first backend.
 *
 * The host need not be able to read a device's memory: data pass only through copy_in, copy_out and
 * feed, run may return early, and sync waits. In run the backend reads the data that change from
 * step to step (program.step for dropout, the batch) before its first command.
 */
#ifndef PRONY_ADAPTERS_NATIVE_BACKEND_H
#define PRONY_ADAPTERS_NATIVE_BACKEND_H

#include "adapters/adapter.h"
#include "adapters/native/lower/lowering.h"
#include "base/strbuf.h"

/* A rectangle of an array, for strided copies: the offset of its first element, and the distance of
 * neighbours in each dimension. In elements. */
struct box {
	int64_t start, strides[TENSOR_MAX_RANK];
};

struct backend {
	const char *device;  /* the kind in device words: "cpu", "cuda" of "cuda:0" */
	size_t device_bytes; /* of struct device, zeroed before probe */

	/* Like the members of struct adapter with these names; `word` is the device asked for.
	 * close is also called after a failed open, not after a failed probe. */
	enum prony_status (*probe)(struct device *device, const char *library, const char *word,
				   struct probe *found, struct error *err);
	enum prony_status (*open)(struct device *device, const struct recipe *recipe,
				  struct effective *effective, struct error *err);
	void (*close)(struct device *device);
	/* Whether it computes the operator itself; lower/ handles those that only move or rename
	 * data. */
	bool (*knows)(enum op op);
	/* Adds the reasons why it cannot run a recipe, or a node whose operator it knows. */
	void (*supports)(const struct recipe *recipe, struct strbuf *reasons);
	void (*supports_node)(const struct graph *graph, const struct node *node,
			      struct strbuf *reasons);

	/*
	 * Planning. begin is called before the first node, to decide how many threads commands use.
	 */
	void (*begin)(struct lowering *l);
	/* Appends the commands of node n. */
	enum prony_status (*lower)(struct lowering *l, int n, struct error *err);
	/* Optional: appends the command of an attention, forward or of its gradients. Without it
	 * the nodes are lowered one by one. takes_attention, optional: false, and the reason, if
	 * the backend has no command for this one; it may set attention->detail. */
	bool (*takes_attention)(struct lowering *l, struct fused_attention *attention,
				const char **why);
	enum prony_status (*attention)(struct lowering *l, struct fused_attention *attention,
				       bool gradient, struct error *err);
	/* Whether a convolution or matrix product can also compute that function of its result. */
	bool (*fuses)(const struct node *node);
	/* Appends a copy into another layout or type with the same dimensions. */
	enum prony_status (*copy)(struct lowering *l, int from, int to, const char *name,
				  const char *what, struct error *err);
	/* Appends a copy of dims elements between two unblocked operands. */
	void (*copy_box)(struct lowering *l, const char *name, int rank, const int64_t *dims,
			 int from, const struct box *source, int to, const struct box *target);
	/* Appends a command that sets every element, padding included. */
	void (*fill)(struct lowering *l, const char *name, int operand, double value);
	/* Appends the update of all parameters. updates_copies: it also writes those of
	 * REGION_COPY. */
	void (*update)(struct lowering *l);
	bool updates_copies;
	/* Called after the last node: fills l->types with the precision of each product.
	 * PRONY_UNSUPPORTED if the recipe asks for bf16 and no product uses it. */
	enum prony_status (*check_types)(struct lowering *l, struct error *err);
	/* Releases the backend's data of nodes. */
	void (*release_node)(const struct lowering *l, struct node_state *state);

	/*
	 * Operations on layouts with a blob. Results borrow their blob from the device until close.
	 */
	bool (*same_layout)(const struct device *device, const struct layout *a,
			    const struct layout *b);
	/* Makes a layout with the same blocks as `like`; false if that is impossible. */
	bool (*same_blocks)(struct device *device, const struct layout *like, enum dtype type,
			    int rank, const int64_t *dims, struct layout *out);
	/* Makes a view of `dims` elements from `start` on; false if there is no such view. */
	bool (*view)(struct device *device, const struct layout *whole, const int64_t *start,
		     const int64_t *dims, struct layout *out);
	bool (*permute)(struct device *device, const struct layout *layout, const int *order,
			struct layout *out);

	/* Memory. describe fills an operand's description, bind its memory; forget frees both. */
	enum prony_status (*describe)(struct device *device, struct operand *operand,
				      struct error *err);
	enum prony_status (*bind)(struct device *device, struct operand *operand,
				  struct error *err);
	void (*forget)(struct device *device, struct operand *operand);
	/* Zeroed memory of the device; NULL when there is none left. */
	void *(*allocate)(struct device *device, size_t bytes);
	void (*free)(struct device *device, void *memory);
	/* Copies between an operand and a host array in a layout without a blob, and between
	 * operands. Called outside steps; finished on return. */
	enum prony_status (*copy_in)(struct program *program, int operand,
				     const struct layout *layout, const void *from,
				     struct error *err);
	enum prony_status (*copy_out)(struct program *program, int operand,
				      const struct layout *layout, void *to, struct error *err);
	enum prony_status (*convert)(struct program *program, int from, int to, struct error *err);
	/* Prepares an array of a batch. *address is the address that commands read, `data` itself
	 * or memory of the device; it stays the same for a slot from its first call on. */
	enum prony_status (*feed)(struct program *program, int slot, int input, void *data,
				  size_t bytes, void **address, struct error *err);

	/* Execution. finish is called after bind, before the first step. */
	enum prony_status (*finish)(struct program *program, struct error *err);
	enum prony_status (*run)(struct program *program, int slot, struct error *err);
	/* Runs command `i` alone, on the data of the last step; finished on return. */
	enum prony_status (*run_one)(struct program *program, int i, struct error *err);
	enum prony_status (*sync)(struct device *device, struct error *err);
	/* Optional, together; the same as in struct adapter_profile. NULL: each command is timed by
	 * the host, through run_one. */
	enum prony_status (*profile_begin)(struct program *program, int64_t steps,
					   int64_t (*now_ns)(void), struct error *err);
	enum prony_status (*profile_end)(struct program *program, const struct graph *graph,
					 const int64_t *instants, int64_t steps,
					 struct profile_log *log, struct error *err);
	/* Frees the backend's data of commands. */
	void (*release_commands)(struct program *program);
};

extern const struct backend backend_cpu, backend_cuda;

/* All backends, the processor's first; NULL-terminated. */
extern const struct backend *const native_backends[];

#endif
