/* The parent's side of one `prony agent`, from its start to its store (cli/agent.h). */
#ifndef PRONY_CLI_LAUNCH_NODE_H
#define PRONY_CLI_LAUNCH_NODE_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/files.h"
#include "base/process.h"
#include "base/strbuf.h"

enum node_state {
	NODE_UNUSED,  /* its part is here already */
	NODE_STARTED, /* has not said hello */
	NODE_RUNS,
	NODE_ENDED, /* by itself: `code`, and its store if it made one */
	NODE_FAILED /* `error` says why */
};

struct launch_node {
	const char *name;
	int part; /* 0: the whole run */
	enum node_state state;
	struct error error;
	int code;   /* of the run, as a shell has it */
	bool whole; /* its results are here, and its part is finished */

	pid_t pid;
	const char *command;   /* the program that was started */
	int in, out, text;     /* its standard streams; -1: closed */
	int64_t heard_ns;      /* when it started, or its agent last said something */
	struct strbuf head;    /* of a frame, or a line before the first one */
	struct strbuf payload; /* of a frame that is no store */
	char kind[8];	       /* "": between frames */
	int64_t left;	       /* bytes of the frame that are to come */
	struct file_writer *writer;
	char *store; /* the file that it sends */
	bool store_whole;
	struct strbuf line; /* of its text, unfinished */
	char last[200];	    /* the command's last line that is not blank */
	int lines;	    /* printed */
};

/* Starts `argv` for a node and sends it the request, a line. `store`: the path of the file that is
 * to come. A failure becomes the node's. The texts are borrowed, except `store`, which is freed by
 * launch_node_release. */
void launch_node_start(struct launch_node *node, const char *const *argv, const char *request,
		       char *store);

/* Reads what has come on `out` or `text`, where poll(2) found something. *hello: set to a new
 * reference when the node says it; the caller answers with launch_node_say. */
void launch_node_read(struct launch_node *node, bool out, bool text, json_t **hello);

/* Writes a line to the agent. */
void launch_node_say(struct launch_node *node, const char *line);

/* Ends the node as failed. Without effect if it has ended. */
void launch_node_fail(struct launch_node *node, const char *format, ...) PRONY_PRINTF(2, 3);

/* Closes the channel, waits for the end of the command or kills it, and frees everything. */
void launch_node_release(struct launch_node *node);

#endif
