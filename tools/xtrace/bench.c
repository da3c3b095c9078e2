/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace bench: records several runs of a program, or of two programs alternately, for xtrace
 * diff. Prints a line for each run, the median, the spread, and warnings.
 *
 * Two programs run as ABBA, so that drift of clocks and temperature affects both equally. Each
 * run is an xtrace record in its own process, while this process samples the state of the GPUs.
 * The first failed run ends the bench.
 *
 * A bench directory of one command contains:
 *
 *	bench.json	the command, and the results of each run
 *	warmup-001	a trace directory for each warm-up run
 *	run-001		a trace directory for each measured run; xtrace diff takes these as one side
 *
 * With two commands it contains two such directories, base and new, and a bench.json that names
 * them. Only files that belong to a bench are overwritten or removed.
 *
 * The output of the program goes to output.txt in the trace directory, because a terminal costs
 * time. If the run fails, the end of that output is printed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "commands.h"
#include "cuda_abi/nvml_abi.h"
#include "data_dir.h"
#include "diff/commands.h"
#include "diff/pair/pair.h"
#include "gpu_watch.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "program.h"

#define BENCH_FILE     "bench.json"
#define BENCH_FORMAT   "xtrace.bench" /* "format" in bench.json */
#define BENCH_BASE     "base"
#define BENCH_NEW      "new"
#define BENCH_RUNS_MAX 999

struct bench_run {
	char name[32];	/* of its trace directory */
	unsigned order; /* position among the runs of both commands, from 1 */
	bool is_warmup;
	/* Valid once it is done: */
	uint64_t wall_ns, gpu_time_ns;
	bool is_complete; /* its logs lack no events */
	struct gpu_run gpu;
	uint32_t other_pid; /* another process that used a device; 0: none */
};

struct bench_side {
	const char *name; /* BENCH_BASE or BENCH_NEW; "": there is only one command */
	char **command;	  /* ends with NULL */
	char *path;	  /* its bench directory; owned */
	struct bench_run *runs;
	size_t run_count; /* runs that were started */
};

struct words {
	char **list; /* owned, like each word */
	size_t count;
};

struct bench {
	const char *output;
	const char *vs;		/* the other command, a line for the shell; NULL: none */
	unsigned runs, warmups; /* per side */
	bool shows_output, is_simulated, has_no_diff;
	struct words passed;	    /* options for xtrace record */
	struct words diff_passed;   /* for xtrace diff, which compares two commands at the end */
	struct bench_side sides[2]; /* the last is the new side */
	size_t side_count;
	unsigned run_count; /* of both sides */
	struct install_paths paths;
	struct gpu_watch *watch; /* NULL: no NVML */
	const char *no_watch;	 /* the reason */
};

#define OLD_SUFFIX ".old"

static bool is_bench(const char *path)
{
	return json_has_format(path, BENCH_FILE, BENCH_FORMAT);
}

static int remove_bench(const char *path);

/* Removes one entry of a bench directory. Returns 0, or -errno after an error message. */
static int remove_entry(const char *folder, const char *name)
{
	bool is_run = begins_with(name, "run-") || begins_with(name, "warmup-");
	bool is_part = !strcmp(name, BENCH_BASE) || !strcmp(name, BENCH_NEW);
	char *path;
	int error;

	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, BENCH_FILE))
		return 0;
	path = xt_asprintf("%s/%s", folder, name);
	if (is_run) {
		error = data_dir_remove(path);
	} else if (!strcmp(name, HISTORY_INDEX)) {
		error = unlink(path) ? -errno : 0;
		if (error)
			print_error("cannot remove '%s': %s", path, strerror(-error));
	} else if (is_part && is_bench(path)) {
		error = remove_bench(path);
	} else {
		print_error("cannot remove '%s': it is not part of a bench; move it away", path);
		error = -EEXIST;
	}
	free(path);
	return error;
}

static int remove_bench(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder)))
		error = remove_entry(path, entry->d_name);
	/* Remove bench.json last, because it marks the directory as a bench. */
	if (!error && unlinkat(dirfd(folder), BENCH_FILE, 0))
		error = -errno;
	closedir(folder);
	if (!error && rmdir(path))
		error = -errno;
	return error;
}

static int move_aside(const char *path)
{
	char *old = xt_asprintf("%s" OLD_SUFFIX, path);
	struct stat about;
	int error = 0;

	if (!lstat(old, &about) && !is_bench(old)) {
		print_error("cannot replace '%s': it is not an xtrace bench; move it away", old);
		error = -EEXIST;
	} else if (!lstat(old, &about)) {
		error = remove_bench(old);
	}
	if (!error && rename(path, old)) {
		error = -errno;
		print_error("cannot move '%s' to '%s': %m", path, old);
	}
	free(old);
	return error;
}

static int make_dir(const char *path)
{
	int error = mkdir(path, 0700) ? -errno : 0;

	/* An empty directory can be used. */
	if (error == -EEXIST && !rmdir(path) && !mkdir(path, 0700))
		error = 0;
	if (error == -EEXIST)
		print_error("cannot use '%s': it exists and is not an xtrace bench; choose another "
			    "directory with -o",
			    path);
	else if (error)
		print_error("cannot create '%s': %s", path, strerror(-error));
	return error;
}

static int write_json(const char *path, cJSON *root)
{
	int error = json_write(path, BENCH_FILE, root);

	if (error)
		print_error("cannot write '%s/" BENCH_FILE "': %s", path, strerror(-error));
	cJSON_Delete(root);
	return error;
}

static cJSON *run_json(const struct bench_run *run)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "path", run->name);
	cJSON_AddNumberToObject(object, "order", run->order);
	cJSON_AddBoolToObject(object, "warmup", run->is_warmup);
	cJSON_AddNumberToObject(object, "wall_ns", (double)run->wall_ns);
	cJSON_AddNumberToObject(object, "gpu_time_ns", (double)run->gpu_time_ns);
	cJSON_AddBoolToObject(object, "complete", run->is_complete);
	return object;
}

/* Writes bench.json of one side. Returns 0, or -errno after an error message. */
static int bench_dir_write(const struct bench_side *side, bool is_whole)
{
	cJSON *root = json_new(BENCH_FORMAT), *list = cJSON_AddArrayToObject(root, "command");

	for (char **argument = side->command; *argument; argument++)
		cJSON_AddItemToArray(list, cJSON_CreateString(*argument));
	cJSON_AddBoolToObject(root, "finished", is_whole);
	list = cJSON_AddArrayToObject(root, "runs");
	for (size_t r = 0; r < side->run_count; r++)
		cJSON_AddItemToArray(list, run_json(&side->runs[r]));
	return write_json(side->path, root);
}

/* Makes the directory, and moves an older bench aside. */
static int claim(const char *path_given)
{
	char *path = data_dir_trim(path_given);
	int error = path ? data_dir_check_owner(path_given) : -ENOMEM;

	if (!error && is_bench(path))
		error = move_aside(path);
	if (!error)
		error = make_dir(path);
	free(path);
	return error;
}

/*
 * Creates the directories. An older bench moves to DIR.old and replaces a bench there. Anything
 * else is left alone and is an error. Returns 0, or -errno after an error message.
 */
static int bench_dir_create(struct bench *bench)
{
	int error = claim(bench->output);
	cJSON *root, *sides;

	if (!error && bench->side_count == 2) {
		root = json_new(BENCH_FORMAT);
		sides = cJSON_AddArrayToObject(root, "sides");
		for (size_t s = 0; s < bench->side_count; s++)
			cJSON_AddItemToArray(sides, cJSON_CreateString(bench->sides[s].name));
		error = write_json(bench->output, root);
		for (size_t s = 0; !error && s < bench->side_count; s++)
			error = make_dir(bench->sides[s].path);
	}
	for (size_t s = 0; !error && s < bench->side_count; s++)
		error = bench_dir_write(&bench->sides[s], false);
	return error;
}

#define TAIL_BYTES 2000

/* Prints the last lines of the output to stderr. */
static void show_tail(int fd)
{
	char text[TAIL_BYTES + 1], *newline;
	off_t end = lseek(fd, 0, SEEK_END);
	off_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
	ssize_t length = end > 0 ? pread(fd, text, TAIL_BYTES, from) : 0;

	text[length > 0 ? length : 0] = '\0';
	newline = from ? strchr(text, '\n') : NULL;
	if (newline)
		memmove(text, newline + 1, strlen(newline));
	if (*text)
		fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
}

static int run_record(const struct bench *bench, const struct bench_side *side, const char *path,
		      int output, int *status_out)
{
	const struct child_care care = {
		.output = output,
		.tick = bench->watch ? gpu_watch_tick : NULL,
		.context = bench->watch,
		.period_ns = GPU_WATCH_PERIOD_NS,
	};
	size_t count = 0, words = 0;
	const char **arguments;
	int error;

	while (side->command[words])
		words++;
	arguments = xt_calloc(words + bench->passed.count + 6, sizeof(*arguments));
	arguments[count++] = bench->paths.program;
	arguments[count++] = "record";
	arguments[count++] = "-o";
	arguments[count++] = path;
	for (size_t i = 0; i < bench->passed.count; i++)
		arguments[count++] = bench->passed.list[i];
	arguments[count++] = "--";
	memcpy(arguments + count, side->command, words * sizeof(*arguments));
	error = child_run((char *const *)arguments, NULL, &care, status_out);
	free(arguments);
	return error;
}

#define UUIDS_MAX 256

static size_t find_uuids(const cJSON *summary, const char **uuids)
{
	const cJSON *process, *device;
	size_t count = 0;

	cJSON_ArrayForEach(process, cJSON_GetObjectItem(summary, "processes"))
	{
		cJSON_ArrayForEach(device, cJSON_GetObjectItem(process, "devices"))
		{
			const char *uuid =
				cJSON_GetStringValue(cJSON_GetObjectItem(device, "uuid"));

			if (uuid && count < UUIDS_MAX)
				uuids[count++] = uuid;
		}
	}
	return count;
}

static void read_watch(struct bench *bench, const char *path, struct bench_run *run,
		       uint64_t start_ns, const cJSON *summary)
{
	const char *uuids[UUIDS_MAX];
	cJSON *state;
	int error;

	if (!bench->watch)
		return;
	gpu_watch_end(bench->watch, start_ns, start_ns + run->wall_ns, uuids,
		      find_uuids(summary, uuids));
	run->gpu = gpu_watch_sum(bench->watch);
	run->other_pid = gpu_watch_other(bench->watch);
	state = gpu_watch_json(bench->watch);
	error = json_write(path, DATA_DIR_GPU, state);
	if (error)
		print_error("cannot write '%s/" DATA_DIR_GPU "': %s", path, strerror(-error));
	cJSON_Delete(state);
}

/* Reads the results from the logs. Returns 0, or -ENODATA after an error message. */
static int read_logs(struct bench *bench, const char *path, struct bench_run *run,
		     uint64_t start_ns)
{
	static const char *const options[] = {"--top", "1", "--quiet", NULL};
	int status, error = 0;
	cJSON *summary = summary_read(path, options, &status);
	const cJSON *totals = cJSON_GetObjectItem(summary, "totals");
	const cJSON *gpu_time = cJSON_GetObjectItem(totals, "gpu_time_ns");

	read_watch(bench, path, run, start_ns, summary);
	if (cJSON_IsNumber(gpu_time) && gpu_time->valuedouble > 0) {
		run->gpu_time_ns = (uint64_t)gpu_time->valuedouble;
		run->is_complete = cJSON_IsTrue(
			cJSON_GetObjectItem(cJSON_GetObjectItem(summary, "trust"), "complete"));
	} else {
		print_error("cannot measure '%s': it has no GPU work; see '%s/" DATA_DIR_OUTPUT "'",
			    path, path);
		error = -ENODATA;
	}
	cJSON_Delete(summary);
	return error;
}

static void print_failed(const struct bench_side *side, const struct bench_run *run, int status)
{
	const char *of = side->name, *space = *of ? " " : "";
	char **command = side->command;
	/* A shell ends with the status of its command line. */
	bool is_line = command[1] && command[2] && !strcmp(command[0], "/bin/sh") &&
		       !strcmp(command[1], "-c");
	const char *program = command[is_line ? 2 : 0];

	if (status > STATUS_SIGNAL)
		print_error("%s%s%s failed: '%s' was ended by signal %d (%s)", of, space, run->name,
			    program, status - STATUS_SIGNAL, strsignal(status - STATUS_SIGNAL));
	else
		print_error("%s%s%s failed: '%s' ended with exit status %d", of, space, run->name,
			    program, status);
}

/* Copies the output into the trace directory, which xtrace record has created by now. */
static void keep_output(int fd, const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = folder < 0 ? -1
			      : openat(folder, DATA_DIR_OUTPUT,
				       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char buffer[1 << 16];
	off_t at = 0;
	ssize_t n;

	while (file >= 0 && (n = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		if (write(file, buffer, (size_t)n) != n)
			break;
		at += n;
	}
	if (file >= 0)
		close(file);
	if (folder >= 0)
		close(folder);
}

/* Opens a nameless file next to the runs. Returns -1 if the output is not captured. */
static int open_output(const struct bench *bench, const struct bench_side *side)
{
	int fd;

	if (bench->shows_output)
		return -1;
	fd = open(side->path, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : memfd_create("output", MFD_CLOEXEC);
}

/* Makes one run and fills in *run. Returns 0, or another value after an error message. */
static int bench_run(struct bench *bench, struct bench_side *side, struct bench_run *run)
{
	char *path = xt_asprintf("%s/%s", side->path, run->name);
	int output = open_output(bench, side), status, error;
	struct info info;

	/* xtrace record keeps its result in a folder that exists, even if empty. */
	mkdir(path, 0700);
	if (bench->watch)
		gpu_watch_begin(bench->watch);
	error = run_record(bench, side, path, output, &status);
	if (error) {
		print_error("cannot run xtrace record: %s", strerror(-error));
		goto out;
	}
	if (output >= 0)
		keep_output(output, path);
	error = info_read(path, &info);
	run->wall_ns = info.duration_ns;
	if (!error && info.exit_status)
		error = -ECHILD;
	if (error && output >= 0)
		show_tail(output);
	if (error == -ECHILD)
		print_failed(side, run, info.exit_status);
	else if (error)
		print_error("cannot read '%s': it was not recorded", path);
	else
		error = read_logs(bench, path, run, info.start_realtime_ns);
out:
	if (output >= 0)
		close(output);
	free(path);
	return error;
}

/*
 * Sets up one side, or BENCH_BASE and BENCH_NEW. Each has room for runs_max runs. command_new may
 * be NULL. Free it with bench_sides_free().
 */
static void bench_sides_init(struct bench *bench, size_t runs_max, char **command,
			     char **command_new)
{
	bench->side_count = command_new ? 2 : 1;
	for (size_t s = 0; s < bench->side_count; s++) {
		struct bench_side *side = &bench->sides[s];

		*side = (struct bench_side){.name = s		  ? BENCH_NEW
						    : command_new ? BENCH_BASE
								  : "",
					    .command = s ? command_new : command,
					    .runs = xt_calloc(runs_max, sizeof(*side->runs))};
		side->path =
			xt_asprintf("%s%s%s", bench->output, *side->name ? "/" : "", side->name);
	}
}

static void bench_sides_free(struct bench *bench)
{
	for (size_t s = 0; s < bench->side_count; s++)
		free_all(bench->sides[s].runs, bench->sides[s].path);
}

/*
 * Makes the next run of a side, and writes bench.json. Returns 0, or another value after an error
 * message: -ECHILD or -ENODATA if the program is the reason.
 */
static int bench_sides_run(struct bench *bench, struct bench_side *side, bool is_warmup)
{
	struct bench_run *run = &side->runs[side->run_count++];
	unsigned number = (unsigned)side->run_count - (is_warmup ? 0 : bench->warmups);
	int error;

	run->order = ++bench->run_count;
	run->is_warmup = is_warmup;
	snprintf(run->name, sizeof(run->name), "%s-%03u", is_warmup ? "warmup" : "run", number);
	error = bench_run(bench, side, run);
	if (!error)
		return bench_dir_write(side, false);
	side->run_count--;
	return error;
}

/* Thresholds for warnings. */
#define CLOCK_DRIFT   0.02 /* part of the median */
#define CELSIUS_DRIFT 5.0
#define SPREAD_MUCH   0.05 /* part of the median GPU time */
#define REASONS_BYTES 96

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
	char wall[GPU_TEXT_BYTES], gpu[GPU_TEXT_BYTES], clock[GPU_TEXT_BYTES],
		celsius[GPU_TEXT_BYTES];
	char power[GPU_TEXT_BYTES], reasons[REASONS_BYTES];
	const char *const cells[] = {side->name, run->name, wall,  gpu,
				     clock,	 celsius,   power, reasons};
	struct gpu_range power_mean = run->gpu.ranges[GPU_MILLIWATTS];

	power_mean.min = power_mean.max = power_mean.mean;
	format_time(wall, run->wall_ns);
	format_time(gpu, run->gpu_time_ns);
	gpu_range_text(clock, &run->gpu.ranges[GPU_SM_MHZ], 1, "MHz");
	gpu_range_text(celsius, &run->gpu.ranges[GPU_CELSIUS], 1, "C");
	gpu_range_text(power, &power_mean, 1000, "W");
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
		char wall_text[GPU_TEXT_BYTES], gpu_text[GPU_TEXT_BYTES];
		const char *cells[8] = {side->name, "median", wall_text, gpu_text, ""};

		putchar('\n');
		format_time(wall_text, (uint64_t)wall.median);
		format_time(gpu_text, (uint64_t)gpu.median);
		put(bench, cells);
		cells[1] = "spread";
		snprintf(wall_text, GPU_TEXT_BYTES, "%.2f %%", 100 * apart(wall));
		snprintf(gpu_text, GPU_TEXT_BYTES, "%.2f %%", 100 * apart(gpu));
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

#define DEFAULT_BENCH_DIR "xtrace.bench"
#define DEFAULT_RUNS	  5
#define DEFAULT_WARMUPS	  1

/* Appends "--option=value". */
static void add_word(struct words *words, const char *option, const char *value)
{
	words->list = xt_reallocarray(words->list, words->count + 1, sizeof(*words->list));
	words->list[words->count++] =
		xt_asprintf("--%s%s%s", option, value ? "=" : "", value ? value : "");
}

static void free_words(struct words *words)
{
	free_list((void *const *)words->list, words->count);
	free(words->list);
}

static int pass_to_record(void *context, const struct option_row *row, const char *value)
{
	struct bench *bench = context;

	bench->is_simulated |= !strcmp(row->name, "simulate");
	add_word(&bench->passed, row->name, value);
	return 0;
}

static int pass_to_diff(void *context, const struct option_row *row, const char *value)
{
	struct bench *bench = context;

	add_word(&bench->diff_passed, row->name, value);
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

	option_list_add(list, option_rows);
	command_record.list_options(&record);
	option_list_add(&record, command_record.options);
	for (size_t i = 0; i < record.count; i++) {
		struct option_row row = record.rows[i];

		if (!strcmp(row.name, "paused") || !strcmp(row.name, "armed"))
			continue;
		row.apply = pass_to_record;
		row.is_hidden = true;
		option_list_add_row(list, &row);
	}
}

/* Returns false after an error message. */
static bool check_combination(const struct bench *bench, const struct option_list *list)
{
	static const char *const dependent[] = {"fail-on", "rules", "iteration", "only-counts"};

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

static int make_runs(struct bench *bench)
{
	unsigned warmups = (unsigned)bench->side_count * bench->warmups;
	unsigned all = warmups + (unsigned)bench->side_count * bench->runs;
	int error = 0;

	bench_table_begin(bench);
	for (unsigned n = 0; !error && n < all; n++) {
		bool is_warmup = n < warmups;
		unsigned turn = is_warmup ? n : n - warmups;
		/* A B B A A B B A ... */
		struct bench_side *side = &bench->sides[(turn + 1) / 2 % bench->side_count];

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
	const char **arguments = xt_calloc(bench->diff_passed.count + 4, sizeof(*arguments));
	size_t count = 0;
	int status;

	arguments[count++] = "diff";
	for (size_t i = 0; i < bench->diff_passed.count; i++)
		arguments[count++] = bench->diff_passed.list[i];
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
	free_all(program, output);
}

/* Returns the exit status. */
static int report(const struct bench *bench)
{
	bench_table_end(bench);
	if (bench->side_count == 1 && !bench->has_no_diff)
		print_next_step(bench);
	fflush(stdout);
	/* Warn on stderr about anything that makes the runs harder to compare. */
	warn_drift(bench);
	for (size_t s = 0; s < bench->side_count; s++)
		warn_runs(bench, &bench->sides[s]);
	if (bench->side_count == 1 || bench->has_no_diff)
		return STATUS_OK;
	putchar('\n');
	fflush(stdout);
	return run_diff(bench, bench->sides[0].path, bench->sides[1].path);
}

/* Runs a bench of one command or two. Returns the exit status. */
static int measure(struct bench *bench, char **command)
{
	char *vs_command[] = {"/bin/sh", "-c", (char *)bench->vs, NULL};
	size_t runs_max = bench->runs + bench->warmups;
	char *library;

	bench_sides_init(bench, runs_max, bench->vs ? vs_command : command,
			 bench->vs ? command : NULL);
	if (bench_dir_create(bench))
		return STATUS_FAILED;
	library = bench->is_simulated ? xt_asprintf("%s/" XT_NVML_LIBRARY, bench->paths.simulator)
				      : xt_strdup(XT_NVML_LIBRARY);
	gpu_watch_open(&bench->watch, library, &bench->no_watch);
	free(library);
	return make_runs(bench) ? STATUS_FAILED : report(bench);
}

static int bench_command_run(const struct command *command, int argc, char **argv)
{
	struct bench bench = {
		.output = DEFAULT_BENCH_DIR, .runs = DEFAULT_RUNS, .warmups = DEFAULT_WARMUPS};
	struct option_list list;
	char **longer = NULL;
	int count, error;
	int status = command_parse(command, &list, &bench, argc, argv, ANY_OPERANDS, &count);

	if (status != COMMAND_GO_ON)
		goto out;
	status = STATUS_FAILED;
	if (!check_combination(&bench, &list))
		goto out;
	error = install_paths_find(&bench.paths);
	if (error) {
		print_error("cannot start: %s", strerror(-error));
		goto out;
	}
	/* Report bad rules before minutes of runs. */
	if (bench.diff_passed.count && run_diff(&bench, "--check", NULL) != STATUS_OK)
		goto out;
	longer = child_with_python(argv + 1, &bench.paths);
	if (!longer && child_find(argv[1]))
		child_cannot_run(argv[1], child_find(argv[1]));
	else
		status = measure(&bench, longer ? longer : argv + 1);
out:
	free_words(&bench.passed);
	free_words(&bench.diff_passed);
	bench_sides_free(&bench);
	gpu_watch_close(bench.watch);
	free(longer);
	return status;
}

static const char details[] =
	"All options of 'xtrace record' work here, too, except --paused and --armed: --simulate,\n"
	"--api, --python, --capture-range and so on.\n\n"
	"With --vs, the two commands run alternately, as ABBA, so that drift over time affects\n"
	"both equally. DIR/base holds the runs of COMMAND, DIR/new those of CMD.\n\n"
	"If the driver's NVML library is present, the clocks, temperature and power of the\n"
	"devices that CMD uses are sampled and written to gpu.json of each run.\n\n"
	"An older bench in DIR moves to DIR.old. The output of CMD goes to output.txt of each\n"
	"run.\n\n"
	"Exit status with one command: 0 if all runs completed and CMD returned 0 in each, else\n"
	"2. With --vs, the runs are compared as by 'xtrace diff DIR/base DIR/new', with its\n"
	"default rules or those of --fail-on and --rules: 0 if every rule passed, 1 if one\n"
	"failed, 2 if the runs cannot be judged or did not complete.\n";

const struct command command_bench = {
	.name = "bench",
	.arguments = "[OPTION]... [--] CMD [ARGUMENT]...",
	.summary = "Record several runs of a program, or of two alternately, for xtrace diff",
	.details = details,
	.operand = "CMD",
	.needed = "program",
	.stops_at_operand = true,
	.list_options = list_options,
	.run = bench_command_run,
};
