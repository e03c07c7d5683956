/* Finds data sets that `prony data convert` wrote, for loaders that read only those formats. */
#ifndef PRONY_DATASETS_CONVERTED_H
#define PRONY_DATASETS_CONVERTED_H

#include "datasets/dataset.h"

struct data_format;

/* The content of conversion.txt, which datasets/convert.c writes last. */
struct conversion_note {
	char *source;			  /* "cifar10, train"; the caller frees it */
	const struct data_format *format; /* never NULL */
	int size;			  /* pictures are size x size; 0: unchanged */
	int64_t samples;		  /* > 0 */
};

/* PRONY_BAD_INPUT, with the remedy, when the file has other content; PRONY_IO. */
enum prony_status conversion_note_read(const char *folder, struct conversion_note *out,
				       struct error *err);

/* The folder of a data set part in another format. */
struct converted {
	const char *format; /* a row of data_formats; NULL = none */
	char *folder;	    /* folder of its files; the caller frees it */
	int64_t samples;
	int size; /* pictures are size x size; 0: unchanged */
};

/* Searches for DATASET-FORMAT/train or /evaluation where data sets are searched (dataset_locate).
 * PRONY_MISSING, with the command that creates it, when it does not exist or is unfinished;
 * PRONY_BAD_INPUT when the folder holds something else. */
enum prony_status dataset_locate_converted(const struct dataset *dataset, const char *format,
					   bool training, const char *data_option,
					   struct converted *out, struct error *err);

struct data_findings;

/* Whether `prony data convert` wrote the folder, finished or not. */
bool dataset_is_converted(const char *folder);

/* Checks every file against SHA256SUMS and reads all records. Faults go to `findings`;
 * PRONY_BAD_INPUT then gives their number, or says that the conversion is unfinished. *bytes: size
 * of the data without framing. */
enum prony_status dataset_verify_converted(const char *folder, struct data_findings *findings,
					   int64_t *bytes, struct error *err);

#endif
