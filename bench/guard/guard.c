/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixed work, whose instructions guard.py counts.
 *
 *	guard launch|launch_python|walk|forward|backward|cold|cold_python|ring|encode|decode COUNT
 *
 * - launch: warm launches 35 frames deep, through the callback that CUPTI calls
 * - launch_python: the same below ten Python frames
 * - walk: launches whose stack is unwound, although the stack cache has it
 * - forward, backward: reads of PyTorch's autograd, which a launch inside PyTorch adds
 * - cold, cold_python: launches of several paths in turn, with empty caches before each
 * - ring: records of a call, reserved and committed
 * - encode, decode: rows of calls and of kernels, each in its own chunk
 *
 * Setup is the same for every COUNT, so the difference of two runs is the work alone.
 */
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/interpreter.h"
#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"
#include "inject/capture/torch_capture.h"
#include "inject/torch/torch_runtime.h"
#include "log/base/table.h"
#include "log/write/writer.h"
#include "traced_call.h"
#include "xtrace/reader.h"

/* A stand-in for PyTorch's autograd: just the state that the tracer reads at a launch. */

#define TYPES 30 /* of nodes in a training step */

/* The tracer hashes the address of a type, so a linker's choice would change the count. */
#define VTABLES_ADDRESS UINT64_C(0x200000000)

struct counts {
	void *vtable;
	int32_t shared, weak;
};

/* Has PyTorch's layout: inject/torch/torch_runtime.h. */
struct node {
	const void *vtable;
	struct node *weak_this;
	struct counts *weak_counts;
	uint64_t sequence, topological, has_parent, thread;
	pthread_mutex_t mutex;
	uint64_t edges[3];
};

static const struct {
	void *vtable;
	const char *name;
} type_info = {NULL, "N5torch8autograd9generated14AddmmBackward0E"};
struct vtable {
	const void *type_info;
	void *function;
};
static struct counts counts = {&counts, 1, 1};
static struct node nodes[TYPES];
static _Thread_local struct node *running;
static _Thread_local uint64_t next_number;

static uint64_t peek(void)
{
	return next_number;
}

static void current_node(struct torch_shared_node *result)
{
	*result = (struct torch_shared_node){(uintptr_t)running, running ? (uintptr_t)&counts : 0};
	if (running)
		__atomic_fetch_add(&counts.shared, 1, __ATOMIC_RELAXED);
}

static int graph_task_id(void)
{
	return 7;
}

static uint64_t thread_id(void)
{
	return 1;
}

/* Installs the stand-in. False if out of memory. */
static bool autograd_begin(void)
{
	static const struct torch_runtime runtime = {
		.sequence = peek,
		.current_node = current_node,
		.graph_task_id = graph_task_id,
		.thread_id = thread_id,
		.tls_module = 1, /* exists in every thread */
	};
	struct vtable *vtables =
		mmap((void *)VTABLES_ADDRESS, TYPES * sizeof(*vtables), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (vtables == MAP_FAILED)
		return false;
	for (int t = 0; t < TYPES; t++) {
		vtables[t].type_info = &type_info;
		nodes[t] = (struct node){.vtable = &vtables[t].function,
					 .weak_this = &nodes[t],
					 .weak_counts = &counts,
					 .thread = 1};
	}
	torch_runtime = &runtime;
	return true;
}

/* Makes the next node run, or none. Each launch of a forward pass makes a node. */
static void autograd_next(bool is_backward)
{
	next_number++;
	running = is_backward ? &nodes[next_number % TYPES] : NULL;
	if (running)
		running->sequence = next_number;
}

#define DEPTH	     32 /* without main(), its callers, and the launching function */
#define CHUNK_ROWS   4096u
#define PATHS	     40		/* number of launching paths */
#define OTHERS_BYTES (2u << 20) /* four times the cache that guard.py simulates */

static void fail(const char *what)
{
	fprintf(stderr, "guard: %s\n", what);
	exit(1);
}

static void launch(uint32_t correlation_id)
{
	traced_call(correlation_id);
	ring_free(current_thread_buffer, ring_written(current_thread_buffer));
}

/* Evicts everything from the caches. */
static void use_other_memory(void)
{
	static uint8_t others[OTHERS_BYTES];

	for (uint32_t i = 0; i < OTHERS_BYTES; i += 64)
		others[i]++;
	__asm__ volatile("" ::: "memory");
}

/*
 * Each path has its own depth in bytes, so the stack cache stores a separate native stack for it.
 */
static __attribute__((noinline)) void launch_on_path(uint32_t path, uint32_t correlation_id)
{
	volatile uint8_t *own = alloca(64 + path * 16);

	own[0] = 0;
	launch(correlation_id);
	own[0]++;
}

/* The kind of launches. */
struct launches {
	uint32_t count;
	bool is_cold;	   /* one path after the other, with empty caches */
	bool is_in_python; /* below Python frames */
	bool is_walked;	   /* unwinds each stack */
};

static __attribute__((noinline)) void launch_all(const struct launches *launches)
{
	uint8_t loop[INTERPRETER_LOOP_BYTES] __attribute__((aligned(16)));

	if (launches->is_in_python)
		interpreter_enter(0, loop);
	for (uint32_t i = 1; i <= launches->count; i++) {
		if (!launches->is_cold) {
			launch(i);
			continue;
		}
		if (launches->is_in_python)
			interpreter_enter(i % PATHS, loop);
		use_other_memory();
		launch_on_path(i % PATHS, i);
	}
}

static __attribute__((noinline)) void launch_below(uint32_t depth, const struct launches *launches)
{
	if (depth)
		launch_below(depth - 1, launches);
	else
		launch_all(launches);
	__asm__ volatile("" ::: "memory");
}

static void do_launches(const struct launches *launches)
{
	const uint64_t *counters;
	char why[512];

	if (open_stacks("/nonexistent", why, sizeof(why)))
		fail("libunwind cannot be opened");
	stack_capture_audit_interval = launches->is_walked;
	if (launches->is_in_python && interpreter_begin())
		fail("no memory for an interpreter");
	launch_below(DEPTH, launches);
	counters = current_thread_buffer->ring->counters;
	if (launches->is_walked && counters[XT_RING_STACK_AUDITS] < launches->count - 2)
		fail("stacks are not unwound");
	if (counters[XT_RING_STACK_WALKS] > (launches->is_cold ? PATHS : 2))
		fail("warm launches are walked");
	if (!counters[XT_RING_PYTHON_STACKS] == launches->is_in_python ||
	    counters[XT_RING_PYTHON_UNREADABLE] + counters[XT_RING_PYTHON_UNPLACED])
		fail("unexpected Python frames");
}

static void do_autograd(uint32_t count, bool is_backward)
{
	struct thread_buffer *tb = thread_buffer_claim();
	struct xt_autograd_state state;

	if (!tb)
		fail("no thread buffer");
	if (!autograd_begin())
		fail("no memory for autograd");
	for (uint32_t i = 0; i < count; i++) {
		autograd_next(is_backward);
		if (!torch_capture(tb, &state))
			fail("the state of autograd is not read");
	}
}

static void do_forward(uint32_t count)
{
	do_autograd(count, false);
}

static void do_backward(uint32_t count)
{
	do_autograd(count, true);
}

static void do_ring(uint32_t count)
{
	struct thread_buffer *tb = thread_buffer_claim();

	if (!tb)
		fail("no lane");
	for (uint32_t i = 0; i < count; i++) {
		struct xt_record_call *record = ring_reserve(tb, sizeof(*record));

		if (!record)
			fail("the ring is full");
		record->head.type = XT_RECORD_CALL;
		record->correlation_id = i;
		ring_commit(tb, sizeof(*record));
		ring_free(tb, tb->write_pos);
	}
}

/* Rows with the entropy of a launch loop. */
static void put_rows(struct xt_table *calls, struct xt_table *kernels, uint32_t row_count)
{
	uint64_t random = 1, now_ns = UINT64_C(1000000000000);

	for (uint32_t i = 1; i <= row_count; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		now_ns += 4000 + (random >> 54);
		xt_table_put(calls, XT_CALL_THREAD, 1);
		xt_table_put(calls, XT_CALL_API, i % 30 ? 0x10133 : 0x10116);
		xt_table_put(calls, XT_CALL_CORRELATION, i);
		xt_table_put(calls, XT_CALL_STACK, 1 + i * 7 % 300);
		xt_table_put(calls, XT_CALL_ENTER_NS, now_ns);
		xt_table_put(calls, XT_CALL_DURATION_NS, 2000 + (random >> 44 & 1023));
		xt_table_put(calls, XT_CALL_RESULT, 0);
		xt_table_end_row(calls);
		xt_table_put(kernels, XT_KERNEL_CORRELATION, i);
		xt_table_put(kernels, XT_KERNEL_STREAM, 1 + i % 50 / 49);
		xt_table_put(kernels, XT_KERNEL_SHAPE, 1 + i * 7 % 90);
		xt_table_put(kernels, XT_KERNEL_START_NS, now_ns + 3000 + (random >> 34 & 1023));
		xt_table_put(kernels, XT_KERNEL_DURATION_NS, 32 * (40 + (random >> 28 & 63)));
		xt_table_put(kernels, XT_KERNEL_GRAPH_NODE, 0);
		xt_table_end_row(kernels);
	}
}

static void write_log(const char *path, uint32_t row_count)
{
	struct xt_log_header header = {.pid = 1, .clock = XT_CLOCK_MONOTONIC};
	struct xt_table calls, kernels;
	struct xt_writer *log;
	int rc = xt_writer_create(path, &header, &log);

	if (!rc)
		rc = xt_table_init(&calls, XT_KIND_CALL, CHUNK_ROWS, 0);
	if (!rc)
		rc = xt_table_init(&kernels, XT_KIND_KERNEL, CHUNK_ROWS, 0);
	for (uint32_t done = 0; done < row_count && !rc; done += CHUNK_ROWS) {
		put_rows(&calls, &kernels, CHUNK_ROWS);
		rc = xt_writer_add(log, &calls);
		if (!rc)
			rc = xt_writer_add(log, &kernels);
		if (!rc)
			rc = xt_writer_flush(log);
	}
	if (rc)
		fail(strerror(-rc));
	xt_table_free(&calls);
	xt_table_free(&kernels);
	xt_writer_close(log);
}

static void do_encode(uint32_t count)
{
	char path[] = "guard.encode.XXXXXX";

	if (mkdtemp(path) == NULL || chdir(path))
		fail(strerror(errno));
	write_log("log.xtr", count);
	unlink("log.xtr");
	if (chdir("..") || rmdir(path))
		fail(strerror(errno));
}

/* A different run writes the log. COUNT is the number of reads. */
static void do_decode(uint32_t count)
{
	struct xt_reader *reader;
	uint64_t rows = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct xt_chunk *chunk;

		if (xt_reader_open("guard.decode.xtr", &reader))
			fail("guard.decode.xtr cannot be read");
		while ((chunk = xt_reader_next(reader, 0)))
			rows += xt_chunk_rows(chunk);
		xt_reader_close(reader);
	}
	printf("%llu\n", (unsigned long long)rows);
}

static void make_log(uint32_t count)
{
	unlink("guard.decode.xtr");
	write_log("guard.decode.xtr", count);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*work)(uint32_t count); /* NULL: launches of this kind */
		struct launches launches;
	} parts[] = {{"launch", .launches = {0}},
		     {"launch_python", .launches = {.is_in_python = true}},
		     {"walk", .launches = {.is_walked = true}},
		     {"forward", .work = do_forward},
		     {"backward", .work = do_backward},
		     {"cold", .launches = {.is_cold = true}},
		     {"cold_python", .launches = {.is_cold = true, .is_in_python = true}},
		     {"ring", .work = do_ring},
		     {"encode", .work = do_encode},
		     {"make_log", .work = make_log},
		     {"decode", .work = do_decode}};
	uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

	for (size_t p = 0; p < sizeof(parts) / sizeof(*parts) && count; p++) {
		struct launches launches = parts[p].launches;

		if (strcmp(argv[1], parts[p].name) != 0)
			continue;
		launches.count = count;
		if (parts[p].work)
			parts[p].work(count);
		else
			do_launches(&launches);
		return 0;
	}
	fprintf(stderr,
		"usage: guard "
		"launch|launch_python|walk|forward|backward|cold|cold_python|ring|encode|make_log|"
		"decode COUNT\n");
	return 2;
}
