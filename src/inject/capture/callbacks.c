/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback at every recorded API call. Captures the stack at ENTER and writes the finished call
 * to the ring at EXIT.
 *
 * Runs in the program's threads: no lock, no malloc, no system call, no output; keeps errno and
 * refuses re-entry. Calls about graphs, and calls that are skipped, may sleep (graph_level.h). Cold
 * parts are in other files: a thread's first call in thread_buffer.c, unwinding in stack_walk.c.
 */
#include "inject/capture/callbacks.h"

#include "inject/capture/graph_nodes.h"
#include "inject/capture/ring.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/torch_capture.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/memory/crash_buffer.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/machine.h"
#include "inject/runtime/hotpath.h"

/*
 * Calls that are not recorded: recording is paused or stopped, or the process ends.
 *
 * CUPTI's correlation data marks such a call between ENTER and EXIT: it was skipped on request,
 * with flags, or dropped because the process ends, which counts as a loss. Kinds of records must
 * not change during a call that makes GPU work, so it is a holder of graph_level.h.
 */
#define CALL_IS_SKIPPED	      UINT64_C(0x78747261636520)
#define CALL_IS_UNRECORDED    1 /* the writer does not know its id yet */
#define CALL_HOLDS	      2 /* thread_buffer.call_hold is its own */
#define CALL_IS_SHUTDOWN_DROP UINT64_C(0x7874726163653f)

/* A thread that reads its own mark has acquired recording_was_paused in skipped_call_enter(). */
static inline bool skipped_call_is_marked(const struct cupti_callback_data *data)
{
	return __builtin_expect(atomic_load_explicit(&recording_was_paused, memory_order_relaxed),
				0) &&
	       data->correlation_data &&
	       (*data->correlation_data & ~(uint64_t)(CALL_IS_UNRECORDED | CALL_HOLDS)) ==
		       CALL_IS_SKIPPED;
}

/* A call that is recorded may have the correlation data of an earlier one. */
static inline void skipped_call_clear_mark(const struct cupti_callback_data *data)
{
	if (__builtin_expect(atomic_load_explicit(&recording_was_paused, memory_order_relaxed),
			     0) &&
	    data->correlation_data)
		*data->correlation_data = 0;
}

/* Records the correlation id of a call, by which the writer drops its GPU work. */
static void record_skip(struct thread_buffer *tb, const struct cupti_callback_data *data,
			enum xt_record_type type)
{
	struct xt_record_skip *record = ring_reserve_or_wait(tb, sizeof(*record));

	if (!record) {
		thread_buffer_count_up(tb, XT_RING_SKIPS_LOST);
		return;
	}
	record->head.type = (uint16_t)type;
	record->head.bytes = sizeof(*record);
	record->correlation_id = data->correlation_id;
	ring_commit(tb, sizeof(*record));
}

/* Leaves the hold only once, even if a signal handler jumps out of this function. */
static void leave_hold(struct thread_buffer *tb)
{
	uint8_t hold = tb->call_hold;

	tb->call_hold = GRAPH_HOLD_NONE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	graph_level_leave(hold);
}

/*
 * Calls that make work do not nest. So an open one was left by a jump, or ended while another tool
 * had CUPTI. A stop would wait for it, or for its hold, in vain.
 */
static void drop_left_calls(struct thread_buffer *tb)
{
	struct xt_ring_header *ring = tb->ring;

	for (uint32_t i = 0; i < ring->open_count; i++)
		if (api_uses[ring->open_calls[i].api & (API_CBID_END - 1)] & API_MAKES_WORK)
			__atomic_store_n(&ring->open_count, i, __ATOMIC_RELEASE);
	leave_hold(tb);
}

/* ENTER, while recording is paused. use: enum api_use. May wait for a change of kinds. */
static COLD void skipped_call_enter(struct thread_buffer *tb, uint32_t use,
				    const struct cupti_callback_data *data)
{
	unsigned causes = atomic_load(&recording_paused) & ~(unsigned)PAUSED_CHANGING;
	bool is_shutdown = causes == PAUSED_SHUTDOWN;
	uint64_t mark = is_shutdown ? CALL_IS_SHUTDOWN_DROP : CALL_IS_SKIPPED;

	/* The user asked for no other pause, so the call is lost. */
	if ((causes & ~(unsigned)PAUSED_SHUTDOWN) == PAUSED_SIZE)
		counter_add(&tb->ring->size_drop_count, 1);
	/* A launch of a graph is a holder, skipped or not. */
	if ((use & (API_MAKES_WORK | API_LAUNCHES_GRAPH)) == API_MAKES_WORK && !is_shutdown &&
	    data->correlation_data) {
		drop_left_calls(tb);
		tb->call_hold = graph_level_enter_call();
		mark |= CALL_HOLDS;
	}
	if (is_shutdown)
		record_skip(tb, data, XT_RECORD_SHUTDOWN_DROP);
	else if (atomic_load(&cupti_subscriber_records_calls))
		record_skip(tb, data, XT_RECORD_SKIP);
	else /* its work is not recorded either, unless recording starts before EXIT */
		mark |= CALL_IS_UNRECORDED;
	if (data->correlation_data)
		*data->correlation_data = mark;
}

/* EXIT of a marked call. */
static COLD void skipped_call_leave(struct thread_buffer *tb,
				    const struct cupti_callback_data *data)
{
	uint64_t mark = *data->correlation_data;

	*data->correlation_data = 0;
	if (mark & CALL_IS_UNRECORDED && atomic_load(&cupti_subscriber_records_calls))
		record_skip(tb, data, XT_RECORD_SKIP);
	if (mark & CALL_HOLDS)
		leave_hold(tb);
}

static bool is_shutdown_drop(const struct cupti_callback_data *data)
{
	return data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP;
}

/* EXIT without a known ENTER. True if the call began before its callbacks were enabled. */
static COLD bool skipped_call_began_unseen(struct thread_buffer *tb,
					   const struct cupti_callback_data *data)
{
	bool is_stopped = !atomic_load(&cupti_subscriber_records_calls);

	if (!atomic_load(&recording_was_paused) || is_shutdown_drop(data) ||
	    (tb->ring->open_count && !is_stopped))
		return false;
	if (!is_stopped)
		record_skip(tb, data, XT_RECORD_SKIP);
	return true;
}

/* Counts any other EXIT without a known ENTER. */
static COLD void skipped_call_count_unmatched(struct thread_buffer *tb,
					      const struct cupti_callback_data *data)
{
	if (is_shutdown_drop(data))
		counter_add_lost(&tb->ring->shutdown_drop_count, 1);
	else
		thread_buffer_count_lost(tb, XT_RING_LOST_NESTED);
}

HOT_STATE atomic_bool callbacks_active;
atomic_uint_fast64_t callbacks_reentered;
atomic_bool callbacks_have_ended;
atomic_uint_fast64_t callbacks_after_end;

TRAMPOLINE(".text.hot", callback_entry, callback_in_c);

/* Bits above an open call's epoch mark it. The last one: a frame of its stack is in PyTorch. */
#define EPOCH_BITS    27 /* bit 27: CALL_MADE_NODE */
#define EPOCH_MASK    ((UINT32_C(1) << EPOCH_BITS) - 1)
#define CALL_IN_TORCH (UINT32_C(1) << 31)

/*
 * Before a call returns, nested calls may reuse its slot for another stack. The transient slot is
 * reused often; others are reassigned after the stack cache was cleared. The epoch changes with
 * both.
 */
static inline uint32_t slot_epoch(const struct thread_buffer *tb)
{
	return (uint32_t)(tb->cache.epoch + tb->ring->counters[XT_RING_STACKS_TRANSIENT]) &
	       EPOCH_MASK;
}

/*
 * One call in 64 is timed to estimate the tracer's cost. A hash of the call number chooses it, so
 * that the choice does not follow a rhythm of the program.
 */
static inline bool is_timed(uint32_t correlation_id)
{
	return correlation_id * 0x9e3779b1u < UINT32_MAX / 64;
}

static inline void add_timed(struct thread_buffer *tb, uint64_t start_ns, uint64_t end_ns,
			     uint64_t slow_path_before_ns)
{
	counter_add(&tb->timed_ns, end_ns - start_ns - (tb->slow_path_ns - slow_path_before_ns));
}

/* Returns when the call began. */
static inline __attribute__((always_inline)) uint64_t
begin_call(struct thread_buffer *tb, uint32_t api, const struct cupti_callback_data *data,
	   const struct caller_regs *regs)
{
	struct xt_ring_header *ring = tb->ring;
	uint32_t slot, mark = 0;
	struct xt_open_call *call;

	skipped_call_clear_mark(data);
	/* CUDA calls are not nested so deep: longjmp() left these. */
	if (__builtin_expect(ring->open_count == XT_RING_OPEN_CALLS_MAX, 0))
		__atomic_store_n(&ring->open_count, 0, __ATOMIC_RELAXED);
	call = &ring->open_calls[ring->open_count];
	call->api = api;
	call->correlation_id = data->correlation_id;
	slot = capture_marked_stack(tb, regs);
	if (stack_is_in_torch(slot)) {
		slot &= ~STACK_IN_TORCH;
		mark = CALL_IN_TORCH;
	}
	call->stack_slot = slot;
	call->slot_epoch = slot_epoch(tb) | mark;
	call->enter_ns = monotonic_ns();
	__atomic_store_n(&ring->open_count, ring->open_count + 1, __ATOMIC_RELEASE);
	return call->enter_ns;
}

/* While recording is paused, or for a call that is timed. */
static __attribute__((noinline)) void call_enter_specially(struct thread_buffer *tb, uint32_t api,
							   uint32_t use,
							   const struct cupti_callback_data *data,
							   const struct caller_regs *regs)
{
	uint64_t start_ns = is_timed(data->correlation_id) ? monotonic_ns() : 0;
	uint64_t enter_ns, slow_path_ns = tb->slow_path_ns;

	if (atomic_load_explicit(&recording_paused, memory_order_relaxed)) {
		skipped_call_enter(tb, use, data);
	} else {
		enter_ns = begin_call(tb, api, data, regs);
		if (start_ns) {
			add_timed(tb, start_ns, enter_ns, slow_path_ns);
			counter_add(&tb->timed_count, 1);
		}
	}
	thread_buffer_leave(tb);
}

static LIKELY __attribute__((noinline)) void call_enter(struct thread_buffer *tb, uint32_t api,
							uint32_t use,
							const struct cupti_callback_data *data,
							const struct caller_regs *regs)
{
	if (__builtin_expect(atomic_load_explicit(&recording_paused, memory_order_relaxed) ||
				     is_timed(data->correlation_id),
			     0)) {
		call_enter_specially(tb, api, use, data, regs);
		return;
	}
	begin_call(tb, api, data, regs);
	thread_buffer_leave(tb);
}

/* Finds the open call of this EXIT. Drops calls above it, which were left by longjmp(). */
static inline struct xt_open_call *close_call(struct xt_ring_header *ring, uint32_t api,
					      uint32_t correlation_id)
{
	for (uint32_t i = ring->open_count; i-- > 0;) {
		struct xt_open_call *call = &ring->open_calls[i];

		if (__builtin_expect(call->correlation_id == correlation_id && call->api == api,
				     1)) {
			__atomic_store_n(&ring->open_count, i, __ATOMIC_RELEASE);
			return call;
		}
	}
	return NULL;
}

/* The slot was reused during the call, so capture the stack again. */
static COLD uint32_t stack_at_exit(struct thread_buffer *tb, const struct xt_open_call *call,
				   const struct caller_regs *regs)
{
	return call->stack_slot == XT_STACK_SLOT_NONE ? XT_STACK_SLOT_NONE
						      : capture_stack(tb, regs);
}

/* Names the graph, so that a replay without work differs from one whose work was lost. */
static COLD uint32_t graph_exec_of(const struct xt_record_call *record,
				   const struct cupti_callback_data *data)
{
	void *const *arguments = data->function_params;
	uint32_t graph_exec;

	if (record->result || !arguments || !cupti.cuptiGetGraphExecId ||
	    cupti.cuptiGetGraphExecId(arguments[0], &graph_exec) != XT_CUPTI_SUCCESS)
		return 0;
	return graph_exec;
}

/*
 * Recovery after a kill relies on this order: open_count, CALLS_SEEN, write_pos, CALLS_COMMITTED. A
 * kill is like a signal handler that reads them, so a compiler fence is enough.
 */
static inline void count_call(struct thread_buffer *tb, enum xt_ring_counter counter)
{
	__atomic_signal_fence(__ATOMIC_RELEASE);
	thread_buffer_count_up(tb, counter);
}

/* Adds the parts that only some calls have, behind the common part. */
static inline void put_extra(struct xt_record_call *record, uint32_t use,
			     const struct cupti_callback_data *data,
			     const struct xt_autograd_state *autograd)
{
	uint32_t graph_exec = use & API_LAUNCHES_GRAPH ? graph_exec_of(record, data) : 0;

	if (autograd) {
		struct xt_record_autograd_call *call = (void *)record;

		call->autograd = *autograd;
		call->autograd.graph_exec = graph_exec;
	} else {
		struct xt_record_graph_call *call = (void *)record;

		call->graph_exec = graph_exec;
		call->reserved = 0;
	}
}

/* Writes the record of a call. `record_bytes` tells which extra parts it has. */
static inline __attribute__((always_inline)) void
put_call(struct thread_buffer *tb, uint32_t api, uint32_t use,
	 const struct cupti_callback_data *data, const struct caller_regs *regs,
	 const struct xt_open_call *call, uint64_t exit_ns, uint32_t record_bytes,
	 const struct xt_autograd_state *autograd)
{
	uint32_t stack_slot = __builtin_expect((call->slot_epoch & EPOCH_MASK) == slot_epoch(tb), 1)
				      ? call->stack_slot
				      : stack_at_exit(tb, call, regs);
	struct xt_record_call *record = ring_reserve_or_wait(tb, record_bytes);

	if (__builtin_expect(!record, 0)) {
		thread_buffer_count_lost(tb, XT_RING_LOST_RING_FULL);
		return;
	}
	record->head.type = XT_RECORD_CALL;
	record->head.bytes = (uint16_t)record_bytes;
	record->api = api;
	record->correlation_id = data->correlation_id;
	record->stack_slot = stack_slot;
	record->enter_ns = call->enter_ns;
	record->exit_ns = exit_ns;
	record->result = data->return_value ? *(const int32_t *)data->return_value : 0;
	record->one_in = 0;
	if (record_bytes != sizeof(*record))
		put_extra(record, use, data, autograd);
	ring_commit(tb, record_bytes);
	count_call(tb, XT_RING_CALLS_COMMITTED);
}

/* A call inside PyTorch, a launch that became a node, or a launch of a graph. */
static __attribute__((noinline)) void
put_call_with_extra(struct thread_buffer *tb, uint32_t api, uint32_t use,
		    const struct cupti_callback_data *data, const struct caller_regs *regs,
		    const struct xt_open_call *call, uint64_t exit_ns)
{
	struct xt_autograd_state autograd;

	if (call->slot_epoch & CALL_MADE_NODE)
		graph_node_captured(tb, data);
	if (call->slot_epoch & CALL_IN_TORCH && torch_capture(tb, &autograd))
		put_call(tb, api, use, data, regs, call, exit_ns,
			 sizeof(struct xt_record_autograd_call), &autograd);
	else if (use & API_LAUNCHES_GRAPH)
		put_call(tb, api, use, data, regs, call, exit_ns,
			 sizeof(struct xt_record_graph_call), NULL);
	else
		put_call(tb, api, use, data, regs, call, exit_ns, sizeof(struct xt_record_call),
			 NULL);
}

/* Returns when the call ended; 0: it is not recorded. */
static inline __attribute__((always_inline)) uint64_t
end_call(struct thread_buffer *tb, uint32_t api, uint32_t use,
	 const struct cupti_callback_data *data, const struct caller_regs *regs)
{
	struct xt_open_call *call;
	uint64_t exit_ns;

	if (skipped_call_is_marked(data)) {
		skipped_call_leave(tb, data);
		return 0;
	}
	exit_ns = monotonic_ns();
	call = close_call(tb->ring, api, data->correlation_id);
	if (__builtin_expect(!call && skipped_call_began_unseen(tb, data), 0))
		return 0;
	count_call(tb, XT_RING_CALLS_SEEN);
	if (__builtin_expect(!call, 0)) {
		skipped_call_count_unmatched(tb, data);
		return 0;
	}
	if (call->slot_epoch & (CALL_IN_TORCH | CALL_MADE_NODE) || use & API_LAUNCHES_GRAPH)
		put_call_with_extra(tb, api, use, data, regs, call, exit_ns);
	else
		put_call(tb, api, use, data, regs, call, exit_ns, sizeof(struct xt_record_call),
			 NULL);
	stack_cache_fetch_expected(&tb->cache);
	return exit_ns;
}

static __attribute__((noinline)) void call_exit_timed(struct thread_buffer *tb, uint32_t api,
						      uint32_t use,
						      const struct cupti_callback_data *data,
						      const struct caller_regs *regs)
{
	uint64_t slow_path_ns = tb->slow_path_ns;
	uint64_t exit_ns = end_call(tb, api, use, data, regs);

	if (exit_ns)
		add_timed(tb, exit_ns, monotonic_ns(), slow_path_ns);
	thread_buffer_leave(tb);
}

static LIKELY __attribute__((noinline)) void call_exit(struct thread_buffer *tb, uint32_t api,
						       uint32_t use,
						       const struct cupti_callback_data *data,
						       const struct caller_regs *regs)
{
	if (__builtin_expect(is_timed(data->correlation_id), 0)) {
		call_exit_timed(tb, api, use, data, regs);
		return;
	}
	end_call(tb, api, use, data, regs);
	thread_buffer_leave(tb);
}

/*
 * The program pauses or resumes recording. The time is noted so that the paused interval covers
 * every skipped call.
 */
static COLD void switch_recording(struct thread_buffer *tb, bool is_on)
{
	struct xt_record_switch *record;

	uint64_t time_ns = monotonic_ns();

	if (!(is_on ? recording_resume(PAUSED_REQUESTED) : recording_pause(PAUSED_REQUESTED)))
		return;
	record = ring_reserve_or_wait(tb, sizeof(*record));
	if (!record)
		return;
	record->head.type = XT_RECORD_SWITCH;
	record->head.bytes = sizeof(*record);
	record->is_on = is_on;
	record->time_ns = is_on ? monotonic_ns() : time_ns;
	ring_commit(tb, sizeof(*record));
}

static COLD void profiler_call(struct thread_buffer *tb, uint32_t api,
			       const struct cupti_callback_data *data)
{
	enum profiler_call call = profiler_call_of(api);

	if (call != PROFILER_NONE && (call == PROFILER_START) == (data->site == XT_CUPTI_API_EXIT))
		switch_recording(tb, call == PROFILER_START);
}

static COLD void graph_api_returns(struct thread_buffer *tb, uint32_t use,
				   const struct cupti_callback_data *data,
				   const struct caller_regs *regs)
{
	if (use & API_CHANGES_NODES)
		graph_node_set(tb, use, data, regs);
	if (use & API_NAMES_NODE)
		graph_node_added(tb, use, data);
}

/* Calls about graphs, calls that start or stop the profiler, and calls that are not recorded. */
static COLD void special_call(struct thread_buffer *tb, uint32_t api, uint32_t use,
			      const struct cupti_callback_data *data,
			      const struct caller_regs *regs)
{
	if (use & API_IS_PROFILER) {
		profiler_call(tb, api, data);
		use = API_IS_UNRECORDED;
	} else if (data->site != XT_CUPTI_API_ENTER) {
		graph_api_returns(tb, use, data, regs);
	}
	if (use & API_IS_UNRECORDED)
		thread_buffer_leave(tb);
	else if (data->site == XT_CUPTI_API_ENTER)
		call_enter(tb, api, use, data, regs);
	else
		call_exit(tb, api, use, data, regs);
}

/* A callback of the driver API. Leaves the buffer. Makes only tail calls, to save no registers. */
static inline void driver_call(struct thread_buffer *tb, uint32_t cbid,
			       const struct cupti_callback_data *data,
			       const struct caller_regs *regs)
{
	uint32_t api = XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | cbid;
	uint32_t use = api_uses[cbid & (API_CBID_END - 1)];

	if (__builtin_expect(use & (API_IS_PROFILER | API_IS_UNRECORDED | API_MAKES_GRAPHS), 0))
		special_call(tb, api, use, data, regs);
	else if (data->site == XT_CUPTI_API_ENTER)
		call_enter(tb, api, use, data, regs);
	else
		call_exit(tb, api, use, data, regs);
}

/* A call that is not recorded is counted when it returns. */
static COLD bool counts_as_call(uint32_t domain, uint32_t cbid,
				const struct cupti_callback_data *data)
{
	return domain != XT_CUPTI_CB_DOMAIN_RESOURCE && data->site == XT_CUPTI_API_EXIT &&
	       !skipped_call_is_marked(data) &&
	       profiler_call_of(domain << 16 | cbid) == PROFILER_NONE &&
	       !(api_uses[cbid & (API_CBID_END - 1)] & API_IS_UNRECORDED);
}

static COLD void count_after_end(void)
{
	atomic_fetch_add(&callbacks_after_end, 1);
	crash_buffer_count_after_end();
}

/*
 * Exit handlers and other threads may launch after the log is closed. Calls without GPU work, such
 * as frees, are no loss.
 */
static COLD void count_inactive_call(uint32_t domain, uint32_t cbid,
				     const struct cupti_callback_data *data)
{
	if (atomic_load(&callbacks_have_ended) && counts_as_call(domain, cbid, data) &&
	    !(atomic_load(&recording_paused) &
	      (PAUSED_REQUESTED | PAUSED_HANDOFF | PAUSED_STOPPED)) &&
	    api_uses[cbid & (API_CBID_END - 1)] & API_MAKES_WORK)
		count_after_end();
}

/*
 * Resources on which the kinds of records depend, recorded or not. True if the callback is done.
 */
static COLD bool resource_changes_kinds(struct thread_buffer *tb, uint32_t cbid,
					const struct cupti_resource_data *data)
{
	if (cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING)
		graph_node_starts(tb, data);
	else if (cbid == XT_CUPTI_RESOURCE_CONTEXT_CREATED)
		unsafe_kinds_note_context(data->context);
	return cbid == XT_CUPTI_RESOURCE_CONTEXT_CREATED;
}

static COLD void deliver(uint32_t domain, uint32_t cbid, const void *cbdata,
			 const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;

	if (domain == XT_CUPTI_CB_DOMAIN_RESOURCE && resource_changes_kinds(tb, cbid, cbdata))
		return;
	if (!atomic_load_explicit(&callbacks_active, memory_order_acquire)) {
		count_inactive_call(domain, cbid, cbdata);
		return;
	}
	if (domain == XT_CUPTI_CB_DOMAIN_RESOURCE &&
	    cbid == XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING) {
		atomic_fetch_add(&cupti_module_unloads, 1);
		return;
	}
	if (!tb) {
		tb = thread_buffer_claim();
		if (!tb) {
			if (counts_as_call(domain, cbid, cbdata))
				atomic_fetch_add(&thread_buffer_calls_missed, 1);
			return;
		}
	}
	if (!thread_buffer_enter(
		    tb, regs)) { /* called by a signal handler that interrupted the tracer */
		if (counts_as_call(domain, cbid, cbdata))
			atomic_fetch_add(&callbacks_reentered, 1);
		return;
	}
	if (domain == XT_CUPTI_CB_DOMAIN_DRIVER_API) {
		driver_call(tb, cbid, cbdata, regs);
		return;
	}
	if (domain == XT_CUPTI_CB_DOMAIN_RESOURCE)
		graph_node(tb, cbid, cbdata, regs);
	else /* No other callback of the runtime API is enabled. */
		profiler_call(tb, domain << 16 | cbid, cbdata);
	thread_buffer_leave(tb);
}

/* Holders of graph_level.h keep the hold in the call's correlation data, above its mark. */
#define HOLD_AT	  56
#define HOLD_MASK (UINT64_C(0xff) << HOLD_AT)

/* The call was recorded at ENTER, before recording stopped. */
static bool is_open(const struct cupti_callback_data *data)
{
	const struct thread_buffer *tb = current_thread_buffer;

	for (uint32_t i = tb ? tb->ring->open_count : 0; i-- > 0;)
		if (tb->ring->open_calls[i].correlation_id == data->correlation_id)
			return true;
	return false;
}

static void deliver_if_recorded(uint32_t domain, uint32_t cbid, uint32_t use,
				const struct cupti_callback_data *data,
				const struct caller_regs *regs)
{
	if (use & API_MAKES_GRAPHS ||
	    ((atomic_load(&cupti_subscriber_records_calls) || is_open(data)) &&
	     !(use & API_IS_UNRECORDED)))
		deliver(domain, cbid, data, regs);
	if (use & API_INSTANTIATES_GRAPH && current_thread_buffer)
		graph_instantiation(current_thread_buffer, data);
}

/* Whether or not the call is recorded: it concerns other threads, too. */
static COLD void deliver_holder(uint32_t domain, uint32_t cbid, uint32_t use,
				const struct cupti_callback_data *data,
				const struct caller_regs *regs)
{
	uint64_t *slot = data->correlation_data;
	uint8_t hold = GRAPH_HOLD_NONE;
	bool enters = data->site == XT_CUPTI_API_ENTER;

	if (!slot || !data->function_params) {
		if (use & API_LAUNCHES_GRAPH)
			graph_level_give_up();
	} else if (enters) {
		if (use & API_LAUNCHES_GRAPH)
			hold = graph_level_enter_launch(data, &cupti_subscriber_records_calls);
		if (hold == GRAPH_HOLD_NONE)
			hold = graph_level_enter_call();
	} else {
		hold = (uint8_t)(*slot >> HOLD_AT);
		*slot &= ~HOLD_MASK;
	}
	deliver_if_recorded(domain, cbid, use, data, regs);
	if (enters && slot)
		*slot = (*slot & ~HOLD_MASK) | (uint64_t)hold << HOLD_AT;
	else
		graph_level_leave(hold);
}

/* Calls that graph_level.h and cupti_subscriber.h must know, recorded or not. */
static COLD void deliver_kind_call(uint32_t domain, uint32_t cbid,
				   const struct cupti_callback_data *data,
				   const struct caller_regs *regs)
{
	uint32_t use = api_uses[cbid & (API_CBID_END - 1)];

	if (use & (API_LAUNCHES_GRAPH | API_DELAYS_STOP)) {
		deliver_holder(domain, cbid, use, data, regs);
		return;
	}
	if (use & API_FREES_ASYNC && data->site == XT_CUPTI_API_ENTER && data->function_params)
		unsafe_kinds_note_free(*(const uint64_t *)data->function_params);
	if (use & API_SYNCS && data->site == XT_CUPTI_API_EXIT)
		graph_level_note_sync(data, use & API_SYNCS_CONTEXT);
	deliver_if_recorded(domain, cbid, use, data, regs);
}

/* Only callback_entry calls it. */
__attribute__((visibility("hidden"), used)) void callback_in_c(void *userdata, uint32_t domain,
							       uint32_t cbid, const void *cbdata,
							       const struct caller_regs *regs);

LIKELY void callback_in_c(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata,
			  const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;
	bool changes_kinds = domain == XT_CUPTI_CB_DOMAIN_DRIVER_API &&
			     api_uses[cbid & (API_CBID_END - 1)] & API_CHANGES_KINDS;

	(void)userdata;
	if (__builtin_expect(changes_kinds, 0)) {
		deliver_kind_call(domain, cbid, cbdata, regs);
	} else if (__builtin_expect(
			   domain != XT_CUPTI_CB_DOMAIN_DRIVER_API ||
				   !atomic_load_explicit(&callbacks_active, memory_order_acquire) ||
				   !tb || tb->within != THREAD_BUFFER_IDLE,
			   0)) {
		deliver(domain, cbid, cbdata, regs);
	} else {
		thread_buffer_enter(tb, regs);
		driver_call(tb, cbid, cbdata, regs);
	}
}
