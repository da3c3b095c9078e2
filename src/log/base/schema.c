/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of docs/internals/LOG_FORMAT.md as a table.
 *
 * Columns that increase from row to row (ids, times, addresses, correlation ids) are stored as
 * differences. Durations, sizes and references are stored as they are. Times and durations of
 * events, and API ids, are byte-shuffled: their low bytes are noise and their high bytes rarely
 * change.
 */
#include "log/base/table.h"

#define UVAR(text)                                                                                 \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_UVAR                                              \
	}
#define DELTA(text)                                                                                \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_DELTA                                             \
	}
#define TIME(text)                                                                                 \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_DELTA_SHUFFLE                                     \
	}
#define PLANES(text)                                                                               \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_SHUFFLE                                           \
	}
#define BYTES(text)                                                                                \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_BYTES                                             \
	}
#define LIST(text)                                                                                 \
	{                                                                                          \
		.name = text, .encoding = XT_ENC_LIST                                              \
	}

const struct xt_kind_spec xt_kind_specs[XT_KIND_COUNT] =
	{
		[XT_KIND_META] =
			{
				.name = "META",
				.columns =
					{
						[XT_META_KEY] = BYTES("key"),
						[XT_META_VALUE] = BYTES("value"),
					},
			},
		[XT_KIND_ACCOUNT] =
			{
				.name = "ACCOUNT",
				.columns =
					{
						[XT_ACCOUNT_NAME] = BYTES("name"),
						[XT_ACCOUNT_VALUE] = UVAR("value"),
					},
			},
		[XT_KIND_CLOCK] =
			{
				.name = "CLOCK",
				.columns =
					{
						[XT_CLOCK_MONOTONIC_NS] = DELTA("monotonic ns"),
						[XT_CLOCK_REALTIME_NS] = DELTA("realtime ns"),
					},
			},
		[XT_KIND_THREAD] =
			{
				.name = "THREAD",
				.columns =
					{
						[XT_THREAD_ID] = DELTA("id"),
						[XT_THREAD_TID] = DELTA("tid"),
						[XT_THREAD_NAME] = BYTES("name"),
						[XT_THREAD_START_NS] = DELTA("first seen ns"),
					},
			},
		[XT_KIND_MODULE] =
			{
				.name = "MODULE",
				.columns =
					{
						[XT_MODULE_ID] = DELTA("id"),
						[XT_MODULE_LOAD_NS] = DELTA("load time ns"),
						[XT_MODULE_START] = DELTA("start"),
						[XT_MODULE_END] = DELTA("end"),
						[XT_MODULE_BIAS] = DELTA("bias"),
						[XT_MODULE_PATH] = BYTES("path"),
						[XT_MODULE_BUILD_ID] = BYTES("build id"),
					},
			},
		[XT_KIND_MODULE_UNLOAD] =
			{
				.name = "MODULE_UNLOAD",
				.columns =
					{
						[XT_MODULE_UNLOAD_ID] = DELTA("module id"),
						[XT_MODULE_UNLOAD_NS] = DELTA("time ns"),
					},
			},
		[XT_KIND_STRING] =
			{
				.name = "STRING",
				.columns =
					{
						[XT_STRING_ID] = DELTA("id"),
						[XT_STRING_TEXT] = BYTES("text"),
					},
			},
		[XT_KIND_STACK] =
			{
				.name = "STACK",
				.columns =
					{
						[XT_STACK_ID] = DELTA("id"),
						[XT_STACK_FLAGS] = UVAR("flags"),
						[XT_STACK_SEEN_NS] = DELTA("time first seen ns"),
						[XT_STACK_FRAMES] = LIST("frames"),
						[XT_STACK_PYTHON] = LIST("Python frames"),
						[XT_STACK_PLACES] = LIST("places"),
						[XT_STACK_MODULES] = LIST("modules"),
					},
			},
		[XT_KIND_API] =
			{
				.name = "API",
				.columns =
					{
						[XT_API_ID] = DELTA("id"),
						[XT_API_NAME] = BYTES("name"),
						[XT_API_CLASS] = UVAR("class"),
					},
			},
		[XT_KIND_CALL] =
			{
				.name = "CALL",
				.columns =
					{
						[XT_CALL_THREAD] = UVAR("thread id"),
						[XT_CALL_API] = PLANES("API id"),
						[XT_CALL_CORRELATION] = DELTA("correlation id"),
						[XT_CALL_STACK] = UVAR("stack id"),
						[XT_CALL_ENTER_NS] = TIME("enter ns"),
						[XT_CALL_DURATION_NS] = PLANES("duration ns"),
						[XT_CALL_RESULT] = UVAR("result code"),
						[XT_CALL_ONE_IN] = UVAR("one in"),
						[XT_CALL_GRAPH_EXEC] = UVAR("executable graph"),
						[XT_CALL_SEQUENCE] = DELTA("sequence"),
						[XT_CALL_AUTOGRAD] = UVAR("autograd id"),
						[XT_CALL_NODE_SEQUENCE] = DELTA("node sequence"),
					},
			},
		[XT_KIND_STREAM] =
			{
				.name = "STREAM",
				.columns =
					{
						[XT_STREAM_ID] = DELTA("id"),
						[XT_STREAM_DEVICE] = UVAR("device"),
						[XT_STREAM_CONTEXT] = UVAR("context"),
						[XT_STREAM_STREAM] = UVAR("stream"),
					},
			},
		[XT_KIND_SHAPE] =
			{
				.name = "SHAPE",
				.columns =
					{
						[XT_SHAPE_ID] = DELTA("id"),
						[XT_SHAPE_NAME] = UVAR("name"),
						[XT_SHAPE_GRID_X] = UVAR("grid x"),
						[XT_SHAPE_GRID_Y] = UVAR("grid y"),
						[XT_SHAPE_GRID_Z] = UVAR("grid z"),
						[XT_SHAPE_BLOCK_X] = UVAR("block x"),
						[XT_SHAPE_BLOCK_Y] = UVAR("block y"),
						[XT_SHAPE_BLOCK_Z] = UVAR("block z"),
						[XT_SHAPE_STATIC_SHARED_BYTES] =
							UVAR("static shared memory"),
						[XT_SHAPE_DYNAMIC_SHARED_BYTES] =
							UVAR("dynamic shared memory"),
						[XT_SHAPE_REGISTERS] = UVAR("registers a thread"),
					},
			},
		[XT_KIND_KERNEL] =
			{
				.name = "KERNEL",
				.columns =
					{
						[XT_KERNEL_CORRELATION] = DELTA("correlation id"),
						[XT_KERNEL_STREAM] = UVAR("stream id"),
						[XT_KERNEL_SHAPE] = UVAR("shape id"),
						[XT_KERNEL_START_NS] = TIME("start ns"),
						[XT_KERNEL_DURATION_NS] = PLANES("duration ns"),
						[XT_KERNEL_GRAPH_NODE] = DELTA("graph node"),
					},
			},
		[XT_KIND_SYMBOL] =
			{
				.name = "SYMBOL",
				.columns =
					{
						[XT_SYMBOL_MODULE] = UVAR("module id"),
						[XT_SYMBOL_START] = DELTA("start"),
						[XT_SYMBOL_BYTES] = UVAR("bytes"),
						[XT_SYMBOL_NAME] = BYTES("name"),
					},
			},
		[XT_KIND_END] = {.name = "END"},
		[XT_KIND_COPY_SHAPE] =
			{
				.name = "COPY_SHAPE",
				.columns =
					{
						[XT_COPY_SHAPE_ID] = DELTA("id"),
						[XT_COPY_SHAPE_KIND] = UVAR("kind"),
						[XT_COPY_SHAPE_SOURCE] = UVAR("source memory"),
						[XT_COPY_SHAPE_DESTINATION] =
							UVAR("destination memory"),
						[XT_COPY_SHAPE_ASYNC] = UVAR("asynchronous"),
						[XT_COPY_SHAPE_FROM_DEVICE] = UVAR("from device"),
						[XT_COPY_SHAPE_TO_DEVICE] = UVAR("to device"),
					},
			},
		[XT_KIND_COPY] =
			{
				.name = "COPY",
				.columns =
					{
						[XT_COPY_CORRELATION] = DELTA("correlation id"),
						[XT_COPY_STREAM] = UVAR("stream id"),
						[XT_COPY_SHAPE] = UVAR("shape id"),
						[XT_COPY_START_NS] = TIME("start ns"),
						[XT_COPY_DURATION_NS] = PLANES("duration ns"),
						[XT_COPY_GRAPH_NODE] = DELTA("graph node"),
						[XT_COPY_BYTES] = UVAR("bytes"),
					},
			},
		[XT_KIND_SET] =
			{
				.name = "SET",
				.columns =
					{
						[XT_SET_CORRELATION] = DELTA("correlation id"),
						[XT_SET_STREAM] = UVAR("stream id"),
						[XT_SET_MEMORY] = UVAR("memory"),
						[XT_SET_START_NS] = TIME("start ns"),
						[XT_SET_DURATION_NS] = PLANES("duration ns"),
						[XT_SET_GRAPH_NODE] = DELTA("graph node"),
						[XT_SET_BYTES] = UVAR("bytes"),
					},
			},
		[XT_KIND_GRAPH_NODE] =
			{
				.name = "GRAPH_NODE",
				.columns =
					{
						[XT_GRAPH_NODE_ID] = DELTA("id"),
						[XT_GRAPH_NODE_ORIGIN] = DELTA("origin"),
						[XT_GRAPH_NODE_STACK] = UVAR("stack id"),
						[XT_GRAPH_NODE_TIME_NS] = TIME("time ns"),
						[XT_GRAPH_NODE_TYPE] = UVAR("type"),
						[XT_GRAPH_NODE_THREAD] = UVAR("thread id"),
						[XT_GRAPH_NODE_SEQUENCE] = DELTA("sequence"),
						[XT_GRAPH_NODE_AUTOGRAD] = UVAR("autograd id"),
						[XT_GRAPH_NODE_NODE_SEQUENCE] =
							DELTA("node sequence"),
					},
			},
		[XT_KIND_GRAPH_NODE_NAME] =
			{
				.name = "GRAPH_NODE_NAME",
				.columns =
					{
						[XT_GRAPH_NODE_NAME_NODE] = DELTA("node"),
						[XT_GRAPH_NODE_NAME_TIME_NS] = TIME("time ns"),
						[XT_GRAPH_NODE_NAME_STRING] = UVAR("name"),
					},
			},
		[XT_KIND_GRAPH_UPDATE] =
			{
				.name = "GRAPH_UPDATE",
				.columns =
					{
						[XT_GRAPH_UPDATE_NODE] = DELTA("node"),
						[XT_GRAPH_UPDATE_EXEC] = UVAR("executable graph"),
						[XT_GRAPH_UPDATE_STACK] = UVAR("stack id"),
						[XT_GRAPH_UPDATE_TIME_NS] = DELTA("time ns"),
						[XT_GRAPH_UPDATE_THREAD] = UVAR("thread id"),
						[XT_GRAPH_UPDATE_GRAPH] = UVAR("graph"),
					},
			},
		[XT_KIND_AUTOGRAD] =
			{
				.name = "AUTOGRAD",
				.columns =
					{
						[XT_AUTOGRAD_ID] = DELTA("id"),
						[XT_AUTOGRAD_THREAD] = UVAR("thread"),
						[XT_AUTOGRAD_NODE_TYPE] = UVAR("node type"),
						[XT_AUTOGRAD_NODE_CLASS] = UVAR("node class"),
						[XT_AUTOGRAD_NODE_THREAD] = UVAR("node thread"),
						[XT_AUTOGRAD_CALLER] = UVAR("caller"),
						[XT_AUTOGRAD_CALLER_STACK] = UVAR("caller stack"),
					},
			},
		[XT_KIND_SWITCH] =
			{
				.name = "SWITCH",
				.columns =
					{
						[XT_SWITCH_TIME_NS] = DELTA("time ns"),
						[XT_SWITCH_IS_ON] = UVAR("on"),
						[XT_SWITCH_WHY] = UVAR("why"),
						[XT_SWITCH_WHO] = BYTES("who"),
					},
			},
		[XT_KIND_STACK_RATE] =
			{
				.name = "STACK_RATE",
				.columns =
					{
						[XT_STACK_RATE_TIME_NS] = DELTA("time ns"),
						[XT_STACK_RATE_ONE_IN] = UVAR("one in"),
					},
			},
		[XT_KIND_MEMORY] =
			{
				.name = "MEMORY",
				.columns =
					{
						[XT_MEMORY_CORRELATION] = DELTA("correlation id"),
						[XT_MEMORY_OPERATION] = UVAR("operation"),
						[XT_MEMORY_ADDRESS] = DELTA("address"),
						[XT_MEMORY_BYTES] = UVAR("bytes"),
						[XT_MEMORY_TIME_NS] = TIME("time ns"),
						[XT_MEMORY_DEVICE] = UVAR("device"),
						[XT_MEMORY_KIND] = UVAR("memory"),
					},
			},
		[XT_KIND_RANGE] =
			{
				.name = "RANGE",
				.columns =
					{
						[XT_RANGE_OPERATION] = UVAR("operation"),
						[XT_RANGE_THREAD] = UVAR("thread id"),
						[XT_RANGE_TIME_NS] = TIME("time ns"),
						[XT_RANGE_DOMAIN] = UVAR("domain"),
						[XT_RANGE_TEXT] = UVAR("text"),
						[XT_RANGE_KEY] = DELTA("key"),
						[XT_RANGE_STACK] = UVAR("stack id"),
						[XT_RANGE_CATEGORY] = UVAR("category"),
						[XT_RANGE_PAYLOAD] = UVAR("payload"),
						[XT_RANGE_PAYLOAD_TYPE] = UVAR("payload type"),
						[XT_RANGE_COLOR] = UVAR("color"),
						[XT_RANGE_VALUES] = UVAR("values"),
					},
			},
		[XT_KIND_PYTHON_FRAME] =
			{
				.name = "PYTHON_FRAME",
				.columns =
					{
						[XT_PYTHON_FRAME_ID] = DELTA("id"),
						[XT_PYTHON_FRAME_NAME] = UVAR("name"),
						[XT_PYTHON_FRAME_FILE] = UVAR("file"),
						[XT_PYTHON_FRAME_LINE] = UVAR("line"),
						[XT_PYTHON_FRAME_FIRST_LINE] = UVAR("first line"),
					},
			},
		[XT_KIND_SOURCE] =
			{
				.name = "SOURCE",
				.columns =
					{
						[XT_SOURCE_MODULE] = UVAR("module id"),
						[XT_SOURCE_ADDRESS] = DELTA("address"),
						[XT_SOURCE_FUNCTION] = BYTES("function"),
						[XT_SOURCE_FILE] = BYTES("file"),
						[XT_SOURCE_LINE] = UVAR("line"),
					},
			},
		[XT_KIND_COMPILED] =
			{
				.name = "COMPILED",
				.columns =
					{
						[XT_COMPILED_FRAME] = DELTA("Python frame"),
						[XT_COMPILED_TRACE] = UVAR("trace"),
						[XT_COMPILED_FUNCTION] = BYTES("function"),
						[XT_COMPILED_FILE] = BYTES("file"),
						[XT_COMPILED_LINE] = UVAR("line"),
					},
			},
		[XT_KIND_CPU_SAMPLE] =
			{
				.name = "CPU_SAMPLE",
				.columns =
					{
						[XT_CPU_SAMPLE_TIME_NS] = TIME("time ns"),
						[XT_CPU_SAMPLE_SPAN_NS] = UVAR("span ns"),
						[XT_CPU_SAMPLE_THREAD] = UVAR("thread"),
						[XT_CPU_SAMPLE_STATE] = UVAR("state"),
						[XT_CPU_SAMPLE_STACK] = UVAR("stack"),
						[XT_CPU_SAMPLE_WEIGHT_NS] = PLANES("weight ns"),
						[XT_CPU_SAMPLE_COUNT] = UVAR("count"),
						[XT_CPU_SAMPLE_WAIT_PID] = UVAR("waits for pid"),
						[XT_CPU_SAMPLE_WAIT_TID] = UVAR("waits for tid"),
						[XT_CPU_SAMPLE_FLAGS] = UVAR("flags"),
					},
			},
};
