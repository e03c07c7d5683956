/* Data sets: where they are, whether they are whole, and batches out of them. */
#ifndef PRONY_DATASETS_DATASET_H
#define PRONY_DATASETS_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { DATASET_FILES_MAX = 9, DATASET_CHANNELS_MAX = 4 };

/* Which samples a file holds. */
enum dataset_part {
	PART_BOTH, /* those to train with, then those to evaluate with */
	PART_TRAIN,
	PART_EVALUATION,
	PART_NAMES, /* none: the names of the classes, one in a line */
};

struct dataset_file {
	enum dataset_part part;
	const char *name;   /* below the data set's folder */
	const char *sha256; /* hexadecimal; NULL = the file is read through instead */
	int64_t bytes;	    /* 0 = not known */
	const char *url;    /* for `data fetch`; NULL = in the archive, or nowhere */
	/* A folder of pictures: sha256 and bytes are those of all files in it (path and content);
	 * as_published is the tar file that may stand in its place, tar_bytes its size. */
	bool is_folder;
	const char *as_published;
	int64_t tar_bytes;
};

/* Files that are published together, as one tar.gz with a folder in it. */
struct dataset_archive {
	struct dataset_file file; /* name NULL = none */
	const char *folder;
};

struct dataset {
	const char *name, *summary;
	const char *format; /* a row of data_formats; NULL = made while measuring */
	int rank;	    /* of one sample; 0 = any (synthetic) */
	int64_t dims[4];    /* C, H, W; H and W 0: whatever the network takes */
	int64_t classes;
	int64_t train_count, evaluation_count; /* samples */
	/* x = (value / scale - mean) / deviation, by channel; the same bytes for all. */
	double scale, mean[DATASET_CHANNELS_MAX], deviation[DATASET_CHANNELS_MAX];
	const char *sample; /* "mnist-sample": used where only that exists; NULL = none */
	bool shipped;	    /* comes with the program */
	const char *owner;  /* who gives it out, to whom; NULL = see files, or nobody */
	struct dataset_archive archive;
	/* Ends with name NULL. Those of a part stand together, in the order in which their samples
	 * count; files that the format reads together (images, labels) follow each other; names of
	 * classes come last. */
	struct dataset_file files[DATASET_FILES_MAX];
};

extern const struct dataset dataset_table[];
extern const size_t dataset_count;
const struct dataset *dataset_find(const char *name);
const char *dataset_nearest(const char *name);

/*
 * The folder that holds the data set's files, looked for in `data_option` (--data, may be NULL),
 * then $PRONY_DATA, then DATA/data, then what was installed with the program; each with /NAME
 * appended. A sample may also lie under the name of the whole: then its files must have the
 * sample's sizes. *folder: caller frees, NULL for synthetic. PRONY_MISSING names all places and the
 * remedy.
 */
enum prony_status dataset_locate(const struct dataset *dataset, const char *data_option,
				 char **folder, struct error *err);

/* The file below the data set's folder, or the one that stands in its place; caller frees. */
char *dataset_file_path(const struct dataset_file *file, const char *folder);

struct data_findings;

/* Checks size and SHA-256 of a file of the data set, or reads it through where no digest is known:
 * each broken sample is then told to `findings`, which may be NULL. */
enum prony_status dataset_verify_file(const struct dataset *dataset,
				      const struct dataset_file *file, const char *folder,
				      struct data_findings *findings, struct error *err);

/* "3x32x32", "3xHxW", "any". */
void dataset_shape_text(const struct dataset *dataset, char *out, size_t bytes);

/* "train" or "evaluation": how messages and the folders of conversions name a part. */
const char *dataset_part(bool training);

/* Whether its files, or an archive of them, can be downloaded. */
bool dataset_is_published(const struct dataset *dataset);

/* The end of a message about files that are not there or not whole. */
const char *dataset_remedy(const struct dataset *dataset);

/*
 * The names of the classes, as many as there are, in the arena; NULL where the data set has no file
 * of them. PRONY_BAD_INPUT with file and line where the file is broken.
 */
enum prony_status dataset_class_names(const struct dataset *dataset, const char *folder,
				      struct arena *arena, const char ***names, struct error *err);

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
 * A stream of batches that never ends. Training samples come in a seeded random order, another one
 * in each epoch, and a batch may reach into the next epoch. Evaluation samples come in file order;
 * a last batch that would not be full is dropped, then the first comes again (a batch larger than
 * the set repeats its samples). Synthetic: normal values, uniform classes. Batch n is the same
 * whether or not those before it were taken.
 */
struct batch_stream;

/* `dataset` and `folder` must live as long as the stream. PRONY_BAD_INPUT when the data set does
 * not fit the network (says both shapes) or a file is broken (says file, offset, remedy). */
enum prony_status batch_stream_open(const struct dataset *dataset, const char *folder,
				    const struct batch_request *request, struct batch_stream **out,
				    struct error *err);

/* The next `count` batches: x gets count * batch * elements floats, y count * batch classes. All
 * are read in one pass over the files, so that several at a time cost less than one by one. */
enum prony_status batch_stream_next(struct batch_stream *stream, int count, float *x, int64_t *y,
				    struct error *err);

/* The same with memory of its own for each batch: x[i], y[i]. */
enum prony_status batch_stream_fill(struct batch_stream *stream, int count, float *const *x,
				    int64_t *const *y, struct error *err);

/*
 * Reads all samples into memory once, as the file has them, where they are plain values (no
 * pictures) that take at most so much; batches are then picked out of it, by all cores. Else does
 * nothing.
 */
enum prony_status batch_stream_hold(struct batch_stream *stream, int64_t limit_bytes,
				    struct error *err);

size_t batch_stream_elements(const struct batch_stream *stream); /* of a sample */

/* What reading and decoding (with resizing and scaling) took so far, summed over the threads. */
struct batch_times {
	int64_t storage_ns, decode_ns;
};
struct batch_times batch_stream_times(const struct batch_stream *stream);

void batch_stream_close(struct batch_stream *stream);

#endif
