/* Decides before anything runs whether a cell can be tried on this machine. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/process.h"
#include "datasets/format.h"
#include "datasets/text.h"
#include "plan/resolve_internal.h"

#define REASON_BYTES 900

static void add_reason(struct strbuf *reasons, const char *format, ...) PRONY_PRINTF(2, 3);

static void add_reason(struct strbuf *reasons, const char *format, ...)
{
	char text[REASON_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	strbuf_printf(reasons, "%s%s", reasons->length > 0 ? "; " : "", text);
}

static const char *loop_word(size_t value)
{
	return loop_mode_name((enum loop_mode)value);
}

static const char *stage_word(size_t value)
{
	return stage_name((enum stage)value);
}

static const char *precision_word(size_t value)
{
	return precision_name((enum precision)value);
}

/* Adds a reason such as "stage train: onnxruntime has forward only". */
static void judge_bit(struct strbuf *reasons, const char *axis, const char *(*word)(size_t),
		      size_t count, size_t value, unsigned can, const char *framework)
{
	struct strbuf known;
	size_t kinds = 0;

	if (can & 1u << value)
		return;
	strbuf_init(&known, REASON_BYTES / 2);
	for (size_t i = 0; i < count; i++)
		if (can & 1u << i)
			strbuf_printf(&known, "%s%s", kinds++ > 0 ? ", " : "", word(i));
	add_reason(reasons, "%s %s: %s has %s%s", axis, word(value), framework,
		   kinds ? strbuf_text(&known) : "none", kinds == 1 ? " only" : "");
	strbuf_release(&known);
}

/* Whether a comma-separated list contains a word of that length. */
static bool has_word(const char *list, const char *word, size_t length)
{
	while (list && *list) {
		size_t next = strcspn(list, ",");

		if (next == length && strncmp(list, word, length) == 0)
			return true;
		list += next + (list[next] == ',');
	}
	return false;
}

/* Judges the backend. None is chosen for the user, because results of two backends must not stand
 * in one row. */
static void judge_backend(const struct expansion *e, const struct plan_cell *cell,
			  struct strbuf *reasons)
{
	const struct framework *framework = cell->location->framework;
	const struct registry *registry = e->settings->registry;
	struct strbuf known;

	if (strcmp(cell->cell.backend, framework->backend) == 0)
		return;
	strbuf_init(&known, REASON_BYTES / 2);
	for (size_t i = 0; i < registry->count; i++)
		if (strcmp(registry->rows[i].name, framework->name) == 0)
			strbuf_printf(&known, "%s%s:%s", known.length ? ", " : "", framework->name,
				      registry->rows[i].backend);
	if (!*framework->backend)
		add_reason(reasons, "backend %s: %s has no backends to choose from",
			   cell->cell.backend, framework->name);
	else if (*cell->cell.backend)
		add_reason(reasons, "backend %s: unknown; the backends are %s", cell->cell.backend,
			   strbuf_text(&known));
	else
		add_reason(reasons, "%s needs a backend: write one of %s", framework->name,
			   strbuf_text(&known));
	strbuf_release(&known);
}

static void judge_device(const struct expansion *e, const struct plan_cell *cell,
			 const struct framework *framework, struct strbuf *reasons)
{
	const struct device device = device_of(cell->cell.device);
	bool cpu = device.kind == DEVICE_CPU, cuda = device.kind == DEVICE_CUDA;
	unsigned can = framework->devices;

	/* The worker reports the devices of a library in its reply to hello. */
	if (!cpu && !(can & FRAMEWORK_ANY) && !(cuda && can & FRAMEWORK_CUDA))
		add_reason(reasons, "device %s: %s runs on %s", cell->cell.device, framework->name,
			   can & FRAMEWORK_CUDA ? "cpu and cuda:N" : "the CPU only");
	if (device.count > 1)
		add_reason(reasons, "device %s: this version supports one GPU per cell",
			   cell->cell.device);
	if (cpu && cell->recipe.threads * device.ranks > e->settings->cores)
		add_reason(reasons, "device %s: this process may use only %d physical cores",
			   cell->cell.device, e->settings->cores);
}

/* Judges a cell whose ranks train one batch together. */
static void judge_ranks(const struct plan_cell *cell, struct strbuf *reasons)
{
	const struct framework *framework = cell->location->framework;
	const char *device = cell->cell.device;
	int ranks = device_of(device).ranks;

	if (ranks == 1)
		return;
	if (!framework->ranks)
		add_reason(reasons, "device %s: %s%s%s", device, framework->name,
			   framework->no_ranks ? ": " : " has no data parallel training in prony",
			   framework->no_ranks ? framework->no_ranks : "");
	if (cell->cell.stage != STAGE_TRAIN)
		add_reason(reasons, "device %s: ranks share the stage train only", device);
	if (cell->cell.batch % ranks != 0)
		add_reason(reasons, "device %s: %d ranks do not divide a batch of %" PRId64, device,
			   ranks, cell->cell.batch);
	if (cell->recipe.input != INPUT_RESIDENT)
		add_reason(reasons, "device %s: ranks take resident batches only", device);
	if (cell->cell.loop == LOOP_FIT)
		add_reason(reasons, "device %s: ranks take loop step only", device);
}

/* Finds MPI's launcher for a cell whose ranks it must start. */
static void find_launcher(struct plan_cell *cell, struct strbuf *reasons)
{
	const char *sums = cell->location->framework->ranks;
	const char *named = getenv("PRONY_MPIRUN");
	const char *const names[] = {"mpirun", "mpiexec"};

	if (device_of(cell->cell.device).ranks == 1 || !sums || strcmp(sums, "mpi") != 0)
		return;
	for (size_t i = 0; !cell->launcher && i < (named ? 1 : 2); i++) {
		char *found = process_find(named ? named : names[i]);

		if (found)
			cell->launcher = named ? named : names[i];
		free(found);
	}
	if (!cell->launcher)
		add_reason(reasons,
			   "device %s: MPI's launcher starts the ranks of %s, and there is no %s; "
			   "install openmpi-bin or mpich, or set PRONY_MPIRUN to a launcher",
			   cell->cell.device, cell->location->framework->name,
			   named ? named : "mpirun on PATH");
}

/* Adds a reason for a GPU that this machine lacks. */
static void judge_gpu(const struct expansion *e, const struct plan_cell *cell,
		      struct strbuf *reasons)
{
	const struct device device = device_of(cell->cell.device);

	if (device.kind != DEVICE_CUDA || cell_gpu(e, cell))
		return;
	const struct gpus *gpus = e->settings->gpus ? e->settings->gpus() : NULL;
	int count = gpus ? gpus->count : 0;
	bool why = gpus && gpus->answered;
	if (count == 0)
		add_reason(reasons, "device %s: this machine has no GPU with an NVIDIA driver%s%s",
			   cell->cell.device, why ? ": " : "", why ? gpus->reason : "");
	else
		add_reason(reasons, "device %s: this machine has %d GPU%s, cuda:0%s",
			   cell->cell.device, count, count > 1 ? "s" : "",
			   count > 1 ? " and on" : "");
}

/* Machine code runs on GPUs of its own major number and no later one. A build of the user's may be
 * newer than those that the descriptor knows. */
static void judge_capability(const struct expansion *e, const struct plan_cell *cell,
			     struct strbuf *reasons)
{
	const struct gpu *gpu = cell_gpu(e, cell);
	int newest = cell->location->framework->cuda_newest;

	if (gpu && newest && gpu->capability / 10 > newest / 10 &&
	    cell->location->origin != ORIGIN_NAMED)
		add_reason(reasons,
			   "device %s: %s is built for GPUs up to sm_%d, this one is sm_%d (it "
			   "needs a newer build)",
			   cell->cell.device, cell->location->framework->name, newest,
			   gpu->capability);
}

/*
 * Returns the cell's option that chooses what the framework's own loader reads; NULL without one.
 */
static const struct framework_option *native_option(const struct plan_cell *cell)
{
	const struct framework *framework = cell->location->framework;

	for (size_t i = 0; i < framework->option_count; i++)
		if (framework->options[i].native_input.count > 0 &&
		    has_word(cell->cell.options, framework->options[i].name,
			     strlen(framework->options[i].name)))
			return &framework->options[i];
	return NULL;
}

static const struct word_list *native_formats(const struct plan_cell *cell)
{
	const struct framework_option *option = native_option(cell);

	return option ? &option->native_input : &cell->location->framework->native_input;
}

/* Returns the format in which a framework's own loader reads a data set: the format of its files,
 * or else one into which they can be converted; NULL if there is neither. */
static const char *native_format(const struct plan_cell *cell)
{
	const struct word_list *formats = native_formats(cell);
	const struct dataset *dataset = cell->dataset;
	const char *other = NULL;

	for (size_t i = 0; i < formats->count; i++) {
		const struct data_format *format = data_format_find(formats->words[i]);

		if (strcmp(formats->words[i], dataset->format) == 0)
			return dataset->format;
		if (!other && format && format->writer)
			other = format->name;
	}
	return other;
}

/* Judges a framework's own loader and the data that it reads. */
static void judge_native(const struct plan_cell *cell, struct strbuf *reasons)
{
	const struct framework *framework = cell->location->framework;
	const struct word_list *formats = native_formats(cell);
	struct strbuf known;

	strbuf_init(&known, REASON_BYTES / 2);
	for (size_t i = 0; i < formats->count; i++)
		strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", formats->words[i]);
	if (formats->count == 0)
		add_reason(reasons,
			   "input native: prony cannot run a data loader of %s (input stream uses "
			   "prony's own)%s%s%s",
			   framework->name, framework->native_input_by ? "; the loader of " : "",
			   framework->native_input_by ? framework->native_input_by : "",
			   framework->native_input_by ? " supports no environment or option" : "");
	else if (!native_format(cell))
		add_reason(reasons,
			   "input native: the loader of %s needs a data set of format %s, but %s "
			   "has format %s",
			   framework->name, strbuf_text(&known), cell->dataset->name,
			   cell->dataset->format);
	strbuf_release(&known);
}

/* Judges input that arrives while the network runs, and its loader. */
static void judge_input(const struct plan_cell *cell, struct strbuf *reasons)
{
	const char *word = input_mode_name(cell->cell.input);
	const struct framework_option *option = native_option(cell);

	if (option && cell->cell.input != INPUT_NATIVE)
		add_reason(reasons, "option %s needs input native, but the input is %s",
			   option->name, word);
	if (cell->recipe.input == INPUT_RESIDENT)
		return;
	if (!cell->dataset->format)
		add_reason(reasons,
			   "input %s: data set %s is generated, not loaded; use a data set in "
			   "files, or input synthetic",
			   word, cell->dataset->name);
	else if (dataset_is_text(cell->dataset))
		add_reason(reasons, "input %s: text supports only resident batches", word);
	else if (cell->cell.input == INPUT_NATIVE)
		judge_native(cell, reasons);
	else if (cell->cell.input == INPUT_COLD && strcmp(cell->dataset->format, "images"))
		add_reason(reasons,
			   "input cold: only photographs are read again from their files; samples "
			   "of %s stay in memory",
			   cell->dataset->name);
	if (cell->cell.input == INPUT_COLD && cell->cell.stage != STAGE_LOAD)
		add_reason(reasons, "input cold: measures storage, with the stage load only");
	if (cell->cell.loop == LOOP_FIT)
		add_reason(reasons, "input %s: loop fit supports only resident batches", word);
	if (network_is_as_it_is(cell->network))
		add_reason(reasons,
			   "input %s: a model file that prony cannot translate supports only "
			   "resident batches",
			   word);
}

/* Multiplications of an evaluation: a minute on two cores. */
#define UNTIL_MACS_MAX 1e12

/* A training until a target needs real samples, all of them, and others that evaluate it. */
static void judge_until(const struct plan_cell *cell, struct strbuf *reasons)
{
	if (!cell->until.goal)
		return;
	if (cell->cell.stage != STAGE_TRAIN)
		add_reason(reasons, "--until: stage %s trains nothing; use train",
			   stage_name(cell->cell.stage));
	if (cell->cell.input != INPUT_STREAM)
		add_reason(reasons, "--until: input %s has not all samples; use stream",
			   input_mode_name(cell->cell.input));
	if (network_takes_data_sets(cell->network) &&
	    (double)cell->network->macs * (double)cell->dataset->evaluation_count > UNTIL_MACS_MAX)
		add_reason(reasons,
			   "--until: the reference would need minutes for each evaluation of %s "
			   "with the %" PRId64 " samples of %s",
			   cell->network->name, cell->dataset->evaluation_count,
			   cell->dataset->name);
	if (cell->target.world_size > 1)
		add_reason(reasons, "--until: several ranks are not trained to a target");
}

/* Judges what no choice on this machine can change: features that the framework, its adapter or
 * prony lacks. */
static void judge_support(const struct expansion *e, const struct plan_cell *cell,
			  struct strbuf *reasons)
{
	const struct framework *framework = cell->location->framework;

	if (cell->cell.stage == STAGE_LOAD && cell->recipe.input == INPUT_STREAM &&
	    !(framework->stages & 1u << STAGE_LOAD))
		add_reason(reasons, "stage load: only the framework native measures prony's "
				    "loader; use --input native for the framework's own");
	else if (cell->cell.stage != STAGE_LOAD)
		judge_bit(reasons, "stage", stage_word, STAGE_COUNT, cell->recipe.stage,
			  framework->stages, framework->name);
	if (framework->lacks_stages & 1u << cell->cell.stage)
		add_reason(reasons, "stage %s: the framework lacks it",
			   stage_name(cell->cell.stage));
	if (cell->cell.stage == STAGE_TRAIN &&
	    framework->lacks_optimisers & 1u << cell->cell.optimiser)
		add_reason(reasons, "optimiser %s: the framework lacks it",
			   optimiser_name(cell->cell.optimiser));
	judge_bit(reasons, "precision", precision_word, PRECISION_COUNT, cell->recipe.precision,
		  framework_precisions(framework, cell->cell.device), framework->name);
	judge_device(e, cell, framework, reasons);
	judge_ranks(cell, reasons);
	judge_capability(e, cell, reasons);
	judge_backend(e, cell, reasons);
	judge_input(cell, reasons);
	judge_until(cell, reasons);
	judge_bit(reasons, "loop", loop_word, LOOP_COUNT, cell->cell.loop, framework->loops,
		  framework->name);
	if (cell->recipe.clip_norm > 0 && !framework->clips)
		add_reason(reasons, "clip norm %g: %s does not clip gradients",
			   cell->recipe.clip_norm, framework->name);
}

static void judge_dataset(const struct plan_cell *cell, struct strbuf *reasons)
{
	const struct network_input *input = &cell->network->inputs[0];
	struct batch_request request = {
		.rank = input->rank,
		.classes = cell->network->classes,
	};
	struct error why = ERROR_INIT;

	if (dataset_is_text(cell->dataset)) {
		if (!network_takes_text(cell->network))
			add_reason(reasons,
				   "data set %s is text, but the network does not predict the next "
				   "token, or has fewer than 256; use gpt2, gpt2-bytes, "
				   "llama-small or llama-tiny, or another data set",
				   cell->dataset->name);
		else if (cell->cell.stage == STAGE_DECODE)
			add_reason(reasons,
				   "data set %s is text, but stage decode draws its tokens; use -d "
				   "synthetic",
				   cell->dataset->name);
		return;
	}
	if (!network_takes_data_sets(cell->network) && cell->dataset->rank > 0) {
		add_reason(reasons,
			   "data set %s has one array and one class per sample, but the network "
			   "has other inputs or labels; use -d synthetic",
			   cell->dataset->name);
		return;
	}
	memcpy(request.dims, input->dims, sizeof(request.dims));
	if (dataset_check_fit(cell->dataset, &request, &why) != PRONY_OK)
		add_reason(reasons, "%s", why.text);
}

/* Judges a file that no graph expresses: only engines that read such files can run it, forward. */
static void judge_file(const struct plan_cell *cell, struct strbuf *reasons)
{
	const struct network_file *file = cell->network->file;
	const struct framework *framework = cell->location->framework;
	struct model_file model;
	struct arena arena;
	struct error why = ERROR_INIT;

	if (!network_is_as_it_is(cell->network) || !framework->reads_onnx ||
	    cell->cell.stage != STAGE_FORWARD) {
		add_reason(reasons, "%s", file->reason);
		if (file->unreadable)
			add_reason(reasons, "running the file unchanged fails too: %s",
				   file->unreadable);
		else if (!framework->reads_onnx)
			add_reason(reasons, "%s cannot read ONNX files", framework->name);
		return;
	}
	arena_init(&arena, 0);
	if (file->precision != PRECISION_FP32 && cell->cell.precision != file->precision)
		add_reason(reasons, "precision %s: the file itself is %s; leave out -p",
			   precision_name(cell->cell.precision), precision_name(file->precision));
	if (network_model_ports(cell->network, cell->cell.batch, &arena, &model, &why) != PRONY_OK)
		add_reason(reasons, "%s", why.text);
	arena_release(&arena);
}

/*
 * Finds the converted files if the framework's own loader reads another format than the data set's.
 */
static void find_converted(const struct expansion *e, struct plan_cell *cell,
			   struct strbuf *reasons)
{
	const struct dataset *dataset = cell->dataset;
	struct converted found;
	struct error why = ERROR_INIT;

	if (cell->cell.input != INPUT_NATIVE)
		return;
	const char *format = native_format(cell);
	if (strcmp(format, dataset->format) == 0)
		return;
	if (dataset_locate_converted(dataset, format, cell->recipe.stage != STAGE_FORWARD,
				     e->settings->data_folder, &found, &why) != PRONY_OK) {
		add_reason(reasons, "%s", why.text);
		return;
	}
	cell->converted = found;
	cell->converted.folder = arena_strdup(&e->plan->arena, found.folder);
	free(found.folder);
}

/* Says why a network has no steps with caches. */
static void judge_steps(const struct plan_cell *cell, struct strbuf *reasons)
{
	struct network other;
	struct error why = ERROR_INIT;

	network_at_stage(cell->network, cell->cell.stage, &other, &why);
	add_reason(reasons, "%s", why.text);
}

static enum cell_status judge(const struct expansion *e, const struct dataset_choice *dataset,
			      struct plan_cell *cell, struct strbuf *reasons)
{
	judge_support(e, cell, reasons);
	if (cell->cell.sequence > cell->network->tokens_max)
		add_reason(reasons, "sequence %" PRId64 ": %s has at most %" PRId64 " tokens",
			   cell->cell.sequence, cell->network->name, cell->network->tokens_max);
	else if (stage_has_cache(cell->cell.stage) && cell->network->stage != cell->cell.stage)
		judge_steps(cell, reasons);
	if (cell->network->file && cell->network->file->reason && !cell->ungated)
		judge_file(cell, reasons);
	else if (cell->network->file && cell->network->file->reason)
		add_reason(reasons, "%s", cell->network->file->reason);
	else
		judge_dataset(cell, reasons);
	if (reasons->length > 0)
		return CELL_UNSUPPORTED;
	judge_gpu(e, cell, reasons);
	find_launcher(cell, reasons);
	if (cell->location->origin == ORIGIN_NONE)
		add_reason(reasons, "%s",
			   cell->location->reason ? cell->location->reason : "not found");
	if (dataset->reason && cell->cell.input != INPUT_SYNTHETIC)
		add_reason(reasons, "%s", dataset->reason);
	else
		find_converted(e, cell, reasons);
	if (reasons->length > 0)
		return CELL_MISSING;
	/* The memory of a model file run unchanged is unknown before it runs. */
	return network_is_as_it_is(cell->network) ? CELL_PENDING : judge_memory(e, cell, reasons);
}

enum prony_status judge_cell(const struct expansion *e, const struct dataset_choice *dataset,
			     struct plan_cell *cell, struct error *err)
{
	struct arena *arena = &e->plan->arena;
	struct error why = ERROR_INIT;
	struct strbuf reasons;

	strbuf_init(&reasons, ERROR_TEXT_BYTES);
	cell->status = judge(e, dataset, cell, &reasons);
	if (cell->status != CELL_PENDING)
		cell->reason = arena_strdup(arena, strbuf_text(&reasons));
	strbuf_release(&reasons);
	if (cell->status != CELL_PENDING)
		return PRONY_OK;
	const struct gpu *gpu = cell_gpu(e, cell);
	if (gpu && gpu->capability && *e->settings->gpus()->driver)
		cell->gpu = arena_printf(arena, "%s, sm_%d, driver %s", gpu->name, gpu->capability,
					 e->settings->gpus()->driver);

	enum prony_status status = framework_worker_command(
		cell->location, e->settings->self, cell->cell.options, cell->recipe.threads, arena,
		&cell->worker_argv, &cell->worker_environment, &why);
	if (status == PRONY_OK && cell->cell.caches == CACHES_COLD)
		cell->cache_folder = framework_cache_folder(cell->location, arena);
	if (status == PRONY_MISSING || status == PRONY_UNSUPPORTED) {
		cell->status = cell_status_from(status);
		cell->reason = arena_strdup(arena, why.text);
		return PRONY_OK;
	}
	return status == PRONY_OK ? PRONY_OK : error_set(err, status, "%s", why.text);
}
