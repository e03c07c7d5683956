#include "report_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { PROCESSES = 5, CELLS_MAX = 16, INTERVALS = 3 };

#define MS 1e6

static const char environments[2][900] = {
	"{\"must_match\": {\"cpu_model\": \"Example CPU 9000\", \"cores_usable\": 2, "
	"\"memory_gib\": 8},"
	" \"should_match\": {\"kernel\": \"6.1.0\", \"governor\": null, \"program\": "
	"{\"build\": \"abc1234\", \"sha256\": "
	"\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\", "
	"\"libraries\": {\"native\": "
	"\"ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\"}}},"
	" \"informational\": {\"load\": [0.1, 0.2, 0.3], \"note\": \"<b>bold</b>\", "
	"\"measured\": {\"ceilings\": {\"cores\": 2, \"fma_fp32\": {\"one\": 1e11, "
	"\"all\": 2e11}}}}}",
	"{\"must_match\": {\"cpu_model\": \"Example CPU 9900\", \"cores_usable\": 8, "
	"\"memory_gib\": 64},"
	" \"should_match\": {\"kernel\": \"6.1.0\", \"governor\": \"performance\"},"
	" \"informational\": {\"load\": [0, 0, 0], \"note\": null}}",
};

/* Ratios of the processes' step times to their cell's step time: a spread of about one percent. */
static const double wobble[PROCESSES] = {1.000, 1.008, 0.994, 1.011, 0.990};

/* Adds a sensor of two channels with a value that was not read, and an absent sensor. */
static void add_series(struct process_record *record)
{
	enum { SAMPLES = 4, CHANNELS = 2 };
	const double load[SAMPLES][CHANNELS] = {{0, 1e9}, {0, 2e9}, {NAN, 3e9}, {15e8, 4e9}};
	struct series *series = memory_alloc(2 * sizeof *series);
	series[0] = (struct series){.sensor = "cpu",
				    .kind = SERIES_COUNTER,
				    .unit = "ns",
				    .rate_unit = "cores",
				    .channel_count = CHANNELS,
				    .count = SAMPLES};
	series[1] = (struct series){.sensor = "frequency",
				    .kind = SERIES_GAUGE,
				    .unit = "Hz",
				    .absent = "no control: " FIXTURE_EVIL};
	series[0].channels = memory_alloc(CHANNELS * sizeof *series->channels);
	for (int i = 0; i < CHANNELS; i++)
		snprintf(series[0].channels[i], sizeof series[0].channels[i], "cpu%d", i);
	series[0].times_ns = memory_alloc(SAMPLES * sizeof *series->times_ns);
	for (int i = 0; i < SAMPLES; i++)
		series[0].times_ns[i] = INT64_C(1000000000) * i;
	series[0].values = memory_alloc(sizeof load);
	memcpy(series[0].values, load, sizeof load);
	record->series = series;
	record->series_count = 2;
	record->window_begin_ns = INT64_C(1000000000);
	record->cpu_cores = 1.75;
	record->memory_mean_run = 50.5 * 1048576;
	record->steal_share = 0;
	record->sampling_cpu_ns = 2000000;
}

/* Each cell (`turn`) has its own pattern of deviations, so that deviations of two cells do not
 * cancel. */
static void fill_process(struct process_record *record, int replicate, size_t turn, double step_ms,
			 double speed, double start_ms)
{
	process_record_init(record);
	record->replicate = replicate;
	record->round = replicate;
	snprintf(record->status, sizeof record->status, "ok");
	record->started_wall_ns = INT64_C(1795000000000000000) + replicate * INT64_C(20000000000);
	record->steps = 1000;
	record->step_mean_ns = step_ms * MS *
			       wobble[((size_t)replicate * (turn % 4 + 1) + turn) % PROCESSES] /
			       speed;
	record->window_ns = (int64_t)(record->step_mean_ns * 1000);
	record->step_median_ns = record->step_mean_ns;
	record->step_min_ns = record->step_mean_ns * 0.99;
	record->step_max_ns = record->step_mean_ns * 1.02;
	record->step_sd_ns = record->step_mean_ns * 0.004;
	record->blocks = INTERVALS;
	record->block_steps = 333;
	record->spawn_ns = (int64_t)(4 * MS);
	record->import_ns = (int64_t)(start_ms * MS);
	record->open_ns = (int64_t)(0.5 * MS);
	record->build_ns = (int64_t)(start_ms / 4 * MS);
	record->feed_ns = (int64_t)(2 * MS);
	record->first_step_ns = (int64_t)(step_ms * 3 * MS);
	record->to_first_step_ns = (int64_t)((start_ms * 1.25 + step_ms * 3 + 7) * MS);
	record->warm_up_ns = (int64_t)(2000 * MS);
	record->warm_up_steps = 50;
	record->total_ns = (int64_t)(14000 * MS);
	record->loss_first = 2.302585;
	record->loss_expected = 2.302585;
	record->loss_last = 0.25;
	record->rss_peak_bytes = (int64_t)(60 + start_ms) * 1048576;
	record->cpu_user_ns = (int64_t)(20000 * MS);
	record->cpu_system_ns = (int64_t)(300 * MS);
	record->window_cpu_cores = 1.97;
	record->energy_joules = 40 * (double)record->window_ns * 1e-9;
	record->power_mean_window = 40;
	snprintf(record->energy_grade, sizeof record->energy_grade, "B");
	record->mxcsr = 0x1F80;
	record->threads = 2;
	snprintf(record->precision, sizeof record->precision, "fp32");
	record->intervals = memory_alloc(INTERVALS * sizeof *record->intervals);
	record->interval_count = INTERVALS;
	for (int i = 0; i < INTERVALS; i++)
		record->intervals[i] =
			(struct step_record){i * INT64_C(1000), i * INT64_C(1000) + 990};
	if (replicate == 0)
		add_series(record);
	record->log = memory_strdup(replicate == 0 ? "loading\n" FIXTURE_EVIL "\n" : "");
}

static struct stored_cell *add_cell(struct stored_run *run, const char *framework, enum stage stage)
{
	struct stored_cell *cell = &run->cells[run->cell_count++];
	struct error err = ERROR_INIT;
	cell->id = (int64_t)run->cell_count;
	cell_defaults(&cell->cell);
	snprintf(cell->cell.dataset, sizeof cell->cell.dataset, "mnist-sample");
	cell->cell.stage = stage;
	cell_parse_framework(framework, &cell->cell, &err);
	cell_key(&cell->cell, cell->key);
	cell_hash(&cell->cell, cell->hash);
	cell->reason = "";
	cell->gate = CELL_PENDING;
	return cell;
}

static void pass_gate(struct stored_cell *cell, double worst)
{
	cell->gate = CELL_OK;
	cell->evidence = json_pack(
		"{s:b, s:[], s:i, s:I, s:i, s:{s:s, s:i, s:f, s:f, s:b}}", "passed", 1, "checks",
		"parameters", 431080, "macs", (json_int_t)36708000, "gate_batch", 16, "worst",
		"what", "logits", "step", 2, "value", worst * 2e-5, "bound", 2e-5, "passed", 1);
	cell->gate_log = "gate ran\n";
}

static void describe(struct stored_cell *cell, const char *version, const char *library)
{
	cell->framework = json_pack("{s:s, s:s, s:{s:s}, s:s, s:{s:i, s:b}, s:s}", "version",
				    version, "origin", "installed", "libraries", library, "3.2.0",
				    "instruction_set", "avx512", "settings", "threads", 2, "tf32",
				    0, "notes", "<i>folded</i> nothing");
}

static void add_ok(struct stored_run *run, const char *framework, enum stage stage,
		   const char *version, double step_ms, double speed, double start_ms)
{
	struct stored_cell *cell = add_cell(run, framework, stage);
	cell->status = CELL_OK;
	pass_gate(cell, step_ms / 20);
	describe(cell, version, "onednn");
	cell->processes = arena_array(&run->arena, PROCESSES, sizeof *cell->processes);
	cell->process_count = PROCESSES;
	for (int i = 0; i < PROCESSES; i++)
		fill_process(&cell->processes[i], i, run->cell_count, step_ms, speed, start_ms);
}

/* Adds one good process, then two crashes in a row. */
static void add_crashed(struct stored_run *run, const char *framework, enum stage stage)
{
	struct stored_cell *cell = add_cell(run, framework, stage);
	cell->status = CELL_CRASHED;
	cell->reason = "killed by signal 11 (Segmentation fault): " FIXTURE_EVIL;
	pass_gate(cell, 0.1);
	describe(cell, "1.9.1", "mkl");
	cell->processes = arena_array(&run->arena, 3, sizeof *cell->processes);
	cell->process_count = 3;
	fill_process(&cell->processes[0], 0, 0, 7, 1, 200);
	for (int i = 1; i < 3; i++) {
		process_record_init(&cell->processes[i]);
		cell->processes[i].replicate = i;
		cell->processes[i].round = i;
		snprintf(cell->processes[i].status, sizeof cell->processes[i].status, "crashed");
		snprintf(cell->processes[i].error, sizeof cell->processes[i].error,
			 "killed by signal 11 (Segmentation fault)");
		cell->processes[i].log = memory_strdup("about to crash\n");
	}
}

static void add_refused(struct stored_run *run, const char *framework, enum stage stage,
			enum cell_status status, const char *reason)
{
	struct stored_cell *cell = add_cell(run, framework, stage);
	cell->status = status;
	cell->reason = reason;
	if (status != CELL_MISMATCH)
		return;
	cell->gate = CELL_MISMATCH;
	cell->gate_log = "warning: momentum ignored\n";
	describe(cell, "0.9", "eigen");
	json_t *worst = json_pack("{s:s, s:s, s:f, s:f, s:b}", "what", "change", "tensor",
				  "fc2.bias", "value", 0.5, "bound", 5.1e-5, "passed", 0);
	cell->evidence = json_pack("{s:b, s:[O], s:i, s:n, s:i, s:o}", "passed", 0, "checks", worst,
				   "parameters", 431080, "macs", "gate_batch", 16, "worst", worst);
}

void report_fixture_init(struct stored_run *run, int machine)
{
	double speed = machine ? 1.5 : 1;
	*run = (struct stored_run){0};
	arena_init(&run->arena, 0);
	run->meta = (struct run_meta){.id = 12 + machine,
				      .suite = "quickstart",
				      .version = "0.1.0",
				      .effort = "default",
				      .seed = 1,
				      .started_wall_ns = INT64_C(1795000000000000000),
				      .finished_wall_ns = INT64_C(1795000400000000000),
				      .statistic = "mean",
				      .spec = "suite: quickstart",
				      .command = "prony run quickstart <&>",
				      .environment = environments[machine]};
	snprintf(run->meta.uid, sizeof run->meta.uid, "%c123456789abcdef0123456789abcdef",
		 machine ? 'b' : 'a');
	snprintf(run->meta.environment_hash, sizeof run->meta.environment_hash, "feedface0000000%d",
		 machine);
	snprintf(run->meta.host, sizeof run->meta.host, "%s", machine ? "fast" : "slow");
	run->cells = arena_array(&run->arena, CELLS_MAX, sizeof *run->cells);
	add_ok(run, "pytorch", STAGE_TRAIN, "2.15.0", 9.8, speed, 1900);
	add_ok(run, "native", STAGE_TRAIN, "3.2.0", 6.2, speed, 40);
	add_refused(run, "onnxruntime", STAGE_TRAIN, CELL_UNSUPPORTED,
		    "onnxruntime runs the stage forward only");
	add_refused(run, "fake", STAGE_TRAIN, CELL_MISMATCH,
		    "change of fc2.bias differs from the reference by 0.5, allowed 5.1e-05");
	add_crashed(run, "mxnet", STAGE_TRAIN);
	add_ok(run, "mxnet", STAGE_FORWARD, "1.9.1", 2.11, speed, 320);
	add_ok(run, "pytorch", STAGE_FORWARD, "2.15.0", 3.1, speed, 1900);
	add_ok(run, "native", STAGE_FORWARD, "3.2.0", 2.10, speed, 40);
	add_ok(run, "onnxruntime", STAGE_FORWARD, "1.31.1", 2.4, speed, 90);
	add_refused(run, "jax", STAGE_FORWARD, CELL_MISSING,
		    "not installed; 'prony framework install jax' does it");
	run->cells[6].flags = CELL_FLAG_NOT_STEADY | CELL_FLAG_DISCOVERED;
}
