/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/programs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/inputs.h"

#define GAP_NS 1000000000 /* between processes that one script starts one after the other */

/* A program while its processes are collected. */
struct group {
	int64_t last_ns;
	/* Numbers, from 1, of the last span that cannot be of it, and that is of the same job. */
	size_t unfit, same;
};

void programs_add(struct programs *programs, struct program_span span)
{
	xt_append(programs->spans, programs->span_count, programs->span_capacity, span);
}

COMPARE_BY(compare_spans, struct program_span, UP(start_ns) UP(log))

static bool are_ids(const char *a, const char *b, bool are_same)
{
	return a[0] && b[0] && !strcmp(a, b) == are_same;
}

/* Whether a process that began after all of a job cannot be of it, because of one of the job. */
static bool is_separate(const struct input *a, const struct input *b)
{
	bool is_same_process = a->header.pid == b->header.pid && !strcmp(a->host, b->host);

	return !is_same_process && (a->rank != RANK_UNKNOWN || strcmp(a->command, b->command) != 0);
}

/* Whether two processes cannot be of one job. later: the second began after the whole first job. */
static bool is_conflict(const struct input *a, const struct input *b, bool later)
{
	bool is_same_rank = a->rank != RANK_UNKNOWN && a->rank == b->rank;
	bool is_other_size = a->world_size != b->world_size && a->world_size != RANK_UNKNOWN &&
			     b->world_size != RANK_UNKNOWN;

	return are_ids(a->run, b->run, false) || are_ids(a->batch_job, b->batch_job, false) ||
	       (is_same_rank && (is_other_size || strcmp(a->host, b->host) != 0)) ||
	       (later && is_separate(a, b));
}

/* Whether ids say that two processes are of one job, or one command recorded both. */
static bool is_same_job(const struct input *a, const struct input *b)
{
	return (a->recording && a->recording == b->recording &&
		a->recording_device == b->recording_device) ||
	       are_ids(a->run, b->run, true) || are_ids(a->batch_job, b->batch_job, true);
}

/* 0 if the second is earlier. Times of hostile logs may be any number. */
static uint64_t time_between(int64_t from_ns, int64_t until_ns)
{
	return until_ns > from_ns ? (uint64_t)until_ns - (uint64_t)from_ns : 0;
}

/* Puts a span into the first program that it fits. */
static void place_span(struct programs *programs, struct group *groups, size_t index)
{
	struct program_span *span = &programs->spans[index];
	size_t g;

	for (size_t s = 0; s < index; s++) {
		const struct program_span *other = &programs->spans[s];
		struct group *group = &groups[other->program];
		bool is_same = is_same_job(other->log, span->log);
		bool is_later = span->start_ns > group->last_ns;

		/* A job can start its ranks again. */
		if (is_conflict(other->log, span->log, is_later && !is_same))
			group->unfit = index + 1;
		if (is_same)
			group->same = index + 1;
	}
	for (g = 0; g < programs->count; g++)
		if (groups[g].unfit <= index &&
		    (groups[g].same > index ||
		     time_between(groups[g].last_ns, span->start_ns) <= GAP_NS))
			break;
	span->program = g;
	if (g == programs->count)
		groups[programs->count++] = (struct group){.last_ns = span->last_ns};
	else if (span->last_ns > groups[g].last_ns)
		groups[g].last_ns = span->last_ns;
}

void programs_finish(struct programs *programs)
{
	struct group *groups = xt_calloc(programs->span_count + 1, sizeof(*groups));
	int64_t end_ns = 0;
	uint64_t gaps_ns = 0;

	if (programs->span_count)
		qsort(programs->spans, programs->span_count, sizeof(*programs->spans),
		      compare_spans);
	for (size_t s = 0; s < programs->span_count; s++) {
		const struct program_span *span = &programs->spans[s];

		place_span(programs, groups, s);
		gaps_ns += s ? time_between(end_ns, span->start_ns) : 0;
		if (!s || span->end_ns > end_ns)
			end_ns = span->end_ns;
	}
	free(groups);
	if (programs->span_count)
		programs->wall_ns = time_between(programs->spans[0].start_ns, end_ns) -
				    (programs->count > 1 ? gaps_ns : 0);
}

void programs_free(struct programs *programs)
{
	free(programs->spans);
	*programs = (struct programs){0};
}
