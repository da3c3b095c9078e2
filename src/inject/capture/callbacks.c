/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback at every recorded API call: the stack at ENTER, the finished span into the ring at
 * EXIT. Runs in the application's threads: no lock, no malloc, no system call, no output; errno
 * is kept, re-entry is refused. What is cold (the first call of a thread, a stack never seen) is
 * in lane.c and stack_walk.c.
 */
#include "inject/capture/callbacks.h"

#include <stdbool.h>
#include <string.h>

#include "inject/capture/ring.h"
#include "inject/cupti/api_table.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/trampoline.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/recording_state.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/profiler_calls.h"
#include "inject/capture/sampling.h"
#include "inject/memory/crash_buffer.h"
#include "inject/capture/stack_capture.h"
#include "inject/runtime/hotpath.h"

HOT_STATE atomic_bool callbacks_active;
atomic_uint_fast64_t callbacks_reentered;
atomic_bool callbacks_have_ended;
atomic_uint_fast64_t callbacks_after_end;

TRAMPOLINE(".text.hot", callback_entry, callback_in_c);

/* Above an open call's epoch stands how many of its kind got a stack: one in 1 << that. */
#define EPOCH_BITS 28
#define EPOCH_MASK ((UINT32_C(1) << EPOCH_BITS) - 1)

/*
 * Until a call returns, others inside it may have given its slot to another stack: the transient
 * slot is used by many, the others are handed out anew when the stack cache was cleared.
 */
static uint32_t slot_epoch(const struct thread_buffer *tb, uint32_t slot)
{
	if (slot >= XT_STACK_SLOT_LOST) /* or none */
		return 0;
	if (slot == XT_STACK_SLOT_TRANSIENT)
		return (uint32_t)tb->ring->counters[XT_RING_STACKS_TRANSIENT] & EPOCH_MASK;
	return (uint32_t)tb->cache.epoch & EPOCH_MASK;
}

/* What chance chose stands for others, even where it was lost. */
static inline uint32_t capture_chosen(struct thread_buffer *tb, uint32_t shift,
				      const struct caller_regs *regs)
{
	uint32_t slot = capture_stack(tb, regs);

	return slot == XT_STACK_SLOT_NONE && shift ? XT_STACK_SLOT_LOST : slot;
}

/* What CUPTI keeps between ENTER and EXIT of a call that is left out: as was wished, or because the process ends,
 * which is a loss. */
#define CALL_IS_SKIPPED	      UINT64_C(0x78747261636521)
#define CALL_IS_SHUTDOWN_DROP UINT64_C(0x7874726163653f)

/* What the GPU does for it will be left out by its correlation id. */
static COLD void call_skip(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	bool is_left = atomic_load(&recording_paused) == PAUSED_SHUTDOWN;
	struct xt_record_skip *record = ring_reserve_or_wait(tb, sizeof(*record));

	if (data->correlation_data)
		*data->correlation_data = is_left ? CALL_IS_SHUTDOWN_DROP : CALL_IS_SKIPPED;
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_SKIPS_LOST);
		return;
	}
	record->head.type = is_left ? XT_RECORD_SHUTDOWN_DROP : XT_RECORD_SKIP;
	record->head.bytes = sizeof(*record);
	record->correlation_id = data->correlation_id;
	ring_commit(tb, sizeof(*record));
}

static bool was_skipped(const struct cupti_callback_data *data)
{
	return data->correlation_data && *data->correlation_data == CALL_IS_SKIPPED;
}

/* A call has returned that was seen, and of which it is not known when it was entered. */
static COLD void count_unopened(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	if (data->correlation_data && *data->correlation_data == CALL_IS_SHUTDOWN_DROP)
		thread_buffer_add(&tb->ring->shutdown_drop_count, 1);
	else
		thread_buffer_count_up(tb, XT_RING_LOST_NESTED);
}

/*
 * One call in 64 is timed: what the tracer costs a thread is estimated from these. Which ones, numbers of calls
 * tell, scattered so that no rhythm of the program's meets them.
 */
static inline bool is_timed(uint32_t correlation_id)
{
	return correlation_id * 0x9e3779b1u < UINT32_MAX / 64;
}

static inline void add_timed(struct thread_buffer *tb, uint64_t start_ns, uint64_t end_ns,
			     uint64_t slow_path_before_ns)
{
	thread_buffer_add(&tb->timed_ns,
			  end_ns - start_ns - (tb->slow_path_ns - slow_path_before_ns));
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
	struct xt_open_call *call;

	if (atomic_load_explicit(&recording_paused, memory_order_relaxed)) {
		call_skip(tb, data);
		return;
	}
	if (data->correlation_data)
		*data->correlation_data = 0; /* whatever was there */
	/* No call of CUDA's is nested so deep: these were left by longjmp(). */
	if (ring->open_count == XT_RING_OPEN_CALLS_MAX)
		ring->open_count = 0;
	call = &ring->open_calls[ring->open_count];
	call->api = api;
	call->correlation_id = data->correlation_id;
	if (shift && !sampling_takes(tb, shift)) {
		call->stack_slot = XT_STACK_SLOT_NONE;
		thread_buffer_add(&tb->unsampled_count, 1);
	} else {
		call->stack_slot = capture_chosen(tb, shift, regs);
	}
	call->slot_epoch = slot_epoch(tb, call->stack_slot) | shift << EPOCH_BITS;
	call->enter_ns = monotonic_ns();
	__atomic_store_n(&ring->open_count, ring->open_count + 1, __ATOMIC_RELEASE);
	if (start_ns) {
		add_timed(tb, start_ns, call->enter_ns, slow_path_ns);
		thread_buffer_add(&tb->timed_count, 1);
	}
}

/* The open call that this EXIT belongs to; calls above it never returned and are given up. */
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

/* Where its slot has come to mean another stack meanwhile, the call's is still that of its return. */
static uint32_t stack_at_exit(struct thread_buffer *tb, const struct xt_open_call *call,
			      const struct caller_regs *regs)
{
	if ((call->slot_epoch & EPOCH_MASK) == slot_epoch(tb, call->stack_slot))
		return call->stack_slot;
	return capture_chosen(tb, call->slot_epoch >> EPOCH_BITS, regs);
}

/* Names the graph, so that a replay without work can be told from one whose work was lost. */
static COLD void put_graph_exec(struct xt_record_call *record,
				const struct cupti_callback_data *data)
{
	struct xt_record_graph_call *graph = (struct xt_record_graph_call *)(void *)record;
	void *const *arguments = data->function_params;

	record->head.bytes = sizeof(*graph);
	graph->reserved = 0;
	if (record->result || !arguments || !cupti.cuptiGetGraphExecId ||
	    cupti.cuptiGetGraphExecId(arguments[0], &graph->graph_exec) != XT_CUPTI_SUCCESS)
		graph->graph_exec = 0;
}

static void call_exit(struct thread_buffer *tb, uint32_t api, uint32_t use,
		      const struct cupti_callback_data *data, const struct caller_regs *regs)
{
	uint64_t exit_ns, slow_path_ns = tb->slow_path_ns;
	struct xt_record_call *record;
	struct xt_open_call *call;
	uint32_t stack_slot;
	uint32_t shift;
	size_t record_bytes =
		use & API_LAUNCHES_GRAPH ? sizeof(struct xt_record_graph_call) : sizeof(*record);

	if (was_skipped(data))
		return;
	exit_ns = monotonic_ns();
	call = close_call(tb->ring, api, data->correlation_id);

	thread_buffer_count_up(tb, XT_RING_CALLS_SEEN);
	if (!call) {
		count_unopened(tb, data);
		return;
	}
	stack_slot = stack_at_exit(tb, call, regs);
	record = ring_reserve_or_wait(tb, record_bytes);
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_LOST_RING_FULL);
		return;
	}
	record->head.type = XT_RECORD_CALL;
	record->head.bytes = sizeof(*record);
	record->api = api;
	record->correlation_id = data->correlation_id;
	record->stack_slot = stack_slot;
	shift = call->slot_epoch >> EPOCH_BITS;
	record->enter_ns = call->enter_ns;
	record->exit_ns = exit_ns;
	record->result = data->return_value ? *(const int32_t *)data->return_value : 0;
	record->one_in = shift ? UINT32_C(1) << shift : 0;
	if (__builtin_expect(use & API_LAUNCHES_GRAPH, 0))
		put_graph_exec(record, data);
	ring_commit(tb, record_bytes);
	thread_buffer_count_up(tb, XT_RING_CALLS_COMMITTED);
	stack_cache_fetch_expected(&tb->cache);
	if (is_timed(data->correlation_id))
		add_timed(tb, exit_ns, monotonic_ns(), slow_path_ns);
}

/* A CUPTI that has no ids is no loss: then the work of graphs belongs to the graph's launch. One
 * that has, and fails, is. */
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

/* All of the record but its head and time is given. */
static COLD void commit_node(struct thread_buffer *tb, const struct xt_record_node *node)
{
	struct xt_record_node *record;

	thread_buffer_count_up(tb, XT_RING_NODES_SEEN);
	record = ring_reserve_or_wait(tb, sizeof(*record));
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_NODES_LOST);
		return;
	}
	*record = *node;
	record->head.type = XT_RECORD_NODE;
	record->head.bytes = sizeof(*record);
	record->time_ns = monotonic_ns();
	ring_commit(tb, sizeof(*record));
}

/* Some nodes start and are never made: the oldest gives way. */
static COLD void node_starts(struct thread_buffer *tb, const struct cupti_graph_data *graph)
{
	struct starting_node *place = &tb->starting[0];

	for (uint32_t i = 1; i < THREAD_BUFFER_STARTING_NODES; i++)
		if (tb->starting[i].order < place->order)
			place = &tb->starting[i];
	*place = (struct starting_node){
		.node = graph->node, .order = ++tb->starting_count, .type = graph->node_type};
}

/* A clone is told of as made, and then as cloned. */
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
 * A graph node was made by this thread, or cloned from another. The stack is the one of the call
 * that made it: a launch under capture, or one that adds a node.
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
	node.stack_slot = cloned ? XT_STACK_SLOT_NONE : capture_stack(tb, regs);
	commit_node(tb, &node);
}

static COLD uint64_t graph_id_of(void *graph)
{
	uint32_t id = 0;

	if (!cupti.cuptiGetGraphId || cupti.cuptiGetGraphId(graph, &id) != XT_CUPTI_SUCCESS || !id)
		return XT_GRAPH_ANY; /* it is known that there was a change, not to what */
	return id;
}

/*
 * A call that has nodes do something else has returned: from now on a node is this thread's, in
 * one executable graph or, so that it comes with what is made of the graph later, in the graph; or
 * all nodes of an executable graph are of whom those of another graph are.
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

/* The program says what of it is to be recorded. No call is left out outside of the times told. */
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

	/* (Of the runtime API nothing else calls back.) */
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

/* What is not recorded counts when it returns. */
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

/* Exit handlers may launch when the log is closed, and other threads. (Whatever they free or unload is no loss.) */
static COLD void note_inactive(uint32_t domain, uint32_t cbid,
			       const struct cupti_callback_data *data)
{
	if (atomic_load(&callbacks_have_ended) && counts_as_call(domain, cbid, data) &&
	    !(atomic_load(&recording_paused) & (PAUSED_REQUESTED | PAUSED_HANDOFF)) &&
	    api_uses[cbid & (API_CBID_END - 1)] & API_MAKES_WORK)
		count_after_end();
}

/* Called by callback_entry alone. */
__attribute__((visibility("hidden"), used)) void callback_in_c(void *userdata, uint32_t domain,
							       uint32_t cbid, const void *cbdata,
							       const struct caller_regs *regs);

LIKELY void callback_in_c(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata,
			  const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;

	(void)userdata;
	if (!atomic_load_explicit(&callbacks_active, memory_order_acquire)) {
		note_inactive(domain, cbid, cbdata);
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
		    tb, regs)) { /* a signal handler that launches, in the middle of our work */
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
