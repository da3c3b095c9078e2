/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimates of a duty cycle, on a virtual clock: programs of known GPU time are recorded in the
 * windows that the tracer's own code chooses. Random numbers are replaced, so results are fixed.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "inject/writer/duty_windows.h"
#include "merge/naming/paths.h"
#include "merge/sums/duty_sums.h"

#define MS	   UINT64_C(1000000)
#define START_NS   (1000 * MS) /* of the clock */
#define WINDOW_NS  (100 * MS)
#define PERIOD_NS  (1000 * MS)
#define ROUND_NS   (10 * MS) /* of the writer thread */
#define PERIODS	   200
#define RUNS	   200
#define INSIDE_MIN 183 /* of RUNS in the 95 % interval, */
#define INSIDE_MAX 197 /* in 95 of 100 experiments */

static uint64_t seed;

static uint64_t next_random(void)
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Replaces libc's function in src/inject/writer/duty_windows.c. */
ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
	uint64_t number = next_random();

	(void)flags;
	memcpy(out, &number, bytes < sizeof(number) ? bytes : sizeof(number));
	return (ssize_t)bytes;
}

static double uniform(void)
{
	return (double)(next_random() >> 11) / (double)(UINT64_C(1) << 53);
}

static double exponential(double mean)
{
	return -mean * log(1 - uniform());
}

/* The time to the next launch, and the time of its kernel. */
struct launch_plan {
	double gap_ns, kernel_ns;
};

static struct launch_plan steady(uint64_t time_ns)
{
	(void)time_ns;
	return (struct launch_plan){exponential(3e6), exponential(1e6)};
}

/* Works in the first fifth of each second: the rhythm of the duty cycle itself. */
static struct launch_plan in_step(uint64_t time_ns)
{
	uint64_t phase_ns = time_ns % PERIOD_NS;

	if (phase_ns >= PERIOD_NS / 5)
		return (struct launch_plan){(double)(PERIOD_NS - phase_ns), 1};
	return (struct launch_plan){exponential(2e6), exponential(1e6)};
}

/* Requests of different size, with pauses between them. */
static struct launch_plan requests(uint64_t time_ns)
{
	static double kernel_ns, left_ns;

	(void)time_ns;
	if (left_ns <= 0) {
		left_ns = exponential(100e6);
		kernel_ns = exponential(1e6);
		return (struct launch_plan){exponential(60e6), 1};
	}
	left_ns -= 2e6;
	return (struct launch_plan){2e6, kernel_ns};
}

/* Three times as much work at the end as at the beginning. */
static struct launch_plan growing(uint64_t time_ns)
{
	return (struct launch_plan){exponential(3e6),
				    exponential(5e5 * (1 + (double)time_ns / 30e9))};
}

struct program {
	const char *name;
	struct launch_plan (*next)(uint64_t time_ns);
};

static const struct program programs[] = {
	{"steady", steady}, {"in step", in_step}, {"requests", requests}, {"growing", growing}};

/* The switches that the tracer would write. */
static void record_windows(struct pauses *pauses, uint64_t end_ns)
{
	const struct xt_duty_cycle cycle = {WINDOW_NS, PERIOD_NS};
	uint64_t duration_ns, on_until_ns = 0;

	duty_windows_begin(&cycle);
	duty_windows_start(START_NS);
	assert_int_equal(pauses_add(pauses, START_NS, false), 0);
	for (uint64_t now_ns = START_NS; now_ns < end_ns; now_ns += ROUND_NS) {
		if (on_until_ns && now_ns >= on_until_ns) {
			assert_int_equal(pauses_add(pauses, now_ns, false), 0);
			on_until_ns = 0;
		} else if (!on_until_ns && duty_windows_next(now_ns, &duration_ns)) {
			uint64_t on_ns = now_ns + next_random() % (30 * MS); /* CUPTI starts */

			assert_int_equal(pauses_add(pauses, on_ns, true), 0);
			on_until_ns = on_ns + duration_ns;
		}
	}
	duty_windows_stop();
	pauses_index(pauses);
}

struct result {
	double truth_ns;
	struct duty_estimate estimate;
};

/* One process. Adds its GPU time to truth_ns: of all launches, and of those of one path in ten. */
static void record_process(const struct program *program, uint64_t periods, struct duty_run *run,
			   struct paths *paths, double truth_ns[2])
{
	uint64_t end_ns = START_NS + periods * PERIOD_NS, time_ns = START_NS;
	struct pauses pauses = {0}, away = {0};
	struct duty_sums sums = {.pauses = &pauses};
	const struct duty_span span = {{WINDOW_NS, PERIOD_NS}, START_NS, end_ns, &pauses, &away};
	uint64_t recorded_ns[2] = {0};

	record_windows(&pauses, end_ns);
	for (;;) {
		struct launch_plan plan = program->next(time_ns - START_NS);
		uint64_t kernel_ns = (uint64_t)plan.kernel_ns;
		bool is_part = uniform() < 0.1;

		time_ns += (uint64_t)plan.gap_ns + 1;
		if (time_ns >= end_ns)
			break;
		truth_ns[0] += (double)kernel_ns;
		truth_ns[1] += is_part ? (double)kernel_ns : 0;
		if (pauses_within(&pauses, time_ns, time_ns))
			continue;
		recorded_ns[is_part] += kernel_ns;
		assert_int_equal(duty_sums_add(&sums, is_part, time_ns, kernel_ns), 0);
	}
	duty_sums_finish(&sums, &span, run);
	for (uint32_t owner = 0; owner < 2; owner++) {
		uint32_t name = names_intern(&paths->names, owner ? "b" : "a", 1);
		uint32_t node = paths_child(paths, PATH_ROOT, name);

		assert_int_equal(duty_sums_add_path(&sums, owner, run, node), 0);
		paths->nodes[node].weights[WEIGHT_GPU_TIME] += recorded_ns[owner];
	}
	duty_sums_free(&sums);
	pauses_free(&pauses);
}

/* A run of several equal processes, and its estimates. */
static void run_once(const struct program *program, uint64_t periods, unsigned process_count,
		     struct result results[2])
{
	struct duty_run run = {0};
	struct duty_estimate *estimates;
	double truth_ns[2] = {0};
	struct paths paths;

	memset(results, 0, 2 * sizeof(*results));
	assert_int_equal(paths_init(&paths), 0);
	for (unsigned p = 0; p < process_count; p++)
		record_process(program, periods, &run, &paths, truth_ns);
	assert_int_equal(
		duty_run_estimates(&run, &paths, WEIGHT_GPU_TIME, DUTY_BY_FRAME, &estimates), 0);
	for (int part = 0; part < 2; part++) {
		results[part].truth_ns = truth_ns[part];
		if (estimates)
			results[part].estimate = estimates[part ? 2 : PATH_ROOT];
	}
	free(estimates);
	duty_run_free(&run);
	paths_free(&paths);
}

static bool is_inside(const struct result *result)
{
	return fabs(result->estimate.value - result->truth_ns) <= result->estimate.error;
}

static void check_program(const struct program *program, uint64_t periods, unsigned processes)
{
	unsigned inside[2] = {0};
	double sum = 0, squares = 0, mean, deviation;

	for (int i = 0; i < RUNS; i++) {
		struct result results[2];
		double ratio;

		run_once(program, periods, processes, results);
		ratio = results[0].estimate.value / results[0].truth_ns;
		sum += ratio;
		squares += ratio * ratio;
		inside[0] += is_inside(&results[0]);
		inside[1] += is_inside(&results[1]);
	}
	mean = sum / RUNS;
	deviation = sqrt((squares / RUNS - mean * mean) / RUNS);
	print_message("%-10s %2u x %3llu periods: %u and %u of %d inside, mean %.4f (error %.4f)\n",
		      program->name, processes, (unsigned long long)periods, inside[0], inside[1],
		      RUNS, mean, deviation);
	assert_in_range(inside[0], INSIDE_MIN, INSIDE_MAX);
	assert_in_range(inside[1], INSIDE_MIN, INSIDE_MAX);
	assert_true(fabs(mean - 1) < 3 * deviation);
}

static void intervals_contain_the_truth(void **state)
{
	(void)state;
	seed = 1;
	for (size_t p = 0; p < sizeof(programs) / sizeof(programs[0]); p++)
		check_program(&programs[p], 200, 1);
}

/* Each process has few windows, and some have none. */
static void pools_several_processes(void **state)
{
	(void)state;
	seed = 2;
	check_program(&programs[0], 2, 50);
	check_program(&programs[0], 3, 16);
	check_program(&programs[2], 8, 8);
}

/* A log that ended before its first window is counted, and has no estimate. */
static void counts_logs_without_window(void **state)
{
	struct pauses pauses = {0}, away = {0};
	struct duty_sums sums = {.pauses = &pauses};
	struct duty_run run = {0};
	struct duty_estimate *estimates;
	struct paths paths;

	(void)state;
	assert_int_equal(paths_init(&paths), 0);
	assert_int_equal(pauses_add(&pauses, START_NS, false), 0);
	pauses_index(&pauses);
	duty_sums_finish(&sums,
			 &(struct duty_span){
				 {WINDOW_NS, PERIOD_NS}, START_NS, START_NS + MS, &pauses, &away},
			 &run);
	assert_int_equal(run.log_unrecorded_count, 1);
	assert_int_equal(run.covered_ns, MS);
	assert_int_equal(run.recorded_ns, 0);
	assert_int_equal(
		duty_run_estimates(&run, &paths, WEIGHT_GPU_TIME, DUTY_BY_PATH, &estimates), 0);
	assert_null(estimates);
	pauses_free(&pauses);
	paths_free(&paths);
}

/* Time in which the cycle was off is not estimated, and one window says nothing of the error. */
static void leaves_out_time_without_cycle(void **state)
{
	struct pauses pauses = {0}, away = {0};
	struct duty_sums sums = {.pauses = &pauses};
	struct duty_run run = {0};
	struct duty_estimate *estimates;
	struct paths paths;

	(void)state;
	assert_int_equal(paths_init(&paths), 0);
	assert_int_equal(pauses_add(&pauses, 100, false), 0);
	assert_int_equal(pauses_add(&pauses, 200, true), 0);
	assert_int_equal(pauses_add(&pauses, 300, false), 0);
	assert_int_equal(pauses_add(&away, 500, false), 0);
	pauses_index(&pauses);
	pauses_index(&away);
	assert_int_equal(duty_sums_add(&sums, 0, 250, 10), 0);
	duty_sums_finish(&sums, &(struct duty_span){{100, 200}, 100, 900, &pauses, &away}, &run);
	assert_int_equal(run.recorded_ns, 100);
	assert_int_equal(run.covered_ns, 400);
	assert_int_equal(duty_sums_add_path(&sums, 0, &run, PATH_ROOT), 0);
	paths.nodes[PATH_ROOT].weights[WEIGHT_GPU_TIME] = 10;
	assert_int_equal(
		duty_run_estimates(&run, &paths, WEIGHT_GPU_TIME, DUTY_BY_PATH, &estimates), 0);
	assert_true(fabs(estimates[PATH_ROOT].value - 40) < 1e-6);
	assert_true(fabs(estimates[PATH_ROOT].error - 40) < 1e-6);
	free(estimates);
	duty_sums_free(&sums);
	duty_run_free(&run);
	pauses_free(&pauses);
	pauses_free(&away);
	paths_free(&paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_contain_the_truth),
		cmocka_unit_test(pools_several_processes),
		cmocka_unit_test(counts_logs_without_window),
		cmocka_unit_test(leaves_out_time_without_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
