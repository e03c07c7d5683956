/* Data sets that `prony data convert` has written, for the loaders that read no other form. */
#ifndef PRONY_DATASETS_CONVERTED_H
#define PRONY_DATASETS_CONVERTED_H

#include "datasets/dataset.h"

struct data_format;

/* What conversion.txt, which datasets/convert.c writes last, says of its folder. */
struct conversion_note {
	char *source;			  /* "cifar10, train"; caller frees */
	const struct data_format *format; /* never NULL */
	int size;			  /* pictures are size x size; 0: as they are */
	int64_t samples;		  /* > 0 */
};

/* PRONY_BAD_INPUT where the file says something else, with the remedy; PRONY_IO. */
enum prony_status conversion_note_read(const char *folder, struct conversion_note *out,
				       struct error *err);

/* The folder of a part of a data set in another format. */
struct converted {
	const char *format; /* a row of data_formats; NULL = none */
	char *folder;	    /* in it lie its files; caller frees */
	int64_t samples;
	int size; /* pictures are size x size; 0: as they are */
};

/*
 * Looks for DATASET-FORMAT/train or /evaluation in the places where data sets are looked for
 * (dataset_locate). PRONY_MISSING where it is in none of them, or not to its end, with the command
 * that makes it; PRONY_BAD_INPUT where the folder holds something else.
 */
enum prony_status dataset_locate_converted(const struct dataset *dataset, const char *format,
					   bool training, const char *data_option,
					   struct converted *out, struct error *err);

struct data_findings;

/* Whether a folder is one that `prony data convert` writes, to its end or not. */
bool dataset_is_converted(const char *folder);

/*
 * Holds every file to its digest in SHA256SUMS, and reads the records through. What is broken is
 * told to `findings`; PRONY_BAD_INPUT then counts it, or says that the conversion has not ended.
 * *bytes: of the data without what is around it.
 */
enum prony_status dataset_verify_converted(const char *folder, struct data_findings *findings,
					   int64_t *bytes, struct error *err);

#endif
