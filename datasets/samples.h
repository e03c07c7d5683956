/* The samples of one kind (to train or to evaluate with) of a data set, whatever files they are in.
 */
#ifndef PRONY_DATASETS_SAMPLES_H
#define PRONY_DATASETS_SAMPLES_H

#include "datasets/dataset.h"
#include "datasets/format.h"

struct samples;

/* Opens the files and checks that they hold what the row of the data set says; PRONY_BAD_INPUT with
 * file, offset and remedy. `dataset` must live as long. */
enum prony_status samples_open(const struct dataset *dataset, const char *folder, bool training,
			       struct samples **out, struct error *err);
/* A file or folder of a format, which is all of one kind; labels as they are. */
enum prony_status samples_open_path(const struct data_format *format, const char *path,
				    struct samples **out, struct error *err);
void samples_close(struct samples *samples);

int64_t samples_count(const struct samples *samples);
enum data_element samples_element(const struct samples *samples);

/* Whether samples are files of their own, which samples_record gives, not samples_read. */
bool samples_are_records(const struct samples *samples);

/* Sample `at` as it is stored. Of records several threads may call this, each with its own (which
 * it keeps from sample to sample); of other formats it gives their bytes (samples_element is
 * DATA_U8), to one thread. */
enum prony_status samples_record(struct samples *samples, int64_t at, struct data_record *record,
				 struct error *err);

/* Reads sample `at`, 0 to count - 1; ascending numbers are cheap. `values` takes the elements of
 * one sample. */
enum prony_status samples_read(struct samples *samples, int64_t at, void *values, int64_t *label,
			       struct error *err);

#endif
