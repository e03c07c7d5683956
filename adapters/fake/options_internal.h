/* Private to the fake adapter: the table of its options ("fake+crash-at=build"). */
#ifndef PRONY_ADAPTERS_FAKE_OPTIONS_INTERNAL_H
#define PRONY_ADAPTERS_FAKE_OPTIONS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Where a fault happens: the verbs of the protocol; a fault in a step happens in "step" (or "run").
 */
enum fake_place {
	AT_HELLO,
	AT_SUPPORTS,
	AT_OPEN,
	AT_BUILD,
	AT_FEED,
	AT_STEP,
	AT_READ,
	AT_CLOSE,
	PLACE_COUNT
};

/* Returns the place; PLACE_COUNT if unknown. */
enum fake_place fake_place_parse(const char *word);

/* Faults that happen at a place. */
enum fake_fault {
	FAULT_CRASH,
	FAULT_EXIT,
	FAULT_HANG,
	FAULT_GRANDCHILD,
	FAULT_OOM,
	FAULT_OOM_REPLY,
	FAULT_FAIL,
	FAULT_GARBAGE_STDOUT,
	FAULT_GARBAGE_REPLY,
	FAULT_LONG_LINE,
	FAULT_HALF_REPLY,
	FAULT_WRONG_ID,
	FAULT_COUNT
};

/* Numbers of choices; 0 = not requested. */
enum { WRONG_PRECISION_BF16 = 1, WRONG_PRECISION_FP16, WRONG_PRECISION_TF32, WRONG_PRECISION_FP32 };
enum { NAN_LOSS_FIRST = 1, NAN_LOSS_LAST };
enum { EACH_MAXIMUM_SAID = 1, EACH_MAXIMUM_UNSAID, EACH_MAXIMUM_CLAIMED };
enum { REDUCE_NONE = 1, REDUCE_SUM, REDUCE_SOME, REDUCE_OTHER };
enum { IMPOSSIBLE_TIME_LONG = 1, IMPOSSIBLE_TIME_BEFORE };

/* All members 0 (and lr_scale 1) is a correct executor. */
struct fake_options {
	unsigned faults;	      /* bit set of enum fake_fault */
	unsigned places[FAULT_COUNT]; /* bit sets of enum fake_place; 0 = the fault's own default */
	int64_t exit_code, oom_mib, after, delay_ns, step_ns, cold_ns;
	int64_t gate_only, timed_only;
	int64_t missing, unsupported;
	int64_t wrong_precision, wrong_threads; /* precision: number of the choice */
	int64_t wrong_logits, nan_loss, impossible_time, backwards_time;
	int64_t no_momentum, no_bias_gradient, tf32, frozen_layer, swapped_channels, clips_each;
	int64_t each_maximum; /* number of the choice */
	int64_t reduce;	      /* number of the choice */
	int64_t only_rank;    /* -1: all */
	double lr_scale;
};

#define FAKE_OPTIONS_INIT                                                                          \
	{                                                                                          \
		.lr_scale = 1, .only_rank = -1                                                     \
	}

/* Adds the options of `text` (separated by "," or "+"; may be "") to *options, which is unchanged
 * after an error. PRONY_UNSUPPORTED names the option, the nearest known one and its argument. */
enum prony_status fake_options_parse(const char *text, struct fake_options *options,
				     struct error *err);

/* Returns true if the fault was requested at the place. */
bool fake_options_strike(const struct fake_options *options, enum fake_fault fault,
			 enum fake_place place);

#endif
