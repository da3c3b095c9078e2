/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of rows of a log and their columns. Each is declared here once: constants, encodings,
 * structures and accessors follow from it. docs/internals/LOG_FORMAT.md gives the full meaning.
 *
 * XT_KINDS lists X(KIND, kind, number). XT_<KIND>_COLUMNS lists X(KIND, COLUMN, column, number,
 * encoding), from which come the constant XT_<KIND>_<COLUMN> and a member of struct xt_row_<kind>
 * (log/read/rows.h).
 *
 * Columns that increase from row to row (ids, times, addresses, correlation ids) are stored as
 * differences. Durations, sizes and references are stored as they are. Times and durations of
 * events, and API ids, are byte-shuffled: their low bytes are noise and their high bytes rarely
 * change.
 */
#ifndef XTRACE_LOG_SCHEMA_H
#define XTRACE_LOG_SCHEMA_H

/* clang-format off */

/* XT_KIND_END, which has no rows, is in xtrace/log_format.h. */
#define XT_KINDS(X) \
	X(META, meta, 1) /* key and value texts about the run */ \
	X(ACCOUNT, account, 2) /* named cumulative counters: the last value counts */ \
	X(CLOCK, clock, 3) /* (monotonic, realtime) pairs */ \
	X(THREAD, thread, 4) /* host threads */ \
	X(MODULE, module, 5) /* modules and their addresses */ \
	X(MODULE_UNLOAD, module_unload, 6) /* end of a module's mapping */ \
	X(STRING, string, 7) /* interned texts */ \
	X(STACK, stack, 8) /* interned call stacks */ \
	X(API, api, 9) /* names of the API functions that CALL rows refer to */ \
	X(CALL, call, 10) /* spans of API calls on host threads */ \
	X(STREAM, stream, 11) /* interned (device, context, stream) */ \
	X(SHAPE, shape, 12) /* interned kernel launch shapes: name, grid, block, … */ \
	X(KERNEL, kernel, 13) /* kernel executions on the GPU */ \
	X(SYMBOL, symbol, 14) /* symbols of seen addresses, embedded after the run */ \
	X(COPY_SHAPE, copy_shape, 16) /* interned: kind of copy, and its memories */ \
	X(COPY, copy, 17) /* memory copies on the GPU */ \
	X(SET, set, 18) /* memsets on the GPU */ \
	X(GRAPH_NODE, graph_node, 19) /* nodes of CUDA graphs, and the calls that created them */ \
	X(MEMORY, memory, 20) /* allocations and frees */ \
	X(RANGE, range, 21) /* NVTX ranges and marks */ \
	X(GRAPH_UPDATE, graph_update, 22) /* changes of nodes of executable graphs */ \
	X(SWITCH, switch, 23) /* recording was paused or resumed */ \
	X(PYTHON_FRAME, python_frame, 24) /* interned: a line of a Python function */ \
	X(SOURCE, source, 25) /* inlined functions and lines of seen addresses, embedded */ \
	X(STACK_RATE, stack_rate, 26) /* sampling rate of stacks from then on */ \
	X(AUTOGRAD, autograd, 27) /* interned: states of PyTorch's autograd in a thread */ \
	X(COMPILED, compiled, 28) /* source lines of generated Python code, embedded */ \
	X(CPU_SAMPLE, cpu_sample, 29) /* what a host thread did at moments of sampling */ \
	X(GRAPH_NODE_NAME, graph_node_name, 30) /* names of the kernels of graph nodes */

#define XT_META_COLUMNS(X, K) \
	X(K, KEY, key, 1, BYTES) \
	X(K, VALUE, value, 2, BYTES)

#define XT_ACCOUNT_COLUMNS(X, K) \
	X(K, NAME, name, 1, BYTES) \
	X(K, VALUE, value, 2, UVAR)

#define XT_CLOCK_COLUMNS(X, K) \
	X(K, MONOTONIC_NS, monotonic_ns, 1, DELTA) \
	X(K, REALTIME_NS, realtime_ns, 2, DELTA)

#define XT_THREAD_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1; a later row with the same id replaces it */ \
	X(K, TID, tid, 2, DELTA) /* the kernel's id; may recur with another XT_THREAD_ID */ \
	X(K, NAME, name, 3, BYTES) \
	X(K, START_NS, start_ns, 4, DELTA) /* when the tracer first saw it */

#define XT_MODULE_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, LOAD_NS, load_ns, 2, DELTA) \
	X(K, START, start, 3, DELTA) /* [start, end): the mapped address range */ \
	X(K, END, end, 4, DELTA) \
	X(K, BIAS, bias, 5, DELTA) /* address - bias = ELF virtual address */ \
	X(K, PATH, path, 6, BYTES) \
	X(K, BUILD_ID, build_id, 7, BYTES) /* raw; empty if the module has none */

#define XT_MODULE_UNLOAD_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) \
	X(K, NS, ns, 2, DELTA)

#define XT_STRING_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1; 0 is the empty text */ \
	X(K, TEXT, text, 2, BYTES)

#define XT_STACK_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1; 0 means no stack */ \
	X(K, FLAGS, flags, 2, UVAR) /* enum xt_stack_flag */ \
	X(K, SEEN_NS, seen_ns, 3, DELTA) /* first seen, or a time near it with the same modules */ \
	X(K, FRAMES, frames, 4, LIST) /* innermost first; see XT_FRAME_* */ \
	X(K, PYTHON, python, 5, LIST) /* XT_PYTHON_FRAME_ID, innermost first */ \
	X(K, PLACES, places, 6, LIST) /* as long: index of the native frame that executes each */ \
	X(K, MODULES, modules, 7, LIST) /* XT_MODULE_ID of each frame; 0: in no module */

#define XT_API_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* CUPTI callback domain << 16 | callback id */ \
	X(K, NAME, name, 2, BYTES) /* CUPTI's name */ \
	X(K, CLASS, class, 3, UVAR) /* enum xt_api_class */

#define XT_CALL_COLUMNS(X, K) \
	X(K, THREAD, thread, 1, UVAR) /* XT_THREAD_ID */ \
	X(K, API, api, 2, SHUFFLE) /* XT_API_ID */ \
	X(K, CORRELATION, correlation, 3, DELTA) \
	X(K, STACK, stack, 4, UVAR) /* XT_STACK_ID, 0: none, or XT_STACK_LOST */ \
	X(K, ENTER_NS, enter_ns, 5, DELTA_SHUFFLE) \
	X(K, DURATION_NS, duration_ns, 6, SHUFFLE) \
	X(K, RESULT, result, 7, UVAR) /* CUresult or cudaError_t, 0 is success */ \
	X(K, ONE_IN, one_in, 8, UVAR) /* one of so many such calls has a stack; 0: all */ \
	X(K, GRAPH_EXEC, graph_exec, 9, UVAR) /* of a graph launch: CUPTI's id of the */ \
					      /* executable graph; 0: unknown */ \
	X(K, SEQUENCE, sequence, 10, DELTA) /* inside PyTorch: sequence number of the */ \
					    /* thread's next autograd node; 0: none */ \
	X(K, AUTOGRAD, autograd, 11, UVAR) /* XT_AUTOGRAD_ID; 0: not inside PyTorch */ \
	X(K, NODE_SEQUENCE, node_sequence, 12, DELTA) /* of the node that runs, + 1; 0: none */

/*
 * PyTorch numbers the autograd nodes of each thread. The call that creates node N sees N + 1 as its
 * thread's next number. docs/internals/AUTOGRAD.md explains how the merge uses this.
 */
#define XT_AUTOGRAD_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, THREAD, thread, 2, UVAR) /* PyTorch's number of the calling thread */ \
	X(K, NODE_TYPE, node_type, 3, UVAR) /* XT_STRING_ID: mangled type; 0: none runs */ \
	X(K, NODE_CLASS, node_class, 4, UVAR) /* XT_STRING_ID: Python class; 0: none */ \
	X(K, NODE_THREAD, node_thread, 5, UVAR) /* PyTorch's number of the node's thread; */ \
						/* 0: no sequence */ \
	X(K, CALLER, caller, 6, UVAR) /* XT_THREAD_ID of the thread in backward(); 0: uncertain */ \
	X(K, CALLER_STACK, caller_stack, 7, UVAR) /* XT_STACK_ID: Python frames; 0: unknown */

#define XT_STREAM_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, DEVICE, device, 2, UVAR) \
	X(K, CONTEXT, context, 3, UVAR) /* CUPTI's context id */ \
	X(K, STREAM, stream, 4, UVAR) /* CUPTI's stream id */

#define XT_SHAPE_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, NAME, name, 2, UVAR) /* XT_STRING_ID, the mangled kernel name */ \
	X(K, GRID_X, grid_x, 3, UVAR) \
	X(K, GRID_Y, grid_y, 4, UVAR) \
	X(K, GRID_Z, grid_z, 5, UVAR) \
	X(K, BLOCK_X, block_x, 6, UVAR) \
	X(K, BLOCK_Y, block_y, 7, UVAR) \
	X(K, BLOCK_Z, block_z, 8, UVAR) \
	X(K, STATIC_SHARED_BYTES, static_shared_bytes, 9, UVAR) \
	X(K, DYNAMIC_SHARED_BYTES, dynamic_shared_bytes, 10, UVAR) \
	X(K, REGISTERS, registers, 11, UVAR) /* per thread */

/* The columns that kernels, copies and memsets have in common. */
#define XT_WORK_COLUMNS(X, K) \
	X(K, CORRELATION, correlation, 1, DELTA) \
	X(K, STREAM, stream, 2, UVAR) /* XT_STREAM_ID */ \
	X(K, START_NS, start_ns, 4, DELTA_SHUFFLE) \
	X(K, DURATION_NS, duration_ns, 5, SHUFFLE) \
	X(K, GRAPH_NODE, graph_node, 6, DELTA) /* CUPTI's graph node id, 0 outside graphs */

#define XT_KERNEL_COLUMNS(X, K) \
	XT_WORK_COLUMNS(X, K) \
	X(K, SHAPE, shape, 3, UVAR) /* XT_SHAPE_ID */

#define XT_COPY_SHAPE_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, KIND, kind, 2, UVAR) /* CUPTI's copy kind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP, … */ \
	X(K, SOURCE, source, 3, UVAR) /* CUPTI's memory kind: 1 pageable, 2 pinned, 3 device, … */ \
	X(K, DESTINATION, destination, 4, UVAR) /* the same */ \
	X(K, ASYNC, async, 5, UVAR) /* 1: the call did not wait for it */ \
	X(K, FROM_DEVICE, from_device, 6, UVAR) /* between devices: device + 1; else 0 */ \
	X(K, TO_DEVICE, to_device, 7, UVAR)

#define XT_COPY_COLUMNS(X, K) \
	XT_WORK_COLUMNS(X, K) \
	X(K, SHAPE, shape, 3, UVAR) /* XT_COPY_SHAPE_ID */ \
	X(K, BYTES, bytes, 7, UVAR)

#define XT_SET_COLUMNS(X, K) \
	XT_WORK_COLUMNS(X, K) \
	X(K, MEMORY, memory, 3, UVAR) /* CUPTI's memory kind */ \
	X(K, BYTES, bytes, 7, UVAR)

#define XT_GRAPH_NODE_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* CUPTI's id; may be reused by a later node */ \
	X(K, ORIGIN, origin, 2, DELTA) /* the node it was cloned from; 0: none */ \
	X(K, STACK, stack, 3, UVAR) /* XT_STACK_ID of the call that created it; 0 for clones */ \
	X(K, TIME_NS, time_ns, 4, DELTA_SHUFFLE) \
	X(K, TYPE, type, 5, UVAR) /* CUgraphNodeType: 0 kernel, 1 copy, 2 memset, … */ \
	X(K, THREAD, thread, 6, UVAR) \
	X(K, SEQUENCE, sequence, 7, DELTA) /* from here on as in CALL */ \
	X(K, AUTOGRAD, autograd, 8, UVAR) \
	X(K, NODE_SEQUENCE, node_sequence, 9, DELTA)

#define XT_GRAPH_UPDATE_COLUMNS(X, K) \
	X(K, NODE, node, 1, DELTA) /* of the graph that the executable graph was created from */ \
	X(K, EXEC, exec, 2, UVAR) /* CUPTI's id of the executable graph */ \
	X(K, STACK, stack, 3, UVAR) /* XT_STACK_ID of the call that changed it */ \
	X(K, TIME_NS, time_ns, 4, DELTA) \
	X(K, THREAD, thread, 5, UVAR) \
	X(K, GRAPH, graph, 6, UVAR) /* CUPTI's id of the graph that it now matches; */ \
				    /* 0: one node changed */

#define XT_GRAPH_NODE_NAME_COLUMNS(X, K) \
	X(K, NODE, node, 1, DELTA) /* XT_GRAPH_NODE_ID */ \
	X(K, TIME_NS, time_ns, 2, DELTA_SHUFFLE) /* after the creation of the node */ \
	X(K, STRING, string, 3, UVAR) /* XT_STRING_ID */

#define XT_SWITCH_COLUMNS(X, K) \
	X(K, TIME_NS, time_ns, 1, DELTA) \
	X(K, IS_ON, is_on, 2, UVAR) /* 1: resumed, 0: paused */ \
	X(K, WHY, why, 3, UVAR) /* enum xt_switch_why */ \
	X(K, WHO, who, 4, BYTES) /* the tool that took CUPTI */

#define XT_STACK_RATE_COLUMNS(X, K) \
	X(K, TIME_NS, time_ns, 1, DELTA) \
	X(K, ONE_IN, one_in, 2, UVAR) /* 1: all */

#define XT_MEMORY_COLUMNS(X, K) \
	X(K, CORRELATION, correlation, 1, DELTA) /* of the call */ \
	X(K, OPERATION, operation, 2, UVAR) /* enum xt_memory_operation */ \
	X(K, ADDRESS, address, 3, DELTA) \
	X(K, BYTES, bytes, 4, UVAR) \
	X(K, TIME_NS, time_ns, 5, DELTA_SHUFFLE) \
	X(K, DEVICE, device, 6, UVAR) \
	X(K, KIND, kind, 7, UVAR) /* CUPTI's memory kind */

#define XT_RANGE_COLUMNS(X, K) \
	X(K, OPERATION, operation, 1, UVAR) /* enum xt_range_operation */ \
	X(K, THREAD, thread, 2, UVAR) /* XT_THREAD_ID */ \
	X(K, TIME_NS, time_ns, 3, DELTA_SHUFFLE) \
	X(K, DOMAIN, domain, 4, UVAR) /* XT_STRING_ID; 0: the default domain */ \
	X(K, TEXT, text, 5, UVAR) /* XT_STRING_ID of the message */ \
	X(K, KEY, key, 6, DELTA) /* matches START and END */ \
	X(K, STACK, stack, 7, UVAR) /* XT_STACK_ID of the call */ \
	X(K, CATEGORY, category, 8, UVAR) \
	X(K, PAYLOAD, payload, 9, UVAR) /* 64 bits, of the type in column 10 */ \
	X(K, PAYLOAD_TYPE, payload_type, 10, UVAR) /* NVTX's type: 0 none, 1 u64, 2 s64, … */ \
	X(K, COLOR, color, 11, UVAR) /* ARGB; 0: none */ \
	X(K, VALUES, values, 12, UVAR) /* XT_STRING_ID: lines "name=value"; 0: none */

#define XT_SYMBOL_COLUMNS(X, K) \
	X(K, MODULE, module, 1, UVAR) /* XT_MODULE_ID; 0: JIT code, in no module */ \
	X(K, START, start, 2, DELTA) /* ELF virtual address; without a module, the address */ \
	X(K, BYTES, bytes, 3, UVAR) \
	X(K, NAME, name, 4, BYTES) /* mangled */

#define XT_PYTHON_FRAME_COLUMNS(X, K) \
	X(K, ID, id, 1, DELTA) /* from 1 */ \
	X(K, NAME, name, 2, UVAR) /* XT_STRING_ID: the function's qualified name */ \
	X(K, FILE, file, 3, UVAR) /* XT_STRING_ID: as in the code object */ \
	X(K, LINE, line, 4, UVAR) /* 0: none */ \
	X(K, FIRST_LINE, first_line, 5, UVAR)

/* The rows of one address are adjacent, innermost first. The last is the SYMBOL's own. */
#define XT_SOURCE_COLUMNS(X, K) \
	X(K, MODULE, module, 1, UVAR) /* XT_MODULE_ID */ \
	X(K, ADDRESS, address, 2, DELTA) /* ELF virtual; of a return address, the one before */ \
	X(K, FUNCTION, function, 3, BYTES) /* mangled */ \
	X(K, FILE, file, 4, BYTES) \
	X(K, LINE, line, 5, UVAR) /* 0: unknown */

/*
 * The rows of one Python frame are adjacent. Each source trace lists its lines outermost first. A
 * row without a trace names the source nodes instead, if the lines are unknown.
 */
#define XT_COMPILED_COLUMNS(X, K) \
	X(K, FRAME, frame, 1, DELTA) /* XT_PYTHON_FRAME_ID: a line of generated code */ \
	X(K, TRACE, trace, 2, UVAR) /* number of the source trace, from 1; 0: none */ \
	X(K, FUNCTION, function, 3, BYTES) /* without a trace, the names of the source nodes */ \
	X(K, FILE, file, 4, BYTES) \
	X(K, LINE, line, 5, UVAR) /* 0: unknown */

/* One row represents consecutive observations of a thread in the same state and stack. */
#define XT_CPU_SAMPLE_COLUMNS(X, K) \
	X(K, TIME_NS, time_ns, 1, DELTA_SHUFFLE) /* the first observation */ \
	X(K, SPAN_NS, span_ns, 2, UVAR) /* from the first to the last; 0: only one */ \
	X(K, THREAD, thread, 3, UVAR) /* XT_THREAD_ID */ \
	X(K, STATE, state, 4, UVAR) /* enum xt_cpu_state */ \
	X(K, STACK, stack, 5, UVAR) /* XT_STACK_ID; 0: unknown */ \
	X(K, WEIGHT_NS, weight_ns, 6, SHUFFLE) /* time of the thread that the row represents */ \
	X(K, COUNT, count, 7, UVAR) /* observations */ \
	X(K, WAIT_PID, wait_pid, 8, UVAR) /* process of the thread that it waits for; 0: unknown */ \
	X(K, WAIT_TID, wait_tid, 9, UVAR) \
	X(K, FLAGS, flags, 10, UVAR) /* enum xt_cpu_flag */

/* clang-format on */

#endif
