/* Data sets: their location, their integrity, and batches from them. */
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
	PART_BOTH, /* training samples, followed by evaluation samples */
	PART_TRAIN,
	PART_EVALUATION,
	PART_NAMES, /* no samples: the class names, one per line */
};

struct dataset_file {
	enum dataset_part part;
	const char *name;   /* below the data set's folder */
	const char *sha256; /* hexadecimal; NULL = verify by reading the file */
	int64_t bytes;	    /* 0 = unknown */
	const char *url;    /* for `data fetch`; NULL = in the archive, or not available */
	/* For a folder of pictures, sha256 and bytes cover all files in it (path and content).
	 * as_published is the tar file that may replace it, tar_bytes its size. */
	bool is_folder;
	const char *as_published;
	int64_t tar_bytes;
};

/* Files published together as a tar.gz with one folder, or as a package of Debian (then
 * `file` is its name and size). */
struct dataset_archive {
	struct dataset_file file; /* name NULL = none */
	const char *folder;
	bool is_package;
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
	const char *sample; /* "cifar10-sample": used where only that exists; NULL = none */
	bool shipped;	    /* comes with the program */
	const char *folder; /* of a user's file; NULL: searched (dataset_locate) */
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

/* The folder that holds the data set's files, looked for in `data_option` (--data, may be NULL),
 * then $PRONY_DATA, then DATA/data, then what was installed with the program; each with /NAME
 * appended. A sample may also lie under the name of the whole: then its files must have the
 * sample's sizes. *folder: caller frees, NULL for synthetic. PRONY_MISSING names all places and the
 * remedy. */
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

/* Whether anybody can get its files: they are published, given out, or come with the program. */
bool dataset_is_obtainable(const struct dataset *dataset);

/* The end of a message about missing or damaged files. */
const char *dataset_remedy(const struct dataset *dataset);

/* The class names in the arena; NULL when the data set has no file of names. PRONY_BAD_INPUT with
 * file and line when the file is broken. */
enum prony_status dataset_class_names(const struct dataset *dataset, const char *folder,
				      struct arena *arena, const char ***names, struct error *err);

/* Downloads (curl or wget), verifies and moves the files into `folder` (NULL: DATA/data/NAME).
 * Intact files are kept. PRONY_MISSING without a downloader, PRONY_IO without network,
 * PRONY_BAD_INPUT when the download is not the published file or there is nothing to fetch. */
enum prony_status dataset_fetch(const struct dataset *dataset, const char *folder,
				void (*line)(void *context, const char *text), void *context,
				struct error *err);

struct batch_request {
	int64_t batch; /* samples per batch */
	int rank;      /* of one sample as the network takes it; may flatten 1x28x28 to 784 */
	int64_t dims[4];
	int64_t classes;
	bool training; /* otherwise evaluation samples */
	uint64_t seed; /* order of training samples; content of synthetic ones */
	bool cold;     /* photographs: drop each file from the page cache before it is read */
	int64_t first; /* skip this many batches: the gate and the timed process use different ones
			*/
};

/* Checks that the samples have the request's shape and classes (other members are ignored);
 * PRONY_BAD_INPUT names both. Synthetic data always fits. */
enum prony_status dataset_check_fit(const struct dataset *dataset,
				    const struct batch_request *request, struct error *err);

/* An endless stream of batches. Training samples come in seeded random order, a new order each
 * epoch, and a batch may continue into the next epoch. Evaluation samples come in file order; an
 * incomplete last batch is dropped, then the first comes again (a batch larger than the set repeats
 * samples). Synthetic data: normal values, uniform classes. Batch n does not depend on whether
 * earlier batches were read. */
struct batch_stream;

/* `dataset` and `folder` must outlive the stream. PRONY_BAD_INPUT when the data set does not fit
 * the network (names both shapes) or a file is broken (names file, offset, remedy). */
enum prony_status batch_stream_open(const struct dataset *dataset, const char *folder,
				    const struct batch_request *request, struct batch_stream **out,
				    struct error *err);

/* Reads the next `count` batches: x receives count * batch * elements floats, y count * batch
 * classes. They are read in one pass over the files, which is cheaper than one by one. */
enum prony_status batch_stream_next(struct batch_stream *stream, int count, float *x, int64_t *y,
				    struct error *err);

/* The same with separate memory for each batch: x[i], y[i]. */
enum prony_status batch_stream_fill(struct batch_stream *stream, int count, float *const *x,
				    int64_t *const *y, struct error *err);

/* Reads all samples into memory, as stored, if they are plain values (not pictures) and take at
 * most this many bytes. Batches are then filled from memory by all cores. Otherwise does nothing.
 */
enum prony_status batch_stream_hold(struct batch_stream *stream, int64_t limit_bytes,
				    struct error *err);

/* Time spent reading and decoding (with resizing and scaling), summed over threads. */
struct batch_times {
	int64_t storage_ns, decode_ns;
};
struct batch_times batch_stream_times(const struct batch_stream *stream);

void batch_stream_close(struct batch_stream *stream);

#endif
