/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace merge: reads the logs of a traced program and writes reports and exports.
 */
#include "merge/merge_command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/report.h"
#include "merge/cluster.h"
#include "merge/merge.h"
#include "merge/options.h"
#include "merge/ranks/communicators.h"
#include "merge/read/inputs.h"
#include "merge/sums/exporter.h"
#include "merge/worker_pool.h"

static bool is_of_host(const struct input *log, const struct input *other)
{
	return !strcmp(log->host, other->host) && log->shift_ns == other->shift_ns;
}

/* Changes the clocks of the logs. CPU logs follow a log of their host. */
static void apply_shifts(const struct alignment *alignment, struct inputs *inputs)
{
	for (size_t l = 0; l < inputs->all_count; l++) {
		size_t other = l;

		if (l >= inputs->count)
			for (other = 0; other < inputs->count; other++)
				if (is_of_host(&inputs->logs[l], &inputs->logs[other]))
					break;
		inputs->logs[l].aligned_ns =
			other < inputs->count ? alignment->shifts_ns[other] : 0;
	}
	for (size_t l = 0; l < inputs->all_count; l++) {
		struct input *log = &inputs->logs[l];
		int64_t start_ns;

		log->shift_ns += log->aligned_ns;
		start_ns = (int64_t)(log->header.start_monotonic_ns + (uint64_t)log->shift_ns);
		if (!l || start_ns < inputs->origin_ns)
			inputs->origin_ns = start_ns;
	}
}

/*
 * If an output of the options is a timeline of several hosts, aligns the clocks of the inputs and
 * notes in the report how well. Clocks that no collective compares stay as they are. That needs the
 * collectives of all logs, so the logs are read once more, before.
 */
static void align_hosts(const struct options *options, struct inputs *inputs, struct report *report)
{
	struct options only = *options;
	struct alignment alignment = {0};
	struct report silent = {.quiet = true};

	if (!inputs->has_several_hosts || inputs->count < 2 ||
	    !options_have_use(options, USES_TIMELINE))
		return;
	only.outputs.count = 0;
	only.cluster = NULL;
	only.settings.wanted = (struct wanted){0};
	only.settings.is_redacted = false;
	only.alignment = &alignment;
	merge_run(&only, inputs, &silent);
	if (silent.status != STATUS_FAILED && alignment.shifts_ns) {
		apply_shifts(&alignment, inputs);
		for (size_t s = 0; s < alignment.count; s++)
			report_note(report, "%s", alignment.sentences[s]);
	}
	alignment_free(&alignment);
	report_free(&silent);
}

static int embed(const struct options *options, const struct inputs *inputs, struct report *report)
{
	struct module_cache modules = MODULE_CACHE(inputs->count > 1 ? MODULE_CACHE_BYTES : 0);
	struct debug_search search = {.directory = options->settings.debug_directory,
				      .server.report = report,
				      .modules = &modules};
	int error =
		embed_all(inputs, options->torch_trace, options->settings.jobs, &search, report);

	debug_search_end(&search);
	module_cache_free(&modules);
	return error;
}

static void merge(const struct options *options, struct report *report)
{
	struct inputs inputs;
	int error = inputs_find(&inputs, options->inputs, options->input_count, report);

	if (!options->no_recover)
		recovery_run(&inputs, report);
	if (!error && options->embed_symbols)
		error = embed(options, &inputs, report);
	if (!error)
		align_hosts(options, &inputs, report);
	if (!error && options->outputs.count)
		merge_run(options, &inputs, report);
	inputs_free(&inputs);
}

/* cluster: NULL, or as its coordinator. */
static int run_merge(const struct command *command, struct cluster *cluster, int argc, char **argv)
{
	struct report report = {0};
	struct options options;
	int status = options_parse(&options, command, argc, argv);

	if (status != COMMAND_GO_ON)
		return status;
	if (options.completion)
		return completion_print(options.completion);
	/*
	 * Handle a closed pipe and a file size limit as write errors, so that no partial file
	 * stays.
	 */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	report.quiet = message_is_quiet();
	report.is_redacted = options.settings.is_redacted;
	options.cluster = cluster;
	merge(&options, &report);
	if (fflush(stdout) || ferror(stdout))
		report_error(&report, STATUS_FAILED, "cannot write to stdout");
	status = (int)report.status;
	report_free(&report);
	return status;
}

static int merge_command_run(const struct command *command, int argc, char **argv)
{
	return run_merge(command, NULL, argc, argv);
}

static const char details[] = "Exit status:\n"
			      "  0                           Everything was read and written\n"
			      "  1                           Data was damaged or missing. "
			      "Everything readable was written\n"
			      "  2                           Wrong usage, nothing readable, or an "
			      "output was not written\n";

const struct command command_merge = {
	.name = "merge",
	.arguments = "[OPTION]... [DIR|FILE]...",
	.summary = "Export a recording as text, HTML, flame graphs, timelines and other formats",
	.details = details,
	.list_options = options_list,
	.run = merge_command_run,
};

/* Reads the logs that the coordinator names, and leaves all messages to it. */
static int work(struct cluster *cluster)
{
	struct report report = {.quiet = true, .is_held = true};
	struct options options;
	struct inputs inputs;
	char **argv, **own_argv = cluster->argv;
	int argc, error;

	worker_greet(cluster);
	error = worker_begin(cluster, &inputs);
	argc = cluster->argc;
	argv = xt_calloc((size_t)argc + 1, sizeof(*argv));
	if (!error) {
		/* Parsing changes the order. */
		memcpy(argv, cluster->argv, (size_t)argc * sizeof(*argv));
		if (options_parse(&options, &command_merge, argc, argv) != COMMAND_GO_ON)
			error = -EINVAL;
	}
	if (!error) {
		report.is_redacted = options.settings.is_redacted;
		options.cluster = cluster;
		merge_run(&options, &inputs, &report);
	}
	if (error && error != -ECANCELED)
		worker_fail(cluster, strerror(-error));
	inputs_free(&inputs);
	free(argv);
	if (cluster->argv != own_argv)
		free_argv(cluster->argc, cluster->argv);
	report_free(&report);
	return error && error != -ECANCELED ? STATUS_FAILED : STATUS_OK;
}

int merge_in_cluster(struct cluster *cluster)
{
	int status;
	char **argv;

	if (cluster_is_worker(cluster))
		return work(cluster);
	argv = xt_calloc((size_t)cluster->argc + 1, sizeof(*argv));
	memcpy(argv, cluster->argv, (size_t)cluster->argc * sizeof(*argv));
	status = run_merge(&command_merge, cluster->process_count > 1 ? cluster : NULL,
			   cluster->argc, argv);
	coordinator_stop_workers(cluster);
	free(argv);
	return status;
}
