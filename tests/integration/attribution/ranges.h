/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX calls inlined into a path function. A pushed range is popped in the same function, in a
 * callee, in a caller, at the end of the thread, or never.
 */
#ifndef XTRACE_TESTS_RANGES_H
#define XTRACE_TESTS_RANGES_H

#include <stdio.h>

#include "nvtx_client.h"
#include "program.h"

#define RANGE_TEXTS 6

extern const char *const range_texts[RANGE_TEXTS];
extern const wchar_t *const wide_range_texts[RANGE_TEXTS]; /* the same */

NVTX_INLINE void range_push(struct job *job, unsigned domain)
{
	unsigned which = pick(job, RANGE_TEXTS), form = pick(job, 3);
	struct xt_nvtx_attributes attributes = nvtx_attributes(range_texts[which], which);
	uint64_t before_ns = ledger_now_ns();

	if (domain)
		nvtx_domain_push(job->shared->domains[domain - 1], &attributes);
	else if (form == 0)
		nvtx_push_a(range_texts[which]);
	else if (form == 1)
		nvtx_push_w(wide_range_texts[which]);
	else
		nvtx_push_ex(&attributes);
	ledger_range("push", before_ns, domain_names[domain], NULL, range_texts[which]);
	job->open_ranges[domain]++;
}

/* Each iteration of the main loop has the same name, but for its number. */
NVTX_INLINE void range_push_iteration(struct job *job, unsigned number)
{
	char text[32];
	struct xt_nvtx_attributes attributes;
	uint64_t before_ns;

	snprintf(text, sizeof(text), "iteration-%u", number);
	attributes = nvtx_attributes(text, 0);
	before_ns = ledger_now_ns();
	nvtx_domain_push(job->shared->domains[LOOP_DOMAIN - 1], &attributes);
	ledger_range("push", before_ns, domain_names[LOOP_DOMAIN], NULL, text);
	job->open_ranges[LOOP_DOMAIN]++;
}

NVTX_INLINE void range_pop(struct job *job, unsigned domain)
{
	uint64_t before_ns = ledger_now_ns();

	if (domain)
		nvtx_domain_pop(job->shared->domains[domain - 1]);
	else
		nvtx_pop();
	ledger_range("pop", before_ns, domain_names[domain], NULL, NULL);
	if (job->open_ranges[domain])
		job->open_ranges[domain]--;
}

NVTX_INLINE void range_start(struct job *job, unsigned domain)
{
	unsigned which = pick(job, RANGE_TEXTS);
	struct xt_nvtx_attributes attributes = nvtx_attributes(range_texts[which], which);
	uint64_t before_ns = ledger_now_ns();
	uint64_t key;

	if (domain)
		key = nvtx_domain_start(job->shared->domains[domain - 1], &attributes);
	else
		key = nvtx_start_a(range_texts[which]);
	ledger_range("start", before_ns, domain_names[domain], &key, range_texts[which]);
	job->started[job->started_count++] = (struct started){key, domain};
}

NVTX_INLINE void range_end(struct job *job, struct started range)
{
	uint64_t before_ns = ledger_now_ns();

	if (range.domain)
		nvtx_domain_end(job->shared->domains[range.domain - 1], range.key);
	else
		nvtx_end(range.key);
	ledger_range("end", before_ns, domain_names[range.domain], &range.key, NULL);
}

/* Ends its own range, leaves it to another thread, or ends one that another thread left. */
NVTX_INLINE void range_end_some(struct job *job)
{
	struct shared *shared = job->shared;
	struct started *mine = &job->started[pick(job, job->started_count)];
	unsigned what = pick(job, 3);

	pthread_mutex_lock(&shared->lock);
	if (what == 1 && shared->started_count < RANGES_MAX)
		shared->started[shared->started_count++] = *mine;
	else if (what == 2 && shared->started_count)
		range_end(job, shared->started[--shared->started_count]);
	else
		range_end(job, *mine);
	pthread_mutex_unlock(&shared->lock);
	if (what != 2)
		*mine = job->started[--job->started_count];
}

NVTX_INLINE void range_mark(struct job *job, unsigned domain)
{
	unsigned which = pick(job, RANGE_TEXTS);
	struct xt_nvtx_attributes attributes = nvtx_attributes(range_texts[which], which);
	uint64_t before_ns = ledger_now_ns();

	if (domain)
		nvtx_domain_mark(job->shared->domains[domain - 1], &attributes);
	else
		nvtx_mark_a(range_texts[which]);
	ledger_range("mark", before_ns, domain_names[domain], NULL, range_texts[which]);
}

/* A random range operation; sometimes one pop too many. */
NVTX_INLINE void range_step(struct job *job)
{
	unsigned domain = pick(job, 1 + DOMAINS);
	unsigned what = pick(job, 20);

	if (what < 8 && job->open_ranges[domain] < 4)
		range_push(job, domain);
	else if (what < 15 && (job->open_ranges[domain] || what == 14))
		range_pop(job, domain);
	else if (what < 17 && job->started_count < RANGES_MAX)
		range_start(job, domain);
	else if (what < 19 && job->started_count)
		range_end_some(job);
	else
		range_mark(job, domain);
}

#endif
