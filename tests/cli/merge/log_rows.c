/* SPDX-License-Identifier: Apache-2.0 */
#include "log_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *path;
	uint64_t start;
	uint64_t load_ns;
	uint64_t unload_ns;
} modules[] = {
	[CHAT] = {"/opt/chat/chat", 0x10000000, START_NS, 0},
	[CUDART] = {"/opt/chat/lib/libcudart.so.12", 0x20000000, START_NS, 0},
	[CUDA] = {"/usr/lib/libcuda.so.1", 0x30000000, START_NS, 0},
	[LIBC] = {"/usr/lib/libc.so.6", 0x40000000, START_NS, 0},
	[PLUGIN_OLD] = {"/opt/chat/old.so", 0x50000000, START_NS + 10 * MS, START_NS + 20 * MS},
	[PLUGIN_NEW] = {"/opt/chat/new.so", 0x50000000, START_NS + 20 * MS, 0},
};
#define MODULE_BYTES 0x100000

static const struct {
	enum module_id module;
	uint64_t start;
	const char *name;
} functions[] = {
	[MAIN] = {CHAT, 0x1000, "main"},
	[FORWARD] = {CHAT, 0x1100, "_ZN4chat5Model7forwardEPKfi"},
	[ATTENTION] = {CHAT, 0x1200, "_ZN4chat9attentionILi8EEEvRKNS_5ModelE.constprop.0"},
	[WORKER] = {CHAT, 0x1300, "_ZN4chat6workerEPv"},
	[START] = {CHAT, 0x1400, "_start"},
	[STUB] = {CHAT, 0x1500, "_Z34__device_stub__Z13matmul_kernelPfPf"},
	[HOSTILE] = {CHAT, 0x1600, "a;b\n\x1b[2Jc\"\\\xff\t d"},
	[LOST] = {CHAT, 0x1f00, NULL},
	[CUDA_LAUNCH] = {CUDART, 0x1000, "cudaLaunchKernel_ptsz"},
	[CUDA_INTERNAL] = {CUDART, 0x1100, NULL},
	[CUDA_GRAPH] = {CUDART, 0x1200, "__cudaGraphLaunch_v13000"},
	[CU_INTERNAL] = {CUDA, 0x1000, NULL},
	[LIBC_CALL_MAIN] = {LIBC, 0x1000, NULL},
	[LIBC_CLONE] = {LIBC, 0x1100, "clone3"},
	[PLUGIN_OLD_RUN] = {PLUGIN_OLD, 0x1000, "old_run"},
	[PLUGIN_NEW_RUN] = {PLUGIN_NEW, 0x1000, "new_run"},
	[NOWHERE] = {0, 0x123, NULL},
};
#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

uint64_t noise(struct log *log, uint64_t below)
{
	log->noise ^= log->noise << 13;
	log->noise ^= log->noise >> 7;
	log->noise ^= log->noise << 17;
	return log->noise & (below - 1);
}

void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "make_log: %s\n", strerror(-error));
	exit(1);
}

void flush_kind(struct log *log, enum xt_kind kind)
{
	log->row_counts[kind] += log->tables[kind].row_count;
	must(xt_writer_add(log->writer, &log->tables[kind]));
	must(xt_writer_flush(log->writer));
}

struct xt_table *row(struct log *log, enum xt_kind kind)
{
	if (!xt_table_has_room(&log->tables[kind], 4096))
		flush_kind(log, kind);
	return &log->tables[kind];
}

void put_text(struct xt_table *table, unsigned column, const char *text)
{
	xt_table_put_bytes(table, column, text, strlen(text));
}

void put_meta(struct log *log, const char *key, const char *value)
{
	struct xt_table *table = row(log, XT_KIND_META);

	put_text(table, XT_META_KEY, key);
	put_text(table, XT_META_VALUE, value);
	xt_table_end_row(table);
}

void put_account(struct log *log, const char *name, uint64_t value)
{
	struct xt_table *table = row(log, XT_KIND_ACCOUNT);

	log->has_own_account |= !strcmp(name, "calls.seen") || !strcmp(name, "calls.written");
	if (!strncmp(name, "calls.lost.", 11))
		log->lost_calls += value;
	put_text(table, XT_ACCOUNT_NAME, name);
	xt_table_put(table, XT_ACCOUNT_VALUE, value);
	xt_table_end_row(table);
}

void put_switch(struct log *log, uint64_t time_ns, bool is_on, uint64_t why)
{
	struct xt_table *table = row(log, XT_KIND_SWITCH);

	xt_table_put(table, XT_SWITCH_TIME_NS, START_NS + time_ns);
	xt_table_put(table, XT_SWITCH_IS_ON, is_on);
	xt_table_put(table, XT_SWITCH_WHY, why);
	put_text(table, XT_SWITCH_WHO, "");
	xt_table_end_row(table);
}

void put_thread(struct log *log, uint64_t id, uint64_t tid, const char *name)
{
	struct xt_table *table = row(log, XT_KIND_THREAD);

	xt_table_put(table, XT_THREAD_ID, id);
	xt_table_put(table, XT_THREAD_TID, tid);
	put_text(table, XT_THREAD_NAME, name);
	xt_table_put(table, XT_THREAD_START_NS, START_NS);
	xt_table_end_row(table);
}

void put_api(struct log *log, uint64_t id, const char *name, uint64_t class)
{
	struct xt_table *table = row(log, XT_KIND_API);

	xt_table_put(table, XT_API_ID, id);
	put_text(table, XT_API_NAME, name);
	xt_table_put(table, XT_API_CLASS, class);
	xt_table_end_row(table);
}

void put_stream(struct log *log, uint64_t id, uint64_t device, uint64_t context, uint64_t stream)
{
	struct xt_table *table = row(log, XT_KIND_STREAM);

	xt_table_put(table, XT_STREAM_ID, id);
	xt_table_put(table, XT_STREAM_DEVICE, device);
	xt_table_put(table, XT_STREAM_CONTEXT, context);
	xt_table_put(table, XT_STREAM_STREAM, stream);
	xt_table_end_row(table);
}

void put_string(struct log *log, uint64_t id, const char *text)
{
	struct xt_table *table = row(log, XT_KIND_STRING);

	xt_table_put(table, XT_STRING_ID, id);
	put_text(table, XT_STRING_TEXT, text);
	xt_table_end_row(table);
}

void put_shape(struct log *log, uint64_t id, const char *name, uint64_t grid)
{
	struct xt_table *table = row(log, XT_KIND_SHAPE);

	put_string(log, id, name);
	xt_table_put(table, XT_SHAPE_ID, id);
	xt_table_put(table, XT_SHAPE_NAME, id);
	xt_table_put(table, XT_SHAPE_GRID_X, grid);
	xt_table_put(table, XT_SHAPE_GRID_Y, 2);
	xt_table_put(table, XT_SHAPE_GRID_Z, 1);
	xt_table_put(table, XT_SHAPE_BLOCK_X, 256);
	xt_table_put(table, XT_SHAPE_BLOCK_Y, 1);
	xt_table_put(table, XT_SHAPE_BLOCK_Z, 1);
	xt_table_put(table, XT_SHAPE_STATIC_SHARED_BYTES, 1024);
	xt_table_put(table, XT_SHAPE_DYNAMIC_SHARED_BYTES, 512);
	xt_table_put(table, XT_SHAPE_REGISTERS, 32);
	xt_table_end_row(table);
}

void put_stack(struct log *log, uint64_t id, uint64_t flags, uint64_t seen_ns, const int *frames)
{
	struct xt_table *table = row(log, XT_KIND_STACK);
	uint64_t values[64];
	size_t count = 0;

	for (; frames[count] >= 0; count++)
		values[count] = modules[functions[frames[count]].module].start +
				functions[frames[count]].start + 0x10;
	xt_table_put(table, XT_STACK_ID, id);
	xt_table_put(table, XT_STACK_FLAGS, flags);
	xt_table_put(table, XT_STACK_SEEN_NS, seen_ns);
	xt_table_put_list(table, XT_STACK_FRAMES, values, count);
	xt_table_end_row(table);
}

void put_call(struct log *log, uint64_t thread, uint64_t api, uint64_t stack, uint64_t result)
{
	struct xt_table *table = row(log, XT_KIND_CALL);

	xt_table_put(table, XT_CALL_THREAD, thread);
	xt_table_put(table, XT_CALL_API, api);
	xt_table_put(table, XT_CALL_CORRELATION, ++log->correlation);
	xt_table_put(table, XT_CALL_STACK, stack);
	xt_table_put(table, XT_CALL_ENTER_NS, log->now_ns += 10000 + noise(log, 4096));
	xt_table_put(table, XT_CALL_DURATION_NS, 2500 + noise(log, 1024));
	xt_table_put(table, XT_CALL_RESULT, result);
	xt_table_end_row(table);
}

void put_kernel(struct log *log, uint64_t correlation, uint64_t stream, uint64_t shape,
		uint64_t start_ns, uint64_t duration_ns, uint64_t graph_node)
{
	struct xt_table *table = row(log, XT_KIND_KERNEL);

	xt_table_put(table, XT_KERNEL_CORRELATION, correlation);
	xt_table_put(table, XT_KERNEL_STREAM, stream);
	xt_table_put(table, XT_KERNEL_SHAPE, shape);
	xt_table_put(table, XT_KERNEL_START_NS, start_ns);
	xt_table_put(table, XT_KERNEL_DURATION_NS, duration_ns);
	xt_table_put(table, XT_KERNEL_GRAPH_NODE, graph_node);
	xt_table_end_row(table);
}

void launch(struct log *log, uint64_t thread, uint64_t stack, uint64_t stream, uint64_t shape,
	    uint64_t duration_ns)
{
	uint64_t *free_ns = &log->free_ns[stream % 9], start_ns;

	put_call(log, thread, API_LAUNCH, stack, 0);
	start_ns = log->now_ns + 5000 > *free_ns ? log->now_ns + 5000 : *free_ns;
	*free_ns = start_ns + duration_ns;
	put_kernel(log, log->correlation, stream, shape, start_ns, duration_ns, 0);
}

static void put_modules(struct log *log)
{
	for (uint64_t m = 1; m < MODULE_COUNT; m++) {
		struct xt_table *table = row(log, XT_KIND_MODULE);

		xt_table_put(table, XT_MODULE_ID, m);
		xt_table_put(table, XT_MODULE_LOAD_NS, modules[m].load_ns);
		xt_table_put(table, XT_MODULE_START, modules[m].start);
		xt_table_put(table, XT_MODULE_END, modules[m].start + MODULE_BYTES);
		xt_table_put(table, XT_MODULE_BIAS, modules[m].start);
		put_text(table, XT_MODULE_PATH, modules[m].path);
		xt_table_end_row(table);
		if (!modules[m].unload_ns)
			continue;
		table = row(log, XT_KIND_MODULE_UNLOAD);
		xt_table_put(table, XT_MODULE_UNLOAD_ID, m);
		xt_table_put(table, XT_MODULE_UNLOAD_NS, modules[m].unload_ns);
		xt_table_end_row(table);
	}
}

void put_symbol(struct log *log, uint64_t module, uint64_t start, const char *name)
{
	struct xt_table *table = row(log, XT_KIND_SYMBOL);

	xt_table_put(table, XT_SYMBOL_MODULE, module);
	xt_table_put(table, XT_SYMBOL_START, start);
	xt_table_put(table, XT_SYMBOL_BYTES, 0x100);
	put_text(table, XT_SYMBOL_NAME, name);
	xt_table_end_row(table);
}

uint64_t known_function(const char *name)
{
	for (size_t f = 0; f < FUNCTION_COUNT; f++)
		if (functions[f].name && !strcmp(functions[f].name, name))
			return modules[functions[f].module].start + functions[f].start;
	return 0;
}

void put_symbols(struct log *log)
{
	for (size_t f = 0; f < FUNCTION_COUNT; f++)
		if (functions[f].name)
			put_symbol(log, functions[f].module, functions[f].start, functions[f].name);
	put_meta(log, "symbols.embedded", "1");
}

uint64_t module_start(enum module_id module)
{
	return modules[module].start;
}

void put_tables(struct log *log)
{
	static const int forward[] = {CU_INTERNAL, CUDA_INTERNAL,  CUDA_LAUNCH, STUB, FORWARD,
				      MAIN,	   LIBC_CALL_MAIN, START,	-1};
	static const int attention[] = {CU_INTERNAL,	CUDA_INTERNAL, CUDA_LAUNCH,
					ATTENTION,	FORWARD,       MAIN,
					LIBC_CALL_MAIN, START,	       -1};
	static const int graph[] = {CU_INTERNAL, CUDA_GRAPH, MAIN, LIBC_CALL_MAIN, START, -1};
	static const int worker[] = {CU_INTERNAL, WORKER, LIBC_CLONE, -1};

	put_modules(log);
	put_api(log, API_LAUNCH, "cuLaunchKernel_ptsz", XT_API_LAUNCH);
	put_api(log, API_GRAPH, "cuGraphLaunch", XT_API_GRAPH_LAUNCH);
	put_stream(log, 1, 0, 1, 7);
	put_shape(log, 1, "_Z13matmul_kernelPfPf", 64);
	put_shape(log, 2, "softmax_kernel", 8);
	put_shape(log, 3, "_Z13matmul_kernelPfPf", 128);
	put_stack(log, STACK_FORWARD, 0, START_NS + MS, forward);
	put_stack(log, STACK_ATTENTION, 0, START_NS + MS, attention);
	put_stack(log, STACK_GRAPH, 0, START_NS + MS, graph);
	put_stack(log, STACK_WORKER, 0, START_NS + MS, worker);
}

void open_log_as(struct log *log, const char *path, struct xt_log_header header,
		 uint32_t row_capacity, size_t content_capacity)
{
	header.clock = XT_CLOCK_MONOTONIC;
	*log = (struct log){.now_ns = header.start_monotonic_ns};
	for (int kind = 1; kind < XT_KIND_COUNT; kind++)
		must(xt_table_init(&log->tables[kind], (enum xt_kind)kind, row_capacity,
				   content_capacity));
	must(xt_writer_create(path, &header, &log->writer));
}

void open_log(struct log *log, const char *path, uint32_t pid, uint64_t start_ns, const char *exe,
	      const char *host)
{
	struct xt_log_header header = {
		.pid = pid,
		.start_monotonic_ns = start_ns,
		.start_realtime_ns = REALTIME_NS + start_ns,
		.log_id = (uint64_t)pid << 32 | xt_check32(path, (uint32_t)strlen(path)),
	};

	open_log_as(log, path, header, TABLE_ROWS, TABLE_CONTENT);
	put_meta(log, "process.exe", exe);
	put_meta(log, "host.name", host);
	put_meta(log, "gpu.0.name", "Test GPU");
	put_thread(log, 1, pid, "chat");
}

/* Flushes definitions before the rows that refer to them. */
void flush_all(struct log *log)
{
	static const enum xt_kind order[] = {
		XT_KIND_META,
		XT_KIND_THREAD,
		XT_KIND_MODULE,
		XT_KIND_API,
		XT_KIND_STREAM,
		XT_KIND_STRING,
		XT_KIND_PYTHON_FRAME,
		XT_KIND_SHAPE,
		XT_KIND_STACK,
		XT_KIND_COPY_SHAPE,
		XT_KIND_GRAPH_NODE,
		XT_KIND_RANGE,
		XT_KIND_CALL,
		XT_KIND_KERNEL,
		XT_KIND_COPY,
		XT_KIND_SET,
		XT_KIND_MEMORY,
		XT_KIND_CLOCK,
		XT_KIND_MODULE_UNLOAD,
		XT_KIND_SYMBOL,
		XT_KIND_ACCOUNT,
		XT_KIND_SWITCH,
		XT_KIND_STACK_RATE,
		XT_KIND_CPU_SAMPLE,
		XT_KIND_GRAPH_NODE_NAME,
	};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		flush_kind(log, order[k]);
}

static void put_accounts(struct log *log)
{
	static const struct {
		const char *name;
		enum xt_kind kind, other_kind;
	} rows[] = {
		{"calls.written", XT_KIND_CALL, 0},
		{"kernels.written", XT_KIND_KERNEL, 0},
		{"copies.written", XT_KIND_COPY, 0},
		{"sets.written", XT_KIND_SET, 0},
		{"memory.written", XT_KIND_MEMORY, 0},
		{"nodes.seen", XT_KIND_GRAPH_NODE, XT_KIND_GRAPH_UPDATE},
		{"ranges.seen", XT_KIND_RANGE, 0},
	};

	put_account(log, "calls.seen", log->row_counts[XT_KIND_CALL] + log->lost_calls);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		put_account(log, rows[r].name,
			    log->row_counts[rows[r].kind] + log->row_counts[rows[r].other_kind]);
	flush_kind(log, XT_KIND_ACCOUNT);
}

void close_log(struct log *log)
{
	flush_all(log);
	if (!log->has_own_account)
		put_accounts(log);
	must(xt_writer_add_end(log->writer));
	must(xt_writer_flush(log->writer));
	xt_writer_close(log->writer);
	for (int kind = 1; kind < XT_KIND_COUNT; kind++)
		xt_table_free(&log->tables[kind]);
}
