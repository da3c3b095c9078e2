/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace-merge: reads the logs of a traced program and writes what people look at.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "merge/base/report.h"
#include "merge/embed_workers.h"
#include "merge/merge.h"
#include "merge/symbolize/module_cache.h"
#include "merge/options.h"
#include "merge/read/inputs.h"
#include "merge/read/recovery.h"

static int embed(const struct options *options, const struct inputs *inputs, struct report *report)
{
	struct module_cache modules = MODULE_CACHE(inputs->count > 1 ? MODULE_CACHE_BYTES : 0);
	struct debug_search search = {.directory = options->settings.debug_directory,
				      .server.report = report,
				      .modules = &modules};
	int error = embed_all(inputs, options->settings.jobs, &search, report);

	debug_search_end(&search);
	module_cache_free(&modules);
	return error;
}

static void merge(const struct options *options, struct report *report)
{
	struct inputs inputs;
	int error = inputs_find(&inputs, options->inputs, options->input_count, report);

	if (error != -ENOMEM && !options->no_recover)
		recovery_run(&inputs, report);
	if (!error && options->embed_symbols)
		error = embed(options, &inputs, report);
	if (error == -ENOMEM)
		report_error(report, STATUS_FAILED, "out of memory");
	if (!error && options->output_count)
		merge_run(options, &inputs, report);
	inputs_free(&inputs);
}

int main(int argc, char **argv)
{
	struct report report = {0};
	struct options options;
	enum exit_status status;

	/* A reader of stdout that has gone, and a file that may not get larger, are errors in writing,
	 * which leave no half files. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (!options_parse(&options, argc, argv, &report)) {
		report.quiet = options.quiet;
		if (options.help)
			options_print_help();
		else if (options.completion)
			options_print_completion(options.completion);
		else if (options.version)
			printf("xtrace-merge %s\n", XTRACE_VERSION);
		else
			merge(&options, &report);
	}
	if (fflush(stdout) || ferror(stdout))
		report_error(&report, STATUS_FAILED, "stdout: cannot be written");
	status = report.status;
	report_free(&report);
	return (int)status;
}
