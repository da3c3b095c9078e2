/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace record: runs a program with the injected library in it, and says what was recorded.
 *
 * The order is: check everything that can fail, make the trace directory, run, make the logs
 * self-contained, read them, write info.json anew, say one or two lines on stderr. From the start
 * of the program on nothing that goes wrong here changes its exit status.
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "data_dir.h"
#include "finish.h"
#include "info.h"
#include "install_paths.h"
#include "log/base/size_text.h"
#include "paste.h"
#include "rotation.h"

#define DEFAULT_DATA_DIR "xtrace.data"

enum {
	OPTION_API = 256,
	OPTION_PAUSED,
	OPTION_CAPTURE_RANGE,
	OPTION_PYTHON,
	OPTION_YIELD,
	OPTION_MAX_SIZE,
	OPTION_MAX_OVERHEAD
};

struct recording {
	const char *output;    /* as it was given */
	const char *api_level; /* NULL: as the environment has it; so are these */
	const char *start;
	const char *capture_range;
	const char *python;
	const char *yield;
	const char *max_size;
	const char *max_overhead;
	struct data_dir dir;
	struct finished finished;
	struct install_paths paths;
	struct info info;
};

struct totals {
	uint64_t launch_count, kernel_count, lost_count, log_bytes;
	size_t running_count, cut_count, incomplete_count, unreadable_count, empty_count;
	bool simulated;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* 12345 as "12,345". */
static const char *group_digits(char out[32], uint64_t value)
{
	char *at = out + 31;
	int digits = 0;

	*at = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + value % 10);
		value /= 10;
		digits++;
	} while (value);
	return at;
}

static void format_size(char *out, size_t out_bytes, uint64_t size_bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)size_bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(out, out_bytes, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool is_one_of(const char *text, const char *option, const char *const words[],
		      size_t word_count)
{
	char all[64] = "";
	size_t used = 0;

	for (size_t i = 0; i < word_count; i++) {
		if (strcmp(text, words[i]) == 0)
			return true;
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 words[i]);
	}
	complain("record: --%s '%s' is none of %s", option, text, all);
	return false;
}

static bool is_size(const char *text)
{
	struct xt_size_bound bound;

	if (xt_size_bound_parse(text, &bound))
		return true;
	complain(
		"record: --max-size '%s' is no size of a log: 256K or more, as 500M, 2G, 2G:newest",
		text);
	return false;
}

static bool is_percent(const char *text)
{
	double percent;

	if (xt_percent_parse(text, &percent))
		return true;
	complain("record: --max-overhead '%s' is no number of percent above 0 and up to 100", text);
	return false;
}

static int parse(struct recording *recording, const struct command *command, int argc, char **argv)
{
	static const char *const levels[] = {"launch", "work", "all"};
	static const char *const pythons[] = {"mixed", "full", "only", "off"};
	const char *argument;
	int letter;

	recording->output = DEFAULT_DATA_DIR;
	while ((letter = command_next_option(command, argc, argv, &argument))) {
		switch (letter) {
		case 'o':
			recording->output = argument;
			break;
		case 's':
			recording->info.simulate = true;
			break;
		case OPTION_API:
			if (!is_one_of(argument, "api", levels, COUNT(levels)))
				return STATUS_USAGE;
			recording->api_level = argument;
			break;
		case OPTION_PAUSED:
			recording->start = "paused";
			break;
		case OPTION_CAPTURE_RANGE:
			if (strcmp(argument, "cudaProfilerApi") != 0) {
				complain("record: --capture-range '%s' is not cudaProfilerApi",
					 argument);
				return STATUS_USAGE;
			}
			recording->capture_range = argument;
			break;
		case OPTION_PYTHON:
			if (!is_one_of(argument, "python", pythons, COUNT(pythons)))
				return STATUS_USAGE;
			recording->python = argument;
			break;
		case OPTION_YIELD:
			recording->yield = "1";
			break;
		case OPTION_MAX_SIZE:
			if (!is_size(argument))
				return STATUS_USAGE;
			recording->max_size = argument;
			break;
		case OPTION_MAX_OVERHEAD:
			if (!is_percent(argument))
				return STATUS_USAGE;
			recording->max_overhead = argument;
			break;
		case 'h':
			command_print_help(command);
			exit(STATUS_OK);
		default:
			return STATUS_USAGE;
		}
	}
	if (!*recording->output) {
		complain("record: the name of the output directory is empty");
		return STATUS_USAGE;
	}
	if (optind == argc) {
		complain("record: which command is to be recorded? See 'xtrace help record'");
		return STATUS_USAGE;
	}
	recording->info.command = argv + optind;
	return STATUS_OK;
}

static int cannot_run(const char *program, int error)
{
	complain("cannot run '%s': %s", program,
		 error == -ENOENT ? "command not found" : strerror(-error));
	return error == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

static int find_parts(struct recording *recording)
{
	int error = install_paths_find(&recording->paths);

	if (error) {
		complain("libxtrace_inject.so is not where it should be, in lib beside bin: %s",
			 strerror(-error));
		return STATUS_USAGE;
	}
	if (recording->info.simulate && access(recording->paths.simulator, X_OK)) {
		complain("the simulated GPU is not installed: '%s': %m",
			 recording->paths.simulator);
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

/* To be freed. */
static char *before_search_path(const char *folder, const char *variable)
{
	const char *path = getenv(variable);
	char *longer = NULL;

	if (asprintf(&longer, "%s%s%s", folder, path && *path ? ":" : "", path ? path : "") < 0)
		return NULL;
	return longer;
}

/* The driver takes one such library: another tool's would not be loaded beside ours. */
static void mention_other_tool(const char *injected)
{
	const char *other = getenv("CUDA_INJECTION64_PATH");

	if (other && *other && strcmp(other, injected) != 0)
		complain("CUDA_INJECTION64_PATH=%s is replaced for this run", other);
}

/* Gives the exit status of the program. info.finished says afterwards whether it ran. */
static int run(struct recording *recording)
{
	const struct install_paths *paths = &recording->paths;
	bool simulate = recording->info.simulate;
	char *libraries = before_search_path(paths->simulator, "LD_LIBRARY_PATH"), *cupti = NULL;
	int status = 0, error;

	mention_other_tool(paths->injected);
	if (asprintf(&cupti, "%s/libcupti.so", paths->simulator) < 0 || !libraries) {
		error = -ENOMEM;
	} else {
		const struct environment_entry environment[] = {
			{"CUDA_INJECTION64_PATH", paths->injected},
			{"NVTX_INJECTION64_PATH", paths->injected},
			{"XTRACE_DATA", recording->dir.path},
			{"XTRACE_API", recording->api_level},
			{"XTRACE_START", recording->start},
			{"XTRACE_CAPTURE_RANGE", recording->capture_range},
			{"XTRACE_PYTHON", recording->python},
			{"XTRACE_YIELD", recording->yield},
			{"XTRACE_MAX_SIZE", recording->max_size},
			{"XTRACE_MAX_OVERHEAD", recording->max_overhead},
			{"LD_LIBRARY_PATH", simulate ? libraries : NULL},
			{"XTRACE_CUPTI", simulate ? cupti : NULL},
			{NULL, NULL},
		};

		error = child_run(recording->info.command, environment, NULL, &status);
	}
	free(libraries);
	free(cupti);
	recording->info.finished = !error;
	if (!error)
		return child_exit_status(status);
	/* It was there before: what is missing is what its first line names. */
	if (error == -ENOENT)
		complain("cannot run '%s': its interpreter is missing", recording->info.command[0]);
	return error == -ENOENT ? STATUS_NOT_FOUND : cannot_run(recording->info.command[0], error);
}

static struct totals add_up(const struct recording *recording)
{
	struct totals totals = {0};

	for (size_t i = 0; i < recording->finished.log_count; i++) {
		const struct log_summary *summary = &recording->finished.summaries[i];

		totals.launch_count += summary->launch_count;
		totals.kernel_count += summary->kernel_count;
		totals.lost_count += summary->lost_count;
		totals.incomplete_count += summary->incomplete && !summary->running;
		totals.log_bytes += summary->log_bytes;
		totals.running_count += summary->running;
		totals.cut_count += summary->readable && !summary->running && !summary->closed;
		totals.unreadable_count += !summary->readable && !summary->empty;
		totals.empty_count += summary->empty;
		totals.simulated |= summary->simulated;
	}
	return totals;
}

static const char *plural(size_t process_count)
{
	return process_count == 1 ? "" : "es";
}

/* As it can be pasted into the user's shell. */
static void say_how_to_see_it(const struct recording *recording)
{
	bool is_default = strcmp(recording->output, DEFAULT_DATA_DIR) == 0;
	char *merge = paste_program(recording->paths.merge);
	char *data = paste_file(recording->output);

	if (merge && data)
		complain("to see it: %s%s%s", merge, is_default ? "" : " ", is_default ? "" : data);
	free(merge);
	free(data);
}

static void report(const struct recording *recording)
{
	struct totals totals = add_up(recording);
	char launches[32], kernels[32], lost[32], size[32];
	bool is_unknown;

	if (recording->finished.log_count == 0) {
		complain("nothing was recorded: no process used CUDA, or none could be traced%s",
			 recording->info.simulate
				 ? ""
				 : "; on a machine without a GPU, record with --simulate");
		return;
	}
	format_size(size, sizeof(size), totals.log_bytes);
	is_unknown = totals.incomplete_count && !totals.lost_count;
	complain("recorded %zu process%s, %s launches, %s kernels, %s%s lost, %s%s",
		 recording->finished.log_count, plural(recording->finished.log_count),
		 group_digits(launches, totals.launch_count),
		 group_digits(kernels, totals.kernel_count),
		 totals.incomplete_count && !is_unknown ? "at least " : "",
		 is_unknown ? "an unknown number" : group_digits(lost, totals.lost_count), size,
		 totals.simulated ? " (simulated GPU)" : "");
	if (totals.unreadable_count)
		complain("logs that cannot be read: %zu", totals.unreadable_count);
	if (totals.empty_count)
		complain("%zu process%s ended before recording began; the log is empty",
			 totals.empty_count, plural(totals.empty_count));
	if (totals.cut_count)
		complain("%zu process%s %s killed, or could not write the end of the log; the "
			 "events "
			 "up to then were kept",
			 totals.cut_count, plural(totals.cut_count),
			 totals.cut_count == 1 ? "was" : "were");
	if (totals.incomplete_count)
		complain("how much is missing is unknown for %zu process%s: the end of the log "
			 "could not be written or recovered",
			 totals.incomplete_count, plural(totals.incomplete_count));
	if (totals.running_count)
		complain("still running, and recorded on: %zu process%s", totals.running_count,
			 plural(totals.running_count));
	if (totals.launch_count == 0 && totals.kernel_count == 0)
		complain("CUDA was initialised, but no kernel was launched");
	else
		say_how_to_see_it(recording);
}

/*
 * Decides between this recording and the trace that it moved aside. A process that is about to end
 * with the program is waited for, because it could still record.
 */
static void keep_last_trace(struct recording *recording)
{
	struct data_dir *dir = &recording->dir;
	int outcome;

	if (dir->claim >= 0)
		close(dir->claim);
	dir->claim = -1;
	while ((outcome = rotation_settle(dir->place, ROTATION_LATER)) == ROTATION_WAITS &&
	       now_ns(CLOCK_MONOTONIC) - recording->finished.end_ns < GRACE_NS)
		nanosleep(&(struct timespec){.tv_nsec = GRACE_STEP_NS}, NULL);
	if (outcome == ROTATION_RESTORED)
		complain("this recording is empty and was removed; '%s' holds the previous trace",
			 dir->place);
	if (outcome == ROTATION_WAITS)
		complain("this recording is empty so far, but a process that may record into it "
			 "still runs; the previous trace is in '%s'",
			 dir->older);
}

static void release(struct recording *recording)
{
	finish_free(&recording->finished);
	data_dir_close(&recording->dir);
}

static int run_record(const struct command *command, int argc, char **argv)
{
	struct recording recording = {.dir = {.older_claim = -1, .claim = -1}};
	struct info *info = &recording.info;
	uint64_t start_ns;
	int status = parse(&recording, command, argc, argv), error;

	if (status)
		return status;
	error = child_find(info->command[0]);
	if (error)
		return cannot_run(info->command[0], error);
	status = find_parts(&recording);
	if (status)
		return status;
	status = STATUS_USAGE;
	if (data_dir_create(recording.output, &recording.dir))
		goto out;
	info->start_realtime_ns = now_ns(CLOCK_REALTIME);
	start_ns = now_ns(CLOCK_MONOTONIC);
	if (data_dir_begin(&recording.dir, info))
		goto out;
	status = run(&recording);
	recording.finished.end_ns = now_ns(CLOCK_MONOTONIC);
	if (!info->finished) {
		keep_last_trace(&recording);
		goto out;
	}
	info->duration_ns = recording.finished.end_ns - start_ns;
	info->exit_status = status;
	recording.finished.data_dir = recording.dir.path;
	recording.finished.merge = recording.paths.merge;
	error = finish_logs(&recording.finished);
	info->processes = recording.finished.summaries;
	info->process_count = recording.finished.log_count;
	if (!error)
		error = info_write(recording.dir.path, info);
	if (error)
		complain("'%s' is incomplete: %s", recording.output, strerror(-error));
	report(&recording);
	keep_last_trace(&recording);
out:
	release(&recording);
	return status;
}

static const struct command_option record_options[] = {
	{'o', "output", "DIR", "the trace directory (" DEFAULT_DATA_DIR ")"},
	{'s', "simulate", NULL, "run on the simulated GPU, on a machine that has none"},
	{OPTION_API, "api", "LEVEL", "which calls to record: launch, work (default) or all"},
	{OPTION_PAUSED, "paused", NULL, "record nothing until 'xtrace resume' says so"},
	{OPTION_CAPTURE_RANGE, "capture-range", "RANGE",
	 "cudaProfilerApi: record between cudaProfilerStart() and cudaProfilerStop()"},
	{OPTION_PYTHON, "python", "MODE", "Python frames: mixed, full, only (record them) or off"},
	{OPTION_YIELD, "yield", NULL,
	 "step back while the program's own profiler uses CUPTI, instead of keeping it out"},
	{OPTION_MAX_SIZE, "max-size", "SIZE",
	 "stop recording when a log has that size; SIZE:newest: leave out the oldest"},
	{OPTION_MAX_OVERHEAD, "max-overhead", "PERCENT",
	 "take fewer call stacks while tracing costs more of the program's threads"},
	{'h', "help", NULL, "print this and exit"},
	{0, NULL, NULL, NULL},
};

static const char details[] =
	"If this recording contains CUDA calls or GPU work, the older trace in DIR becomes\n"
	"DIR.old. Otherwise DIR is restored. While CMD runs, the older trace is in DIR.previous.\n"
	"xtrace refuses to replace any other file or directory.\n\n"
	"LEVEL says which calls are recorded, and with them what they have the GPU do: launch,\n"
	"kernels and graphs; work, also copies, sets, allocations, frees, waits and modules; all,\n"
	"also events, the making of graphs, contexts and streams.\n\n"
	"While recording is paused, allocations, NVTX ranges and the making of CUDA graphs are\n"
	"noted all the same: see also 'xtrace help pause'.\n\n"
	"SIZE is a number with K, M, G or T, for each process: 2G stops its recording at 2 GiB, "
	"2G:newest\n"
	"keeps the last 1 to 2 GiB of it. What is not recorded is counted.\n\n"
	"PERCENT is of the time of the threads that call CUDA. With fewer stacks all calls and all "
	"GPU\n"
	"work are recorded as ever; the call paths of those without one are estimated from the "
	"others.\n\n"
	"Exit status: that of CMD, 128+n if signal n ended it; 127 if CMD was not found, 126 if\n"
	"it cannot be executed; 2 on bad usage, or if the trace directory cannot be made: then\n"
	"CMD was not run.\n";

const struct command command_record = {
	.name = "record",
	.arguments = "[-o DIR] [--simulate] [--api LEVEL] [--paused]\n"
		     "                     [--capture-range cudaProfilerApi] [--yield]\n"
		     "                     [--max-size SIZE] [--max-overhead PERCENT] [--] CMD "
		     "[ARGUMENT]...",
	.summary = "Runs CMD and records what it and its children have the GPU do",
	.options = record_options,
	.details = details,
	.run = run_record,
};
