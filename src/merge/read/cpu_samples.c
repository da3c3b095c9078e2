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
	[XT_CPU_READY] = "[no CPU free]",
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
	[XT_CPU_READY] = "ready",
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

/* Rows of a thread with the same first observation: they divide the time before it. */
struct group {
	size_t first, end;
	uint64_t weight_ns; /* without the time between observations */
};

/* The weight of the time before the first observation. */
static uint64_t early_weight_ns(const struct cpu_sample *sample)
{
	uint64_t span_ns = sample->last_ns - sample->first_ns;

	return sample->weight_ns > span_ns ? sample->weight_ns - span_ns : 0;
}

static struct group group_of(const struct cpu_samples *samples, const struct cpu_thread *thread,
			     size_t row)
{
	const struct cpu_sample *rows = samples->rows;
	struct group group = {row, row + 1, 0};

	while (group.first > thread->first && rows[group.first - 1].first_ns == rows[row].first_ns)
		group.first--;
	while (group.end < thread->end && rows[group.end].first_ns == rows[row].first_ns)
		group.end++;
	for (size_t r = group.first; r < group.end; r++)
		if (__builtin_add_overflow(group.weight_ns, early_weight_ns(&rows[r]),
					   &group.weight_ns))
			group.weight_ns = UINT64_MAX;
	return group;
}

/*
 * The time before a group that it speaks for. All of it, up to the previous sample, if the weights
 * say so: an observation may have come late. The kernel's clocks are coarse, so half is enough.
 */
static uint64_t before_ns(const struct cpu_samples *samples, const struct cpu_thread *thread,
			  const struct group *group, uint64_t reach_ns)
{
	const struct cpu_sample *first = &samples->rows[group->first];
	uint64_t apart_ns = first->first_ns;

	if (group->first > thread->first) {
		uint64_t last_ns = first[-1].last_ns;

		apart_ns = last_ns < first->first_ns ? first->first_ns - last_ns : 0;
		if (group->weight_ns >= apart_ns / 2)
			return apart_ns;
	}
	return smaller(apart_ns, group->weight_ns > reach_ns ? group->weight_ns : reach_ns);
}

static uint64_t part_ns(uint64_t whole_ns, uint64_t weight_ns, uint64_t sum_ns)
{
	return sum_ns ? (uint64_t)((unsigned __int128)whole_ns * weight_ns / sum_ns) : 0;
}

/* The time after a group, until the next one speaks. */
static uint64_t after_ns(const struct cpu_samples *samples, const struct cpu_thread *thread,
			 const struct group *group, uint64_t reach_ns)
{
	uint64_t last_ns = samples->rows[group->end - 1].last_ns, begin_ns;
	struct group next;

	if (group->end == thread->end)
		return reach_ns;
	next = group_of(samples, thread, group->end);
	begin_ns = samples->rows[next.first].first_ns - before_ns(samples, thread, &next, reach_ns);
	return begin_ns > last_ns ? smaller(reach_ns, begin_ns - last_ns) : 0;
}

struct cpu_cover cpu_samples_cover(const struct cpu_samples *samples,
				   const struct cpu_thread *thread, size_t row, uint64_t reach_ns)
{
	const struct cpu_sample *sample = &samples->rows[row];
	struct group group = group_of(samples, thread, row);
	uint64_t whole_ns = before_ns(samples, thread, &group, reach_ns);
	uint64_t earlier_ns = 0, own_ns = early_weight_ns(sample);
	struct cpu_cover cover;

	for (size_t r = group.first; r < row; r++)
		earlier_ns += early_weight_ns(&samples->rows[r]);
	cover.from_ns =
		sample->first_ns - whole_ns + part_ns(whole_ns, earlier_ns, group.weight_ns);
	if (row + 1 < group.end)
		cover.until_ns = sample->first_ns - whole_ns +
				 part_ns(whole_ns, earlier_ns + own_ns, group.weight_ns);
	else
		cover.until_ns = sample->last_ns + after_ns(samples, thread, &group, reach_ns);
	return cover;
}
