/*
 * Formats of data sets: one row each, its functions in a file of its own. What all of them share
 * (which samples, in which order, scaled how) is not here: a format gives its samples as they are,
 * one after the other.
 */
#ifndef PRONY_DATASETS_FORMAT_H
#define PRONY_DATASETS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DATA_RANK_MAX = 4, DATA_HEAD_BYTES = 512, DATA_NAME_BYTES = 256, DATA_WHERE_BYTES = 1024 };

enum data_element { DATA_U8, DATA_F32 };
size_t data_element_bytes(enum data_element element);

/* An open shard. A format's own source begins with this. */
struct data_source {
	int64_t count;	  /* of samples */
	int64_t position; /* of the sample that `next` gives; the caller may change it, upwards is
			     cheap in every format, downwards may begin the file again */
	int rank;	  /* of a sample */
	int64_t dims[DATA_RANK_MAX]; /* 0: each sample has its own */
	enum data_element element;
};

/* A sample as it is stored: a picture's file, or pixels in planes. */
struct data_record {
	uint8_t *bytes; /* of malloc */
	size_t length, capacity;
	bool encoded;	 /* JPEG or PNG; else bytes of dims */
	int64_t dims[3]; /* C, H, W; 0 where the picture says it */
	int64_t label;
	char name[DATA_NAME_BYTES];   /* what the sample is called where it lies; may be "" */
	char where[DATA_WHERE_BYTES]; /* what messages begin with: its file, or the place in one */
};
/* Room for so many bytes, which are not zeroed. */
void data_record_reserve(struct data_record *record, size_t bytes);
void data_record_release(struct data_record *record);

/* Told of every sample that is broken, and of how many there were; may be NULL. */
struct data_findings {
	void (*broken)(void *context, const char *text);
	void *context;
	int64_t samples, count; /* all, and the broken ones among them */
};

/* The smallest number of files that can be read without others: images and their labels. */
struct data_shard {
	const char *const *paths; /* as many as the format says */
	int64_t classes;	  /* labels lie below */
};

struct data_format {
	const char *name, *summary;
	int shard_files;
	/* Whether a file is of this format, by its name and its first bytes (decompressed). */
	bool (*recognises)(const char *path, const uint8_t *head, size_t length);
	/* Reads one file through, without those that go with it; *bytes: of its decompressed data.
	 * NULL: every record is read and decoded (data_format_verify). */
	enum prony_status (*verify)(const char *path, int64_t *bytes, struct error *err);
	/* PRONY_BAD_INPUT with file, byte offset and remedy where a file is broken or the files do
	 * not go together. */
	enum prony_status (*open)(const struct data_shard *shard, struct data_source **out,
				  struct error *err);
	/* Decodes the sample at `position` and goes to the next: its values into `values`, its
	 * class, 0 to classes - 1, into *label. */
	enum prony_status (*next)(struct data_source *source, void *values, int64_t *label,
				  struct error *err);
	/* In the place of `next` where samples are files of their own: sample `at` as it is stored.
	 * Several threads may call it, each with a record of its own. */
	enum prony_status (*record)(const struct data_source *source, int64_t at,
				    struct data_record *record, struct error *err);
	void (*close)(struct data_source *source);
	const struct data_writer *writer; /* datasets/writer.h; NULL: it is only read */
};

const struct data_format *data_format_find(const char *name);

/* The n-th format that is written, NULL beyond the last: its name is the word of --to. */
const struct data_format *data_format_written(size_t number);

/* Reads a file, or a folder, through; every broken sample is told, the first is the error. Labels
 * lie below `classes`; 0: whatever they are. *bytes: of the data without what is around it. */
enum prony_status data_format_verify(const struct data_format *format, const char *path,
				     int64_t classes, struct data_findings *findings,
				     int64_t *bytes, struct error *err);

/* The format of a file or folder, PRONY_BAD_INPUT when none knows it. */
enum prony_status data_format_recognise(const char *path, const struct data_format **out,
					struct error *err);

/* The error of a label that is no class. */
enum prony_status data_label_error(const char *path, int64_t offset, int64_t label, int64_t classes,
				   struct error *err);

#endif
