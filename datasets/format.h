/* Formats of data sets: one row each, with its functions in its own file. A format yields its
 * samples in order, unchanged; selection, order and scaling are done elsewhere. */
#ifndef PRONY_DATASETS_FORMAT_H
#define PRONY_DATASETS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DATA_RANK_MAX = 4, DATA_HEAD_BYTES = 512, DATA_NAME_BYTES = 256, DATA_WHERE_BYTES = 1024 };

enum data_element { DATA_U8, DATA_F32 };
size_t data_element_bytes(enum data_element element);

/* An open shard. The struct of each format begins with it. */
struct data_source {
	int64_t count;	  /* number of samples */
	int64_t position; /* of the sample that `next` returns. The caller may change it: forward is
			     cheap in every format, backward may restart the file */
	int rank;	  /* of a sample */
	int64_t dims[DATA_RANK_MAX]; /* 0: each sample has its own size */
	enum data_element element;
};

/* A sample as stored: a picture file, or planes of pixels. */
struct data_record {
	uint8_t *bytes; /* allocated with malloc */
	size_t length, capacity;
	bool cold;	 /* set by the caller: as in struct batch_request */
	bool encoded;	 /* JPEG or PNG; otherwise bytes of dims */
	int64_t dims[3]; /* C, H, W; 0 when the picture has it */
	int64_t label;
	char name[DATA_NAME_BYTES];   /* the sample's name in its source; may be "" */
	char where[DATA_WHERE_BYTES]; /* prefix of messages: its file, or the position in one */
};
/* Makes room for this many bytes, which are not zeroed. */
void data_record_reserve(struct data_record *record, size_t bytes);
void data_record_release(struct data_record *record);

/* Receives every broken sample and the counts; may be NULL. */
struct data_findings {
	void (*broken)(void *context, const char *text);
	void *context;
	int64_t samples, count; /* all samples, and the broken ones */
};

/* A set of files that belong together: images and their labels. */
struct data_shard {
	const char *const *paths; /* their number is fixed by the format */
	int64_t classes;	  /* labels are below it */
};

struct data_format {
	const char *name, *summary;
	int shard_files;
	/* Whether a file has this format, by its name and its first bytes (decompressed). */
	bool (*recognises)(const char *path, const uint8_t *head, size_t length);
	/* Reads a single file to its end; *bytes: size of its decompressed data. NULL: every record
	 * is read and decoded (data_format_verify). */
	enum prony_status (*verify)(const char *path, int64_t *bytes, struct error *err);
	/* PRONY_BAD_INPUT with file, byte offset and remedy when a file is broken or the files do
	 * not match. */
	enum prony_status (*open)(const struct data_shard *shard, struct data_source **out,
				  struct error *err);
	/* Decodes the sample at `position` and advances: its values into `values`, its class (0 to
	 * classes - 1) into *label. */
	enum prony_status (*next)(struct data_source *source, void *values, int64_t *label,
				  struct error *err);
	/* Replaces `next` when samples are separate records: returns sample `at` as stored. Several
	 * threads may call it, each with its own record. */
	enum prony_status (*record)(const struct data_source *source, int64_t at,
				    struct data_record *record, struct error *err);
	void (*close)(struct data_source *source);
	const struct data_writer *writer; /* datasets/writer.h; NULL: read-only format */
};

const struct data_format *data_format_find(const char *name);

/* The n-th format with a writer, NULL after the last; its name is a word of --to. */
const struct data_format *data_format_written(size_t number);

/* Reads a file or folder to its end. Every broken sample is reported; the first is the error.
 * Labels must be below `classes` (0: any). *bytes: size of the data without framing. */
enum prony_status data_format_verify(const struct data_format *format, const char *path,
				     int64_t classes, struct data_findings *findings,
				     int64_t *bytes, struct error *err);

/* Finds the format of a file or folder; PRONY_BAD_INPUT when there is none. */
enum prony_status data_format_recognise(const char *path, const struct data_format **out,
					struct error *err);

/* The error for a label outside the classes. */
enum prony_status data_label_error(const char *path, int64_t offset, int64_t label, int64_t classes,
				   struct error *err);

#endif
