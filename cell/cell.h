/* A cell: one combination of the axes, its name and its outcome. */
#ifndef PRONY_CELL_CELL_H
#define PRONY_CELL_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/axes.h"
#include "cell/device.h"

/* Long enough for the longest words. */
#define CELL_KEY_BYTES 640
#define CELL_HASH_BYTES 17 /* 16 hexadecimal digits and the terminator */

/* docs/semantics.md, "Statuses". */
#define CELL_STATUSES(X)                                                                           \
	X(PENDING, "pending") /* never shown for a finished run */                                 \
	X(OK, "ok")                                                                                \
	X(UNSUPPORTED, "unsupported")                                                              \
	X(MISSING, "missing")                                                                      \
	X(MISMATCH, "mismatch")                                                                    \
	X(OUT_OF_MEMORY, "out-of-memory")                                                          \
	X(TIMEOUT, "timeout")                                                                      \
	X(CRASHED, "crashed")                                                                      \
	X(INVALID, "invalid")                                                                      \
	X(UNPROVEN, "unproven")

enum cell_status {
#define X(id, name) CELL_##id,
	CELL_STATUSES(X)
#undef X
		CELL_STATUS_COUNT
};

/* Flags that an ok cell may carry. */
#define CELL_FLAGS(X)                                                                              \
	X(NOT_STEADY, "not-steady", 0)                                                             \
	X(NOT_CONVERGED, "not-converged", 1)                                                       \
	X(SCREENING, "screening", 2)                                                               \
	X(FEW_STEPS, "few-steps", 3)                                                               \
	X(DISCOVERED, "discovered", 4)                                                             \
	/* Other programs used the machine. */                                                     \
	X(DISTURBED, "disturbed", 5)                                                               \
	X(GATE_ONLY, "gate-only", 6)                                                               \
	/* The only proof: the engines agree with each other. */                                   \
	X(AGREEMENT, "agreement", 7)                                                               \
	/* Input native: the worker's own script loads the data. */                                \
	X(FED_BY_SCRIPT, "fed-by-script", 8)                                                       \
	/*                                                                                         \
	 * Proven on random pixels only:                                                           \
	 * its max-pools treat equal maxima differently.                                           \
	 */                                                                                        \
	X(EQUAL_MAXIMA, "equal-maxima", 9)                                                         \
	/* The gate's tolerance was as large as the signal itself. */                              \
	X(COARSE_GATE, "coarse-gate", 10)                                                          \
	/* The process was idle for seconds beside its steps. */                                   \
	X(WAITS, "waits", 11)                                                                      \
	/* A trained file by PyTorch's exporter, which may have dropped BatchNorm. */              \
	X(NO_NORMALISATION, "no-normalisation", 12)

enum cell_flag {
#define X(id, name, bit) CELL_FLAG_##id = 1 << (bit),
	CELL_FLAGS(X)
#undef X
};

struct cell {
	/* The parts of `framework`, which is canonical (options sorted); options: "nhwc,xla" */
	char name[CELL_WORD_BYTES], environment[CELL_WORD_BYTES], backend[CELL_WORD_BYTES];
	char options[CELL_WORD_BYTES];
	CELL_AXES(AXIS_MEMBER)
};

/* A missing framework's reason has this text and the framework's spelling; the size and a comma may
 * follow. Reasons are stored and found by this text, so it must never change. */
#define CELL_INSTALL "prony framework install "
/* Whether the reason of a missing cell is that its framework is not installed, rather than a
 * missing device, data set or component. */
bool cell_not_installed(const struct cell *cell, const char *reason);

/* Exports a PyTorch model that is to be trained. Without dynamo=False, PyTorch 2.15 merges
 * BatchNorm into the convolutions, whatever `training` is; in the mode eval() Dropout is lost, too.
 */
#define CELL_PYTORCH_EXPORT                                                                        \
	"model.train(); torch.onnx.export(model, x, \"model.onnx\", dynamo=False, "                \
	"training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)"

/* Every axis at its default; no framework, no data set. */
void cell_defaults(struct cell *cell);

const char *cell_status_name(enum cell_status status);
bool cell_status_parse(const char *word, enum cell_status *out);
/* Room for all flags and a terminator. */
#define CELL_FLAGS_BYTES 192
/* "screening,discovered"; "" for none. */
void cell_flags_text(unsigned flags, char *out, size_t out_bytes);
unsigned cell_flags_parse(const char *text);

/* The cell status for a function's outcome: PRONY_PROTOCOL -> crashed (a worker broke the
 * protocol), PRONY_INTERNAL -> invalid, ... */
enum cell_status cell_status_from(enum prony_status status);

/* Splits and checks a framework spelling: name, environment, backend, options. Writes the canonical
 * spelling. PRONY_USAGE explains the grammar. Does not check whether the framework exists. */
enum prony_status cell_parse_framework(const char *spelling, struct cell *cell, struct error *err);

/* Canonical key, "framework=native network=lenet dataset=... ... dropout=on" and then what is not
 * at its default of the rows that came later (cell/axes.h); and its hash. */
void cell_key(const struct cell *cell, char key[CELL_KEY_BYTES]);
void cell_hash(const struct cell *cell, char hash[CELL_HASH_BYTES]);

#endif
