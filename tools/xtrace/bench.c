/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace bench: records several runs of a program, or of two programs alternately, for xtrace
 * diff. Prints a line for each run, the median, the spread, and warnings.
 *
 * Two programs run as ABBA, so that drift of clocks and temperature affects both equally. Each
 * run is an xtrace record in its own process, while this process samples the state of the GPUs.
 * The first failed run ends the bench.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/message.h"
#include "commands.h"
#include "cuda_abi/nvml_abi.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "program.h"

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

static void put(const struct bench *bench, const char *const *cells)
{
	if (bench->side_count == 2)
		printf("%-5s", cells[0]);
	printf("%-10s %12s %12s", cells[1], cells[2], cells[3]);
	if (bench->watch && *cells[4])
		printf("  %15s %10s %9s  %s", cells[4], cells[5], cells[6], cells[7]);
	putchar('\n');
}

static void bench_table_begin(const struct bench *bench)
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

static void bench_table_row(const struct bench *bench, const struct bench_side *side,
			    const struct bench_run *run)
{
	char wall[TEXT_BYTES], gpu[TEXT_BYTES], clock[TEXT_BYTES], celsius[TEXT_BYTES];
	char power[TEXT_BYTES], reasons[REASONS_BYTES];
	const char *const cells[] = {side->name, run->name, wall,  gpu,
				     clock,	 celsius,   power, reasons};
	struct gpu_range power_mean = run->gpu.ranges[GPU_MILLIWATTS];

	power_mean.min = power_mean.max = power_mean.mean;
	format_time(wall, run->wall_ns);
	format_time(gpu, run->gpu_time_ns);
	format_range(clock, &run->gpu.ranges[GPU_SM_MHZ], 1, "MHz");
	format_range(celsius, &run->gpu.ranges[GPU_CELSIUS], 1, "C");
	format_range(power, &power_mean, 1000, "W");
	gpu_reasons_text(run->gpu.reasons, reasons, sizeof(reasons));
	put(bench, cells);
	fflush(stdout);
}

struct spread {
	double min, median, max;
	size_t count;
};

enum bench_value { WALL_NS, GPU_NS, CLOCK_MHZ, CELSIUS };

/* Returns -1 if it is unknown. */
static double value_of(const struct bench_run *run, enum bench_value value)
{
	const struct gpu_range *range =
		&run->gpu.ranges[value == CELSIUS ? GPU_CELSIUS : GPU_SM_MHZ];

	if (value == WALL_NS || value == GPU_NS)
		return (double)(value == WALL_NS ? run->wall_ns : run->gpu_time_ns);
	return range->count ? range->mean : -1;
}

/* Over the measured runs of one side, or of both (NULL), in which the value is known. */
static struct spread spread_of(const struct bench *bench, const struct bench_side *only,
			       enum bench_value which)
{
	double values[2 * BENCH_RUNS_MAX];
	struct spread spread = {0};

	for (size_t s = 0; s < bench->side_count; s++) {
		const struct bench_side *side = &bench->sides[s];

		for (size_t r = 0; r < side->run_count && (!only || only == side); r++) {
			double value = value_of(&side->runs[r], which);

			if (!side->runs[r].is_warmup && value >= 0)
				values[spread.count++] = value;
		}
	}
	if (!spread.count)
		return spread;
	qsort(values, spread.count, sizeof(*values), compare_doubles);
	spread.min = values[0];
	spread.max = values[spread.count - 1];
	spread.median = (values[(spread.count - 1) / 2] + values[spread.count / 2]) / 2;
	return spread;
}

/* The spread as a part of the median. */
static double apart(struct spread spread)
{
	return spread.median > 0 ? (spread.max - spread.min) / spread.median : 0;
}

static void bench_table_end(const struct bench *bench)
{
	size_t device_count = 0;
	const char *device = bench->watch ? gpu_watch_name(bench->watch, &device_count) : NULL;

	for (size_t s = 0; s < bench->side_count; s++) {
		const struct bench_side *side = &bench->sides[s];
		struct spread wall = spread_of(bench, side, WALL_NS);
		struct spread gpu = spread_of(bench, side, GPU_NS);
		char wall_text[TEXT_BYTES], gpu_text[TEXT_BYTES];
		const char *cells[8] = {side->name, "median", wall_text, gpu_text, ""};

		putchar('\n');
		format_time(wall_text, (uint64_t)wall.median);
		format_time(gpu_text, (uint64_t)gpu.median);
		put(bench, cells);
		cells[1] = "spread";
		snprintf(wall_text, TEXT_BYTES, "%.2f %%", 100 * apart(wall));
		snprintf(gpu_text, TEXT_BYTES, "%.2f %%", 100 * apart(gpu));
		put(bench, cells);
	}
	if (device)
		printf("\nGPUs: %zu %s\n", device_count, device);
	fflush(stdout);
}

static void warn_drift(const struct bench *bench)
{
	struct spread clock = spread_of(bench, NULL, CLOCK_MHZ);
	struct spread celsius = spread_of(bench, NULL, CELSIUS);

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
	double varied = apart(spread_of(bench, side, GPU_NS));
	uint32_t other_pid = 0;
	uint64_t seen = 0;
	char reasons[REASONS_BYTES];
	const char *of = side->name, *space = *of ? " " : "";

	for (size_t r = 0; r < side->run_count; r++) {
		const struct bench_run *run = &side->runs[r];

		if (run->is_warmup)
			continue;
		run_count++;
		held_count += gpu_reasons_text(run->gpu.reasons, reasons, sizeof(reasons)) != 0;
		seen |= run->gpu.reasons;
		incomplete_count += !run->is_complete;
		other_pid = run->other_pid ? run->other_pid : other_pid;
	}
	gpu_reasons_text(seen, reasons, sizeof(reasons));
	if (held_count)
		print_note("%s%sclocks were throttled in %zu of %zu runs: %s", of, space,
			   held_count, run_count, reasons);
	if (other_pid)
		print_note("%s%sanother process used the GPU: pid %u (in the host's pid namespace)",
			   of, space, other_pid);
	if (incomplete_count)
		print_note("%s%sevents are missing in %zu of %zu runs: xtrace report lists them",
			   of, space, incomplete_count, run_count);
	if (varied > SPREAD_MUCH)
		print_note(
			"%s%sGPU time varied by %.1f %% between runs: only larger changes can be "
			"detected",
			of, space, 100 * varied);
}

/* Warns on stderr about anything that makes the runs harder to compare. */
static void bench_warn(const struct bench *bench)
{
	warn_drift(bench);
	for (size_t s = 0; s < bench->side_count; s++)
		warn_runs(bench, &bench->sides[s]);
}

#define DEFAULT_BENCH_DIR "xtrace.bench"
#define DEFAULT_RUNS	  5
#define DEFAULT_WARMUPS	  1

/* Appends "--option=value" to a list of words. */
static void add_word(char **words, size_t *count, const char *option, const char *value)
{
	words[(*count)++] = xt_asprintf("--%s%s%s", option, value ? "=" : "", value ? value : "");
}

static int pass_to_record(void *context, const struct option_row *row, const char *value)
{
	struct bench *bench = context;

	bench->is_simulated |= !strcmp(row->name, "simulate");
	add_word(bench->passed, &bench->passed_count, row->name, value);
	return 0;
}

static int pass_to_diff(void *context, const struct option_row *row, const char *value)
{
	struct bench *bench = context;

	add_word(bench->diff_passed, &bench->diff_passed_count, row->name, value);
	return 0;
}

#define TARGET(member) .offset = offsetof(struct bench, member)

static const struct option_row option_rows[] = {
	{"runs", 'n', .value = "RUNS", .apply = option_number, TARGET(runs), .min = 1,
	 .max = BENCH_RUNS_MAX, .help = "Measure RUNS runs of each command (default: 5)"},
	{"warmup", .value = "N", .apply = option_number, TARGET(warmups), .max = BENCH_RUNS_MAX,
	 .help = "Run each command N times before that, without measuring (default: 1)"},
	{"vs", .value = "COMMAND", .apply = option_text, TARGET(vs),
	 .help = "Compare CMD with COMMAND, a shell command line. Run them alternately"},
	{"output", 'o', .value = "DIR", .apply = option_text, TARGET(output),
	 .expected = "a name that is not empty",
	 .help = "Write the runs to DIR (default: " DEFAULT_BENCH_DIR ")"},
	{"show-output", .apply = option_flag, TARGET(shows_output),
	 .help = "Let CMD write to the terminal, not to output.txt of its run"},
	{"no-diff", .apply = option_flag, TARGET(has_no_diff),
	 .help = "With --vs: do not compare the runs at the end"},
	{"fail-on", 'f', .value = "RULE", .apply = pass_to_diff,
	 .help = "With --vs: fail if this happens, as in 'gpu-time > 3%'"},
	{"rules", 'r', .value = "FILE", .apply = pass_to_diff,
	 .help = "With --vs: read such rules from FILE"},
	{"only-counts", .apply = pass_to_diff,
	 .help = "With --vs: judge only counts that were equal in all runs of the "
		 "base"},
	{"iteration", .value = "NAME", .apply = pass_to_diff,
	 .help = "With --vs: treat each instance of this NVTX range as one iteration"},
	{0},
};

/* Adds the options of xtrace record, except --paused and --armed, after those of this command. */
static void list_options(struct option_list *list)
{
	struct option_list record = {0};
	size_t kept = 0;

	option_list_add(list, option_rows);
	command_record.list_options(&record);
	for (size_t i = 0; i < record.count; i++) {
		struct option_row row = record.rows[i];

		if (!strcmp(row.name, "paused") || !strcmp(row.name, "armed"))
			continue;
		row.apply = pass_to_record;
		row.is_hidden = true;
		record.rows[kept++] = row;
	}
	record.rows[kept] = (struct option_row){0};
	option_list_add(list, record.rows);
}

/* Options of the comparison. */
static const char *const dependent[] = {"fail-on", "rules", "iteration", "only-counts"};

/* Returns false after an error message. */
static bool check_combination(const struct bench *bench, const struct option_list *list)
{
	if (bench->vs && !bench->has_no_diff)
		return true;
	for (size_t i = 0; i < sizeof(dependent) / sizeof(dependent[0]); i++) {
		if (!option_is_given(list, dependent[i]))
			continue;
		print_error("cannot use --%s: there is no comparison without --vs", dependent[i]);
		return false;
	}
	return true;
}

/* Returns COMMAND_GO_ON, or the status to end with. */
static int parse(struct bench *bench, const struct command *command, int argc, char **argv)
{
	struct option_list list;
	int status, count;

	bench->warmups = DEFAULT_WARMUPS;
	bench->output = DEFAULT_BENCH_DIR;
	status = command_parse(command, &list, bench, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!bench->runs)
		bench->runs = DEFAULT_RUNS;
	if (!check_combination(bench, &list))
		return STATUS_FAILED;
	if (!count) {
		print_error(
			"no program given: usage: xtrace bench [OPTION]... CMD [ARGUMENT]... (see "
			"xtrace bench --help)");
		return STATUS_FAILED;
	}
	return COMMAND_GO_ON;
}

/* The side of run n: A B B A A B B A ... */
static size_t bench_turn(const struct bench *bench, unsigned n)
{
	return bench->side_count == 1 ? 0 : (n + 1) / 2 % 2;
}

static void bench_watch_open(struct bench *bench)
{
	char *library = NULL;

	if (bench->is_simulated)
		library = xt_asprintf("%s/" XT_NVML_LIBRARY, bench->paths.simulator);
	gpu_watch_open(&bench->watch, library ? library : XT_NVML_LIBRARY, &bench->no_watch);
	free(library);
}

static int make_runs(struct bench *bench)
{
	unsigned warmups = (unsigned)bench->side_count * bench->warmups;
	unsigned all = warmups + (unsigned)bench->side_count * bench->runs;
	int error = 0;

	bench_table_begin(bench);
	for (unsigned n = 0; !error && n < all; n++) {
		bool is_warmup = n < warmups;
		struct bench_side *side =
			&bench->sides[bench_turn(bench, is_warmup ? n : n - warmups)];

		error = bench_sides_run(bench, side, is_warmup);
		if (!error)
			bench_table_row(bench, side, &side->runs[side->run_count - 1]);
	}
	for (size_t s = 0; !error && s < bench->side_count; s++)
		error = bench_dir_write(&bench->sides[s], true);
	return error;
}

/* Runs xtrace diff. second may be NULL. Returns its exit status. */
static int run_diff(const struct bench *bench, const char *first, const char *second)
{
	const char **arguments = xt_calloc(bench->diff_passed_count + 4, sizeof(*arguments));
	size_t count = 0;
	int status;

	arguments[count++] = "diff";
	for (size_t i = 0; i < bench->diff_passed_count; i++)
		arguments[count++] = bench->diff_passed[i];
	arguments[count++] = first;
	arguments[count] = second;
	status = subprocess_run("diff", arguments, -1);
	free(arguments);
	return status;
}

static void print_next_step(const struct bench *bench)
{
	char *program = shell_own_name();
	char *output = shell_quote(bench->output);

	if (program && output)
		printf("\nThe runs are in %s. To compare them: %s diff BASE %s\n", output, program,
		       output);
	free(program);
	free(output);
}

/* Returns the exit status. */
static int report(const struct bench *bench)
{
	bench_table_end(bench);
	if (bench->side_count == 1 && !bench->has_no_diff)
		print_next_step(bench);
	fflush(stdout);
	bench_warn(bench);
	if (bench->side_count == 1 || bench->has_no_diff)
		return STATUS_OK;
	putchar('\n');
	fflush(stdout);
	return run_diff(bench, bench->sides[0].path, bench->sides[1].path);
}

static void release(struct bench *bench)
{
	for (size_t i = 0; i < bench->passed_count; i++)
		free(bench->passed[i]);
	free(bench->passed);
	for (size_t i = 0; i < bench->diff_passed_count; i++)
		free(bench->diff_passed[i]);
	free(bench->diff_passed);
	bench_sides_free(bench);
	gpu_watch_close(bench->watch);
}

/* Runs a bench of one command or two. Returns the exit status. */
static int measure(struct bench *bench, char **command)
{
	char *vs_command[] = {"/bin/sh", "-c", (char *)bench->vs, NULL};
	size_t runs_max = bench->runs + bench->warmups;

	if (bench->vs)
		bench_sides_init(bench, runs_max, vs_command, command);
	else
		bench_sides_init(bench, runs_max, command, NULL);
	if (bench_dir_create(bench))
		return STATUS_FAILED;
	bench_watch_open(bench);
	return make_runs(bench) ? STATUS_FAILED : report(bench);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct bench bench = {.passed = xt_calloc((size_t)argc + 1, sizeof(char *)),
			      .diff_passed = xt_calloc((size_t)argc + 1, sizeof(char *))};
	char **longer = NULL;
	int status = STATUS_FAILED, error;

	status = parse(&bench, command, argc, argv);
	if (status != COMMAND_GO_ON)
		goto out;
	status = STATUS_FAILED;
	error = install_paths_find(&bench.paths);
	if (error) {
		print_error("cannot start: %s", strerror(-error));
		goto out;
	}
	/* Report bad rules before minutes of runs. */
	if (bench.diff_passed_count && run_diff(&bench, "--check", NULL) != STATUS_OK)
		goto out;
	longer = child_with_python(argv + 1, &bench.paths);
	if (!longer && child_find(argv[1]))
		child_cannot_run(argv[1], child_find(argv[1]));
	else
		status = measure(&bench, longer ? longer : argv + 1);
out:
	release(&bench);
	free(longer);
	return status;
}

static const char details[] =
	"All options of 'xtrace record' work here, too, except --paused and --armed: --simulate, "
	"--api,\n"
	"--python, --capture-range and so on.\n\n"
	"With --vs, the two commands run alternately, as ABBA, so that drift over time affects "
	"both\n"
	"equally. DIR/base holds the runs of COMMAND, DIR/new those of CMD.\n\n"
	"If the driver's NVML library is present, the clocks, temperature and power of the "
	"devices\n"
	"that CMD uses are sampled and written to gpu.json of each run.\n\n"
	"An older bench in DIR moves to DIR.old. The output of CMD goes to output.txt of each "
	"run.\n\n"
	"Exit status with one command: 0 if all runs completed and CMD returned 0 in each, else "
	"2.\n"
	"With --vs, the runs are compared as by 'xtrace diff DIR/base DIR/new', with its default "
	"rules\n"
	"or those of --fail-on and --rules: 0 if every rule passed, 1 if one failed, 2 if the "
	"runs\n"
	"cannot be judged or did not complete.\n";

const struct command command_bench = {
	.name = "bench",
	.arguments = "[OPTION]... [--] CMD [ARGUMENT]...",
	.summary = "Record several runs of a program, or of two alternately, for xtrace diff",
	.details = details,
	.operand = "CMD",
	.stops_at_operand = true,
	.list_options = list_options,
	.run = run,
};
