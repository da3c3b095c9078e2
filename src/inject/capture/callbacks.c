/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback at every recorded API call. Captures the stack at ENTER and writes the finished call
 * to the ring at EXIT.
 *
 * Runs in the program's threads: no lock, no malloc, no system call, no output; keeps errno and
 * refuses re-entry. Cold parts are in other files: a thread's first call in thread_buffer.c,
 * unwinding in stack_walk.c.
 */
#include "inject/capture/callbacks.h"

#include <stdbool.h>
#include <string.h>

#include "inject/capture/ring.h"
#include "inject/cupti/api_table.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/machine.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/recording_state.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/profiler_calls.h"
#include "inject/capture/sampling.h"
#include "inject/memory/crash_buffer.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/torch_capture.h"
#include "inject/runtime/hotpath.h"

HOT_STATE atomic_bool callbacks_active;
atomic_uint_fast64_t callbacks_reentered;
atomic_bool callbacks_have_ended;
atomic_uint_fast64_t callbacks_after_end;

TRAMPOLINE(".text.hot", callback_entry, callback_in_c);

/*
 * The bits above an open call's epoch store its sampling shift: one call in 1 << shift has a stack.
 * The last bit is set if a frame of that stack is in PyTorch.
 */
#define EPOCH_BITS    28
#define EPOCH_MASK    ((UINT32_C(1) << EPOCH_BITS) - 1)
#define SHIFT_MASK    7
#define CALL_IN_TORCH (UINT32_C(1) << 31)

/*
 * Before a call returns, nested calls may reuse its slot for another stack. The transient slot is
 * reused often; others are reassigned after the stack cache was cleared.
 */
static uint32_t slot_epoch(const struct thread_buffer *tb, uint32_t slot)
{
	if (slot >= XT_STACK_SLOT_LOST) /* includes XT_STACK_SLOT_NONE */
		return 0;
	if (slot == XT_STACK_SLOT_TRANSIENT)
		return (uint32_t)tb->ring->counters[XT_RING_STACKS_TRANSIENT] & EPOCH_MASK;
	return (uint32_t)tb->cache.epoch & EPOCH_MASK;
}

/* A sampled call represents unsampled ones. If its stack is lost, mark it LOST, not NONE. */
static inline uint32_t capture_sampled(struct thread_buffer *tb, uint32_t shift,
				       const struct caller_regs *regs)
{
	uint32_t slot = capture_marked_stack(tb, regs);

	return slot == XT_STACK_SLOT_NONE && shift ? XT_STACK_SLOT_LOST : slot;
}

/*
 * Stored as CUPTI's correlation data between ENTER and EXIT of a call that is not recorded. It was
 * skipped on request, or dropped because the process ends, which counts as a loss.
 */
#define CALL_IS_SKIPPED	      UINT64_C(0x78747261636521)
#define CALL_IS_SHUTDOWN_DROP UINT64_C(0x7874726163653f)

/* Records the correlation id of a call, by which the writer drops its GPU work. */
static COLD void skip_call(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	unsigned causes = atomic_load(&recording_paused);
	bool is_shutdown = causes == PAUSED_SHUTDOWN;
	struct xt_record_skip *record = ring_reserve_or_wait(tb, sizeof(*record));

	/* The user asked for no other pause, so the call is lost. */
	if ((causes & ~(unsigned)PAUSED_SHUTDOWN) == PAUSED_SIZE)
		counter_add(&tb->ring->size_drop_count, 1);
	if (data->correlation_data)
		*data->correlation_data = is_shutdown ? CALL_IS_SHUTDOWN_DROP : CALL_IS_SKIPPED;
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_SKIPS_LOST);
		return;
	}
	record->head.type = is_shutdown ? XT_RECORD_SHUTDOWN_DROP : XT_RECORD_SKIP;
	record->head.bytes = sizeof(*record);
	record->correlation_id = data->correlation_id;
	ring_commit(tb, sizeof(*record));
}

static bool was_skipped(const struct cupti_callback_data *data)
{
	return data->correlation_data && *data->correlation_data == CALL_IS_SKIPPED;
}

/* A call that was not seen to begin, because it began before recording did. */
static COLD bool began_unseen(const struct thread_buffer *tb,
			      const struct cupti_callback_data *data)
{
	return atomic_load(&recording_was_paused) && !tb->ring->open_count &&
	       !(data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP);
}

/* Counts a call that returned without a known start. */
static COLD void count_unmatched_exit(struct thread_buffer *tb,
				      const struct cupti_callback_data *data)
{
	if (data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP)
		counter_add_lost(&tb->ring->shutdown_drop_count, 1);
	else
		thread_buffer_count_lost(tb, XT_RING_LOST_NESTED);
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

static void call_enter(struct thread_buffer *tb, uint32_t api, uint32_t use,
		       const struct cupti_callback_data *data, const struct caller_regs *regs)
{
	uint32_t shift = use & API_MAKES_WORK
				 ? atomic_load_explicit(&sampling_shift, memory_order_relaxed)
				 : 0;
	uint64_t start_ns = is_timed(data->correlation_id) ? monotonic_ns() : 0;
	uint64_t slow_path_ns = tb->slow_path_ns;
	struct xt_ring_header *ring = tb->ring;
	uint32_t slot = XT_STACK_SLOT_NONE, in_torch = 0;
	struct xt_open_call *call;

	if (atomic_load_explicit(&recording_paused, memory_order_relaxed)) {
		skip_call(tb, data);
		return;
	}
	if (data->correlation_data)
		*data->correlation_data = 0; /* clear an old mark */
	/* CUDA calls are not nested so deep: longjmp() left these. */
	if (ring->open_count == XT_RING_OPEN_CALLS_MAX)
		__atomic_store_n(&ring->open_count, 0, __ATOMIC_RELAXED);
	call = &ring->open_calls[ring->open_count];
	call->api = api;
	call->correlation_id = data->correlation_id;
	if (shift && !sampling_takes(tb, shift)) {
		counter_add(&tb->unsampled_count, 1);
	} else {
		slot = capture_sampled(tb, shift, regs);
		if (stack_is_in_torch(slot)) {
			slot &= ~STACK_IN_TORCH;
			in_torch = CALL_IN_TORCH;
		}
	}
	call->stack_slot = slot;
	call->slot_epoch = slot_epoch(tb, slot) | shift << EPOCH_BITS | in_torch;
	call->enter_ns = monotonic_ns();
	__atomic_store_n(&ring->open_count, ring->open_count + 1, __ATOMIC_RELEASE);
	if (start_ns) {
		add_timed(tb, start_ns, call->enter_ns, slow_path_ns);
		counter_add(&tb->timed_count, 1);
	}
}

/* Finds the open call of this EXIT. Drops calls above it, which were left by longjmp(). */
static struct xt_open_call *close_call(struct xt_ring_header *ring, uint32_t api,
				       uint32_t correlation_id)
{
	for (uint32_t i = ring->open_count; i-- > 0;) {
		struct xt_open_call *call = &ring->open_calls[i];

		if (call->correlation_id == correlation_id && call->api == api) {
			__atomic_store_n(&ring->open_count, i, __ATOMIC_RELEASE);
			return call;
		}
	}
	return NULL;
}

/* If the slot was reused during the call, capture the stack again at exit. */
static uint32_t stack_at_exit(struct thread_buffer *tb, const struct xt_open_call *call,
			      const struct caller_regs *regs)
{
	if ((call->slot_epoch & EPOCH_MASK) == slot_epoch(tb, call->stack_slot))
		return call->stack_slot;
	return stack_unmarked(
		capture_sampled(tb, call->slot_epoch >> EPOCH_BITS & SHIFT_MASK, regs));
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

/* Adds the parts that only some calls have, behind the common part. */
static COLD void put_extra(struct xt_record_call *record, uint32_t use,
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

/*
 * Recovery after a kill relies on this order: open_count, CALLS_SEEN, write_pos, CALLS_COMMITTED. A
 * kill is like a signal handler that reads them, so a compiler fence is enough.
 */
static inline void count_call(struct thread_buffer *tb, enum xt_ring_counter counter)
{
	__atomic_signal_fence(__ATOMIC_RELEASE);
	thread_buffer_count_up(tb, counter);
}

static void call_exit(struct thread_buffer *tb, uint32_t api, uint32_t use,
		      const struct cupti_callback_data *data, const struct caller_regs *regs)
{
	uint64_t exit_ns, slow_path_ns = tb->slow_path_ns;
	struct xt_record_call *record;
	struct xt_open_call *call;
	struct xt_autograd_state state, *autograd = NULL;
	uint32_t stack_slot;
	uint32_t shift;
	uint32_t record_bytes =
		use & API_LAUNCHES_GRAPH ? sizeof(struct xt_record_graph_call) : sizeof(*record);

	if (was_skipped(data))
		return;
	exit_ns = monotonic_ns();
	call = close_call(tb->ring, api, data->correlation_id);
	if (!call && began_unseen(tb, data)) {
		skip_call(tb, data);
		return;
	}

	count_call(tb, XT_RING_CALLS_SEEN);
	if (!call) {
		count_unmatched_exit(tb, data);
		return;
	}
	if (__builtin_expect(call->slot_epoch & CALL_IN_TORCH, 0) && torch_capture(tb, &state)) {
		autograd = &state;
		record_bytes = sizeof(struct xt_record_autograd_call);
	}
	stack_slot = stack_at_exit(tb, call, regs);
	record = ring_reserve_or_wait(tb, record_bytes);
	if (!record) {
		thread_buffer_count_lost(tb, XT_RING_LOST_RING_FULL);
		return;
	}
	record->head.type = XT_RECORD_CALL;
	record->head.bytes = (uint16_t)record_bytes;
	record->api = api;
	record->correlation_id = data->correlation_id;
	record->stack_slot = stack_slot;
	shift = call->slot_epoch >> EPOCH_BITS & SHIFT_MASK;
	record->enter_ns = call->enter_ns;
	record->exit_ns = exit_ns;
	record->result = data->return_value ? *(const int32_t *)data->return_value : 0;
	record->one_in = shift ? UINT32_C(1) << shift : 0;
	if (__builtin_expect(record_bytes != sizeof(*record), 0))
		put_extra(record, use, data, autograd);
	ring_commit(tb, record_bytes);
	count_call(tb, XT_RING_CALLS_COMMITTED);
	stack_cache_fetch_expected(&tb->cache);
	if (is_timed(data->correlation_id))
		add_timed(tb, exit_ns, monotonic_ns(), slow_path_ns);
}

/*
 * If CUPTI has no node ids, the work of a graph is attributed to its launch; that is no loss. A
 * failure to get an id is one.
 */
static COLD bool node_id_of(struct thread_buffer *tb, void *node, uint64_t *id)
{
	if (!cupti.cuptiGetGraphNodeId)
		return false;
	if (cupti.cuptiGetGraphNodeId(node, id) == XT_CUPTI_SUCCESS)
		return true;
	thread_buffer_count_up(tb, XT_RING_NODES_SEEN);
	thread_buffer_count_up(tb, XT_RING_NODES_LOST);
	return false;
}

/* Completes the record's head and time. The node's stack slot may be marked. */
static COLD void commit_node(struct thread_buffer *tb, const struct xt_record_node *node)
{
	struct xt_autograd_state autograd;
	bool has_autograd = stack_is_in_torch(node->stack_slot) && torch_capture(tb, &autograd);
	uint32_t bytes = has_autograd ? sizeof(struct xt_record_autograd_node) : sizeof(*node);
	struct xt_record_node *record;

	thread_buffer_count_up(tb, XT_RING_NODES_SEEN);
	record = ring_reserve_or_wait(tb, bytes);
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_NODES_LOST);
		return;
	}
	*record = *node;
	record->stack_slot = stack_unmarked(node->stack_slot);
	record->head.type = XT_RECORD_NODE;
	record->head.bytes = (uint16_t)bytes;
	record->time_ns = monotonic_ns();
	if (has_autograd)
		((struct xt_record_autograd_node *)(void *)record)->autograd = autograd;
	ring_commit(tb, bytes);
}

/* Some nodes start and are never created; overwrite the oldest. */
static COLD void node_starts(struct thread_buffer *tb, const struct cupti_graph_data *graph)
{
	struct starting_node *place = &tb->starting[0];

	for (uint32_t i = 1; i < THREAD_BUFFER_STARTING_NODES; i++)
		if (tb->starting[i].order < place->order)
			place = &tb->starting[i];
	*place = (struct starting_node){
		.node = graph->node, .order = ++tb->starting_count, .type = graph->node_type};
}

/* CUPTI reports a clone first as created, then as cloned. */
static COLD uint32_t node_type(struct thread_buffer *tb, const struct cupti_graph_data *graph)
{
	for (uint32_t i = 0; i < THREAD_BUFFER_STARTING_NODES; i++) {
		if (!tb->starting[i].order || tb->starting[i].node != graph->node)
			continue;
		tb->made = tb->starting[i];
		tb->starting[i].order = 0;
		return tb->made.type;
	}
	return tb->made.node == graph->node ? tb->made.type : graph->node_type;
}

/*
 * This thread created or cloned a graph node. The stack is that of the call: a launch under stream
 * capture, or one that adds a node.
 */
static COLD void graph_node(struct thread_buffer *tb, uint32_t cbid,
			    const struct cupti_resource_data *data, const struct caller_regs *regs)
{
	const struct cupti_graph_data *graph = data->descriptor;
	bool cloned = cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CLONED;
	struct xt_record_node node = {.node_type = node_type(tb, graph)};

	if (cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING) {
		node_starts(tb, graph);
		return;
	}
	if (!node_id_of(tb, graph->node, &node.node_id) ||
	    (cloned && !node_id_of(tb, graph->original_node, &node.origin_id)))
		return;
	node.stack_slot = cloned ? XT_STACK_SLOT_NONE : capture_marked_stack(tb, regs);
	commit_node(tb, &node);
}

static COLD uint64_t graph_id_of(void *graph)
{
	uint32_t id = 0;

	if (!cupti.cuptiGetGraphId || cupti.cuptiGetGraphId(graph, &id) != XT_CUPTI_SUCCESS || !id)
		return XT_GRAPH_ANY; /* changed to an unknown graph */
	return id;
}

/*
 * A call that changes what nodes do has returned. The changed nodes are attributed to this call:
 * - a node of one executable graph,
 * - a node of a graph, also in later instances of the graph, or
 * - all nodes of an executable graph that was updated from another graph.
 */
static COLD void graph_node_set(struct thread_buffer *tb, uint32_t use,
				const struct cupti_callback_data *data,
				const struct caller_regs *regs)
{
	void *const *arguments = data->function_params;
	struct xt_record_node node = {.node_type = XT_NODE_CHANGED};

	if (!arguments || !data->return_value || *(const int32_t *)data->return_value)
		return;
	if (use & (API_SETS_EXEC_NODE | API_UPDATES_EXEC) &&
	    (!cupti.cuptiGetGraphExecId ||
	     cupti.cuptiGetGraphExecId(arguments[0], &node.graph_exec) != XT_CUPTI_SUCCESS ||
	     !node.graph_exec))
		return;
	if (use & API_UPDATES_EXEC)
		node.origin_id = graph_id_of(arguments[1]);
	else if (!node_id_of(tb, arguments[use & API_SETS_EXEC_NODE ? 1 : 0], &node.node_id))
		return;
	if (use & API_SETS_EXEC_CHILD)
		node.origin_id = graph_id_of(arguments[2]);
	node.stack_slot = capture_stack(tb, regs);
	commit_node(tb, &node);
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

static void api_call(struct thread_buffer *tb, uint32_t api, const struct cupti_callback_data *data,
		     const struct caller_regs *regs)
{
	uint32_t use = api_uses[api & 0xffff & (API_CBID_END - 1)];

	/* No other callback of the runtime API is enabled. */
	if (__builtin_expect(use & API_IS_PROFILER || api >> 16 != XT_CUPTI_CB_DOMAIN_DRIVER_API,
			     0)) {
		profiler_call(tb, api, data);
		return;
	}
	if (data->site == XT_CUPTI_API_ENTER) {
		if (!(use & API_IS_UNRECORDED))
			call_enter(tb, api, use, data, regs);
		return;
	}
	if (use & API_CHANGES_NODES)
		graph_node_set(tb, use, data, regs);
	if (!(use & API_IS_UNRECORDED))
		call_exit(tb, api, use, data, regs);
}

/* A call that is not recorded is counted when it returns. */
static COLD bool counts_as_call(uint32_t domain, uint32_t cbid,
				const struct cupti_callback_data *data)
{
	return domain != XT_CUPTI_CB_DOMAIN_RESOURCE && data->site == XT_CUPTI_API_EXIT &&
	       !was_skipped(data) && profiler_call_of(domain << 16 | cbid) == PROFILER_NONE &&
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

/* Only callback_entry calls it. */
__attribute__((visibility("hidden"), used)) void callback_in_c(void *userdata, uint32_t domain,
							       uint32_t cbid, const void *cbdata,
							       const struct caller_regs *regs);

LIKELY void callback_in_c(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata,
			  const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;

	(void)userdata;
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
	if (domain == XT_CUPTI_CB_DOMAIN_RESOURCE)
		graph_node(tb, cbid, cbdata, regs);
	else
		api_call(tb, domain << 16 | cbid, cbdata, regs);
	thread_buffer_leave(tb);
}
