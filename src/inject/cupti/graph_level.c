/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One atomic word counts the holders of both kinds. The first holder of the whole level enables
 * GRAPH_TRACE, the last one disables it; meanwhile the word is marked as switching. There is no
 * lock: other threads sleep until the mark is gone, but at most WAIT_TIMEOUT_NS.
 *
 * Runs at launches and instantiations of graphs, in the program's threads, and keeps errno.
 */
#include "inject/cupti/graph_level.h"

#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/sleep.h"

#define NAP_NS		10000
#define WAIT_TIMEOUT_NS UINT64_C(10000000000) /* a launch blocks for long if its queue is full */

/* CUPTI numbers graphs and executable graphs from 1. A bit for each takes 2 MiB at most. */
#define GRAPH_IDS (UINT32_C(1) << 24)

#define ONE_WHOLE UINT64_C(1)
#define ONE_NODES (UINT64_C(1) << 32)
#define SWITCHING (UINT64_C(1) << 63)
#define WHOLE(w)  ((uint32_t)(w))
#define NODES(w)  ((uint32_t)((w) >> 32) & 0x7fffffff)

static HOT_STATE atomic_bool is_off; /* all graphs are recorded node by node, or not at all */
static HOT_STATE atomic_bool any_conditional;
static atomic_bool was_recorded_whole;
static HOT_STATE atomic_uint_fast64_t holders;
static HOT_STATE atomic_uint whole_waiting; /* so that launches node by node cannot starve them */
static atomic_uint epoch;
static _Atomic(const char *) refusal;
static void (*stop_records)(void);
static _Atomic uint32_t conditional[GRAPH_IDS / 32];

void graph_level_begin(bool forces_nodes, void (*stop)(void))
{
	stop_records = stop;
	atomic_store(&is_off, forces_nodes);
}

uint32_t graph_level_epoch(void)
{
	return atomic_load_explicit(&epoch, memory_order_relaxed);
}

void graph_level_reset(void)
{
	atomic_fetch_add(&epoch, 1);
	atomic_store(&holders, 0);
	if (atomic_load(&any_conditional))
		cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_GRAPH_TRACE);
}

const char *graph_level_refusal(void)
{
	return atomic_load(&refusal);
}

void graph_level_give_up(void)
{
	if (atomic_exchange(&is_off, true))
		return;
	atomic_store(&refusal, "a CUDA graph with conditional nodes cannot be recorded safely");
	stop_records();
	cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_GRAPH_TRACE);
	atomic_fetch_add(&cupti_unsafe_kinds, 1);
}

void graph_level_note_stop(void)
{
	if (atomic_load(&was_recorded_whole) && !atomic_exchange(&is_off, true))
		atomic_store(&refusal, "recording was stopped after CUDA graphs with conditional "
				       "nodes ran, and CUPTI cannot resume then");
}

void graph_level_hand_over(void)
{
	if (atomic_load(&any_conditional) && !atomic_exchange(&is_off, true))
		atomic_store(&refusal, "another tool used CUPTI, so the CUDA graphs with "
				       "conditional nodes cannot be recorded safely any more");
}

/* Sleeps until other holders may have changed. False after the timeout. */
static bool wait_a_moment(uint64_t *deadline_ns)
{
	uint64_t now_ns = monotonic_ns();

	if (!*deadline_ns)
		*deadline_ns = now_ns + WAIT_TIMEOUT_NS;
	xt_sleep_ns(NAP_NS);
	return now_ns < *deadline_ns;
}

static void leave_whole(void)
{
	uint64_t word = atomic_load(&holders);

	while (!atomic_compare_exchange_strong(&holders, &word,
					       WHOLE(word) == 1 ? SWITCHING : word - ONE_WHOLE))
		continue;
	if (WHOLE(word) != 1)
		return;
	cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_GRAPH_TRACE);
	atomic_store(&holders, 0);
}

/* Returns false after the timeout, or if levels do not matter any more. The first one switches. */
static bool take_whole(bool *is_first_out)
{
	uint64_t deadline_ns = 0, word;
	bool is_taken;

	atomic_fetch_add(&whole_waiting, 1);
	do {
		word = atomic_load(&holders);
		*is_first_out = !WHOLE(word);
		is_taken = !(word & SWITCHING) && !NODES(word) &&
			   atomic_compare_exchange_strong(
				   &holders, &word, *is_first_out ? SWITCHING : word + ONE_WHOLE);
	} while (!is_taken && !atomic_load(&is_off) && wait_a_moment(&deadline_ns));
	atomic_fetch_sub(&whole_waiting, 1);
	return is_taken;
}

enum graph_hold graph_level_enter_whole(void)
{
	bool is_first;

	if (atomic_load(&is_off))
		return GRAPH_HOLD_NONE;
	atomic_store(&any_conditional, true);
	if (!take_whole(&is_first)) {
		graph_level_give_up();
		return GRAPH_HOLD_NONE;
	}
	if (is_first) {
		if (!atomic_load(&is_off) &&
		    cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_GRAPH_TRACE) != XT_CUPTI_SUCCESS)
			graph_level_give_up();
		atomic_store(&holders, ONE_WHOLE);
	}
	if (!atomic_load(&is_off))
		return GRAPH_HOLD_WHOLE;
	leave_whole(); /* another thread gave up meanwhile */
	return GRAPH_HOLD_NONE;
}

void graph_level_begin_change(void)
{
	uint64_t deadline_ns = 0, word;

	atomic_fetch_add(&whole_waiting, 1);
	do {
		word = atomic_load(&holders);
		if (!(word & SWITCHING) && !WHOLE(word) &&
		    (!NODES(word) || !atomic_load(&any_conditional)) &&
		    atomic_compare_exchange_strong(&holders, &word, word | SWITCHING))
			break;
	} while (wait_a_moment(&deadline_ns));
	atomic_fetch_sub(&whole_waiting, 1);
}

void graph_level_end_change(void)
{
	atomic_fetch_and(&holders, ~SWITCHING);
}

static enum graph_hold enter_nodes_slowly(void)
{
	uint64_t deadline_ns = 0;

	for (;;) {
		uint64_t word = atomic_load(&holders);

		if (atomic_load(&is_off))
			return GRAPH_HOLD_NONE;
		if (!(word & SWITCHING) && !WHOLE(word) && !atomic_load(&whole_waiting)) {
			if (atomic_compare_exchange_strong(&holders, &word, word + ONE_NODES))
				return GRAPH_HOLD_NODES;
		} else if (!wait_a_moment(&deadline_ns)) {
			graph_level_give_up();
		}
	}
}

static inline enum graph_hold enter_nodes(void)
{
	uint64_t word = atomic_load_explicit(&holders, memory_order_relaxed);

	if (__builtin_expect((word & SWITCHING) || WHOLE(word) ||
				     atomic_load_explicit(&whole_waiting, memory_order_relaxed),
			     0) ||
	    !atomic_compare_exchange_strong(&holders, &word, word + ONE_NODES))
		return enter_nodes_slowly();
	return GRAPH_HOLD_NODES;
}

/* False if the id is unknown, as of a graph that was instantiated before CUPTI was subscribed. */
static bool id_of(void *graph_exec, uint32_t *id)
{
	return cupti.cuptiGetGraphExecId &&
	       cupti.cuptiGetGraphExecId(graph_exec, id) == XT_CUPTI_SUCCESS && *id;
}

static bool is_conditional(void *graph_exec)
{
	uint32_t id;

	return id_of(graph_exec, &id) && id < GRAPH_IDS &&
	       atomic_load(&conditional[id / 32]) >> id % 32 & 1;
}

void graph_level_note_conditional(void *graph_exec)
{
	uint32_t id;

	if (id_of(graph_exec, &id) && id < GRAPH_IDS)
		atomic_fetch_or(&conditional[id / 32], UINT32_C(1) << id % 32);
	else
		graph_level_give_up();
}

enum graph_hold graph_level_enter_launch(void *graph_exec, bool is_recorded)
{
	if (atomic_load_explicit(&is_off, memory_order_relaxed))
		return GRAPH_HOLD_NONE;
	if (__builtin_expect(atomic_load(&any_conditional), 0) && is_recorded &&
	    is_conditional(graph_exec)) {
		atomic_store(&was_recorded_whole, true);
		return graph_level_enter_whole();
	}
	return enter_nodes();
}

void graph_level_leave(enum graph_hold hold, uint32_t held_epoch)
{
	if (hold == GRAPH_HOLD_NONE || held_epoch != graph_level_epoch())
		return;
	if (hold == GRAPH_HOLD_NODES)
		atomic_fetch_sub(&holders, ONE_NODES);
	else
		leave_whole();
}
