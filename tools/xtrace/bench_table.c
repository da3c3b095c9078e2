/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The printed result of a bench: a line for each run, the median, the spread, and warnings.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "log/base/number_format.h"

/* Thresholds for warnings. */
#define CLOCK_DRIFT   0.02 /* part of the median */
#define CELSIUS_DRIFT 5.0
#define SPREAD_MUCH   0.05 /* part of the median GPU time */
#define TEXT_BYTES    64
#define REASONS_BYTES 96

static void format_range(char *out, const struct gpu_range *range, double unit, const char *words)
{
	double min = range->min / unit, max = range->max / unit;

	if (!range->count)
		snprintf(out, TEXT_BYTES, "-");
	else if ((long)(min + 0.5) == (long)(max + 0.5))
		snprintf(out, TEXT_BYTES, "%.0f %s", min, words);
	else
		snprintf(out, TEXT_BYTES, "%.0f-%.0f %s", min, max, words);
}

static void format_reasons(char *out, uint64_t seen)
{
	const char *words;
	uint64_t bit;

	out[0] = '\0';
	for (size_t n = 0; (words = gpu_reason_words(n, &bit)); n++)
		if (seen & bit)
			snprintf(out + strlen(out), REASONS_BYTES - strlen(out), "%s%s",
				 *out ? ", " : "", words);
	if (!*out)
		strcpy(out, "-");
}

static void put(const struct bench *bench, const char *const *cells)
{
	if (bench->side_count == 2)
		printf("%-5s", cells[0]);
	printf("%-10s %12s %12s", cells[1], cells[2], cells[3]);
	if (bench->watch && *cells[4])
		printf("  %15s %10s %9s  %s", cells[4], cells[5], cells[6], cells[7]);
	putchar('\n');
}

void bench_table_begin(const struct bench *bench)
{
	static const char *const heads[] = {"side",	"run",	 "run time", "GPU time",
					    "SM clock", "temp.", "power",    "throttled by"};

	printf("%u run%s%s, after %u to warm up%s\n", bench->runs, bench->runs == 1 ? "" : "s",
	       bench->side_count == 2 ? " of each side" : "", bench->warmups,
	       bench->is_simulated ? " (simulated GPU)" : "");
	if (!bench->watch)
		printf("clocks and temperatures are not watched: %s\n",
		       bench->no_watch ? bench->no_watch : "out of memory");
	putchar('\n');
	put(bench, heads);
	fflush(stdout);
}

void bench_table_row(const struct bench *bench, const struct bench_side *side,
		     const struct bench_run *run)
{
	char wall[TEXT_BYTES], gpu[TEXT_BYTES], clock[TEXT_BYTES], celsius[TEXT_BYTES];
	char power[TEXT_BYTES], reasons[REASONS_BYTES];
	const char *const cells[] = {
		side->name ? side->name : "", run->name, wall, gpu, clock, celsius, power, reasons};
	struct gpu_range power_mean = run->gpu.ranges[GPU_MILLIWATTS];

	power_mean.min = power_mean.max = power_mean.mean;
	format_time(wall, run->wall_ns);
	format_time(gpu, run->gpu_time_ns);
	format_range(clock, &run->gpu.ranges[GPU_SM_MHZ], 1, "MHz");
	format_range(celsius, &run->gpu.ranges[GPU_CELSIUS], 1, "C");
	format_range(power, &power_mean, 1000, "W");
	format_reasons(reasons, run->gpu.reasons);
	put(bench, cells);
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread {
	double min, median, max;
	size_t count;
};

/* Over the measured runs of one side, or of both (NULL), for which get() has a value. */
static struct spread spread_of(const struct bench *bench, const struct bench_side *only,
			       double (*get)(const struct bench_run *run))
{
	double values[2 * BENCH_RUNS_MAX];
	struct spread spread = {0};

	for (size_t s = 0; s < bench->side_count; s++) {
		const struct bench_side *side = &bench->sides[s];

		for (size_t r = 0; r < side->run_count && (!only || only == side); r++) {
			double value = get(&side->runs[r]);

			if (!side->runs[r].is_warmup && value >= 0)
				values[spread.count++] = value;
		}
	}
	if (!spread.count)
		return spread;
	qsort(values, spread.count, sizeof(*values), compare);
	spread.min = values[0];
	spread.max = values[spread.count - 1];
	spread.median = (values[(spread.count - 1) / 2] + values[spread.count / 2]) / 2;
	return spread;
}

static double get_wall(const struct bench_run *run)
{
	return (double)run->wall_ns;
}

static double get_gpu_time(const struct bench_run *run)
{
	return (double)run->gpu_time_ns;
}

static double get_clock(const struct bench_run *run)
{
	return run->gpu.ranges[GPU_SM_MHZ].count ? run->gpu.ranges[GPU_SM_MHZ].mean : -1;
}

static double get_celsius(const struct bench_run *run)
{
	return run->gpu.ranges[GPU_CELSIUS].count ? run->gpu.ranges[GPU_CELSIUS].mean : -1;
}

/* The spread as a part of the median. */
static double apart(struct spread spread)
{
	return spread.median > 0 ? (spread.max - spread.min) / spread.median : 0;
}

static void put_percent(char *out, double part)
{
	snprintf(out, TEXT_BYTES, "%.2f %%", 100 * part);
}

void bench_table_end(const struct bench *bench)
{
	size_t device_count = 0;
	const char *device = bench->watch ? gpu_watch_name(bench->watch, &device_count) : NULL;

	for (size_t s = 0; s < bench->side_count; s++) {
		const struct bench_side *side = &bench->sides[s];
		struct spread wall = spread_of(bench, side, get_wall);
		struct spread gpu = spread_of(bench, side, get_gpu_time);
		char wall_text[TEXT_BYTES], gpu_text[TEXT_BYTES];
		const char *cells[] = {side->name ? side->name : "",
				       "median",
				       wall_text,
				       gpu_text,
				       "",
				       "",
				       "",
				       ""};

		putchar('\n');
		format_time(wall_text, (uint64_t)wall.median);
		format_time(gpu_text, (uint64_t)gpu.median);
		put(bench, cells);
		cells[1] = "spread";
		put_percent(wall_text, apart(wall));
		put_percent(gpu_text, apart(gpu));
		put(bench, cells);
	}
	if (device)
		printf("\nGPUs: %zu %s\n", device_count, device);
	fflush(stdout);
}

static void warn_drift(const struct bench *bench)
{
	struct spread clock = spread_of(bench, NULL, get_clock);
	struct spread celsius = spread_of(bench, NULL, get_celsius);

	if (apart(clock) > CLOCK_DRIFT)
		print_note("clocks differed between runs: %.0f to %.0f MHz; if you may, lock them "
			   "with "
			   "nvidia-smi --lock-gpu-clocks",
			   clock.min, clock.max);
	if (celsius.count && celsius.max - celsius.min > CELSIUS_DRIFT)
		print_note(
			"temperatures differed between runs: %.0f to %.0f C; add warm-up runs with "
			"--warmup",
			celsius.min, celsius.max);
}

static void warn_runs(const struct bench *bench, const struct bench_side *side)
{
	size_t held_count = 0, incomplete_count = 0, run_count = 0;
	uint32_t other_pid = 0;
	uint64_t held = 0, bit;
	char reasons[REASONS_BYTES];
	const char *of = side->name ? side->name : "", *space = side->name ? " " : "";

	for (size_t n = 0; gpu_reason_words(n, &bit); n++)
		held |= bit;
	bit = 0;
	for (size_t r = 0; r < side->run_count; r++) {
		const struct bench_run *run = &side->runs[r];

		if (run->is_warmup)
			continue;
		run_count++;
		held_count += (run->gpu.reasons & held) != 0;
		bit |= run->gpu.reasons & held;
		incomplete_count += !run->is_complete;
		other_pid = run->other_pid ? run->other_pid : other_pid;
	}
	format_reasons(reasons, bit);
	if (held_count)
		print_note("%s%sclocks were throttled in %zu of %zu runs: %s", of, space,
			   held_count, run_count, reasons);
	if (other_pid)
		print_note("%s%sanother process used the GPU: pid %u (in the host's pid namespace)",
			   of, space, other_pid);
	if (incomplete_count)
		print_note("%s%sevents are missing in %zu of %zu runs: xtrace report lists them",
			   of, space, incomplete_count, run_count);
	if (apart(spread_of(bench, side, get_gpu_time)) > SPREAD_MUCH)
		print_note(
			"%s%sGPU time varied by %.1f %% between runs: only larger changes can be "
			"detected",
			of, space, 100 * apart(spread_of(bench, side, get_gpu_time)));
}

void bench_warn(const struct bench *bench)
{
	warn_drift(bench);
	for (size_t s = 0; s < bench->side_count; s++)
		warn_runs(bench, &bench->sides[s]);
}
