/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/thread_rows.h"

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "xtrace/log_format.h"

/* Waiting for a CPU gets a row of its own from here on. Shorter waits add up until then. */
#define READY_ROW_NS 10000000

/* Time off the CPU that is left when a thread ends is added to its last wait up to here. */
#define SMALL_REST_NS 1000000

static void put(struct cpu_row_list *list, const struct cpu_row *row)
{
	if (grow(&list->rows, &list->capacity, list->count + 1, sizeof(*list->rows)))
		list->lost_count++;
	else
		list->rows[list->count++] = *row;
}

void thread_rows_start(struct thread_rows *rows, uint32_t thread, uint64_t start_ns)
{
	*rows = (struct thread_rows){.thread = thread, .covered_ns = start_ns};
}

void thread_rows_advance(struct thread_rows *rows, uint64_t now_ns, uint64_t run_ns,
			 uint64_t ready_ns)
{
	uint64_t left_ns = now_ns > rows->covered_ns ? now_ns - rows->covered_ns : 0, part_ns;

	rows->early_run_ns += run_ns;
	part_ns = smaller(rows->early_run_ns, left_ns);
	rows->early_run_ns -= part_ns;
	rows->run_ns += part_ns;
	left_ns -= part_ns;
	rows->off_ns += left_ns;
	/* The kernel counts a wait for a CPU when it ends, so it may be that of earlier calls. */
	rows->early_ready_ns += ready_ns;
	part_ns = smaller(rows->early_ready_ns, rows->off_ns);
	rows->early_ready_ns -= part_ns;
	rows->ready_ns += part_ns;
	rows->off_ns -= part_ns;
	if (now_ns > rows->covered_ns)
		rows->covered_ns = now_ns;
}

static bool is_same(const struct cpu_row *a, const struct cpu_row *b)
{
	return a->count && a->state == b->state && a->stack == b->stack && a->flags == b->flags &&
	       a->wait_pid == b->wait_pid && a->wait_tid == b->wait_tid;
}

void thread_rows_add(struct thread_rows *rows, const struct cpu_row *observed, uint64_t share_ns,
		     bool can_extend, struct cpu_row_list *list)
{
	struct cpu_row *last = &rows->last;

	if (can_extend && is_same(last, observed)) {
		last->count++;
		last->weight_ns += share_ns;
		if (observed->time_ns > last->time_ns)
			last->span_ns = observed->time_ns - last->time_ns;
		return;
	}
	if (last->count)
		put(list, last);
	*last = *observed;
	last->thread = rows->thread;
	last->count = 1;
	last->span_ns = 0;
	last->weight_ns = share_ns;
}

/* The path of the running thread is also what had to wait for a CPU. */
static void add_ready(struct thread_rows *rows, const struct cpu_row *running,
		      struct cpu_row_list *list)
{
	struct cpu_row ready = *running;

	ready.state = XT_CPU_READY;
	thread_rows_add(rows, &ready, rows->ready_ns, false, list);
	rows->ready_ns = 0;
}

void thread_rows_add_running(struct thread_rows *rows, const struct cpu_row *observed,
			     uint64_t share_ns, struct cpu_row_list *list)
{
	if (rows->ready_ns >= READY_ROW_NS)
		add_ready(rows, observed, list);
	thread_rows_add(rows, observed, share_ns, true, list);
	rows->run_ns -= share_ns;
}

void thread_rows_add_blocked(struct thread_rows *rows, const struct cpu_row *observed, bool has_run,
			     struct cpu_row_list *list)
{
	thread_rows_add(rows, observed, rows->off_ns, !has_run, list);
	rows->off_ns = 0;
}

void thread_rows_split(struct thread_rows *rows, struct cpu_row_list *list)
{
	struct cpu_row *last = &rows->last;

	if (!last->count)
		return;
	put(list, last);
	last->time_ns += last->span_ns;
	last->span_ns = last->weight_ns = 0;
	last->count = 0;
}

void thread_rows_end_wait(struct thread_rows *rows)
{
	if (!rows->off_ns)
		return;
	/* After a split, what is left of the wait is a row of its own. */
	rows->last.count += !rows->last.count;
	rows->last.weight_ns += rows->off_ns;
	rows->off_ns = 0;
}

void thread_rows_extend(struct thread_rows *rows, uint64_t now_ns)
{
	struct cpu_row *last = &rows->last;

	last->count++;
	last->weight_ns += rows->off_ns;
	rows->off_ns = 0;
	if (now_ns > last->time_ns)
		last->span_ns = now_ns - last->time_ns;
}

/* Moves rests that are not worth a row of their own. */
static void join_rests(struct thread_rows *rows)
{
	const struct cpu_row *last = &rows->last;
	bool is_blocked = last->count && last->state != XT_CPU_RUNNING &&
			  last->state != XT_CPU_IN_KERNEL && last->state != XT_CPU_PAGE_FAULT;

	if (rows->ready_ns < READY_ROW_NS) {
		rows->off_ns += rows->ready_ns;
		rows->ready_ns = 0;
	}
	if (is_blocked && rows->off_ns < SMALL_REST_NS)
		thread_rows_end_wait(rows);
}

static void add_rests(struct thread_rows *rows, struct cpu_row_list *list)
{
	const struct {
		uint64_t weight_ns;
		uint8_t state, flags;
	} rest[] = {
		{rows->run_ns, XT_CPU_RUNNING, XT_CPU_NO_NATIVE},
		{rows->ready_ns, XT_CPU_READY, XT_CPU_NO_NATIVE},
		{rows->off_ns, XT_CPU_UNKNOWN, XT_CPU_NO_NATIVE},
	};
	uint64_t time_ns = rows->covered_ns;

	if (rows->last.time_ns > time_ns)
		time_ns = rows->last.time_ns;
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		const struct cpu_row row = {
			.time_ns = time_ns, .state = rest[i].state, .flags = rest[i].flags};

		if (rest[i].weight_ns)
			thread_rows_add(rows, &row, rest[i].weight_ns, false, list);
	}
}

void thread_rows_end(struct thread_rows *rows, struct cpu_row_list *list)
{
	join_rests(rows);
	add_rests(rows, list);
	if (rows->last.count)
		put(list, &rows->last);
	rows->last.count = 0;
	rows->run_ns = rows->ready_ns = rows->off_ns = 0;
}
