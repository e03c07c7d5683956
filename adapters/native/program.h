/* The program of a step: a flat list of commands over operands whose memory is planned before the
 * first step. It handles bytes, lifetimes and order; the backend handles the execution of a
 * command. */
#ifndef PRONY_ADAPTERS_NATIVE_PROGRAM_H
#define PRONY_ADAPTERS_NATIVE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "adapters/native/layout.h"
#include "base/arena.h"
#include "base/error.h"

enum region {
	REGION_PLANNED,	  /* shared: reused when the contents are no longer needed */
	REGION_KEPT,	  /* like REGION_PLANNED, but readable after the step */
	REGION_PARAMETER, /* contiguous, same offsets in the next region */
	REGION_GRADIENT,
	REGION_STATE,	/* the optimiser's values, same offsets */
	REGION_COPY,	/* copies of parameters in 16 bits, at half the offsets */
	REGION_LASTING, /* kept between steps: running statistics, constants, copies of weights */
	REGION_INPUT,	/* an array of the batch that the step reads */
	REGION_ALIAS	/* the memory of operand `alias` in another layout */
};

struct operand {
	struct layout layout; /* rank 0: plain bytes */
	void *description;    /* of the layout, and an object for the memory: the backend's, */
	void *memory;	      /* and NULL if it has none */
	size_t bytes, offset;
	enum region region;
	int input;	 /* for REGION_INPUT: index of the array in the batch */
	int alias;	 /* operand, or -1 */
	size_t shift;	 /* bytes from the start of the viewed operand, for an alias */
	int first, last; /* commands between which the contents must be kept; -1 = unused */
	void *data;	 /* address, which possibly only the backend can read */
};

#define OPERAND_NONE (-1)

struct backend;
struct device;
struct mpi;
struct work;

struct command {
	char name[56]; /* "conv1 forward" */
	int *operands, operand_count;
	int node;	   /* node that it computes, or -1 */
	struct work *work; /* the backend's data for execution, in the program's arena */
};

/* Instants before and after each command, for as many steps as there is room. */
struct program_timer {
	int64_t (*now_ns)(void);
	int64_t *instants; /* owned */
	size_t used, room;
};
void program_timer_free(struct program_timer *timer);

struct program {
	const struct backend *backend;
	struct device *device;
	struct arena arena; /* for bookkeeping */

	struct operand *operands;
	int operand_count, operand_capacity;
	struct command *commands;
	int command_count, command_capacity;
	int update; /* first of the last commands, which update the parameters, or -1 */

	int *inputs, input_count; /* operands in the memory of the batch */
	void **fed; /* [slot][array of the batch]: addresses that commands read, or NULL */
	int slots, arrays;

	const struct mpi
		*mpi; /* sums the gradients over ranks; borrowed; NULL: there is one rank */
	int threads;  /* threads of the host that commands may use */
	struct program_timer *timer; /* owned; NULL unless steps are profiled */

	unsigned char *planned, *parameters, *gradients, *lasting;
	unsigned char *state;  /* the optimiser's values */
	unsigned char *copies; /* NULL: none */
	size_t planned_bytes, parameter_bytes, lasting_bytes;
	size_t unshared_bytes; /* size of the planned region without reuse */

	uint64_t step, seed; /* inputs of dropout masks */
};

void program_init(struct program *program, const struct backend *backend, struct device *device);
void program_release(struct program *program);

/* Adds an operand in that layout (copied). */
enum prony_status program_operand(struct program *program, const struct layout *layout,
				  enum region region, int *out, struct error *err);
/* Adds an operand of plain bytes (masks, scratch). */
int program_bytes(struct program *program, size_t bytes);
/* Adds an operand for array `input` of the batch. */
enum prony_status program_input(struct program *program, const struct layout *layout, int input,
				int *out, struct error *err);
/* Adds another view of operand `of`, from byte `shift` on; it must not extend beyond the operand's
 * end. */
enum prony_status program_alias(struct program *program, int of, const struct layout *layout,
				size_t shift, int *out, struct error *err);
/* Where a view begins in the operand that it is a view of, in bytes; 0 for others. */
size_t program_shift(const struct program *program, int operand);
/* Adds a parameter and its gradient, at the same offset of their regions. */
enum prony_status program_pair(struct program *program, const struct layout *layout, int *parameter,
			       int *gradient, struct error *err);

/* Bytes from that parameter to the next in its region. */
size_t program_pair_bytes(const struct program *program, int parameter);

/* Adds the copy of a parameter in 16 bits, with the same strides. */
enum prony_status program_copy(struct program *program, int parameter, const struct layout *layout,
			       int *out, struct error *err);

/* The operand that owns the memory. */
int program_root(const struct program *program, int operand);

/* Keeps the operand readable after the step. */
void program_keep(struct program *program, int operand);

/* Appends a command with room for the operands; `name` and `what` form its name. */
struct command *program_command(struct program *program, const char *name, const char *what,
				int operand_capacity);

/* Plans the memory, allocates it (zeroed), and has the backend prepare the commands. `gradients`:
 * whether the stage has them. `states`: the optimiser's values for each weight (REGION_STATE has
 * them one behind the other). `slots`: number of batches that are fed. */
enum prony_status program_finish(struct program *program, bool gradients, int states, int slots,
				 struct error *err);

/* Passes array `input` of the slot's batch to the backend, which may keep the address. An array
 * that no command reads is skipped. */
enum prony_status program_feed(struct program *program, int slot, int input, void *data,
			       size_t bytes, struct error *err);

/* Issues all commands on the batch of a slot. */
enum prony_status program_run(struct program *program, int slot, struct error *err);

/* Gives every buffer an offset so that buffers alive at the same time do not overlap: greedy by
 * size, first fit (Pisarchyk and Lee 2020, arXiv 2001.03288, section 5.2). Offsets are multiples of
 * 64. Returns the bytes needed in all. */
struct buffer {
	size_t bytes, offset;
	int first, last; /* inclusive */
};
size_t memory_plan(struct buffer *buffers, size_t count, struct arena *arena);

#endif
