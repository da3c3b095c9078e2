/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the logs that the tests of xtrace-merge read: "make_log SCENARIO FILE [N]"; and damages
 * them: "make_log damage FILE KIND" turns a byte in the first chunk of that kind.
 *
 * The traced program is made up: /opt/chat/chat, whose functions are embedded in the log, so that
 * what is merged from it is the same on every machine. Every run makes the same.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/writer.h"
#include "xtrace/reader.h"

#define START_NS    UINT64_C(5000000000)
#define REALTIME_NS UINT64_C(1700000000000000000)
#define MS	    UINT64_C(1000000)

#define TABLE_ROWS    32768
#define TABLE_CONTENT (1u << 20)

enum { API_LAUNCH = 1 << 16 | 307, API_GRAPH = 1 << 16 | 514, API_RUNTIME = 2 << 16 | 211 };

/* Where the made-up modules are mapped; their ELF addresses begin at 0. */
enum module_id { CHAT = 1, CUDART, CUDA, LIBC, PLUGIN_OLD, PLUGIN_NEW };
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
#define MODULE_COUNT (sizeof(modules) / sizeof(modules[0]))
#define MODULE_BYTES 0x100000

/* Functions of 0x100 bytes each; an address in one is its start + 0x10. */
enum function {
	MAIN,
	FORWARD,
	ATTENTION,
	WORKER,
	START,
	STUB,
	CUDA_LAUNCH,
	CUDA_INTERNAL,
	CUDA_GRAPH,
	CU_INTERNAL,
	LIBC_CALL_MAIN,
	LIBC_CLONE,
	PLUGIN_OLD_RUN,
	PLUGIN_NEW_RUN,
	HOSTILE,
	LOST,	 /* has no name */
	NOWHERE, /* is in no module */
};
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

struct log {
	struct xt_writer *writer;
	struct xt_table tables[XT_KIND_COUNT];
	uint64_t correlation;
	uint64_t now_ns;
	uint64_t noise;	     /* 0: times are round */
	uint64_t free_ns[9]; /* when each stream is through with its last kernel */
};

/* What real times have in their low digits, the same in every run. below: a power of two. */
static uint64_t noise(struct log *log, uint64_t below)
{
	log->noise ^= log->noise << 13;
	log->noise ^= log->noise >> 7;
	log->noise ^= log->noise << 17;
	return log->noise & (below - 1);
}

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "make_log: %s\n", strerror(-error));
	exit(1);
}

static void flush_kind(struct log *log, enum xt_kind kind)
{
	must(xt_writer_add(log->writer, &log->tables[kind]));
	must(xt_writer_flush(log->writer));
}

static struct xt_table *row(struct log *log, enum xt_kind kind)
{
	if (!xt_table_has_room(&log->tables[kind], 4096))
		flush_kind(log, kind);
	return &log->tables[kind];
}

static void put_text(struct xt_table *table, unsigned column, const char *text)
{
	xt_table_put_bytes(table, column, text, strlen(text));
}

static void put_meta(struct log *log, const char *key, const char *value)
{
	struct xt_table *table = row(log, XT_KIND_META);

	put_text(table, XT_META_KEY, key);
	put_text(table, XT_META_VALUE, value);
	xt_table_end_row(table);
}

static void put_account(struct log *log, const char *name, uint64_t value)
{
	struct xt_table *table = row(log, XT_KIND_ACCOUNT);

	put_text(table, XT_ACCOUNT_NAME, name);
	xt_table_put(table, XT_ACCOUNT_VALUE, value);
	xt_table_end_row(table);
}

static void put_thread(struct log *log, uint64_t id, uint64_t tid, const char *name)
{
	struct xt_table *table = row(log, XT_KIND_THREAD);

	xt_table_put(table, XT_THREAD_ID, id);
	xt_table_put(table, XT_THREAD_TID, tid);
	put_text(table, XT_THREAD_NAME, name);
	xt_table_put(table, XT_THREAD_START_NS, START_NS);
	xt_table_end_row(table);
}

static void put_api(struct log *log, uint64_t id, const char *name, uint64_t class)
{
	struct xt_table *table = row(log, XT_KIND_API);

	xt_table_put(table, XT_API_ID, id);
	put_text(table, XT_API_NAME, name);
	xt_table_put(table, XT_API_CLASS, class);
	xt_table_end_row(table);
}

static void put_stream(struct log *log, uint64_t id, uint64_t device, uint64_t context,
		       uint64_t stream)
{
	struct xt_table *table = row(log, XT_KIND_STREAM);

	xt_table_put(table, XT_STREAM_ID, id);
	xt_table_put(table, XT_STREAM_DEVICE, device);
	xt_table_put(table, XT_STREAM_CONTEXT, context);
	xt_table_put(table, XT_STREAM_STREAM, stream);
	xt_table_end_row(table);
}

static void put_shape(struct log *log, uint64_t id, const char *name, uint64_t grid)
{
	struct xt_table *strings = row(log, XT_KIND_STRING), *table = row(log, XT_KIND_SHAPE);

	xt_table_put(strings, XT_STRING_ID, id);
	put_text(strings, XT_STRING_TEXT, name);
	xt_table_end_row(strings);
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

/* frames: innermost first, ended by a negative number. */
static void put_stack(struct log *log, uint64_t id, uint64_t flags, uint64_t seen_ns,
		      const int *frames)
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

static void put_call(struct log *log, uint64_t thread, uint64_t api, uint64_t stack,
		     uint64_t result)
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

static void put_kernel(struct log *log, uint64_t correlation, uint64_t stream, uint64_t shape,
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

/* A call and its kernel, which runs 5 us after the call was entered, or when its stream is free. */
static void launch(struct log *log, uint64_t thread, uint64_t stack, uint64_t stream,
		   uint64_t shape, uint64_t duration_ns)
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

static void put_symbols(struct log *log)
{
	for (size_t f = 0; f < FUNCTION_COUNT; f++) {
		struct xt_table *table = row(log, XT_KIND_SYMBOL);

		if (!functions[f].name)
			continue;
		xt_table_put(table, XT_SYMBOL_MODULE, functions[f].module);
		xt_table_put(table, XT_SYMBOL_START, functions[f].start);
		xt_table_put(table, XT_SYMBOL_BYTES, 0x100);
		put_text(table, XT_SYMBOL_NAME, functions[f].name);
		xt_table_end_row(table);
	}
	put_meta(log, "symbols.embedded", "1");
}

/* Stacks 1 to 4 of every log. */
enum { STACK_FORWARD = 1, STACK_ATTENTION, STACK_GRAPH, STACK_WORKER, STACK_MORE };

static void put_tables(struct log *log)
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

static void open_log(struct log *log, const char *path, uint32_t pid, uint64_t start_ns,
		     const char *exe, const char *host)
{
	struct xt_log_header header = {
		.pid = pid,
		.start_monotonic_ns = start_ns,
		.start_realtime_ns = REALTIME_NS + start_ns,
		.clock = XT_CLOCK_MONOTONIC,
		.log_id = pid,
	};

	*log = (struct log){.now_ns = start_ns};
	for (int kind = 1; kind < XT_KIND_END; kind++)
		must(xt_table_init(&log->tables[kind], (enum xt_kind)kind, TABLE_ROWS,
				   TABLE_CONTENT));
	must(xt_writer_create(path, &header, &log->writer));
	put_meta(log, "process.exe", exe);
	put_meta(log, "host.name", host);
	put_meta(log, "gpu.0.name", "Test GPU");
	put_thread(log, 1, pid, "chat");
}

/* Definitions before what refers to them. */
static void flush_all(struct log *log)
{
	static const enum xt_kind order[] = {
		XT_KIND_META,	XT_KIND_THREAD,	 XT_KIND_MODULE, XT_KIND_API,
		XT_KIND_STREAM, XT_KIND_STRING,	 XT_KIND_SHAPE,	 XT_KIND_STACK,
		XT_KIND_CALL,	XT_KIND_KERNEL,	 XT_KIND_CLOCK,	 XT_KIND_MODULE_UNLOAD,
		XT_KIND_SYMBOL, XT_KIND_ACCOUNT,
	};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		flush_kind(log, order[k]);
}

static void close_log(struct log *log)
{
	flush_all(log);
	must(xt_writer_add_end(log->writer));
	must(xt_writer_flush(log->writer));
	xt_writer_close(log->writer);
	for (int kind = 1; kind < XT_KIND_END; kind++)
		xt_table_free(&log->tables[kind]);
}

static void make_normal(struct log *log, uint64_t n)
{
	(void)n;
	for (int i = 0; i < 3; i++) {
		launch(log, 1, STACK_FORWARD, 1, 1, 1000001);
		launch(log, 1, STACK_ATTENTION, 1, 2, 20000);
		launch(log, 1, STACK_ATTENTION, 1, 3, 345);
	}
}

static void make_threads(struct log *log, uint64_t n)
{
	(void)n;
	put_thread(log, 2, 4322, "loader");
	put_thread(log, 3, 4323, "");
	put_stream(log, 2, 0, 1, 13);
	put_stream(log, 3, 1, 2, 7);
	for (uint64_t i = 0; i < 4; i++) {
		launch(log, 1, STACK_FORWARD, 1, 1, 30000 + i);
		launch(log, 2, STACK_WORKER, 2, 2, 9000);
		launch(log, 3, STACK_WORKER, 3, 2, 100);
	}
}

/* Two replays of a graph whose kernels overlap; in the file, some stand before their call. */
static void make_graph(struct log *log, uint64_t n)
{
	(void)n;
	launch(log, 1, STACK_FORWARD, 1, 1, 4000);
	put_kernel(log, 3, 1, 2, START_NS + 35000, 1000, 78);
	flush_kind(log, XT_KIND_KERNEL);
	for (uint64_t replay = 0; replay < 2; replay++) {
		put_call(log, 1, API_GRAPH, STACK_GRAPH, 0);
		put_kernel(log, log->correlation, 1, 1, log->now_ns + 4000, 7000, 77);
		if (!replay)
			put_kernel(log, log->correlation, 1, 2, log->now_ns + 5000, 1000, 78);
	}
}

/* The second call was lost; the third has a stack that was lost; the fourth has none. */
static void make_lost(struct log *log, uint64_t n)
{
	(void)n;
	launch(log, 1, STACK_FORWARD, 1, 1, 1000);
	put_kernel(log, ++log->correlation, 1, 1, log->now_ns + 20000, 200, 0);
	launch(log, 1, 999, 1, 2, 30);
	launch(log, 1, 0, 1, 2, 4);
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 700);
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
	put_account(log, "calls.lost.ring_full", 1);
	put_account(log, "stacks.lost", 1);
}

static void make_empty(struct log *log, uint64_t n)
{
	(void)log;
	(void)n;
}

static void make_no_kernels(struct log *log, uint64_t n)
{
	(void)n;
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
}

/* Names that would break a format or a terminal; addresses without names; cut and odd stacks. */
static void make_hostile(struct log *log, uint64_t n)
{
	static const int hostile[] = {CU_INTERNAL, HOSTILE, LOST, NOWHERE, MAIN, -1};
	static const int plugin[] = {PLUGIN_OLD_RUN, MAIN, -1};
	static const int none[] = {-1};

	(void)n;
	put_thread(log, 1, 4321, "\"thread\\\n\xc3\x28");
	put_shape(log, 4, "k;\"\\\x01\xe2\x82 1", 1);
	put_shape(log, 5, "", 1);
	put_shape(log, 6, "_ZN5wrongEvvvZZZ", 1);
	put_stack(log, STACK_MORE, 0, START_NS + MS, hostile);
	put_stack(log, STACK_MORE + 1, XT_STACK_TRUNCATED, START_NS + 15 * MS, plugin);
	put_stack(log, STACK_MORE + 2, XT_STACK_TRUNCATED, START_NS + 25 * MS, plugin);
	put_stack(log, STACK_MORE + 3, XT_STACK_TRUNCATED, START_NS + MS, none);
	for (uint64_t i = 0; i < 4; i++)
		launch(log, 1, STACK_MORE + i, 1, 4 + i % 3, 100);
	launch(log, 77, STACK_FORWARD, 55, 66, 5);
	put_call(log, 1, 12345, STACK_MORE, 0);
	put_kernel(log, log->correlation, 1, 1, log->now_ns, UINT32_MAX, 0);
}

/* The build id of this very program, from its notes in memory. */
static int find_build_id(struct dl_phdr_info *info, size_t info_bytes, void *result)
{
	struct xt_bytes *build_id = result;

	(void)info_bytes;
	for (int p = 0; p < info->dlpi_phnum; p++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[p];
		const char *note = (const char *)(info->dlpi_addr + header->p_vaddr);
		const char *end = note + header->p_memsz;

		while (header->p_type == PT_NOTE && note < end) {
			const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)note;
			const char *content = note + sizeof(*n) + ((n->n_namesz + 3) & ~3u);

			if (n->n_type == NT_GNU_BUILD_ID)
				*build_id = (struct xt_bytes){content, n->n_descsz};
			note = content + ((n->n_descsz + 3) & ~3u);
		}
	}
	return 1; /* the program itself comes first: no library is asked for */
}

/* Two launches in a program that exists: this one, in the real functions main() and own_work(). */
__attribute__((noinline)) static void own_work(struct log *log, uint64_t stack)
{
	launch(log, 1, stack, 1, 1, 1234);
}

int main(int argc, char **argv);

static void make_own(struct log *log, uint64_t n)
{
	uint64_t frames[] = {(uint64_t)(uintptr_t)own_work + 1, (uint64_t)(uintptr_t)main + 1};
	extern const char __executable_start[], _end[];
	struct xt_bytes build_id = {NULL, 0};
	struct xt_table *table = row(log, XT_KIND_MODULE);
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

	(void)n;
	dl_iterate_phdr(find_build_id, &build_id);
	must(length < 0 ? -errno : 0);
	xt_table_put(table, XT_MODULE_ID, MODULE_COUNT);
	xt_table_put(table, XT_MODULE_LOAD_NS, START_NS);
	xt_table_put(table, XT_MODULE_START, (uint64_t)(uintptr_t)__executable_start);
	xt_table_put(table, XT_MODULE_END, (uint64_t)(uintptr_t)_end);
	xt_table_put(table, XT_MODULE_BIAS, (uint64_t)(uintptr_t)__executable_start);
	xt_table_put_bytes(table, XT_MODULE_PATH, path, (size_t)length);
	xt_table_put_bytes(table, XT_MODULE_BUILD_ID, build_id.data, build_id.length);
	xt_table_end_row(table);
	table = row(log, XT_KIND_STACK);
	xt_table_put(table, XT_STACK_ID, STACK_MORE);
	xt_table_put(table, XT_STACK_FLAGS, 0);
	xt_table_put(table, XT_STACK_SEEN_NS, START_NS + 1);
	xt_table_put_list(table, XT_STACK_FRAMES, frames, 2);
	xt_table_end_row(table);
	own_work(log, STACK_MORE);
	own_work(log, STACK_MORE);
}

/* n launches by four threads on eight streams, the kernels of a batch behind its calls. */
static void make_bench(struct log *log, uint64_t n)
{
	for (uint64_t t = 2; t <= 4; t++)
		put_thread(log, t, 4320 + t, "worker");
	for (uint64_t s = 2; s <= 8; s++)
		put_stream(log, s, 0, 1, s + 12);
	flush_all(log);
	log->noise = 1;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t thread = noise(log, 4) + 1;

		if (i && i % 16384 == 0) {
			flush_kind(log, XT_KIND_CALL);
			flush_kind(log, XT_KIND_KERNEL);
		}
		launch(log, thread, i % 7 % 4 + 1, thread * 2 - i % 2, i % 3 + 1,
		       2000 + noise(log, 2048));
	}
}

/* n calls whose kernels are missing, n kernels whose calls are missing, n graph launches. */
static void make_bench_calls(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++)
		put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
}

static void make_bench_kernels(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++)
		put_kernel(log, ++log->correlation, 1, 1, log->now_ns += 10000, 2000, 0);
}

static void make_bench_graphs(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++) {
		put_call(log, 1, API_GRAPH, STACK_GRAPH, 0);
		for (uint64_t k = 0; k < 2; k++)
			put_kernel(log, log->correlation, 1, 1, log->now_ns += 3000, 2000, 7 + k);
	}
}

static const struct scenario {
	const char *name;
	void (*make)(struct log *log, uint64_t n);
	uint32_t pid;
	uint64_t start_ns;
	const char *exe;
	const char *host;
	bool embedded;
} scenarios[] = {
	{"normal", make_normal, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"unnamed", make_normal, 4321, START_NS, "/opt/chat/chat", "one", false},
	{"second", make_normal, 5432, START_NS + 500, "/opt/chat/other;worker", "one", true},
	{"far", make_normal, 4321, START_NS / 2, "/opt/chat/chat", "two", true},
	{"own", make_own, 4321, START_NS, "/opt/chat/chat", "one", false},
	{"threads", make_threads, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"graph", make_graph, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"lost", make_lost, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"empty", make_empty, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"no_kernels", make_no_kernels, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"hostile", make_hostile, 4321, START_NS, "/opt/chat/ch\nat", "one", true},
	{"bench", make_bench, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_calls", make_bench_calls, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_kernels", make_bench_kernels, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_graphs", make_bench_graphs, 4321, START_NS, "/opt/chat/chat", "one", true},
};

static int damage(const char *path, unsigned long kind)
{
	struct xt_chunk_header header;
	FILE *file = fopen(path, "r+b");
	int result = 1;

	if (!file || fseek(file, sizeof(struct xt_log_header), SEEK_SET))
		return 1;
	while (result && fread(&header, sizeof(header), 1, file) == 1) {
		if (header.kind == kind) {
			uint8_t last;

			fseek(file, (long)header.stored_bytes - 1, SEEK_CUR);
			result = fread(&last, 1, 1, file) != 1;
			last ^= 0xff;
			fseek(file, -1, SEEK_CUR);
			fwrite(&last, 1, 1, file);
		}
		fseek(file, (long)header.stored_bytes, SEEK_CUR);
	}
	return fclose(file) ? 1 : result;
}

int main(int argc, char **argv)
{
	const struct scenario *scenario = NULL;
	struct log log;

	if (argc == 4 && !strcmp(argv[1], "damage"))
		return damage(argv[2], strtoul(argv[3], NULL, 10));
	for (size_t s = 0; argc >= 3 && s < sizeof(scenarios) / sizeof(scenarios[0]); s++)
		if (!strcmp(scenarios[s].name, argv[1]))
			scenario = &scenarios[s];
	if (!scenario) {
		fprintf(stderr, "usage: make_log SCENARIO FILE [N] | damage FILE KIND\n");
		return 2;
	}
	open_log(&log, argv[2], scenario->pid, scenario->start_ns, scenario->exe, scenario->host);
	put_tables(&log);
	scenario->make(&log, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	if (scenario->embedded)
		put_symbols(&log);
	close_log(&log);
	return 0;
}
