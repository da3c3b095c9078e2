/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/cpu_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"

static const char *const labels[XT_CPU_STATES] = {
	[XT_CPU_UNKNOWN] = "[state unknown]",
	[XT_CPU_IN_KERNEL] = "[kernel]",
	[XT_CPU_IO] = "[I/O]",
	[XT_CPU_LOCK] = "[lock]",
	[XT_CPU_SLEEP] = "[sleep]",
	[XT_CPU_PAGE_FAULT] = "[page fault]",
	[XT_CPU_GIL] = "[GIL]",
	[XT_CPU_PROCESS] = "[process]",
	[XT_CPU_BLOCKED] = "[blocked]",
};

static const char *const state_names[XT_CPU_STATES] = {
	[XT_CPU_UNKNOWN] = "unknown",
	[XT_CPU_RUNNING] = "running",
	[XT_CPU_IN_KERNEL] = "kernel",
	[XT_CPU_IO] = "I/O",
	[XT_CPU_LOCK] = "lock",
	[XT_CPU_SLEEP] = "sleep",
	[XT_CPU_PAGE_FAULT] = "page fault",
	[XT_CPU_GIL] = "GIL",
	[XT_CPU_PROCESS] = "process",
	[XT_CPU_BLOCKED] = "blocked",
};

const char *cpu_state_label(enum xt_cpu_state state)
{
	return labels[state];
}

const char *cpu_state_name(enum xt_cpu_state state)
{
	return state_names[state];
}

static uint32_t narrow(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

int cpu_samples_load(struct cpu_samples *samples, const struct xt_chunk *chunk)
{
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_CPU_SAMPLE_TIME_NS);
	const uint64_t *span_ns = xt_chunk_u64(chunk, XT_CPU_SAMPLE_SPAN_NS);
	const uint64_t *thread = xt_chunk_u64(chunk, XT_CPU_SAMPLE_THREAD);
	const uint64_t *state = xt_chunk_u64(chunk, XT_CPU_SAMPLE_STATE);
	const uint64_t *stack = xt_chunk_u64(chunk, XT_CPU_SAMPLE_STACK);
	const uint64_t *weight_ns = xt_chunk_u64(chunk, XT_CPU_SAMPLE_WEIGHT_NS);
	const uint64_t *count = xt_chunk_u64(chunk, XT_CPU_SAMPLE_COUNT);
	const uint64_t *wait_pid = xt_chunk_u64(chunk, XT_CPU_SAMPLE_WAIT_PID);
	const uint64_t *wait_tid = xt_chunk_u64(chunk, XT_CPU_SAMPLE_WAIT_TID);
	const uint64_t *flags = xt_chunk_u64(chunk, XT_CPU_SAMPLE_FLAGS);
	uint32_t rows = xt_chunk_rows(chunk);

	if (grow(&samples->rows, &samples->capacity, samples->count + rows,
		 sizeof(*samples->rows)) < 0)
		return -ENOMEM;
	for (uint32_t r = 0; r < rows; r++) {
		uint64_t last_ns;

		if (__builtin_add_overflow(time_ns[r], span_ns[r], &last_ns))
			last_ns = time_ns[r];
		samples->rows[samples->count++] = (struct cpu_sample){
			.first_ns = time_ns[r],
			.last_ns = last_ns,
			.weight_ns = weight_ns[r],
			.thread = narrow(thread[r]),
			.stack = narrow(stack[r]),
			.count = narrow(count[r]),
			.wait_pid = narrow(wait_pid[r]),
			.wait_tid = narrow(wait_tid[r]),
			.state = state[r] < XT_CPU_STATES ? (uint8_t)state[r] : XT_CPU_UNKNOWN,
			.flags = (uint8_t)flags[r],
		};
	}
	return 0;
}

static int compare_samples(const void *a, const void *b)
{
	const struct cpu_sample *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return x->last_ns < y->last_ns ? -1 : x->last_ns > y->last_ns;
}

int cpu_samples_sort(struct cpu_samples *samples)
{
	size_t capacity = 0;

	if (!samples->count)
		return 0;
	qsort(samples->rows, samples->count, sizeof(*samples->rows), compare_samples);
	for (size_t r = 0; r < samples->count; r++) {
		if (r && samples->rows[r].tid == samples->rows[r - 1].tid) {
			samples->threads[samples->thread_count - 1].end = r + 1;
			continue;
		}
		if (grow(&samples->threads, &capacity, samples->thread_count + 1,
			 sizeof(*samples->threads)) < 0)
			return -ENOMEM;
		samples->threads[samples->thread_count++] =
			(struct cpu_thread){samples->rows[r].tid, r, r + 1};
	}
	return 0;
}

void cpu_samples_free(struct cpu_samples *samples)
{
	free(samples->rows);
	free(samples->threads);
	*samples = (struct cpu_samples){0};
}

const struct cpu_thread *cpu_samples_of(const struct cpu_samples *samples, uint32_t tid)
{
	size_t low = 0, high = samples->thread_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < samples->thread_count && samples->threads[low].tid == tid
		       ? &samples->threads[low]
		       : NULL;
}

size_t cpu_samples_at(const struct cpu_samples *samples, const struct cpu_thread *thread,
		      uint64_t time_ns)
{
	size_t low = thread->first, high = thread->end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->rows[middle].last_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct cpu_cover cpu_samples_cover(const struct cpu_samples *samples,
				   const struct cpu_thread *thread, size_t row, uint64_t reach_ns)
{
	const struct cpu_sample *sample = &samples->rows[row];
	uint64_t before_ns = smaller(reach_ns, sample->first_ns), after_ns = reach_ns;

	if (row > thread->first) {
		uint64_t last_ns = sample[-1].last_ns;

		before_ns = last_ns < sample->first_ns
				    ? smaller(before_ns, (sample->first_ns - last_ns) / 2)
				    : 0;
	}
	if (row + 1 < thread->end) {
		uint64_t next_ns = sample[1].first_ns, gap_ns;

		/* Rounded so that neighbours meet. */
		gap_ns = next_ns > sample->last_ns ? next_ns - sample->last_ns : 0;
		after_ns = smaller(after_ns, gap_ns - gap_ns / 2);
	}
	return (struct cpu_cover){sample->first_ns - before_ns, sample->last_ns + after_ns};
}
