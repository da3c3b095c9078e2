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

void cpu_sampling_report(const struct cpu_sampling *sampling)
{
	const struct sampler_result *result = &sampling->result;
	char processes[COUNT_BYTES], threads[COUNT_BYTES], samples[COUNT_BYTES];

	if (!sampling->hz)
		return;
	if (sampling->error) {
		print_error("cannot sample the CPU: %s", strerror(-sampling->error));
		return;
	}
	print_note("sampled %s process%s, %s thread%s, %s samples",
		   format_count(processes, result->process_count),
		   plural(result->process_count, "es"), format_count(threads, result->thread_count),
		   plural(result->thread_count, "s"),
		   format_count(samples, result->observation_count));
	if (result->why_no_perf[0])
		print_note("CPU stacks of running native code are missing: %s",
			   result->why_no_perf);
}
