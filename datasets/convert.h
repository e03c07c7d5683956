/* Converts data sets to the formats that frameworks read themselves. */
#ifndef PRONY_DATASETS_CONVERT_H
#define PRONY_DATASETS_CONVERT_H

#include "datasets/samples.h"

/* File that marks a complete conversion and describes it. */
#define CONVERT_WHOLE "conversion.txt"
/* File that marks an unfinished conversion. */
#define CONVERT_JOURNAL ".conversion"

struct convert_request {
	struct samples *samples;
	const char *source; /* name and kind: part of a conversion's identity */
	const char *folder;
	const struct data_format *format; /* a format with a writer */
	int size;			  /* pictures are resized to size x size; 0: unchanged */
	void (*progress)(void *context, int64_t done, int64_t total);
	void (*broken)(void *context, const char *text); /* called for each skipped sample */
	void *context;
};

struct convert_result {
	int64_t written, broken;
	int64_t resumed_at; /* samples done by an earlier call */
	bool was_whole;	    /* nothing was left to do */
};

/* Converts the samples in order. If it is killed at any instant, the next call with the same
 * request resumes and produces the same bytes. Broken samples are skipped, reported and counted.
 * The finished folder has conversion.txt, which describes it, and SHA256SUMS (for sha256sum -c).
 * PRONY_USAGE when the writer needs a size, PRONY_BAD_INPUT when the folder holds something else,
 * PRONY_IO. */
enum prony_status data_convert(const struct convert_request *request, struct convert_result *out,
			       struct error *err);

#endif
