/* Data sets written in the formats that frameworks read themselves. */
#ifndef PRONY_DATASETS_CONVERT_H
#define PRONY_DATASETS_CONVERT_H

#include "datasets/samples.h"

/* Stands in the folder of a conversion that is whole, and says of what it is. */
#define CONVERT_WHOLE "conversion.txt"
/* Stands in the folder of one that has not come to its end. */
#define CONVERT_JOURNAL ".conversion"

struct convert_request {
	struct samples *samples;
	const char *source; /* what it is called, and of which kind: part of what makes a
			       conversion the same */
	const char *folder;
	const struct data_format *format; /* one that is written */
	int size; /* pictures become size x size; 0: they stay as they are */
	void (*progress)(void *context, int64_t done, int64_t total);
	void (*broken)(void *context, const char *text); /* a sample that is left out */
	void *context;
};

struct convert_result {
	int64_t written, broken;
	int64_t resumed_at; /* samples that an earlier call had done */
	bool was_whole;	    /* nothing was left to do */
};

/*
 * Converts sample by sample, in their order. Killed at any instant, the next call with the same
 * request goes on and ends with the same bytes. Broken samples are left out, told and counted. The
 * folder then holds conversion.txt, which says what it is, and SHA256SUMS (as sha256sum -c reads
 * it). PRONY_USAGE where the writer needs a size, PRONY_BAD_INPUT where the folder holds something
 * else, PRONY_IO.
 */
enum prony_status data_convert(const struct convert_request *request, struct convert_result *out,
			       struct error *err);

#endif
