/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The union of time spans, added in any order. Its length never decreases.
 *
 * Memory is bounded: only the latest spans are kept, those after a horizon. A span that arrives
 * very late adds only its part after the horizon. Belongs to one thread.
 */
#ifndef XT_LIVE_SPANS_H
#define XT_LIVE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_SPANS_MAX (1u << 18)

/* Work at an end of a span. */
struct live_work {
	uint64_t enter_ns;    /* start of its call */
	uint32_t correlation; /* of a call that is not known yet; 0: none */
	uint32_t stream;
	uint16_t thread;
	bool has_call; /* if false, enter_ns and thread are 0 */
	bool is_copy;
};

struct live_span {
	uint64_t start_ns, end_ns;
	struct live_work first, last; /* that starts and that ends the span */
};

/* Zeros are an empty union. */
struct live_spans {
	struct live_span *rows; /* disjoint, ascending */
	size_t count, capacity;
	struct live_span *tail; /* scratch memory */
	size_t tail_capacity;
	uint64_t horizon_ns; /* everything before is decided: later additions do not change it */
	uint64_t covered_ns; /* length of the union */
};

/* Adds spans, and sorts them. Returns 0, or -ENOMEM and adds nothing. */
int live_spans_add(struct live_spans *spans, struct live_span *batch, size_t count);

/* Forgets the first `count` rows, whose time stays covered. Spans before horizon_ns are ignored. */
void live_spans_forget(struct live_spans *spans, size_t count, uint64_t horizon_ns);

void live_spans_free(struct live_spans *spans);

#endif
