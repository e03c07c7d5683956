/*
 * Formats that are written. A writer gets samples one after the other and keeps what it needs to go
 * on from in a state, which the conversion stores each time that all before is on the disk.
 */
#ifndef PRONY_DATASETS_WRITER_H
#define PRONY_DATASETS_WRITER_H

#include "datasets/format.h"
#include "datasets/protobuf.h"

/* An open output; a writer's own begins with this. */
struct data_sink {
	char *folder;
	int64_t written; /* samples */
};

struct data_writer {
	bool raw;		 /* takes pixels as they are; else they are made PNG before */
	bool one_size, only_png; /* what it cannot do without */
	bool read_in_one_size;	 /* what the framework's own loader of it cannot do without */
	/* Begins, or goes on from a state (NULL: begins). */
	enum prony_status (*open)(struct data_sink **out, const char *folder,
				  const struct byte_buffer *state, struct error *err);
	enum prony_status (*put)(struct data_sink *sink, const struct data_record *record,
				 struct error *err);
	/* Brings all to the disk, then adds the state to the buffer. */
	enum prony_status (*commit)(struct data_sink *sink, struct byte_buffer *state,
				    struct error *err);
	/* The end: writes what comes last, and the sums of all files (writer_sum_files). */
	enum prony_status (*finish)(struct data_sink *sink, struct error *err);
	void (*close)(struct data_sink *sink);
};

#define WRITER_SUMS "SHA256SUMS"

/* Appends a line for each file of the folder to the text of sums, or writes the file of them. */
enum prony_status writer_sum_files(const char *folder, const char *const *names, size_t count,
				   struct byte_buffer *sums, struct error *err);
enum prony_status writer_write_sums(const char *folder, const char *const *names, size_t count,
				    struct error *err);

#endif
