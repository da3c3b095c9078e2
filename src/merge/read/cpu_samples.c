/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/cpu_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"

static const struct {
	const char *name, *label;
} states[XT_CPU_STATES] = {
	[XT_CPU_UNKNOWN] = {"unknown", "[state unknown]"},
	[XT_CPU_RUNNING] = {"running", NULL},
	[XT_CPU_IN_KERNEL] = {"kernel", "[kernel]"},
	[XT_CPU_IO] = {"I/O", "[I/O]"},
	[XT_CPU_LOCK] = {"lock", "[lock]"},
	[XT_CPU_SLEEP] = {"sleep", "[sleep]"},
	[XT_CPU_PAGE_FAULT] = {"page fault", "[page fault]"},
	[XT_CPU_GIL] = {"GIL", "[GIL]"},
	[XT_CPU_PROCESS] = {"process", "[process]"},
	[XT_CPU_BLOCKED] = {"blocked", "[blocked]"},
	[XT_CPU_READY] = {"ready", "[no CPU free]"},
};

const char *cpu_sample_label(enum xt_cpu_state state, bool has_stack)
{
	return has_stack || states[state].label ? states[state].label : CPU_STACK_UNKNOWN;
}

bool cpu_is_label(const char *text)
{
	for (int state = 0; state < XT_CPU_STATES; state++)
		if (!strcmp(text, cpu_sample_label((enum xt_cpu_state)state, false)))
			return true;
	return false;
}

const char *cpu_state_name(enum xt_cpu_state state)
{
	return states[state].name;
}

COMPARE_BY(compare_samples, struct cpu_sample, UP(tid) UP(first_ns) UP(last_ns))

void cpu_samples_free(struct cpu_samples *samples)
{
	free_all(samples->list, samples->threads);
	*samples = (struct cpu_samples){0};
}

const struct cpu_thread *cpu_samples_of(const struct cpu_samples *samples, uint32_t tid)
{
	size_t low = FIRST_NOT(i, 0, samples->thread_count, samples->threads[i].tid < tid);

	return low < samples->thread_count && samples->threads[low].tid == tid
		       ? &samples->threads[low]
		       : NULL;
}

size_t cpu_samples_at(const struct cpu_samples *samples, const struct cpu_thread *thread,
		      uint64_t time_ns)
{
	return FIRST_NOT(i, thread->first, thread->end, samples->list[i].last_ns < time_ns);
}

size_t cpu_samples_covering(const struct cpu_samples *samples, const struct cpu_thread *thread,
			    uint64_t time_ns)
{
	return FIRST_NOT(i, thread->first, thread->end, samples->list[i].cover.until_ns <= time_ns);
}

/* The weight of the time before the first observation. */
static uint64_t early_weight_ns(const struct cpu_sample *sample)
{
	uint64_t span_ns = sample->last_ns - sample->first_ns;

	return sample->weight_ns > span_ns ? sample->weight_ns - span_ns : 0;
}

/* Rows of a thread with the same first observation: they divide the time before it. */
struct group {
	struct cpu_sample *rows;
	size_t count;
	uint64_t weight_ns; /* without the time between observations */
	uint64_t from_ns;   /* start of the time that they divide */
};

static struct group group_at(struct cpu_sample *rows, size_t left)
{
	struct group group = {.rows = rows};

	while (group.count < left && rows[group.count].first_ns == rows->first_ns)
		if (__builtin_add_overflow(group.weight_ns, early_weight_ns(&rows[group.count++]),
					   &group.weight_ns))
			group.weight_ns = UINT64_MAX;
	return group;
}

/*
 * Finds how far back a group speaks: to the previous sample, if the weights account for that time.
 * An observation may have come late. The kernel's clocks are coarse, so half is enough.
 */
static void set_start(struct group *group, const struct cpu_sample *previous, uint64_t reach_ns)
{
	uint64_t first_ns = group->rows->first_ns, apart_ns = first_ns;

	if (previous)
		apart_ns = previous->last_ns < first_ns ? first_ns - previous->last_ns : 0;
	if (!previous || group->weight_ns < apart_ns / 2)
		apart_ns = smaller(apart_ns,
				   group->weight_ns > reach_ns ? group->weight_ns : reach_ns);
	group->from_ns = first_ns - apart_ns;
}

/* Divides the time before a group. The last row also represents its own observations. */
static void divide_time(const struct group *group)
{
	uint64_t whole_ns = group->rows->first_ns - group->from_ns, weight_ns = 0;
	uint64_t from_ns = group->from_ns;

	for (size_t r = 0; r < group->count; r++) {
		struct cpu_sample *sample = &group->rows[r];

		if (__builtin_add_overflow(weight_ns, early_weight_ns(sample), &weight_ns))
			weight_ns = UINT64_MAX;
		sample->cover.from_ns = from_ns;
		if (r + 1 == group->count)
			sample->cover.until_ns = sample->last_ns;
		else if (group->weight_ns)
			from_ns = sample->cover.until_ns =
				group->from_ns + (uint64_t)((unsigned __int128)whole_ns *
							    weight_ns / group->weight_ns);
		else
			sample->cover.until_ns = from_ns;
	}
}

/*
 * Ends each row at the start of the next. Rows of a damaged log may overlap, but searches need both
 * times in order.
 */
static void clip_rows(struct cpu_sample *rows, size_t count)
{
	for (size_t r = 0; r + 1 < count; r++)
		rows[r].last_ns = smaller(rows[r].last_ns, rows[r + 1].first_ns);
}

static void set_covers(struct cpu_sample *rows, size_t count, uint64_t reach_ns)
{
	struct cpu_sample *previous = NULL;

	clip_rows(rows, count);
	for (size_t r = 0; r < count;) {
		struct group group = group_at(rows + r, count - r);

		set_start(&group, previous, reach_ns);
		divide_time(&group);
		/* The previous sample represents what follows it, up to here. */
		if (previous && group.from_ns > previous->last_ns)
			previous->cover.until_ns +=
				smaller(reach_ns, group.from_ns - previous->last_ns);
		r += group.count;
		previous = &rows[r - 1];
	}
	if (previous &&
	    __builtin_add_overflow(previous->last_ns, reach_ns, &previous->cover.until_ns))
		previous->cover.until_ns = UINT64_MAX;
}

void cpu_samples_sort(struct cpu_samples *samples, uint64_t reach_ns)
{
	size_t capacity = 0;

	SORT(samples->list, samples->count, compare_samples);
	for (size_t r = 0; r < samples->count; r++) {
		if (r && samples->list[r].tid == samples->list[r - 1].tid) {
			samples->threads[samples->thread_count - 1].end = r + 1;
			continue;
		}
		xt_append(samples->threads, samples->thread_count, capacity,
			  (struct cpu_thread){samples->list[r].tid, r, r + 1});
	}
	for (size_t t = 0; t < samples->thread_count; t++)
		set_covers(samples->list + samples->threads[t].first,
			   samples->threads[t].end - samples->threads[t].first, reach_ns);
}
