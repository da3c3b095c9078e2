/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controls the merge. Opens the outputs. For each log, loads its model, resolves its call paths and
 * reads its events. At the end, completes the outputs, and commits or discards them together.
 */
#include "merge/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/unfinished.h"
#include "log/base/number_format.h"
#include "merge/apart.h"
#include "merge/base/pack.h"
#include "merge/cluster.h"
#include "merge/events.h"
#include "merge/findings/headline.h"
#include "merge/naming/frame_names.h"
#include "merge/naming/frames.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/communicators.h"
#include "merge/read/model.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/reading.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/trust.h"
#include "merge/symbolize/addresses.h"
#include "merge/worker_pool.h"

#define ANALYSES_MAX 8 /* of all outputs together */
#define SINKS_MAX    (ANALYSES_MAX + OUTPUTS_MAX)

/* Returns whether one of the sinks writes to that file. */
static bool is_taken(const struct sink *sinks, size_t count, const char *target)
{
	bool taken = false;

	for (size_t s = 0; s < count && target; s++) {
		const struct sink *sink = &sinks[s];

		taken |= sink->out.file.target && !strcmp(sink->out.file.target, target);
		for (size_t f = 0; f < sink->file_count; f++)
			taken |= sink->files[f].out.file.target &&
				 !strcmp(sink->files[f].out.file.target, target);
	}
	return taken;
}

static int open_folder(struct sink *sink)
{
	struct stat status;

	sink->out.fd = -1;
	unfinished_hold();
	sink->is_new_folder = !mkdir(sink->out.path, 0777);
	if (sink->is_new_folder)
		unfinished_add(sink->out.path);
	unfinished_release();
	if (sink->is_new_folder)
		return 0;
	if (errno != EEXIST || stat(sink->out.path, &status) < 0)
		return -errno;
	if (xt_new_file_check(sink->out.path))
		return XT_NEW_FILE_PLANTED;
	return S_ISDIR(status.st_mode) ? 0 : OUTPUT_WANTS_FOLDER;
}

static void report_open(const struct sink *sink, int error, struct report *report)
{
	bool is_forbidden = error == -EACCES || error == -EROFS;
	const char *option = sink->exporter->name;
	char *why;

	switch (error) {
	case 0:
		return;
	case XT_NEW_FILE_IS_A_LOG:
		why = xt_asprintf("it is a log; --%s is followed by the file to write", option);
		break;
	case OUTPUT_NAMED_TWICE:
		why = xt_strdup("two outputs name it");
		break;
	case OUTPUT_WANTS_FILE:
		why = xt_asprintf("--%s needs a file", option);
		break;
	case OUTPUT_WANTS_FOLDER:
		why = xt_asprintf("--%s needs a directory", option);
		break;
	default:
		why = xt_asprintf("%s%s", xt_new_file_error(error),
				  is_forbidden ? "; write to another place with --output" : "");
	}
	report_error(report, STATUS_FAILED, "cannot write '%s': %s", sink->out.path, why);
	free(why);
}

/* Opens the outputs and begins the exporters. Reports errors. Returns 0 or an error. */
static int open_sinks(struct sink *sinks, size_t count, struct report *report)
{
	int error = 0;

	for (size_t e = 0; e < count && !error; e++) {
		struct sink *sink = &sinks[e];

		if (sink->out.path)
			error = sink->exporter->uses & USES_FOLDER
					? open_folder(sink)
					: output_open(&sink->out, sink->out.path);
		if (!error)
			error = sink_begin(sink);
		if (!error && is_taken(sinks, e, sink->out.file.target))
			error = OUTPUT_NAMED_TWICE;
		for (size_t f = 0; f < sink->file_count && !error; f++)
			if (is_taken(sinks, e, sink->files[f].out.file.target))
				error = OUTPUT_NAMED_TWICE;
		report_open(sink, error, report);
	}
	return error;
}

static struct sink make_sink(const struct exporter *exporter, const char *path,
			     const struct settings *settings)
{
	return (struct sink){.exporter = exporter,
			     .settings = settings,
			     .out = {.path = path, .fd = -1, .file = XT_NEW_FILE_NONE}};
}

static bool is_listed(const struct sink *sinks, size_t count, const struct exporter *exporter)
{
	for (size_t s = 0; s < count; s++)
		if (sinks[s].exporter == exporter)
			return true;
	return false;
}

/*
 * Lists the analyses that the outputs read, then the outputs, without opening any. Returns their
 * number. sinks has room for SINKS_MAX.
 */
static size_t list_sinks(const struct options *options, struct sink *sinks, size_t *analysis_count)
{
	size_t count = 0;

	for (size_t e = 0; e < options->outputs.count; e++) {
		const struct exporter *exporter = options->outputs.list[e].writer;
		const struct exporter *const *analyses = exporter->analyses;

		for (size_t a = 0; analyses && analyses[a]; a++)
			if (!is_listed(sinks, count, analyses[a]))
				sinks[count++] = make_sink(analyses[a], NULL, &options->settings);
	}
	*analysis_count = count;
	for (size_t e = 0; e < options->outputs.count; e++)
		sinks[count++] = make_sink(options->outputs.list[e].writer,
					   options->outputs.list[e].path, &options->settings);
	return count;
}

static void report_write(const char *path, int error, struct report *report)
{
	bool is_stdout = !strcmp(path, "-");

	if (error == -EPIPE && is_stdout) {
		/* The reader, such as head, has read what it wanted. */
		if (report->status < STATUS_FAILED)
			report->status = STATUS_FAILED;
	} else if (error) {
		report_error(report, STATUS_FAILED, "cannot write '%s': %s",
			     is_stdout ? "stdout" : path, strerror(-error));
	}
}

static void close_output(struct output *out, const char *path, bool whole, struct report *report)
{
	if (whole)
		report_write(path, output_commit(out), report);
	else
		output_discard(out);
}

/* Commits all files of a directory, or none. */
static void close_folder(struct sink *sink, bool whole, struct report *report)
{
	for (size_t f = 0; f < sink->file_count && whole; f++) {
		int error = output_complete(&sink->files[f].out);

		report_write(sink->files[f].path, error, report);
		whole = !error;
	}
	for (size_t f = 0; f < sink->file_count; f++) {
		close_output(&sink->files[f].out, sink->files[f].path, whole, report);
		free(sink->files[f].path);
	}
	free(sink->files);
	if (!whole && sink->is_new_folder)
		rmdir(sink->out.path);
	unfinished_remove(sink->out.path);
}

/* Commits the files if whole is true, else removes them. Frees the exporters. */
static void close_sinks(struct sink *sinks, size_t count, bool whole, struct report *report)
{
	for (size_t e = 0; e < count; e++) {
		struct sink *sink = &sinks[e];

		if (sink->exporter->uses & USES_FOLDER)
			close_folder(sink, whole, report);
		else if (sink->out.path)
			close_output(&sink->out, sink->out.path, whole, report);
		sink_free(sink);
	}
}

/* Reports what the logs lack. */
static void report_missing(const struct run *run, struct report *report)
{
	bool is_empty = !run->sums->events.calls.launch_count &&
			!work_counts_all(&run->sums->events.work) && !run->cpu->logs->count;
	const char *logs = run->inputs->count == 1 ? "log" : "logs";
	char time[TIME_BYTES], count[COUNT_BYTES];

	if (is_empty && run->sums->recording.recorded_ns) {
		format_time(time, run->sums->recording.recorded_ns);
		report_note(report,
			    "no launches in the %s: recording was on for %s, and the program "
			    "launched nothing in that time",
			    logs, time);
	} else if (is_empty) {
		report_warn(report, "no launches in the %s%s", logs,
			    run->sums->recording.pause_count
				    ? ": recording had not been started with xtrace start"
				    : "");
	}
	if (run->sums->events.work.idle_unknown_ns) {
		format_time(time, run->sums->events.work.idle_unknown_ns);
		report_warn(report,
			    "%s between GPU work is not counted as idle: missing work may have run "
			    "in that time",
			    time);
	}
	for (size_t d = 0; d < ANOMALIES; d++)
		if (anomaly_count(run, &anomalies[d]))
			report_warn(report, anomalies[d].format,
				    format_count(count, anomaly_count(run, &anomalies[d])));
}

static bool begins_with_path(const char *text, const char *path)
{
	size_t length = strlen(path);

	return !strncmp(text, path, length) && text[length] == ':';
}

/* Returns whether a warning is about a log itself. */
static bool is_of_log(const struct inputs *inputs, const char *warning)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (begins_with_path(warning, input_shown(&inputs->logs[i])))
			return true;
	for (size_t i = 0; i < inputs->unreadable.count; i++)
		if (begins_with_path(warning, input_shown(&inputs->unreadable.list[i])))
			return true;
	return false;
}

/* Puts warnings about logs before those about names. */
static void order_warnings(const struct run *run)
{
	struct report *report = run->report;
	char **sorted = xt_calloc(report->warnings.count + 1, sizeof(*sorted));
	size_t count = 0;

	for (int of_log = 1; of_log >= 0; of_log--)
		for (size_t w = 0; w < report->warnings.count; w++)
			if (is_of_log(run->inputs, report->warnings.list[w]) == of_log)
				sorted[count++] = report->warnings.list[w];
	if (count)
		memcpy(report->warnings.list, sorted, count * sizeof(*sorted));
	free(sorted);
}

/* A function of torch::autograd::Engine. */
#define ENGINE "_ZN5torch8autograd6Engine"

/* Returns the label of a process, which the caller frees. */
static char *make_label(const struct inputs *inputs, const struct input *log,
			const struct model *model)
{
	char title[PROCESS_TITLE_BYTES], rank[INPUT_RANK_BYTES];
	bool has_host = inputs->has_several_hosts;

	model_process_title(model, title);
	input_rank_text(log, rank);
	if (rank[0])
		return xt_asprintf("%s (%s%s)", rank, title, log->distinction);
	return xt_asprintf("%s (%u%s%s%s)", title, log->header.pid, has_host ? " on " : "",
			   has_host ? log->host : "", log->distinction);
}

static int read_process(struct reading *reading, struct xt_reader *reader, struct run *run)
{
	EXPORT(reading, process);
	for (size_t e = 0; e < reading->sink_count && reading->packed; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->pack)
			sink->exporter->pack(sink, &reading->process, reading->packed);
		if (reading->packed->error)
			return reading->packed->error;
	}
	if (reader) {
		reading_events(reading, reader, jobs_allowed(run) - 1, &run->report->progress);
		log_counts_add(&run->sums->events, &reading->sums.counts);
	}
	reading_finish(reading);
	build_tree(reading);
	if (reading->run->needs.findings) {
		findings_detect(reading);
		headline_add(reading);
		ranks_add(reading);
	}
	build_range_tree(run, &reading->process, &reading->aggregate);
	EXPORT(reading, process_end);
	return 0;
}

/* The log of a killed process has only the last periodic account, or none. */
static void note_cost(struct run *run, const struct reading *reading, const struct model *model)
{
	if (!model_has_account(model, "callbacks.ns"))
		run->sums->losses.logs_without_cost++;
	else if (!reading->damage.closed || model_has_account(model, "recovered.calls"))
		run->sums->losses.logs_cut_off++;
}

/*
 * Reports a Python interpreter that the tracer did not recognise. Its functions in call stacks
 * reveal it.
 */
static void report_hidden_interpreter(const struct model *model, const struct addresses *addresses,
				      const char *path, struct report *report)
{
	uint32_t module = frame_hidden_interpreter(model, addresses);

	if (module)
		report_warn(
			report,
			"%s: no Python frames: the interpreter in %s does not export its symbols",
			path, names_text(&model->names, model->modules.rows[module].path, NULL));
}

/* Whether a call was made by PyTorch's engine. */
static bool has_backward(const struct model *model, const struct addresses *addresses)
{
	for (uint32_t a = 0; a < addresses->count; a++)
		if (!strncmp(names_text(&model->names, addresses->list[a].name, NULL), ENGINE,
			     strlen(ENGINE)))
			return true;
	return false;
}

/* Reports that PyTorch's backward pass, or a part of it, stays below its engine. */
static void report_unread_autograd(const struct model *model, const struct addresses *addresses,
				   const char *path, struct report *report)
{
	const char *why = model_meta(model, "torch.missing");
	const char *version = model_meta(model, "torch.version");

	if (model->autograd.left_count)
		report_warn(report,
			    "%s: %llu backward launches have no forward line: there are too many "
			    "different ones",
			    path, (unsigned long long)model->autograd.left_count);
	if (why[0] && has_backward(model, addresses))
		report_warn(report, "%s: backward kernels have no forward line: PyTorch%s%s: %s",
			    path, version[0] ? " " : "", version, why);
}

/* Names the frames of a log. */
static void name_frames(struct run *run, const struct input *log, struct model *model,
			struct debug_search *search, struct addresses *addresses,
			struct demangle_cache *names, struct frames *frames, struct report *report)
{
	const struct frame_style *style = &run->settings->frames;

	addresses_resolve(addresses, model,
			  &(struct resolve_options){.places = style->inlines || style->lines,
						    .search = search,
						    .log_path = log->path},
			  report);
	*names = (struct demangle_cache){.mangled = &model->names,
					 .style = run->settings->names,
					 .shown = &run->paths.names};
	if (style->redaction)
		redact_names(style->redaction, model, addresses);
	if (names->style == DEMANGLE_SHORT)
		unique_names_assign(&run->naming->unique_names, names, model, addresses);
	frames_build(frames, model, addresses, style, names, &run->naming->file_names, &run->paths,
		     PATH_ROOT);
	if (style->redaction)
		redact_model(style->redaction, model, addresses);
	unnamed_modules_add(&run->naming->unnamed_modules, model, addresses, frames->address_names);
}

/* Returns the root frame of --by process or rank, as a name in paths. */
static uint32_t root_name(struct run *run, const struct input *log, uint32_t label_name)
{
	char text[INPUT_RANK_BYTES];

	if (run->settings->by != BY_RANK || log->rank == RANK_UNKNOWN)
		return label_name;
	snprintf(text, sizeof(text), "rank %u", log->rank);
	return clean_name(&run->paths.names, text);
}

/*
 * Describes a log for the exporters. A CPU log belongs to the process of its traced log, if that
 * was read.
 */
static void describe_process(struct run *run, size_t index, const struct model *model,
			     struct process *process)
{
	const struct input *log = &run->inputs->logs[index];
	bool is_continued = log->is_cpu && log->first != index && run->labels[log->first];
	bool is_alone = log->is_cpu && !is_continued;
	char *label;

	if (!is_continued)
		run->labels[index] = make_label(run->inputs, log, model);
	label = run->labels[is_continued ? log->first : index];
	*process = (struct process){
		.log = log,
		.model = model,
		.iterations = process->iterations,
		.paths = &run->paths,
		.label = label,
		.index = is_continued ? log->first
			 : is_alone   ? run->inputs->count + run->cpu->only_count++
				      : index,
		.process_count = run->inputs->count + is_alone,
		.listed_weights = run_listed_weights(run),
		.is_continued = is_continued,
		.origin_ns = (int64_t)((uint64_t)run->inputs->origin_ns - (uint64_t)log->shift_ns),
	};
	process->root_name = root_name(run, is_continued ? &run->inputs->logs[log->first] : log,
				       clean_name(&run->paths.names, label));
}

/* Keeps what a later comparison of the ranks needs. */
static void keep_rank_log(struct run *run, struct reading *reading)
{
	rank_log_finish(reading);
	run->compared->logs[run->compared->log_count++] = reading->sums.rank_log;
	reading->sums.rank_log = (struct rank_log){0};
}

/* Adds to the run what the log itself tells: losses, costs, warnings. */
static void note_log(struct run *run, const struct input *log, struct reading *reading)
{
	const struct model *model = reading->model;
	const struct addresses *addresses = reading->process.frames->addresses;
	uint64_t missing_count = reading->join.kernel_missing_count;

	report_unread_autograd(model, addresses, input_shown(log), run->report);
	report_hidden_interpreter(model, addresses, input_shown(log), run->report);
	if (run->needs.ranks)
		keep_rank_log(run, reading);
	losses_count(run->sums->losses.counts, run->sums->losses.accounts, log, model,
		     &reading->damage, run->report);
	run->sums->losses.logs_open += !reading->damage.closed;
	if (missing_count > reading->join.kernel_invalid_count)
		run->sums->events.calls.kernel_missing_count += losses_add_missing_kernels(
			run->sums->losses.counts, input_shown(log), model, &reading->damage,
			missing_count - reading->join.kernel_invalid_count, run->report);
	note_cost(run, reading, model);
	if (!strcmp(model_meta(model, "gpu.simulated"), "1"))
		run->sums->recording.has_simulated_gpu = true;
}

/* Adds a log to the run. reader is positioned at the events of the log; NULL: they were read. */
static int add_log(struct run *run, size_t index, struct debug_search *search,
		   struct reading *reading, struct xt_reader *reader)
{
	const struct input *log = &run->inputs->logs[index];
	struct model *model = reading->model;
	struct addresses addresses = {0};
	struct demangle_cache names = {0};
	struct report unnamed = {.is_held = true}; /* lost events matter more than names */
	int error;

	describe_process(run, index, model, &reading->process);
	reading->process.frames = &reading->frames;
	reading->process.names = &names;
	name_frames(run, log, model, search, &addresses, &names, &reading->frames, &unnamed);
	error = read_process(reading, reader, run);
	run->cpu->facts.long_idle_ns += reading->gaps.idle_paths.long_ns;
	run->cpu->facts.long_covered_ns += reading->gaps.idle_paths.long_covered_ns;
	if (!error)
		note_log(run, log, reading);
	report_release(run->report, &unnamed);
	frames_free(&reading->frames);
	addresses_free(&addresses);
	demangle_cache_free(&names);
	return error;
}

/* Reads a log without a worker. */
static int read_log(struct run *run, size_t index, struct debug_search *search, struct sink *sinks,
		    size_t sink_count)
{
	struct reading reading = {.run = run,
				  .sinks = sinks,
				  .sink_count = sink_count,
				  .process.log = &run->inputs->logs[index]};
	struct xt_reader *reader;
	int error = model_open(&run->inputs->logs[index], run->report, &reading.model, &reader);

	if (error || !reader)
		return error;
	reading_find_iterations(&reading);
	error = add_log(run, index, search, &reading, reader);
	xt_reader_close(reader);
	reading_free(&reading);
	model_free(reading.model);
	return error;
}

/* Loads the CPU logs, which all other logs may need. A log that cannot be read is left out. */
static int load_cpu_logs(struct run *run, struct cpu_logs *logs, struct debug_search *search)
{
	const struct inputs *inputs = run->inputs;
	size_t count = inputs->all_count - inputs->count;
	int error = 0;

	logs->list = xt_calloc(count + 1, sizeof(*logs->list));
	for (size_t i = inputs->count; i < inputs->all_count && !error; i++) {
		struct cpu_log *log = &logs->list[logs->count];
		struct xt_reader *reader = inputs_open(inputs->logs[i].path, run->report);

		if (!reader)
			continue;
		log->input = &inputs->logs[i];
		error = model_load(&log->model, reader);
		xt_reader_close(reader);
		if (error)
			break;
		logs->count++;
		log->period_ns = cpu_period_ns(log->model);
		cpu_facts_add(&run->cpu->facts, log);
		name_frames(run, log->input, log->model, search, &log->addresses, &log->names,
			    &log->frames, run->report);
		cpu_log_note_stacks(log);
	}
	return error;
}

/* Adds the time of the sampled threads of a process. */
static void add_cpu_log(struct run *run, const struct cpu_log *log, struct sink *sinks,
			size_t sink_count)
{
	struct reading reading = {.run = run, .sinks = sinks, .sink_count = sink_count};
	struct process *process = &reading.process;

	describe_process(run, (size_t)(log->input - run->inputs->logs), log->model, process);
	reading.model = log->model;
	process->frames = &log->frames;
	process->names = (struct demangle_cache *)&log->names;
	process->cpu = log;
	EXPORT(&reading, process);
	cpu_sums_add(&reading);
	headline_add_samples(&reading);
	build_tree(&reading);
	EXPORT(&reading, process_end);
	losses_count(run->sums->losses.counts, run->sums->losses.accounts, log->input, log->model,
		     &log->model->damage, run->report);
	reading_free(&reading);
}

/* Completes the sums and the outputs after the last log. */
static int finish_run(struct run *run, struct sink *sinks, size_t sink_count)
{
	struct trust trust = {0};
	int error = 0;

	if (run->selection)
		error = selection_check(run->selection, &run->paths, &run->sums->ranges.tree.names,
					run->report);
	if (error)
		return error;
	report_missing(run, run->report);
	order_warnings(run);
	if (run->needs.ranks)
		collectives_report_make(&run->compared->report, run);
	if (run->needs.alignment)
		alignment_keep(run->needs.alignment, run);
	if (run->needs.ranks && run->needs.weights & RANK_WEIGHTS)
		error = rank_weights_add(&run->compared->weights, run);
	if (error)
		return error;
	findings_finish(run);
	if (run->needs.findings)
		headline_finish(run);
	ranks_finish(run);
	transfers_sort(&run->sums->transfers);
	trust_judge(&trust, run);
	run->trust = &trust;
	for (size_t e = 0; e < sink_count; e++)
		if (sinks[e].exporter->end)
			sinks[e].exporter->end(&sinks[e], run);
	run->trust = NULL;
	trust_free(&trust);
	return 0;
}

/* Reads the logs and adds them to the run in their order. */
static int add_logs(struct run *run, struct cluster *cluster, struct debug_search *search,
		    struct sink *sinks, size_t sink_count)
{
	struct coordinator *coordinator =
		cluster ? coordinator_start(cluster, run, sinks, sink_count, search) : NULL;
	struct worker_pool *pool = cluster ? NULL : worker_pool_start(run, sinks, sink_count);
	int error = 0;

	for (size_t i = 0; i < run->inputs->count && !error; i++) {
		struct reading *reading = coordinator ? coordinator_wait(coordinator, i)
					  : pool      ? worker_pool_wait(pool, i)
						      : NULL;

		if (!reading) {
			error = read_log(run, i, search, sinks, sink_count);
			continue;
		}
		progress_done(&run->report->progress, run->inputs->logs[i].file_bytes);
		error = reading->error;
		if (!error)
			error = add_log(run, i, search, reading, NULL);
		if (coordinator && error == -EBADMSG)
			coordinator_reject(coordinator, i);
		if (pool)
			worker_pool_release(pool, i);
		else
			coordinator_release(coordinator, i);
	}
	worker_pool_stop(pool);
	coordinator_free(coordinator);
	return error;
}

static int read_all(struct run *run, struct cluster *cluster, struct sink *sinks, size_t sink_count)
{
	struct cpu_logs cpu_logs = {0};
	struct module_cache modules =
		MODULE_CACHE(run->inputs->all_count > 1 ? MODULE_CACHE_BYTES : 0);
	struct debug_search search = {.directory = run->settings->debug_directory,
				      .modules = &modules,
				      .server.report = run->report};
	bool is_worker = cluster_is_worker(cluster);
	int error;

	progress_begin(&run->report->progress, run->report->quiet);
	for (size_t i = 0; i < run->inputs->count; i++)
		progress_expect(&run->report->progress, run->inputs->logs[i].file_bytes);
	error = load_cpu_logs(run, &cpu_logs, &search);
	run->cpu->logs = &cpu_logs;
	if (!error)
		error = is_worker ? worker_serve(cluster, run, sinks, sink_count, &search)
				  : add_logs(run, cluster, &search, sinks, sink_count);
	for (size_t l = 0; l < cpu_logs.count && !error && !is_worker; l++)
		add_cpu_log(run, &cpu_logs.list[l], sinks, sink_count);
	debug_search_end(&search);
	module_cache_free(&modules);
	progress_clear(&run->report->progress);
	if (!error && !is_worker)
		error = finish_run(run, sinks, sink_count);
	run->cpu->logs = NULL;
	cpu_logs_free(&cpu_logs);
	return error;
}

static int compile_user_files(struct frame_style *style, regex_t *compiled, struct report *report)
{
	char message[128];
	int code;

	if (!style->user_files)
		return 0;
	code = regcomp(compiled, style->user_files, REG_EXTENDED | REG_NOSUB);
	if (!code) {
		style->user_files_compiled = compiled;
		return 0;
	}
	regerror(code, compiled, message, sizeof(message));
	report_error(report, STATUS_FAILED,
		     "--my-code '%s': %s; use a POSIX extended regular expression (see regex(7))",
		     style->user_files, message);
	return -EINVAL;
}

/* Refuses a weight that would be 0 for every path. */
static int check_weight(const struct options *options, const struct run *run)
{
	uint32_t weight = 1u << options->settings.weight;
	const char *why;

	if (!options_have_use(options, USES_WEIGHT) ||
	    (run_listed_weights(run) | GRAPH_WEIGHTS) & weight)
		return 0;
	if (weight & CPU_WEIGHTS)
		why = "no CPU samples in the logs; record with 'xtrace record --cpu'";
	else if (run->inputs->count < 2)
		why = "it compares ranks; give the logs of several";
	else
		why = "it compares ranks over the whole run, not a part of it";
	report_error(run->report, STATUS_FAILED, "cannot use --weight %s: %s",
		     weight_specs[options->settings.weight].name, why);
	return -EINVAL;
}

/* A run and all that belongs to it. */
struct whole_run {
	struct run run;
	struct settings settings;
	struct redaction redaction;
	regex_t user_files; /* if settings.frames.user_files_compiled */
	struct sums sums;
	struct cpu_data cpu;
	struct run_names naming;
	struct compared_ranks compared;
	struct conclusions found;
	struct sink sinks[SINKS_MAX];
	size_t sink_count;
};

static void set_needs(struct run *run, const struct options *options)
{
	struct needs *needs = &run->needs;

	needs->weights = options_weights(options);
	needs->findings = options_have_use(options, USES_FINDINGS);
	needs->iterations = options_have_use(options, USES_ITERATIONS);
	needs->alignment = options->alignment;
	needs->ranks = run->inputs->count > 1 && !wanted_is_part(&options->settings.wanted) &&
		       (options_have_use(options, USES_FINDINGS | USES_RANKS) ||
			needs->weights & RANK_WEIGHTS || options->alignment);
	/* NCCL's calls are found by the thread of the launch. */
	needs->origins = options_have_use(options, USES_ORIGINS) || needs->findings || needs->ranks;
	needs->weights_needed =
		needs->weights | (needs->findings || needs->ranks ? FINDINGS_WEIGHTS : 0);
}

/* Prepares a run without opening its outputs. Call end_run() in any case. */
static int begin_run(struct whole_run *whole, const struct options *options, struct inputs *inputs,
		     struct report *report)
{
	struct run *run = &whole->run;
	int error;

	*whole = (struct whole_run){
		.run = {.inputs = inputs,
			.settings = &whole->settings,
			.report = report,
			.sums = &whole->sums,
			.cpu = &whole->cpu,
			.naming = &whole->naming,
			.compared = &whole->compared,
			.found = &whole->found,
			.labels = xt_calloc(inputs->all_count + 1, sizeof(*run->labels)),
			.analyses.list = whole->sinks},
		.settings = options->settings,
		.compared.logs = xt_calloc(inputs->count + 1, sizeof(*whole->compared.logs)),
	};
	whole->settings.finding_shares = options->finding_shares;
	set_needs(run, options);
	paths_init(&run->paths);
	paths_init(&whole->sums.ranges.tree);
	whole->sink_count = list_sinks(options, whole->sinks, &run->analyses.count);
	error = check_weight(options, run);
	if (error)
		return error;
	if (whole->settings.is_redacted) {
		whole->settings.frames.redaction = &whole->redaction;
		redaction_begin(&whole->redaction, inputs);
	}
	error = compile_user_files(&whole->settings.frames, &whole->user_files, report);
	if (!error && (wanted_is_part(&options->settings.wanted) ||
		       wanted_changes_paths(&options->settings.wanted)))
		error = selection_new(&run->selection, &options->settings.wanted, report);
	return error;
}

static void end_run(struct whole_run *whole)
{
	struct run *run = &whole->run;
	struct sums *sums = &whole->sums;
	struct compared_ranks *compared = &whole->compared;

	if (whole->settings.frames.user_files_compiled)
		regfree(&whole->user_files);
	rank_weights_free(&compared->weights);
	collectives_report_free(&compared->report);
	for (size_t l = 0; l < compared->log_count; l++)
		rank_log_free(&compared->logs[l]);
	selection_free(run->selection);
	conclusions_free(&whole->found);
	transfers_free(&sums->transfers);
	rank_spread_free(&sums->spread);
	paths_free(&sums->ranges.tree);
	for (size_t i = 0; i < run->inputs->all_count; i++)
		free(run->labels[i]);
	free_all(compared->logs, sums->memory.list, sums->ranges.sums.list, run->labels);
	run_names_free(&whole->naming);
	paths_free(&run->paths);
	redaction_free(&whole->redaction);
}

void merge_run(const struct options *options, struct inputs *inputs, struct report *report)
{
	bool is_worker = cluster_is_worker(options->cluster);
	struct cluster *cluster = options->cluster;
	struct whole_run whole;
	int error = begin_run(&whole, options, inputs, report);
	struct sink *sinks = whole.sinks;
	size_t sink_count = whole.sink_count;

	if (cluster && apart_is_possible(&whole.run, sinks, sink_count))
		/* Each process has a processor of its own. */
		whole.settings.jobs = whole.settings.jobs ? whole.settings.jobs : 1;
	else if (!is_worker)
		cluster = NULL;
	if (is_worker) {
		if (!error)
			error = read_all(&whole.run, cluster, sinks, sink_count);
		if (error)
			worker_fail(cluster, strerror(-error));
	} else if (!error) {
		error = open_sinks(sinks, sink_count, report);
		if (!error)
			error = read_all(&whole.run, cluster, sinks, sink_count);
		close_sinks(sinks, sink_count, !error, report);
	}
	if (error && report->status != STATUS_FAILED)
		report_error(report, STATUS_FAILED, "%s", strerror(-error));
	end_run(&whole);
}
