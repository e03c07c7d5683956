/* The interface of format writers. A writer receives samples in order and saves in a state what it
 * needs to resume; the conversion stores the state each time everything before it is on disk. */
#ifndef PRONY_DATASETS_WRITER_H
#define PRONY_DATASETS_WRITER_H

#include "datasets/format.h"
#include "datasets/protobuf.h"

/* An open output; the struct of each writer begins with it. */
struct data_sink {
	const char *folder;
	int64_t written; /* samples */
};

struct data_writer {
	size_t sink_bytes; /* of the struct of an open output */
	bool raw;	   /* takes pixels unchanged; otherwise they are encoded as PNG first */
	bool one_size, only_png; /* requirements of the format */
	bool read_in_one_size;	 /* requirement of the framework's own loader */
	/* Begins, or resumes from a state (NULL: begins), in a sink of zeros with its folder. */
	enum prony_status (*open)(struct data_sink *sink, const struct byte_buffer *state,
				  struct error *err);
	enum prony_status (*put)(struct data_sink *sink, const struct data_record *record,
				 struct error *err);
	/* Syncs everything to disk, then appends the state to the buffer. */
	enum prony_status (*commit)(struct data_sink *sink, struct byte_buffer *state,
				    struct error *err);
	/* Ends: writes what comes last, and the checksums of all files (writer_sum_files). */
	enum prony_status (*finish)(struct data_sink *sink, struct error *err);
	/* Releases what the sink holds, also after a failed open. */
	void (*close)(struct data_sink *sink);
};

#define WRITER_SUMS "SHA256SUMS"

/* Appends a line per file of the folder to the text of checksums, or writes the checksum file. */
enum prony_status writer_sum_files(const char *folder, const char *const *names, size_t count,
				   struct byte_buffer *sums, struct error *err);
enum prony_status writer_write_sums(const char *folder, const char *const *names, size_t count,
				    struct error *err);

#endif
