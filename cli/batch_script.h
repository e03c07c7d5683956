/* The script of `prony batch` for Slurm. */
#ifndef PRONY_CLI_BATCH_SCRIPT_H
#define PRONY_CLI_BATCH_SCRIPT_H

#include "base/options.h"

struct batch_script {
	const char *prony, *words;	   /* the program; the quoted words of `prony run` */
	const char *name;		   /* of the job */
	const char *folder;		   /* that all nodes see */
	int parts;			   /* 0: a run of its own on each node */
	double seconds;			   /* expected, of the longest task */
	const struct option_list *options; /* lines for sbatch, which replace ours with that key */
};

/* Adds the script: about 30 lines that a site can read and edit. */
void batch_script_text(const struct batch_script *script, struct strbuf *out);

/* Adds a word as a shell reads it. */
void shell_word(const char *word, struct strbuf *out);

#endif
