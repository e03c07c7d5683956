/*
 * What native asks of a kind of device, as one table. Planning (lower/, program.c) decides order,
 * fusion, lifetimes and memory and knows no library; a backend appends commands in the words of its
 * library, and runs them. cpu/cpu.c is the first.
 *
 * Nothing here requires that the host can read a device's memory: copy_in, copy_out and feed are
 * the only ways in and out, run may return early, and sync waits. What changes from step to step
 * (program.step for dropout, the batch) is read by the backend in run, before its first command.
 */
#ifndef PRONY_ADAPTERS_NATIVE_BACKEND_H
#define PRONY_ADAPTERS_NATIVE_BACKEND_H

#include "adapters/adapter.h"
#include "adapters/native/lower/lowering.h"
#include "base/strbuf.h"

/* A rectangle of an array, for copies that step over elements: where its first element is, and the
 * distance of neighbours in each dimension. In elements. */
struct box {
	int64_t start, strides[TENSOR_MAX_RANK];
};

struct backend {
	const char *device;  /* the word of recipes: "cpu" */
	size_t device_bytes; /* of struct device, zeroed before probe */

	/* As the members of struct adapter with these names. close follows a failed probe, too. */
	enum prony_status (*probe)(struct device *device, const char *library, struct probe *found,
				   struct error *err);
	enum prony_status (*open)(struct device *device, const struct recipe *recipe,
				  struct effective *effective, struct error *err);
	void (*close)(struct device *device);
	/* Whether it computes the operator itself; lower/ has those that only move or rename. */
	bool (*knows)(enum op op);
	/* Adds the reasons why it cannot run a recipe, or a node whose operator it knows. */
	void (*supports)(const struct recipe *recipe, struct strbuf *reasons);
	void (*supports_node)(const struct graph *graph, const struct node *node,
			      struct strbuf *reasons);

	/* Planning. begin: before the first node, to settle how many threads commands use. */
	void (*begin)(struct lowering *l);
	/* Appends the commands of node n. */
	enum prony_status (*lower)(struct lowering *l, int n, struct error *err);
	/* Whether a convolution or matrix product can compute that function of its result. */
	bool (*fuses)(const struct node *node);
	/* Appends a copy into another layout or type of the same dimensions. */
	enum prony_status (*copy)(struct lowering *l, int from, int to, const char *name,
				  const char *what, struct error *err);
	/* Appends a copy of dims elements between two operands without blocks. */
	void (*copy_box)(struct lowering *l, const char *name, int rank, const int64_t *dims,
			 int from, const struct box *source, int to, const struct box *target);
	/* Appends a command that sets every element, padding included. */
	void (*fill)(struct lowering *l, const char *name, int operand, double value);
	/* Appends the update of all parameters. */
	void (*update)(struct lowering *l);
	/* After the last node: fills l->types, what is computed in which precision.
	 * PRONY_UNSUPPORTED where bf16 was asked for and no product is. */
	enum prony_status (*check_types)(struct lowering *l, struct error *err);
	/* Releases what nodes own of the backend's. */
	void (*release_node)(const struct lowering *l, struct node_state *state);

	/* Layouts with a blob; results borrow their blob from the device, until close. */
	bool (*same_layout)(const struct device *device, const struct layout *a,
			    const struct layout *b);
	/* Blocked in the same way as `like`; false where that cannot be. */
	bool (*same_blocks)(struct device *device, const struct layout *like, enum dtype type,
			    int rank, const int64_t *dims, struct layout *out);
	/* `dims` elements from `start` on; false where there is no such view. */
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
	/* Zeroed memory of the device, NULL where there is none left. */
	void *(*allocate)(struct device *device, size_t bytes);
	void (*free)(struct device *device, void *memory);
	/* Copies between an operand and an array of the host in a layout without a blob, and from
	 * operand to operand; outside steps, finished on return. */
	enum prony_status (*copy_in)(struct program *program, int operand,
				     const struct layout *layout, const void *from,
				     struct error *err);
	enum prony_status (*copy_out)(struct program *program, int operand,
				      const struct layout *layout, void *to, struct error *err);
	enum prony_status (*convert)(struct program *program, int from, int to, struct error *err);
	/* Makes an array of a batch ready: *address is where commands find it, `data` itself or
	 * memory of the device, the same for a slot from its first call on. */
	enum prony_status (*feed)(struct program *program, int slot, int input, void *data,
				  size_t bytes, void **address, struct error *err);

	/* Execution. finish: after bind, before the first step. */
	enum prony_status (*finish)(struct program *program, struct error *err);
	enum prony_status (*run)(struct program *program, int slot, struct error *err);
	/* Command `i` alone, on what the last step has left; finished on return. */
	enum prony_status (*run_one)(struct program *program, int i, struct error *err);
	enum prony_status (*sync)(struct device *device, struct error *err);
	/* Frees what commands own of the backend's. */
	void (*release_commands)(struct program *program);
};

/* All backends; NULL-terminated. */
extern const struct backend *const native_backends[];

#endif
