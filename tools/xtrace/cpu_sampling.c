/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_sampling.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "log/base/number_format.h"

void cpu_sampling_start(void *context, pid_t pid)
{
	struct cpu_sampling *sampling = context;
	char library_dir[PATH_MAX];

	/* The folder of the injected library has the copy of libunwind that comes with xtrace. */
	snprintf(library_dir, sizeof(library_dir), "%s", sampling->paths->injected);
	dirname(library_dir);
	sampling->error = sampler_start(&sampling->sampler,
					&(struct sampler_options){.root = pid,
								  .hz = sampling->hz,
								  .data_dir = *sampling->data_dir,
								  .library_dir = library_dir});
}

void cpu_sampling_stop(struct cpu_sampling *sampling)
{
	if (sampling->sampler)
		sampler_stop(sampling->sampler, &sampling->result);
	sampling->sampler = NULL;
}

static const char *plural(uint64_t count, const char *ending)
{
	return count == 1 ? "" : ending;
}

static void report_nothing(const struct sampler_result *result, const char *program)
{
	if (result->is_untraceable)
		print_note("sampled nothing: '%s' may not be traced (setuid, or not readable)",
			   program);
	else
		print_note("sampled nothing: '%s' ended before the first sample", program);
}

static void report_counts(const struct sampler_result *result)
{
	char processes[COUNT_BYTES], threads[COUNT_BYTES], samples[COUNT_BYTES];

	print_note("sampled %s process%s, %s thread%s, %s sample%s",
		   format_count(processes, result->process_count),
		   plural(result->process_count, "es"), format_count(threads, result->thread_count),
		   plural(result->thread_count, "s"),
		   format_count(samples, result->observation_count),
		   plural(result->observation_count, "s"));
}

static void report_losses(const struct cpu_sampling *sampling)
{
	const struct sampler_result *result = &sampling->result;
	char processes[COUNT_BYTES], limit[COUNT_BYTES];

	if (result->lost_processes)
		print_note("%s process%s not sampled: limit of %s CPU logs reached%s",
			   format_count(processes, result->lost_processes),
			   plural(result->lost_processes, "es"),
			   format_count(limit, result->log_limit),
			   result->log_limit < SAMPLER_LOGS_MAX ? "; raise 'ulimit -Hn'" : "");
	if (result->write_error)
		print_error("cannot write all CPU logs in '%s': %s", *sampling->data_dir,
			    strerror(-result->write_error));
}

void cpu_sampling_report(const struct cpu_sampling *sampling, const char *program)
{
	const struct sampler_result *result = &sampling->result;

	if (!sampling->hz)
		return;
	if (sampling->error) {
		print_error("cannot sample the CPU: %s", strerror(-sampling->error));
		return;
	}
	if (!result->process_count) {
		report_nothing(result, program);
		return;
	}
	report_counts(result);
	report_losses(sampling);
	if (result->why_no_perf[0])
		print_note("CPU stacks of running native code are missing: %s",
			   result->why_no_perf);
}
