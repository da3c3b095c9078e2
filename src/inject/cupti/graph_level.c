/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One atomic word counts the holders of each side, so that they exclude each other, and lets one
 * thread at a time change CUPTI's kinds. While it is not marked so, GRAPH_TRACE is enabled exactly
 * if there are holders of the whole level. There is no lock: other threads sleep until the word
 * changes, but at most WAIT_TIMEOUT_NS.
 *
 * Runs at launches and instantiations of graphs, in the program's threads, and keeps errno.
 */
#include "inject/cupti/graph_level.h"

#include <errno.h>

#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/process.h"

#define NAP_NS		10000
#define PAUSE_NS	1000000		      /* until all threads see a pause: thread_buffer.h */
#define WAIT_TIMEOUT_NS UINT64_C(10000000000) /* a launch blocks for long if its queue is full */
#define CALL_TIMEOUT_NS UINT64_C(1000000000)

/* CUPTI numbers graphs and executable graphs from 1. A bit for each takes 2 MiB at most. */
#define GRAPH_IDS   (UINT32_C(1) << 24)
#define RUNNING_MAX 16

/* Parts of the word. The holders of each side take 16 bits, then 6 bits are the epoch. */
#define COUNT_MASK 0xffff
#define EPOCH_AT   48
#define EPOCH_MASK 0x3f
#define NODES_NEXT (UINT64_C(1) << 60) /* SIDE_NODES is next if both sides wait */
#define CLOSED	   (UINT64_C(1) << 61) /* CUPTI is not subscribed */
#define OFF	   (UINT64_C(1) << 62) /* all graphs are recorded node by node, or not at all */
#define LOCKED	   (UINT64_C(1) << 63) /* a thread changes the kinds */

/* In the order of enum graph_hold_kind. */
enum side { SIDE_NODES, SIDE_WHOLE, SIDE_CALLS, SIDES };
static const uint64_t ones[] = {
	[SIDE_NODES] = UINT64_C(1) << 16, [SIDE_WHOLE] = 1, [SIDE_CALLS] = UINT64_C(1) << 32};

static HOT_STATE atomic_uint_fast64_t word;
static HOT_STATE atomic_bool any_conditional;
static HOT_STATE atomic_uint waiting[SIDES]; /* for their side */
static HOT_STATE atomic_uint changes_waiting;
static atomic_bool was_recorded_whole, gives_up, gives_up_later, tool_was_here;
static bool trace_is_on; /* LOCKED */
/* Streams in which graphs recorded as a whole may run, as key_of(), and whether in others. */
static _Atomic uintptr_t running[RUNNING_MAX];
static atomic_bool others_run;
static _Atomic(const char *) refusal;
static unsigned (*stop_records)(void);
static bool (*await_work)(uint64_t deadline_ns);
static _Atomic uint32_t conditional[GRAPH_IDS / 32], seen[GRAPH_IDS / 32];

static uint32_t count_of(uint64_t now, enum side side)
{
	return (uint32_t)(now / ones[side]) & COUNT_MASK;
}

static uint8_t epoch_of(uint64_t now)
{
	return now >> EPOCH_AT & EPOCH_MASK;
}

void graph_level_begin(bool forces_nodes, unsigned (*stop)(void), bool (*await)(uint64_t))
{
	stop_records = stop;
	await_work = await;
	atomic_store(&word, forces_nodes ? OFF : 0);
}

uint8_t graph_level_epoch(void)
{
	return epoch_of(atomic_load(&word));
}

const char *graph_level_refusal(void)
{
	return atomic_load(&refusal);
}

/* Sleeps until the word may have changed. False after the timeout. */
static bool wait_a_moment(uint64_t *deadline_ns)
{
	uint64_t now_ns = monotonic_ns();

	if (!*deadline_ns)
		*deadline_ns = now_ns + WAIT_TIMEOUT_NS;
	xt_sleep_ns(NAP_NS);
	return now_ns < *deadline_ns;
}

/* The kinds are locked. */
static bool set_trace(bool is_on)
{
	int saved_errno = errno;
	uint32_t result = (is_on ? cupti.cuptiActivityEnable
				 : cupti.cuptiActivityDisable)(XT_CUPTI_ACTIVITY_GRAPH_TRACE);

	errno = saved_errno;
	trace_is_on = is_on && result == XT_CUPTI_SUCCESS;
	return result == XT_CUPTI_SUCCESS;
}

/* Locks the kinds when all sides but `own` have no holders. False after timeout_ns. */
static bool lock_without(enum side own, uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;
	bool are_held, are_locked;
	uint64_t now;

	/* New calls wait, so that the open ones come to an end. */
	atomic_fetch_add(&changes_waiting, 1);
	do {
		now = atomic_load(&word);
		are_held = false;
		for (enum side side = 0; side < SIDES && !(now & CLOSED); side++)
			are_held |= side != own && count_of(now, side);
		are_locked = !are_held && !(now & LOCKED) &&
			     atomic_compare_exchange_strong(&word, &now, now | LOCKED);
	} while (!are_locked && wait_a_moment(&deadline_ns));
	atomic_fetch_sub(&changes_waiting, 1);
	return are_locked;
}

bool graph_level_begin_change(uint64_t patience_ns)
{
	if (atomic_load(&gives_up)) /* the records are disabled already */
		return graph_level_lock_kinds();
	return lock_without(SIDES, patience_ns);
}

bool graph_level_lock_kinds(void)
{
	uint64_t deadline_ns = 0, now;

	for (;;) {
		now = atomic_load(&word);
		if (!(now & LOCKED)) {
			if (atomic_compare_exchange_strong(&word, &now, now | LOCKED))
				return true;
		} else if (!wait_a_moment(&deadline_ns)) {
			return false;
		}
	}
}

void graph_level_unlock_kinds(bool are_locked)
{
	uint64_t now = atomic_load(&word);

	if (!are_locked)
		return;
	do {
		/* The last holder may have left meanwhile. */
		if (trace_is_on && (!count_of(now, SIDE_WHOLE) || now & (OFF | CLOSED)))
			set_trace(false);
	} while (!atomic_compare_exchange_strong(&word, &now, now & ~LOCKED));
}

/* The kinds are locked. Launches go on only when GRAPH_TRACE is disabled. */
static void turn_off(const char *why)
{
	atomic_store(&refusal, why);
	if (trace_is_on)
		set_trace(false);
	atomic_fetch_or(&word, OFF);
}

static void give_up_locked(const char *why)
{
	int saved_errno = errno;

	if (atomic_exchange(&gives_up, true))
		return;
	atomic_fetch_add(&cupti_unsafe_kinds, stop_records());
	errno = saved_errno;
	turn_off(why);
}

static void give_up(const char *why)
{
	uint64_t deadline_ns = 0;
	bool are_locked;

	if (!atomic_load(&gives_up) && !(atomic_load(&word) & OFF)) {
		/* Calls that begin now are holders. */
		recording_pause(PAUSED_CHANGING);
		xt_sleep_ns(PAUSE_NS);
		await_work(monotonic_ns() + CALL_TIMEOUT_NS);
		/* This thread may hold a whole graph. */
		are_locked = lock_without(SIDE_WHOLE, CALL_TIMEOUT_NS) || graph_level_lock_kinds();
		give_up_locked(why);
		graph_level_unlock_kinds(are_locked);
		recording_resume(PAUSED_CHANGING);
	}
	/* Another thread may be at it. */
	while (!(atomic_load(&word) & OFF) && wait_a_moment(&deadline_ns))
		continue;
}

void graph_level_give_up(void)
{
	give_up("a CUDA graph with conditional nodes cannot be recorded safely");
}

void graph_level_give_up_later(void)
{
	atomic_store(&gives_up_later, true);
	atomic_store(&any_conditional, true);
}

bool graph_level_may_stop(void)
{
	return cupti.version >= XT_CUPTI_OF_CUDA13_0_1 &&
	       (!atomic_load(&was_recorded_whole) || atomic_load(&word) & OFF);
}

void graph_level_note_tool(void)
{
	atomic_store(&tool_was_here, true);
}

void graph_level_abandon(void)
{
	atomic_store(&word, CLOSED);
	atomic_store(&changes_waiting, 0);
}

void graph_level_close(void)
{
	bool are_locked = graph_level_lock_kinds();

	if (trace_is_on)
		set_trace(false);
	atomic_fetch_or(&word, CLOSED);
	/* After another tool, ids may be those of other graphs. */
	if (atomic_load(&tool_was_here)) {
		for (size_t i = 0; i < GRAPH_IDS / 32; i++)
			if (atomic_load(&seen[i]))
				atomic_store(&seen[i], 0);
		if (atomic_load(&any_conditional) && !(atomic_load(&word) & OFF))
			turn_off("another tool used CUPTI, so the CUDA graphs with conditional "
				 "nodes cannot be recorded safely any more");
	}
	graph_level_unlock_kinds(are_locked);
}

void graph_level_open(void)
{
	bool are_locked = graph_level_lock_kinds();
	uint64_t now = atomic_load(&word), next;

	do
		next = (now & (OFF | LOCKED)) | (uint64_t)((epoch_of(now) + 1) & EPOCH_MASK)
							<< EPOCH_AT;
	while (!atomic_compare_exchange_strong(&word, &now, next));
	graph_level_unlock_kinds(are_locked);
}

/* If both kinds of launches wait, they take turns. */
static bool may_enter(uint64_t now, enum side side)
{
	enum side other = side == SIDE_NODES ? SIDE_WHOLE : SIDE_NODES;
	bool is_next = !count_of(now, side) && !(now & NODES_NEXT) == (side == SIDE_WHOLE);

	if (now & LOCKED || atomic_load(&changes_waiting))
		return false;
	if (side == SIDE_CALLS)
		return true;
	return !count_of(now, other) && (!atomic_load(&waiting[other]) || is_next);
}

/* After a timeout, only a launch gives up. locks_out: the first of the whole level locks kinds. */
static uint8_t enter_slowly(enum side side, bool is_launch, bool *locks_out)
{
	uint64_t closed = side == SIDE_CALLS ? CLOSED : OFF | CLOSED;
	uint64_t deadline_ns = 0, now, next;
	uint8_t hold = GRAPH_HOLD_NONE;

	atomic_fetch_add(&waiting[side], 1);
	while (!((now = atomic_load(&word)) & closed)) {
		if (!may_enter(now, side)) {
			if (wait_a_moment(&deadline_ns))
				continue;
			if (!is_launch)
				break;
			graph_level_give_up();
			continue;
		}
		*locks_out = side == SIDE_WHOLE && !count_of(now, SIDE_WHOLE);
		next = (now + ones[side]) | (*locks_out ? LOCKED : 0);
		if (atomic_compare_exchange_strong(&word, &now, next)) {
			hold = (uint8_t)(GRAPH_HOLD_NODES + side) | (uint8_t)(epoch_of(now) << 2);
			break;
		}
	}
	atomic_fetch_sub(&waiting[side], 1);
	return hold;
}

static uint8_t enter_whole(bool is_launch)
{
	bool locks = false;
	uint8_t hold = enter_slowly(SIDE_WHOLE, is_launch, &locks);
	bool has_failed = hold ? locks && !set_trace(true)
			       : !is_launch && !(atomic_load(&word) & (OFF | CLOSED));

	if (has_failed && !is_launch)
		graph_level_give_up_later();
	else if (has_failed)
		give_up_locked("CUPTI cannot record CUDA graphs as a whole");
	graph_level_unlock_kinds(hold && locks);
	return hold;
}

uint8_t graph_level_enter_whole(void)
{
	if (!(atomic_load(&word) & OFF))
		atomic_store(&any_conditional, true);
	return enter_whole(false);
}

static inline uint8_t enter_quickly(enum side side)
{
	uint64_t now = atomic_load_explicit(&word, memory_order_relaxed);
	bool never_locks;

	if (__builtin_expect(
		    (now & (LOCKED | OFF | CLOSED)) || count_of(now, SIDE_WHOLE) ||
			    atomic_load_explicit(&waiting[SIDE_WHOLE], memory_order_relaxed) ||
			    atomic_load_explicit(&changes_waiting, memory_order_relaxed),
		    0) ||
	    !atomic_compare_exchange_strong(&word, &now, now + ones[side]))
		return enter_slowly(side, side == SIDE_NODES, &never_locks);
	return (uint8_t)(GRAPH_HOLD_NODES + side) | (uint8_t)(epoch_of(now) << 2);
}

uint8_t graph_level_enter_call(void)
{
	return enter_quickly(SIDE_CALLS);
}

void graph_level_leave(uint8_t hold)
{
	enum side side = (enum side)((hold & 3) - GRAPH_HOLD_NODES);
	uint64_t now = atomic_load(&word), next;
	bool is_last, locks;

	if (hold == GRAPH_HOLD_NONE)
		return;
	do {
		if (epoch_of(now) != hold >> 2 || !count_of(now, side))
			return;
		next = now - ones[side];
		is_last = !count_of(next, side);
		locks = is_last && side == SIDE_WHOLE && !(now & (LOCKED | OFF | CLOSED));
		if (is_last && side != SIDE_CALLS)
			next = side == SIDE_WHOLE ? next | NODES_NEXT : next & ~NODES_NEXT;
		if (locks)
			next |= LOCKED;
	} while (!atomic_compare_exchange_strong(&word, &now, next));
	graph_level_unlock_kinds(locks);
}

/* False if the id is unknown, as of a graph that was instantiated before CUPTI was subscribed. */
static bool id_of(void *graph_exec, uint32_t *id)
{
	return cupti.cuptiGetGraphExecId &&
	       cupti.cuptiGetGraphExecId(graph_exec, id) == XT_CUPTI_SUCCESS && *id &&
	       *id < GRAPH_IDS;
}

static bool is_in(_Atomic uint32_t set[GRAPH_IDS / 32], void *graph_exec)
{
	uint32_t id;

	return id_of(graph_exec, &id) && (atomic_load(&set[id / 32]) >> id % 32 & 1);
}

void graph_level_note_instantiated(void *graph_exec, bool is_conditional)
{
	uint32_t id;

	if (id_of(graph_exec, &id)) {
		atomic_fetch_or(&seen[id / 32], UINT32_C(1) << id % 32);
		if (is_conditional)
			atomic_fetch_or(&conditional[id / 32], UINT32_C(1) << id % 32);
	} else if (is_conditional) {
		graph_level_give_up_later();
	}
}

static uintptr_t key_of(const struct cupti_callback_data *data, const void *stream)
{
	return ((uintptr_t)data->context << 1) + (uintptr_t)stream + 1;
}

static void note_running(uintptr_t stream)
{
	uintptr_t none;

	if (cupti.version >= XT_CUPTI_OF_CUDA13)
		return;
	for (size_t i = 0; i < RUNNING_MAX; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&running[i], &none, stream) || none == stream)
			return;
	}
	atomic_store(&others_run, true);
}

void graph_level_note_sync(const struct cupti_callback_data *data, bool for_all)
{
	void *const *arguments = data->function_params;
	uintptr_t stream = 0;

	if (!data->return_value || *(const int32_t *)data->return_value || (!for_all && !arguments))
		return;
	for (size_t i = 0; i < RUNNING_MAX; i++) {
		stream = for_all ? atomic_load(&running[i]) : key_of(data, arguments[0]);
		atomic_compare_exchange_strong(&running[i], &stream, 0);
	}
	if (for_all)
		atomic_store(&others_run, false);
}

bool graph_level_may_flush(void)
{
	bool may_flush = !atomic_load(&others_run);

	for (size_t i = 0; i < RUNNING_MAX; i++)
		may_flush &= !atomic_load(&running[i]);
	return may_flush;
}

/* No thread changes is_recorded while this one has the hold. */
static uint8_t enter_conditional(uintptr_t stream, const atomic_bool *is_recorded)
{
	for (;;) {
		bool is_whole = atomic_load(is_recorded);
		uint8_t hold = is_whole ? enter_whole(true) : enter_quickly(SIDE_NODES);

		if (hold == GRAPH_HOLD_NONE || atomic_load(is_recorded) == is_whole) {
			if (is_whole && hold != GRAPH_HOLD_NONE) {
				atomic_store(&was_recorded_whole, true);
				note_running(stream);
			}
			return hold;
		}
		graph_level_leave(hold);
	}
}

uint8_t graph_level_enter_launch(const struct cupti_callback_data *data,
				 const atomic_bool *is_recorded)
{
	void *const *arguments = data->function_params;
	void *graph_exec = arguments[0];

	uint64_t now = atomic_load_explicit(&word, memory_order_relaxed);

	if (now & (OFF | CLOSED))
		return GRAPH_HOLD_NONE;
	if (__builtin_expect(atomic_load(&any_conditional), 0) && atomic_load(&gives_up_later)) {
		graph_level_give_up();
		return GRAPH_HOLD_NONE;
	}
	if (__builtin_expect(atomic_load(&any_conditional), 0) && is_in(conditional, graph_exec))
		return enter_conditional(key_of(data, arguments[1]), is_recorded);
	if (__builtin_expect(atomic_load(&tool_was_here), 0) && atomic_load(is_recorded) &&
	    !is_in(seen, graph_exec)) {
		give_up("a CUDA graph was made while another tool used CUPTI, so xtrace does not "
			"know whether it can be recorded safely");
		return GRAPH_HOLD_NONE;
	}
	return enter_quickly(SIDE_NODES);
}
