/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace record: runs a program with the injected library, and prints what was recorded.
 *
 * It checks everything that can fail, creates the trace directory, runs the program, completes the
 * logs, updates info.json and prints a few lines on stderr. Once the program has started, no error
 * here changes its exit status.
 */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_options.h"
#include "data_dir.h"
#include "finish_logs.h"
#include "log/base/compare.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"
#include "program.h"
#include "rotation.h"
#include "sample.h"

struct recording {
	struct capture_options options; /* first: its option rows use this as context */
	bool has_no_torch_trace;
	struct cpu_sampling cpu;
	struct recording_dir dir;
	struct finished finished;
	struct install_paths paths;
	struct info info;
};

/* CPU logs that are not what they should be. */
struct cpu_problems {
	uint64_t lost_count;
	size_t cut_count;
};

struct totals {
	size_t process_count; /* with CUDA calls */
	uint64_t launch_count, kernel_count, lost_count, log_bytes;
	size_t running_count, cut_count, incomplete_count, unreadable_count, empty_count;
	struct cpu_problems cpu;
	bool simulated;
};

static const struct option_row option_rows[] = {
	{"no-torch-trace",
	 .help = "Do not ask PyTorch for the source lines of code that torch.compile generates",
	 .apply = option_flag, .offset = offsetof(struct recording, has_no_torch_trace)},
	{0},
};

/* The rate from the option or the variable. A wrong variable is reported by the library. */
static unsigned choose_rate(const struct capture_options *options)
{
	const struct option_row row = {.min = 1, .max = CPU_SAMPLING_HZ_MAX};
	const char *value = getenv("XTRACE_CPU");
	unsigned hz = 0;

	if (options->cpu_hz)
		return options->cpu_hz;
	return value && !option_number(&hz, &row, value) ? hz : 0;
}

static int parse(struct recording *recording, const struct command *command, int argc, char **argv)
{
	int status, count;

	recording->options.output = DEFAULT_DATA_DIR;
	recording->cpu.paths = &recording->paths;
	recording->cpu.data_dir = &recording->dir.path;
	status = command_parse(command, NULL, recording, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	/* This program samples better than the library can. */
	recording->cpu.hz = choose_rate(&recording->options);
	recording->options.cpu_hz = 0;
	recording->info.command = argv + 1;
	recording->info.simulate = recording->options.simulates;
	return COMMAND_GO_ON;
}

/* The driver loads only one such library. */
static void warn_of_other_tool(const char *injected)
{
	const char *other = user_setting("CUDA_INJECTION64_PATH");

	if (other && strcmp(other, injected) != 0)
		print_note("CUDA_INJECTION64_PATH=%s is replaced for this run", other);
}

/*
 * PyTorch's logs contain the user's source. Only xtrace's own are deleted after the run. The user's
 * folder becomes an absolute path, because the program may leave this directory. Returns 0 or
 * -ENOMEM.
 */
static int choose_torch_trace(struct recording *recording)
{
	struct finished *finished = &recording->finished;
	const char *own = user_setting("TORCH_TRACE");

	finished->owns_torch_trace = !recording->has_no_torch_trace && !own;
	if (recording->has_no_torch_trace || !own)
		return 0;
	finished->torch_trace = absolute_path(own);
	return finished->torch_trace ? 0 : -ENOMEM;
}

/* Returns the exit status of the program. Sets info.finished if it ran. */
static int record_command_run(struct recording *recording)
{
	const struct child_care care = {
		.output = -1, .forked = cpu_sampling_start, .context = &recording->cpu};
	struct capture_environment environment = {0};
	bool is_own = !user_setting("INDUCTOR_PROVENANCE") && !recording->has_no_torch_trace;
	int status = 0, error;

	warn_of_other_tool(recording->paths.injected);
	error = choose_torch_trace(recording);
	if (!error)
		error = capture_environment_make(&environment, &recording->options,
						 &recording->paths, recording->dir.path);
	capture_environment_add(&environment, "INDUCTOR_PROVENANCE", is_own ? "1" : NULL);
	capture_environment_add(&environment, "XTRACE_CPU", recording->cpu.hz ? "off" : NULL);
	capture_environment_add(&environment, "TORCH_TRACE",
				recording->finished.owns_torch_trace
					? recording->dir.path
					: recording->finished.torch_trace);
	if (!error)
		error = child_run(recording->info.command, environment.entries,
				  recording->cpu.hz ? &care : NULL, &status);
	cpu_sampling_stop(&recording->cpu);
	capture_environment_free(&environment);
	recording->info.finished = !error;
	if (!error)
		return subprocess_exit_status(status);
	/* child_find() found the program, so the interpreter in its first line is missing. */
	if (error == -ENOENT)
		print_error("cannot run '%s': its interpreter is missing",
			    recording->info.command[0]);
	return error == -ENOENT ? STATUS_NOT_FOUND
				: child_cannot_run(recording->info.command[0], error);
}

static struct totals add_up(const struct recording *recording)
{
	struct totals totals = {0};

	for (size_t i = 0; i < recording->finished.log_count; i++) {
		const struct log_summary *summary = &recording->finished.summaries[i];

		totals.log_bytes += summary->log_bytes;
		totals.unreadable_count += !summary->readable && !summary->empty;
		if (finish_is_cpu_log(summary->name)) {
			totals.cpu.lost_count += summary->lost_count;
			totals.cpu.cut_count +=
				summary->empty || (summary->readable && summary->incomplete);
			continue;
		}
		totals.process_count++;
		totals.launch_count += summary->launch_count;
		totals.kernel_count += summary->kernel_count;
		totals.lost_count += summary->lost_count;
		totals.incomplete_count += summary->incomplete && !summary->running;
		totals.running_count += summary->running;
		totals.cut_count += summary->readable && !summary->running && !summary->closed;
		totals.empty_count += summary->empty;
		totals.simulated |= summary->simulated;
	}
	return totals;
}

static const char *plural(size_t process_count)
{
	return process_count == 1 ? "" : "es";
}

/* A command that works when it is pasted into the user's shell. */
static void print_next_step(const struct recording *recording)
{
	bool is_default = strcmp(recording->options.output, DEFAULT_DATA_DIR) == 0;
	char *program = shell_own_name();
	char *data = shell_quote(recording->options.output);

	if (program && data && !message_is_quiet())
		fprintf(stderr, "To see it: %s report%s%s\n", program, is_default ? "" : " ",
			is_default ? "" : data);
	free(program);
	free(data);
}

/* Problems that a recording without CUDA calls may also have. */
static void report_logs(const struct totals *totals, const struct sampler_result *sampled)
{
	char lost[COUNT_BYTES];
	uint64_t lost_count = totals->cpu.lost_count;

	/* cpu_sampling_report() printed these. */
	lost_count -= lost_count < sampled->lost_processes ? lost_count : sampled->lost_processes;
	if (totals->unreadable_count)
		print_note("%zu log%s cannot be read", totals->unreadable_count,
			   totals->unreadable_count == 1 ? "" : "s");
	if (lost_count)
		print_note("%s CPU sample%s lost; 'xtrace report' names the causes",
			   format_count(lost, lost_count), lost_count == 1 ? " was" : "s were");
	if (totals->cpu.cut_count)
		print_note("%zu CPU log%s incomplete; the samples up to then were kept",
			   totals->cpu.cut_count, totals->cpu.cut_count == 1 ? " is" : "s are");
}

/* Why no process has a log, if that is known. */
static void report_nothing(const struct recording *recording)
{
	const char *what =
		recording->cpu.hz ? "no CUDA calls were recorded" : "nothing was recorded";
	const char *command = recording->info.command[0];

	if (child_is_static(command))
		print_note("%s: '%s' is a static program, into which no library can be loaded",
			   what, command);
	else if (user_setting("NV_COMPUTE_PROFILER_PERFWORKS_DIR"))
		print_note("%s: 'ncu' runs this command, and both need CUPTI; run 'ncu %s' without "
			   "'xtrace record'",
			   what, command);
	else
		print_note("%s: no process used CUDA, or none could be traced%s", what,
			   recording->info.simulate
				   ? ""
				   : "; on a machine without a GPU, record with --simulate");
}

static void report(const struct recording *recording)
{
	struct totals totals = add_up(recording);
	char launches[COUNT_BYTES], kernels[COUNT_BYTES], lost[COUNT_BYTES], size[TIME_BYTES];
	bool is_unknown;

	cpu_sampling_report(&recording->cpu, recording->info.command[0]);
	report_logs(&totals, &recording->cpu.result);
	if (totals.process_count == 0) {
		report_nothing(recording);
		return;
	}
	format_bytes(size, totals.log_bytes);
	is_unknown = totals.incomplete_count && !totals.lost_count;
	print_note("recorded %zu process%s, %s launches, %s kernels, %s%s lost, %s%s",
		   totals.process_count, plural(totals.process_count),
		   format_count(launches, totals.launch_count),
		   format_count(kernels, totals.kernel_count),
		   totals.incomplete_count && !is_unknown ? "at least " : "",
		   is_unknown ? "an unknown number" : format_count(lost, totals.lost_count), size,
		   totals.simulated ? " (simulated GPU)" : "");
	if (totals.empty_count)
		print_note("%zu process%s ended before recording began; the log is empty",
			   totals.empty_count, plural(totals.empty_count));
	if (totals.cut_count)
		print_note("%zu process%s %s killed, or could not write the end of the log; the "
			   "events "
			   "up to then were kept",
			   totals.cut_count, plural(totals.cut_count),
			   totals.cut_count == 1 ? "was" : "were");
	if (totals.incomplete_count)
		print_note("the number of lost events is unknown for %zu process%s: the end of the "
			   "log was neither written nor recovered",
			   totals.incomplete_count, plural(totals.incomplete_count));
	if (totals.running_count)
		print_note("%zu process%s still running and being recorded", totals.running_count,
			   plural(totals.running_count));
	if (totals.launch_count == 0 && totals.kernel_count == 0)
		print_note("no kernel launch was recorded%s",
			   recording->options.is_paused || recording->options.armed
				   ? ": it waited for 'xtrace start', or for "
				     "xtrace_gpu.recording() in the program"
			   : recording->options.capture_range
				   ? ": the program did not call cudaProfilerStart() before its "
				     "launches"
				   : "");
	if (finish_has_content(&recording->finished))
		print_next_step(recording);
}

/*
 * Chooses between this recording and the trace that it moved aside. Waits for processes that end
 * together with the program, because they could still record.
 */
static void keep_last_trace(struct recording *recording)
{
	struct recording_dir *dir = &recording->dir;
	int outcome;

	if (dir->claim >= 0)
		close(dir->claim);
	dir->claim = -1;
	while ((outcome = rotation_settle(dir->place, ROTATION_LATER)) == ROTATION_WAITS &&
	       monotonic_ns() - recording->finished.end_ns < GRACE_NS)
		nap_ns(GRACE_STEP_NS);
	if (outcome == ROTATION_RESTORED)
		print_note("this recording is empty and was removed; '%s' holds the previous trace",
			   dir->place);
	if (outcome == ROTATION_WAITS)
		print_note("this recording is empty so far, but a process that may record into it "
			   "still runs; the previous trace is in '%s'",
			   dir->older);
	if (outcome == ROTATION_NONE && dir->is_made && !recording->finished.log_count)
		rotation_discard(dir->place);
}

/* Nsight's tools need CUPTI for themselves, and refuse to start or see nothing. */
static bool is_other_profiler(const char *command)
{
	static const char *const names[] = {"ncu", "nsys"};
	const char *name = base_name(command);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		print_error("cannot record a program under '%s': both need CUPTI; run this '%s' "
			    "command without 'xtrace record'",
			    name, name);
		return true;
	}
	return false;
}

static int run_record(const struct command *command, int argc, char **argv)
{
	struct recording recording = {.dir = {.older_claim = -1, .claim = -1}};
	struct info *info = &recording.info;
	uint64_t start_ns;
	char **longer;
	int status = parse(&recording, command, argc, argv), error;

	if (status != COMMAND_GO_ON)
		return status;
	install_paths_find(&recording.paths); /* capture_find_parts() reports what is missing */
	longer = child_with_python(info->command, &recording.paths);
	if (longer)
		info->command = longer;
	error = child_find(info->command[0]);
	status = error ? child_cannot_run(info->command[0], error)
		       : capture_check(&recording.options);
	if (!status)
		status = capture_find_parts(&recording.options, &recording.paths);
	if (status)
		goto out;
	status = STATUS_FAILED;
	if (is_other_profiler(info->command[0]))
		goto out;
	if (recording_dir_create(recording.options.output, &recording.dir))
		goto out;
	info->start_realtime_ns = realtime_ns();
	start_ns = monotonic_ns();
	if (recording_dir_begin(&recording.dir, info))
		goto out;
	status = record_command_run(&recording);
	recording.finished.end_ns = monotonic_ns();
	if (!info->finished) {
		keep_last_trace(&recording);
		goto out;
	}
	info->duration_ns = recording.finished.end_ns - start_ns;
	info->exit_status = status;
	recording.finished.data_dir = recording.dir.path;
	error = finish_logs(&recording.finished);
	info->processes = recording.finished.summaries;
	info->process_count = recording.finished.log_count;
	if (!error)
		error = info_write(recording.dir.path, info);
	if (error)
		print_error("cannot complete '%s': %s", recording.options.output, strerror(-error));
	report(&recording);
	keep_last_trace(&recording);
out:
	finish_free(&recording.finished);
	recording_dir_close(&recording.dir);
	free(longer);
	return status;
}

static const char details[] =
	"If CMD is a Python script (.py) that is not executable, python3 runs it: the one that\n"
	"XTRACE_INTERPRETER names, or that of the virtual environment with xtrace, or that on\n"
	"PATH.\n\n"
	"If DIR holds an older trace, it moves to DIR.old. If this recording has no CUDA calls,\n"
	"GPU work or CPU samples, it is removed and the older trace stays. A recording without\n"
	"any log is always removed. While CMD runs, the older trace is in DIR.previous. xtrace\n"
	"never replaces other files or directories.\n\n"
	"While recording is paused, allocations, NVTX ranges and CUDA graph construction are\n"
	"still recorded.\n\n"
	"SIZE is a number with K, M, G or T and applies to each process: 2G stops at 2 GiB,\n"
	"2G:newest keeps the last 1 to 2 GiB. Dropped events are counted.\n\n"
	"Exit status: the status of CMD; 128+n if signal n ended it; 127 if CMD was not found;\n"
	"126 if it cannot be executed; 2 if the usage is wrong or the trace directory cannot be\n"
	"created. In the last three cases CMD did not run.\n";

const struct command command_record = {
	.name = "record",
	.arguments = "[OPTION]... [--] CMD [ARGUMENT]...",
	.summary = "Run a program and record its CUDA calls and GPU work",
	.details = details,
	.operand = "CMD",
	.needed = "program",
	.stops_at_operand = true,
	.list_options = capture_options_list,
	.options = option_rows,
	.run = run_record,
};
