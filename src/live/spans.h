/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The union of time spans, added in any order. Its length never decreases.
 *
 * Memory is bounded: only the latest spans are kept. Time before them counts as covered, so a span
 * that arrives very late adds only its later part. Belongs to one thread.
 */
#ifndef XT_LIVE_SPANS_H
#define XT_LIVE_SPANS_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_SPANS_MAX (1u << 18)

struct live_span {
	uint64_t start_ns, end_ns;
};

/* Zeros are an empty union. */
struct live_spans {
	struct live_span *rows; /* disjoint, ascending */
	size_t count, capacity;
	struct live_span *tail; /* scratch memory */
	size_t tail_capacity;
	uint64_t horizon_ns; /* everything before counts as covered */
	uint64_t covered_ns; /* length of the union */
};

/* Adds spans, and sorts them. Returns 0, or -ENOMEM and adds nothing. */
int live_spans_add(struct live_spans *spans, struct live_span *batch, size_t count);

void live_spans_free(struct live_spans *spans);

#endif
