/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_sampling.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/message.h"
#include "log/base/number_format.h"

/* Less missing CPU time is not reported: the last moments of a program are never sampled. */
#define MISSING_NS	50000000
#define MISSING_PERCENT 5

/* CPU time of the children that xtrace waited for, and of theirs. */
static uint64_t children_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage))
		return 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

void cpu_sampling_start(void *context, pid_t pid)
{
	struct cpu_sampling *sampling = context;
	char library_dir[PATH_MAX];

	sampling->cpu_ns = children_cpu_ns();
	/* The folder of the injected library has the copy of libunwind that comes with xtrace. */
	snprintf(library_dir, sizeof(library_dir), "%s", sampling->paths->injected);
	dirname(library_dir);
	sampling->error =
		sampler_start(&sampling->sampler,
			      &(struct sampler_options){.root = pid,
							.is_running = sampling->is_running,
							.hz = sampling->hz,
							.ask_permission = sampling->ask_permission,
							.data_dir = *sampling->data_dir,
							.library_dir = library_dir});
}

void cpu_sampling_stop(struct cpu_sampling *sampling)
{
	if (sampling->sampler)
		sampler_stop(sampling->sampler, &sampling->result);
	sampling->cpu_ns = children_cpu_ns() - sampling->cpu_ns;
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
	if (sampling->cpu_ns > result->run_ns + MISSING_NS &&
	    (sampling->cpu_ns - result->run_ns) * 100 > sampling->cpu_ns * MISSING_PERCENT)
		print_note("%.0f %% of the CPU time is missing: it was spent by threads and "
			   "processes that ended before they were sampled",
			   100.0 * (double)(sampling->cpu_ns - result->run_ns) /
				   (double)sampling->cpu_ns);
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
		print_error("cannot sample the CPU: %s", sampling->error == -ENOSYS
								 ? "no /proc/PID/schedstat"
								 : strerror(-sampling->error));
		return;
	}
	if (!result->observation_count) {
		report_nothing(result, program);
		return;
	}
	report_counts(result);
	report_losses(sampling);
	if (result->why_no_memory[0])
		print_note("Python lines and waits are missing: %s", result->why_no_memory);
	if (result->why_no_perf[0])
		print_note("CPU stacks of running native code are missing: %s",
			   result->why_no_perf);
}
