/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/cpu_logs.h"

#include <stdlib.h>

#define HZ_DEFAULT 99.0
#define HZ_MIN	   0.01
#define HZ_MAX	   1e6

uint64_t cpu_log_period_ns(const struct model *model)
{
	double hz = strtod(model_meta(model, "cpu.hz"), NULL);

	return (uint64_t)(1e9 / (hz >= HZ_MIN && hz <= HZ_MAX ? hz : HZ_DEFAULT));
}

void cpu_logs_free(struct cpu_logs *logs)
{
	for (size_t l = 0; l < logs->count; l++) {
		struct cpu_log *log = &logs->list[l];

		frames_free(&log->frames);
		addresses_free(&log->addresses);
		demangle_cache_free(&log->names);
		model_free(log->model);
	}
	free(logs->list);
	*logs = (struct cpu_logs){0};
}

/* The row that speaks for the time, if there is one. */
static bool find_row(const struct cpu_log *log, const struct cpu_thread *thread, uint64_t time_ns,
		     size_t *row_out)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;
	size_t row = cpu_samples_at(samples, thread, time_ns);

	for (size_t r = row > thread->first ? row - 1 : row; r <= row && r < thread->end; r++) {
		struct cpu_cover cover =
			cpu_samples_cover(samples, thread, r, cpu_log_reach_ns(log));

		if (cover.from_ns <= time_ns && time_ns < cover.until_ns) {
			*row_out = r;
			return true;
		}
	}
	return false;
}

struct cpu_moment cpu_logs_find(const struct cpu_logs *logs, const struct input *near, uint32_t pid,
				uint32_t tid, uint64_t time_ns)
{
	for (size_t l = 0; l < logs->count; l++) {
		const struct cpu_log *log = &logs->list[l];
		struct cpu_moment moment = {.log = log};

		if (log->input->header.pid != pid || !input_shares_pids(log->input, near))
			continue;
		moment.thread = cpu_samples_of(&log->model->cpu_samples, tid);
		if (moment.thread && find_row(log, moment.thread, time_ns, &moment.row))
			return moment;
	}
	return (struct cpu_moment){0};
}
