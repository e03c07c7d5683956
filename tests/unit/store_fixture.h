/* A store in a folder of its own, and results to store in it. */
#ifndef PRONY_TESTS_UNIT_STORE_FIXTURE_H
#define PRONY_TESTS_UNIT_STORE_FIXTURE_H

#include "store/store.h"
#include "unit_test.h"

struct store_folder {
	char *folder, *path; /* path: the store's path in the folder */
	struct store *store; /* FOLDER/store.db */
};

int store_folder_setup(void **state);
int store_folder_teardown(void **state);
#define STORE_TEST(name)                                                                           \
	TEST_ON(name, store_folder_setup, store_folder_teardown, struct store_folder *f)

struct run_meta fixture_meta(int64_t started_wall_ns);
struct cell fixture_cell(const char *framework, int64_t batch);
/* Begins a run with one cell; returns the cell's id. */
int64_t fixture_cell_of(struct store *store, const char *framework, int64_t batch);
/* Makes a record with every field set, different for each replicate; the caller releases it. */
void fixture_record(struct process_record *record, int replicate);
/* Adds a series to the record; a series without samples has a reason. */
void fixture_add_series(struct process_record *record, const char *sensor, size_t channels,
			size_t count);
/* Fails if the series of two records differ. */
void same_series(const struct process_record *a, const struct process_record *b);
/* Returns the number of rows of a table. */
int64_t fixture_count(struct store *store, const char *table);

#endif
