/* Data sets: where they are, whether they are whole, and batches out of them. */
#ifndef PRONY_DATASETS_DATASET_H
#define PRONY_DATASETS_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define DATASET_FILES_MAX 8

struct dataset_file {
	const char *name;   /* below the data set's folder */
	const char *sha256; /* hexadecimal; NULL = generated, not checked */
	int64_t bytes;
	const char *url; /* for `data fetch`; NULL = shipped or made */
};

struct dataset {
	const char *name, *summary;
	const char *format; /* "idx", "synthetic" */
	int rank;	    /* of one sample; 0 = any (synthetic) */
	int64_t dims[4];    /* C, H, W */
	int64_t classes;
	int64_t train_count, evaluation_count; /* samples; train come first in the files when one
						  pair of files holds both */
	double mean, deviation; /* x = (pixel / 255 - mean) / deviation, the same bytes for all */
	const char *sample;	/* "mnist-sample": used where only that exists; NULL = none */
	struct dataset_file files[DATASET_FILES_MAX]; /* ends with name NULL */
};

extern const struct dataset dataset_table[];
extern const size_t dataset_count;
const struct dataset *dataset_find(const char *name);
const char *dataset_nearest(const char *name);

/*
 * The folder that holds the data set's files, looked for in `data_option` (--data, may be NULL),
 * then $PRONY_DATA, then DATA/data, then what was installed with the program; each with /NAME
 * appended. *folder: caller frees, NULL for synthetic. PRONY_MISSING names all places and the
 * remedy.
 */
enum prony_status dataset_locate(const struct dataset *dataset, const char *data_option,
				 char **folder, struct error *err);

/* Checks sizes and SHA-256 of every file; the first broken one is named. */
enum prony_status dataset_verify(const struct dataset *dataset, const char *folder,
				 struct error *err);

/* The same for one file of the data set. */
enum prony_status dataset_verify_file(const struct dataset *dataset,
				      const struct dataset_file *file, const char *folder,
				      struct error *err);

/*
 * Downloads (curl or wget), checks, renames into place in `folder` (NULL: DATA/data/NAME). Files
 * that are whole stay. PRONY_MISSING without a downloader, PRONY_IO without network,
 * PRONY_BAD_INPUT when what came is not the published file or there is nothing to fetch.
 */
enum prony_status dataset_fetch(const struct dataset *dataset, const char *folder,
				void (*line)(void *context, const char *text), void *context,
				struct error *err);

struct batch_request {
	int64_t batch; /* samples in a batch */
	int count;     /* batches */
	int rank;      /* of one sample as the network takes it; may flatten 1x28x28 to 784 */
	int64_t dims[4];
	int64_t classes;
	bool training; /* else evaluation samples */
	uint64_t seed; /* order of training samples; contents of synthetic ones */
	int64_t first; /* skip so many batches: the gate takes others than the timed process */
};

/* Whether its samples are what the request's shape and classes ask for (its other members are not
 * looked at); PRONY_BAD_INPUT says both. A synthetic one always fits. */
enum prony_status dataset_check_fit(const struct dataset *dataset,
				    const struct batch_request *request, struct error *err);

/*
 * Batches in one go: x gets count * batch * elements floats, y count * batch classes, both in the
 * arena. Training samples come in a seeded random order and wrap round; evaluation samples in file
 * order, also wrapping. Synthetic: normal values, uniform classes. PRONY_BAD_INPUT when the data
 * set does not fit the network (says both shapes) or a file is broken (says file, offset, remedy).
 */
enum prony_status dataset_batches(const struct dataset *dataset, const char *folder,
				  const struct batch_request *request, struct arena *arena,
				  float **x, int64_t **y, struct error *err);

#endif
