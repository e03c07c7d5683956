#include "tests/unit/store_fixture.h"

#include "store/sql_internal.h"
#include "unit_test.h"

int store_folder_setup(void **state)
{
	struct store_folder *f = memory_alloc(sizeof *f);

	*f = (struct store_folder){.folder = NULL};
	if (directory_make_temporary("prony-test-", &f->folder, NULL) != PRONY_OK) {
		free(f);
		return -1;
	}
	f->path = path_join(f->folder, "store.db");
	enum prony_status status = store_open(f->path, false, &f->store, NULL);
	*state = f;
	return status == PRONY_OK ? 0 : -1;
}

int store_folder_teardown(void **state)
{
	struct store_folder *f = *state;

	store_close(f->store);
	enum prony_status status = directory_remove(f->folder, NULL);
	free(f->folder);
	free(f->path);
	free(f);
	return status == PRONY_OK ? 0 : -1;
}

struct run_meta fixture_meta(int64_t started_wall_ns)
{
	return (struct run_meta){.suite = "quickstart",
				 .version = "0.1.0",
				 .effort = "quick",
				 .seed = 1,
				 .started_wall_ns = started_wall_ns,
				 .finished_wall_ns = RECORD_NONE,
				 .statistic = "geometric",
				 .spec = "frameworks: native\nnetworks: 'lenet'\n",
				 .command = "prony run quickstart",
				 .environment = "{\"must_match\":{}}",
				 .environment_hash = "0123456789abcdef",
				 .host = "here"};
}

struct cell fixture_cell(const char *framework, int64_t batch)
{
	struct cell cell;
	struct error err = ERROR_INIT;

	cell_defaults(&cell);
	snprintf(cell.dataset, sizeof cell.dataset, "mnist-sample");
	cell.batch = batch;
	check(cell_parse_framework(framework, &cell, &err), &err);
	return cell;
}

int64_t fixture_cell_of(struct store *store, const char *framework, int64_t batch)
{
	struct run_meta meta = fixture_meta(1);
	struct cell cell = fixture_cell(framework, batch);
	int64_t id = -1;
	struct error err = ERROR_INIT;

	check(store_run_begin(store, &meta, &err), &err);
	check(store_cell(store, meta.id, &cell, &id, &err), &err);
	return id;
}

void fixture_record(struct process_record *record, int replicate)
{
	process_record_init(record);
	for (size_t i = 0; i < process_field_count; i++) {
		const struct record_field *field = &process_fields[i];
		char *member = (char *)record + field->offset;
		int64_t number = 1000 * replicate + (int64_t)i;
		if (field->type == FIELD_TYPE_INT)
			memcpy(member, &number, sizeof number);
		else if (field->type == FIELD_TYPE_REAL)
			memcpy(member, &(double){(double)number / 3}, sizeof(double));
		else
			snprintf(member, field->bytes, "%s %d", field->name, replicate);
	}
	record->replicate = replicate;
	snprintf(record->status, sizeof record->status, "%s", replicate % 2 ? "crashed" : "ok");
	snprintf(record->flags, sizeof record->flags, "not-steady,few-steps");
	record->log = memory_printf("log of %d: it's \"quoted\"\n", replicate);
	record->interval_count = 5;
	record->intervals = memory_alloc(5 * sizeof *record->intervals);
	for (int i = 0; i < 5; i++)
		record->intervals[i] =
			(struct step_record){.begin_ns = INT64_C(1) << (40 + i),
					     .end_ns = (INT64_C(1) << (40 + i)) + replicate};
	fixture_add_series(record, "cpu", 2, 3 + (size_t)replicate);
	fixture_add_series(record, "frequency", 0, 0);
	record->rank_count = 2;
	record->rank_records = memory_alloc(2 * sizeof *record->rank_records);
	for (int i = 0; i < 2; i++)
		record->rank_records[i] = (struct rank_record){5 + i, 6, 7, RECORD_NONE, 9};
}

void fixture_add_series(struct process_record *record, const char *sensor, size_t channels,
			size_t count)
{
	record->series =
		memory_realloc(record->series, (record->series_count + 1) * sizeof(struct series));
	struct series *series = &record->series[record->series_count++];
	*series = (struct series){.kind = SERIES_COUNTER,
				  .unit = "ns",
				  .rate_unit = "cores",
				  .channel_count = channels,
				  .count = count};
	snprintf(series->sensor, sizeof series->sensor, "%s", sensor);
	if (count == 0)
		snprintf(series->absent, sizeof series->absent, "there is no %s here", sensor);
	series->channels = memory_alloc(channels * sizeof *series->channels);
	for (size_t c = 0; c < channels; c++)
		snprintf(series->channels[c], sizeof series->channels[c], "%s%zu", sensor, c);
	series->times_ns = memory_alloc(count * sizeof *series->times_ns);
	series->values = memory_alloc(count * channels * sizeof *series->values);
	for (size_t i = 0; i < count; i++)
		series->times_ns[i] = (INT64_C(1) << 50) + 250000000 * (int64_t)i;
	/* One value was not read. */
	for (size_t i = 0; i < count * channels; i++)
		series->values[i] = i == 1 ? NAN : (double)i / 3;
}

void same_series(const struct process_record *a, const struct process_record *b)
{
	assert_int_equal(a->rank_count, b->rank_count);
	if (a->rank_count > 0)
		assert_memory_equal(a->rank_records, b->rank_records,
				    a->rank_count * sizeof *a->rank_records);
	assert_int_equal(a->series_count, b->series_count);
	for (size_t i = 0; i < a->series_count; i++) {
		const struct series *x = &a->series[i], *y = &b->series[i];
		assert_string_equal(x->sensor, y->sensor);
		assert_int_equal(x->kind, y->kind);
		assert_string_equal(x->unit, y->unit);
		assert_string_equal(x->rate_unit, y->rate_unit);
		assert_string_equal(x->absent, y->absent);
		assert_int_equal(x->channel_count, y->channel_count);
		assert_int_equal(x->count, y->count);
		for (size_t c = 0; c < x->channel_count; c++)
			assert_string_equal(x->channels[c], y->channels[c]);
		if (!x->count)
			continue;
		assert_memory_equal(x->times_ns, y->times_ns, x->count * sizeof *x->times_ns);
		assert_memory_equal(x->values, y->values,
				    x->count * x->channel_count * sizeof *x->values);
	}
}

int64_t fixture_count(struct store *store, const char *table)
{
	struct error err = ERROR_INIT;
	int64_t count = -1;
	char *sql = memory_printf("SELECT count(*) FROM %s", table);

	check(sql_int(store, sql, "count", -1, &count, &err, ""), &err);
	free(sql);
	return count;
}
