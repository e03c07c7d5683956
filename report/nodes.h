/* The nodes of a cluster that ran the same cells: which of them is slow (docs/cluster.md). */
#ifndef PRONY_REPORT_NODES_H
#define PRONY_REPORT_NODES_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "stats/estimate.h"
#include "stats/nodes.h"
#include "store/store.h"

#define NODES_THRESHOLD 0.01 /* differences within 1 % are no alarm */

/* A node's last two runs: the one before, and the newest. */
enum { ROUND_BEFORE, ROUND_LAST, NODE_ROUNDS };

/* How long a node is SLOWER: X(id, word) */
#define NODE_LASTS(X)                                                                              \
	X(NOT, "")                                                                                 \
	X(UNKNOWN, "one round")	    /* there is no other round */                                  \
	X(ONCE, "once")		    /* in one round of two */                                      \
	X(PERSISTENT, "persistent") /* in both */

enum node_lasts {
#define X(id, word) LASTS_##id,
	NODE_LASTS(X)
#undef X
};
const char *node_lasts_word(enum node_lasts lasts);

/* A cell on a node in one round. */
struct node_figure {
	const struct stored_cell *cell;	       /* borrowed; NULL: the node did not run it */
	const struct process_record **records; /* of the processes that count */
	struct node_means means;	       /* of the same processes */
	struct estimate step;		       /* ns; n = 0 without a figure */
	struct contrast contrast;	       /* to the median of the other nodes; NaNs without */
	double p_adjusted;
	enum verdict verdict; /* valid if the contrast has a ratio */
};

struct node_row {
	struct node_figure rounds[NODE_ROUNDS];
	enum node_lasts lasts;
	bool broken;	     /* not ok in the newest round, but ok on another node */
	const char *reasons; /* what the sensors know of it, if it is SLOWER; else "" */
};

struct node_cell {
	const struct stored_cell *cell; /* borrowed, of one of the nodes */
	struct node_row *rows;		/* one for each compared node */
};

struct node {
	const char *place;
	const struct stored_run *runs[NODE_ROUNDS]; /* borrowed; NULL: no such run */
	const char *machine;			    /* its must_match as text */
	const char *environment;		    /* record of its newest run */
	bool compared;				    /* it is of the kind that most nodes are */
	enum node_lasts lasts;			    /* the worst of its cells */
};

struct nodes {
	struct arena arena;
	struct node *nodes; /* compared ones first, then the others; by place */
	size_t count, compared;
	struct node_cell *cells;   /* those that at least two compared nodes ran */
	size_t cell_count, rounds; /* rounds: 2 if any node has two */
	double threshold;
	size_t slow, broken; /* nodes that are persistently SLOWER; rows that are broken */
	size_t undecided;    /* nodes that are SLOWER in their only round */
};

/* Marks the last two runs of each node, of those with this canonical spec (NULL: of all). `runs`:
 * newest first. */
void nodes_select(const struct run_extent *runs, size_t count, const char *spec, bool *wanted);

/* `runs`: newest first, borrowed. */
void nodes_init(struct nodes *nodes, const struct stored_run *runs, size_t count, double threshold);
void nodes_release(struct nodes *nodes);

/* Whether the figure was compared with those of the other nodes. */
bool nodes_judged(const struct node_figure *figure);
/* Why there is no figure; "" if there is one. */
const char *nodes_failure(const struct node_figure *figure);
/* Whether the row is SLOWER, FASTER or broken. */
bool nodes_stand_apart(const struct node_row *row);

/* Adds what was compared, and which nodes are slow ("n17 is slow: SLOWER in both rounds"), in lines
 * of at most `width` columns (0: any). */
void nodes_heading(const struct nodes *nodes, int width, struct strbuf *out);
void nodes_conclusions(const struct nodes *nodes, int width, struct strbuf *out);

/* `full`: with the rows of nodes that are not apart from the others. */
void nodes_render(const struct nodes *nodes, bool full, bool colour, int width, struct strbuf *out);
void nodes_markdown(const struct nodes *nodes, bool full, struct strbuf *out);
/* Writes a row for each cell, node and round. */
void nodes_csv(const struct nodes *nodes, struct strbuf *out);
/* Returns the same as JSON (docs/exports.md); new reference. */
json_t *nodes_to_json(const struct nodes *nodes);

#endif
