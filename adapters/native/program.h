/*
 * What a step executes: a flat list of commands over operands whose memory was planned before. Made
 * once by lower.h; running it allocates nothing.
 */
#ifndef PRONY_ADAPTERS_NATIVE_PROGRAM_H
#define PRONY_ADAPTERS_NATIVE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/loops.h"
#include "adapters/native/cpu/onednn.h"
#include "base/arena.h"
#include "base/error.h"

enum region {
	REGION_PLANNED,	  /* shared: the place is reused once the contents are dead */
	REGION_KEPT,	  /* like REGION_PLANNED, but readable after the step */
	REGION_PARAMETER, /* contiguous, same offsets in the next region */
	REGION_GRADIENT,
	REGION_LASTING, /* kept from step to step: running statistics, constants, copies of weights
			 */
	REGION_INPUT,	/* the caller's batch; the step says which */
	REGION_ALIAS	/* the memory of operand `alias` under another descriptor */
};

struct operand {
	dnnl_memory_desc_t desc; /* owned; NULL for plain bytes */
	dnnl_memory_t memory;	 /* made by program_finish; NULL for plain bytes */
	size_t bytes, offset;
	enum region region;
	int alias;	 /* operand, or -1 */
	size_t shift;	 /* of an alias: bytes from the start of what it is a view of */
	int first, last; /* commands between which the contents must stay; -1 = unused */
	void *data;
};

#define OPERAND_NONE (-1)

struct program;

struct command {
	char name[56];		    /* "conv1 forward" */
	dnnl_primitive_t primitive; /* NULL: kernel */
	void (*kernel)(struct program *program, const struct command *command);
	int *operands, operand_count; /* in the program's arena */
	dnnl_exec_arg_t *args;	      /* of a primitive, in the order of operands */
	int parts;		      /* of a primitive: see program_primitive_parts; else 1 */
	size_t elements;	      /* of a kernel */
	bool bf16;		      /* operand 0 of a kernel, and those of its kind */
	double ratio;		      /* dropout; momentum of a statistic */
	const void *detail;	      /* what else a kernel needs, in the program's arena */
	int node;		      /* that it computes, or -1 */
};

/* Instants before and after each command, of as many steps as there is room for. */
struct program_timer {
	int64_t (*now_ns)(void);
	int64_t *instants; /* owned */
	size_t used, room;
};
void program_timer_free(struct program_timer *timer);

struct program {
	const struct onednn *dnn;
	const struct kernels *kernels;
	struct arena arena; /* bookkeeping */

	struct operand *operands;
	int operand_count, operand_capacity;
	struct command *commands;
	int command_count, command_capacity;

	int *inputs, input_count;    /* operands that are the caller's batch */
	int threads;		     /* see program_use_threads */
	struct program_timer *timer; /* owned; NULL unless steps are profiled */

	unsigned char *planned, *parameters, *gradients, *lasting;
	unsigned char *state; /* of the optimiser */
	size_t planned_bytes, parameter_bytes, lasting_bytes;
	size_t unshared_bytes; /* what the planned region would take without reuse */

	/* What changes from step to step. */
	const int32_t *labels;
	double loss;
	uint64_t step, seed;
	size_t batch, classes;
	struct update_rule rule;
	void (*update)(float *w, float *v, const float *g, const struct update_rule *rule,
		       size_t n);
};

void program_init(struct program *program, const struct onednn *dnn);
void program_release(struct program *program);

/* Adds an operand described by desc (copied). Parameters get a place; see program_pair. */
enum prony_status program_operand(struct program *program, const_dnnl_memory_desc_t desc,
				  enum region region, int *out, struct error *err);
/* An operand of plain bytes (masks, scratch). */
int program_bytes(struct program *program, size_t bytes);
/* Another view of operand `of`, from byte `shift` on; desc must not reach beyond its end. */
enum prony_status program_alias(struct program *program, int of, const_dnnl_memory_desc_t desc,
				size_t shift, int *out, struct error *err);
/* A parameter and its gradient, at the same offset of their regions. */
enum prony_status program_pair(struct program *program, const_dnnl_memory_desc_t desc,
			       int *parameter, int *gradient, struct error *err);

/* The operand whose memory this is. */
int program_root(const struct program *program, int operand);

/* The operand stays readable after the step. */
void program_keep(struct program *program, int operand);

/* Before the first primitive is described: how many threads the program runs on. */
void program_use_threads(struct program *program, int threads);

/* Appends a command with room for the operands; `name` and `what` make its name. */
struct command *program_command(struct program *program, const char *name, const char *what,
				int operand_capacity);
/*
 * Makes the primitive of `pd` and appends it. operands[i] is passed as args[i]; OPERAND_NONE ones
 * are left out. The scratchpad that the primitive wants is planned too.
 */
enum prony_status program_primitive(struct program *program, const char *name, const char *what,
				    const_dnnl_primitive_desc_t pd, const int *args,
				    const int *operands, int count, struct error *err);
/*
 * The same for `parts` independent parts of the work, executed at once by as many threads, one
 * each: part p has operands[p * count + i] as args[i], OPERAND_NONE in all parts or in none. The
 * primitive was described for one thread (onednn_use_threads), on a library whose threads are
 * OpenMP's.
 */
enum prony_status program_primitive_parts(struct program *program, const char *name,
					  const char *what, const_dnnl_primitive_desc_t pd,
					  const int *args, const int *operands, int count,
					  int parts, struct error *err);

/* Plans the memory, allocates it (zeroed) and makes the memory objects. `gradients` and `state` (of
 * the optimiser): whether the stage has any. */
enum prony_status program_finish(struct program *program, bool gradients, bool state,
				 struct error *err);

/* Points the input operands at a batch. */
enum prony_status program_set_input(struct program *program, void *data, struct error *err);

/* Executes all commands; returns when they are finished. */
enum prony_status program_run(struct program *program, struct error *err);

/* Executes command `i` alone, on what the last step has left. */
enum prony_status program_run_one(struct program *program, int i, struct error *err);

/* Copies between an operand and foreign memory of the layout `desc`; makes its own primitive. */
enum prony_status program_load(struct program *program, int operand, const_dnnl_memory_desc_t desc,
			       const void *from, struct error *err);
enum prony_status program_store(struct program *program, int operand, const_dnnl_memory_desc_t desc,
				void *to, struct error *err);

/*
 * Gives every buffer an offset so that buffers alive at the same time do not overlap: greedy by
 * size, first fit (Pisarchyk and Lee 2020, arXiv 2001.03288, section 5.2). Offsets are multiples of
 * 64. Returns the bytes needed in all.
 */
struct buffer {
	size_t bytes, offset;
	int first, last; /* inclusive */
};
size_t memory_plan(struct buffer *buffers, size_t count, struct arena *arena);

#endif
