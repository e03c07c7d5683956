/* The time between two steps of an energy counter on a replayed machine that sometimes delays
 * prony's readings. The clock is simulated, and the counter follows it. */
#include <stdatomic.h>
#include <time.h>

#include "sensors/sampling.h"
#include "tests/unit/sensor_fixture.h"
#include "unit_test.h"

#define FOLDER "/sys/class/powercap/intel-rapl:0/"
#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SLACK_NS (50 * US) /* the minimum by which a sleep exceeds its deadline */

enum { DELAYS_MAX = 8 };

/* A delay of prony. It applies to the first reading, from the begin of the mark on, that would end
 * more than `after_ns` after the given step. */
struct delay {
	int step; /* counted from the begin of the mark; 0: the begin itself */
	int64_t after_ns, lasts_ns;
	bool reading; /* between reading clock and counter; else during its sleep */
};

static struct {
	atomic_llong now_ns;
	int64_t epoch_ns, period_ns, mark_ns;
	int fd;
	struct delay delays[DELAYS_MAX];
	size_t delay_count, delay_next;
	bool every_look; /* the one delay applies to each reading */
} machine;

/* The sensors' thread reads the clock, too, and is not delayed. */
static _Thread_local bool is_played;

int64_t __wrap_clock_monotonic_ns(void);
void __wrap_clock_sleep_until_ns(int64_t deadline_ns);

static void show_counter(void)
{
	char text[32];
	int64_t steps = (atomic_load(&machine.now_ns) - machine.epoch_ns) / machine.period_ns;
	int length = snprintf(text, sizeof text, "%lld\n", 1000000 + (long long)steps * 40000);

	assert_int_equal(pwrite(machine.fd, text, (size_t)length, 0), length);
}

/* Returns the next delay, if it applies now. */
static int64_t delay_now(int64_t now_ns, bool reading)
{
	const struct delay *next = &machine.delays[machine.delay_next];
	int64_t first = (machine.mark_ns - machine.epoch_ns) / machine.period_ns;
	int64_t from = next->step == 0
			       ? machine.mark_ns
			       : machine.epoch_ns + (first + next->step) * machine.period_ns;

	if (machine.delay_next == machine.delay_count || next->reading != reading ||
	    now_ns < from + next->after_ns)
		return 0;
	machine.delay_next += !machine.every_look;
	return next->lasts_ns;
}

static void pass(int64_t ns)
{
	atomic_fetch_add(&machine.now_ns, ns);
	show_counter();
}

int64_t __wrap_clock_monotonic_ns(void)
{
	int64_t now = atomic_load(&machine.now_ns), delay;

	if (is_played && (delay = delay_now(now, true)) > 0)
		pass(delay);
	return now;
}

void __wrap_clock_sleep_until_ns(int64_t deadline_ns)
{
	int64_t until = deadline_ns + SLACK_NS;

	pass(until + delay_now(until, false) - atomic_load(&machine.now_ns));
}

static void mark(struct sampling *sampling, bool in_window)
{
	machine.delay_next = 0;
	/* The mark's first reading is 0.3 of a period after a step. */
	int64_t now = atomic_load(&machine.now_ns);
	int64_t since = (now - machine.epoch_ns) % machine.period_ns;
	pass(machine.period_ns - since + 3 * machine.period_ns / 10);
	machine.mark_ns = atomic_load(&machine.now_ns);
	is_played = true;
	sampling_mark(sampling, in_window);
	is_played = false;
}

/* The machine of sensor_machine with one package, whose counter is read at two marks. */
static void replay(const char *root, struct process_record *record)
{
	struct sampling *sampling = NULL;
	struct error err = ERROR_INIT;
	char *path = test_text("%s" FOLDER "energy_uj", root);

	sensor_machine(root);
	machine_file(root, FOLDER "name", "package-0");
	machine_file(root, FOLDER "max_energy_range_uj", "262143328850");
	machine_file(root, FOLDER "energy_uj", "1000000");
	machine.fd = open(path, O_WRONLY | O_CLOEXEC);
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(machine.fd >= 0 && root_fd >= 0);
	machine.epoch_ns = atomic_load(&machine.now_ns);
	process_record_init(record);
	check(sampling_start(root_fd, GUARD, NULL, 0, NULL, &sampling, &err), &err);
	mark(sampling, true);
	mark(sampling, false);
	sampling_stop(sampling, record);
	sampling_figures(record);
	close(root_fd);
	close(machine.fd);
}

struct machine_case {
	const char *what;
	int64_t period_ns;
	struct delay delays[DELAYS_MAX];
	bool every_look;
	int64_t low_ns, high_ns; /* range of the result; both 0: none */
};

static const struct machine_case cases[] = {
	{"all in time", MS, {{0}}, false, 900 * US, 1100 * US},
	{"a slow counter", 7 * MS, {{0}}, false, 6800 * US, 7200 * US},
	{"late for the second step, which were four",
	 MS,
	 {{2, -200 * US, 3300 * US, false}},
	 false,
	 900 * US,
	 1100 * US},
	{"late for the first step, seen just before the second",
	 MS,
	 {{1, -200 * US, 1000 * US, false}},
	 false,
	 900 * US,
	 1100 * US},
	{"kept waiting between clock and counter",
	 MS,
	 {{2, -300 * US, 4 * MS, true}},
	 false,
	 900 * US,
	 1100 * US},
	{"late twice",
	 MS,
	 {{2, -200 * US, 3 * MS, false}, {6, -200 * US, 2 * MS, false}},
	 false,
	 900 * US,
	 1100 * US},
	{"late where no step was", 7 * MS, {{1, MS, 2 * MS, false}}, false, 6800 * US, 7200 * US},
	{"always late", MS, {{0, 0, 2600 * US, false}}, true, 0, 0},
	{"late from the first step on, and no second is seen",
	 MS,
	 {{1, 300 * US, 25 * MS, false}},
	 false,
	 0,
	 0},
	{"a counter that does not move in a mark", 60 * MS, {{0}}, false, 0, 0},
};

TEST_WITH(late_looks_are_no_steps, machine_setup, machine_teardown)
{
	int wrong = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct machine_case *row = &cases[i];
		SCOPED(process_record) record;
		machine.period_ns = row->period_ns;
		machine.every_look = row->every_look;
		memcpy(machine.delays, row->delays, sizeof machine.delays);
		machine.delay_count = 0;
		while (machine.delay_count < DELAYS_MAX &&
		       machine.delays[machine.delay_count].lasts_ns > 0)
			machine.delay_count++;
		replay(*state, &record);
		int64_t found = record.energy_update_ns;
		bool right = row->high_ns == 0 ? found == RECORD_NONE
					       : found >= row->low_ns && found <= row->high_ns;
		if (!right)
			print_message("# %s: found %lld us\n", row->what,
				      (long long)(found == RECORD_NONE ? -1 : found / US));
		wrong += !right;
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	struct timespec now;

	/* The sensors' thread waits by the real clock. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&machine.now_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	machine.period_ns = MS;
	return unit_tests_run(NULL, NULL);
}
