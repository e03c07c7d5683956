/* The training or evaluation samples of a data set, across its files. */
#ifndef PRONY_DATASETS_SAMPLES_H
#define PRONY_DATASETS_SAMPLES_H

#include "datasets/dataset.h"
#include "datasets/format.h"

struct samples;

/* Opens the files and checks them against the data set's row; PRONY_BAD_INPUT with file, offset and
 * remedy. `dataset` must outlive it. */
enum prony_status samples_open(const struct dataset *dataset, const char *folder, bool training,
			       struct samples **out, struct error *err);
/* Opens a file or folder as samples of one kind, with unchecked labels. */
enum prony_status samples_open_path(const struct data_format *format, const char *path,
				    struct samples **out, struct error *err);
void samples_close(struct samples *samples);

int64_t samples_count(const struct samples *samples);
enum data_element samples_element(const struct samples *samples);

/* Whether samples are separate records: then use samples_record instead of samples_read. */
bool samples_are_records(const struct samples *samples);

/* Returns sample `at` as stored. For records several threads may call it, each with its own record,
 * which is reused. For other formats it returns their bytes (samples_element is DATA_U8), to one
 * thread. */
enum prony_status samples_record(struct samples *samples, int64_t at, struct data_record *record,
				 struct error *err);

/* Reads sample `at`, 0 to count - 1; ascending numbers are cheap. `values` receives the elements of
 * one sample. */
enum prony_status samples_read(struct samples *samples, int64_t at, void *values, int64_t *label,
			       struct error *err);

#endif
