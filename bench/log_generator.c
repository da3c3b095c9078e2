/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes logs of any length like those of a busy program, for benchmarks of their readers.
 *
 * 	log_generator LOG LAUNCHES [THREADS [STREAMS [SEED [RANK]]]]
 *
 * Each seed is another program. Each rank is another process of the same program.
 *
 * The entropy of a log determines its size and speed, so it matches recordings on an H200
 * (samples/traces). Every thread repeats a step of 500 calls. Each call has its place in the
 * program (one of 400 stacks of 20 to 40 frames), its pace and its kernel. Times jitter by a tenth,
 * with a long tail. Kernel durations depend on the shape, in units of 32 ns with an occasional
 * error of 1.
 *
 * One call in 30 copies, one in 60 allocates or frees, one in 250 replays a graph of 20 kernels.
 * Calls come in bursts of one thread, kernels in buffers, as in the tracer. Prints launches, rows
 * and bytes as JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/write/event_rows.h"
#include "log/write/writer.h"

#define STEP_CALLS    500
#define STACKS	      400
#define SHAPES	      90
#define KERNEL_NAMES  45
#define SYMBOLS	      800
#define SYMBOL_BYTES  256
#define GRAPH_NODES   20
#define THREADS_MAX   64
#define BURST_CALLS   48
#define BUFFER_ROWS   2400
#define ROWS	      (32u << 10)
#define SMALL_ROWS    (8u << 10)
#define START_NS      UINT64_C(1000000000000)
#define CODE_START    UINT64_C(0x7f0000000000)
#define LATENCY_NS    4000
#define API_KERNEL    (1u << 16 | 307)
#define API_GRAPH     (1u << 16 | 514)
#define API_COPY      (1u << 16 | 278)
#define API_ALLOC     (1u << 16 | 243)
#define API_FREE      (1u << 16 | 245)
#define MEMORY_DEVICE 3

enum what { LAUNCH, REPLAY, COPY, ALLOC, FREE };

/* One call of the step. */
struct place {
	enum what what;
	uint32_t stack, shape;
	uint32_t gap_ns, duration_ns, kernel_ns;
};

/* A kernel, copy or memory operation in its thread's buffer. */
struct work {
	enum what what;
	uint32_t shape, stream;
	uint64_t correlation, node, start_ns, duration_ns;
	uint64_t address; /* of memory */
};

struct thread {
	uint64_t now_ns;
	uint64_t address; /* the last allocation, which is freed next; 0: none */
	uint32_t at;	  /* index in the step */
	struct work buffer[BUFFER_ROWS + GRAPH_NODES];
	uint32_t buffered;
};

static struct {
	uint64_t random;
	uint32_t thread_count, stream_count, rank;
	struct place step[STEP_CALLS];
	struct thread *threads;
	uint64_t stream_free_ns[THREADS_MAX];
	uint64_t correlation, launches, rows;
	uint64_t kind_rows[XT_KIND_COUNT];
	uint64_t address; /* of the next allocation */
	struct xt_writer *log;
	struct xt_table tables[XT_KIND_COUNT];
} gen;

static void check(const char *what, int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "log_generator: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static uint64_t next_random(void)
{
	uint64_t z = gen.random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/*
 * Varies the mean by about a tenth: the sum of four even numbers is nearly normal. One in 32 takes
 * up to five times as long.
 */
static uint32_t jitter(uint32_t mean)
{
	uint64_t r = next_random();
	uint64_t sum = (r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24 & 255);
	uint64_t value = mean * (768 + sum / 2) / 1024;

	if ((r >> 32 & 31) == 0)
		value += mean * (r >> 40 & 4095) / 1024;
	return (uint32_t)value;
}

/* Writes all tables in the tracer's order: referenced rows precede references. */
static void write_tables(void)
{
	for (int k = 1; k < XT_KIND_COUNT; k++)
		if (gen.tables[k].row_count)
			check("encoding", xt_writer_add(gen.log, &gen.tables[k]));
}

static struct xt_table *row(enum xt_kind kind)
{
	struct xt_table *table = &gen.tables[kind];

	gen.rows++;
	gen.kind_rows[kind]++;
	if (xt_table_has_room(table, 256))
		return table;
	write_tables();
	if (xt_writer_pending_bytes(gen.log) > 256 << 10)
		check("writing", xt_writer_flush(gen.log));
	return table;
}

static void define_apis(void)
{
	static const struct {
		uint32_t id, class;
		const char *name;
	} apis[] = {{API_KERNEL, XT_API_LAUNCH, "cuLaunchKernel"},
		    {API_GRAPH, XT_API_GRAPH_LAUNCH, "cuGraphLaunch"},
		    {API_COPY, XT_API_COPY, "cuMemcpyHtoDAsync_v2"},
		    {API_ALLOC, XT_API_ALLOC, "cuMemAlloc_v2"},
		    {API_FREE, XT_API_FREE, "cuMemFree_v2"}};

	for (size_t i = 0; i < sizeof(apis) / sizeof(*apis); i++)
		xt_write_api(
			row(XT_KIND_API),
			&(struct xt_row_api){apis[i].id, xt_text(apis[i].name), apis[i].class});
}

static void define_code(void)
{
	char name[64];

	xt_write_module(row(XT_KIND_MODULE),
			&(struct xt_row_module){.id = 1,
						.load_ns = START_NS,
						.start = CODE_START,
						.end = CODE_START + SYMBOLS * SYMBOL_BYTES,
						.bias = CODE_START,
						.path = xt_text("libmade_up.so")});
	for (uint32_t s = 0; s < SYMBOLS; s++) {
		snprintf(name, sizeof(name), "_ZN6module8layer%03u7forwardEi", s);
		xt_write_symbol(
			row(XT_KIND_SYMBOL),
			&(struct xt_row_symbol){1, s * SYMBOL_BYTES, SYMBOL_BYTES, xt_text(name)});
	}
}

static void define_stacks(void)
{
	uint64_t frames[40];

	/* Neighbours share their outer frames, like the calls of one program. */
	for (uint32_t f = 0; f < 40; f++)
		frames[f] = CODE_START + next_random() % (SYMBOLS * SYMBOL_BYTES);
	for (uint32_t s = 1; s <= STACKS; s++) {
		uint32_t count = 20 + (uint32_t)(next_random() % 21);

		for (uint32_t f = 0; f < 1 + next_random() % 12; f++)
			frames[40 - count + f] =
				CODE_START + next_random() % (SYMBOLS * SYMBOL_BYTES);
		xt_write_stack(row(XT_KIND_STACK),
			       &(struct xt_row_stack){.id = s,
						      .seen_ns = START_NS + s * 50000,
						      .frames = {frames + 40 - count, count}});
	}
}

static void define_kernels(void)
{
	char name[96];

	for (uint32_t k = 1; k <= KERNEL_NAMES; k++) {
		snprintf(name, sizeof(name), "_ZN2at6native18elementwise_kernelILi%uELi4EEEvi", k);
		xt_write_string(row(XT_KIND_STRING), &(struct xt_row_string){k, xt_text(name)});
	}
	for (uint32_t s = 1; s <= SHAPES; s++) {
		struct xt_table *table = row(XT_KIND_SHAPE);

		for (unsigned c = XT_SHAPE_GRID_X; c <= XT_SHAPE_REGISTERS; c++)
			xt_table_put(table, c, 1u << next_random() % 8);
		xt_table_put(table, XT_SHAPE_ID, s);
		xt_table_put(table, XT_SHAPE_NAME, 1 + s % KERNEL_NAMES);
		xt_table_end_row(table);
	}
}

static void define_rest(void)
{
	char name[16];

	for (uint32_t t = 1; t <= gen.thread_count; t++) {
		snprintf(name, sizeof(name), "worker %u", t);
		xt_write_thread(row(XT_KIND_THREAD),
				&(struct xt_row_thread){t, 1000 + t, xt_text(name), START_NS});
	}
	for (uint32_t s = 1; s <= gen.stream_count; s++)
		xt_write_stream(row(XT_KIND_STREAM), &(struct xt_row_stream){s, 0, 1, 6 + s});
	for (uint32_t n = 1; n <= GRAPH_NODES; n++)
		xt_write_graph_node(row(XT_KIND_GRAPH_NODE),
				    &(struct xt_row_graph_node){.id = n,
								.stack = 1 + n % STACKS,
								.time_ns = START_NS + n * 1000,
								.thread = 1});
	xt_write_copy_shape(row(XT_KIND_COPY_SHAPE),
			    &(struct xt_row_copy_shape){1, 1, 2, MEMORY_DEVICE, 1, 0, 0});
}

static void plan_step(void)
{
	for (uint32_t i = 0; i < STEP_CALLS; i++)
		gen.step[i] = (struct place){
			.what = i % 250 == 100	? REPLAY
				: i % 30 == 7	? COPY
				: i % 120 == 40 ? ALLOC
				: i % 120 == 80 ? FREE
						: LAUNCH,
			.stack = 1 + (uint32_t)(next_random() % STACKS),
			.shape = 1 + (uint32_t)(next_random() % SHAPES),
			.gap_ns = 3000 + (uint32_t)(next_random() % 6000),
			.duration_ns = 2000 + (uint32_t)(next_random() % 3000),
			.kernel_ns = 32 * (28 + (uint32_t)(next_random() % 320)),
		};
}

static void put_work(const struct work *work)
{
	enum xt_kind kind = work->what == COPY	? XT_KIND_COPY
			    : work->what > COPY ? XT_KIND_MEMORY
						: XT_KIND_KERNEL;
	const struct xt_gpu_work gpu = {
		.kind = kind,
		.correlation_id = (uint32_t)work->correlation,
		.place = {0, MEMORY_DEVICE, work->what == ALLOC ? XT_MEMORY_ALLOC : XT_MEMORY_FREE},
		.start_ns = work->start_ns,
		.end_ns = work->start_ns + work->duration_ns,
		.graph_node_id = work->node,
		.address = work->address,
		.bytes = work->what == COPY ? 4096 * (1 + work->shape % 4) : 1 << 20,
	};

	xt_put_work(row(kind), &gpu, work->stream, work->what == COPY ? 1 : work->shape);
}

/* A complete buffer: its records become rows. */
static void take_buffer(struct thread *thread)
{
	for (uint32_t i = 0; i < thread->buffered; i++)
		put_work(&thread->buffer[i]);
	thread->buffered = 0;
}

/* The work of a call that has just returned. It waits for its stream first. */
static void enqueue(struct thread *thread, const struct place *place, uint32_t stream,
		    uint64_t node)
{
	uint64_t *free_ns = &gen.stream_free_ns[stream];
	uint64_t r = next_random();
	uint64_t start_ns = thread->now_ns + LATENCY_NS + (r & 511);
	uint64_t duration_ns = place->kernel_ns + (r >> 16 & 3) * 32 - 32;

	if (start_ns < *free_ns + 1024)
		start_ns = *free_ns + 1024 + (r >> 24 & 7) * 32;
	if ((r >> 32 & 15) < 3)
		duration_ns += (r >> 36 & 1) ? 1 : (uint64_t)-1;
	*free_ns = start_ns + duration_ns;
	thread->buffer[thread->buffered++] = (struct work){
		.what = place->what,
		.shape = 1 + (place->shape + (uint32_t)node) % SHAPES,
		.stream = 1 + stream,
		.correlation = gen.correlation,
		.node = node,
		.start_ns = start_ns,
		.duration_ns = duration_ns,
		.address = thread->address,
	};
}

static void call(uint32_t index)
{
	static const uint32_t apis[] = {[LAUNCH] = API_KERNEL,
					[REPLAY] = API_GRAPH,
					[COPY] = API_COPY,
					[ALLOC] = API_ALLOC,
					[FREE] = API_FREE};
	struct thread *thread = &gen.threads[index];
	const struct place *place = &gen.step[thread->at];
	/* A thread has its own stream, and occasionally uses the next one. */
	uint32_t stream = (index + (thread->at % 50 == 3)) % gen.stream_count;
	uint32_t duration_ns = jitter(place->duration_ns);

	gen.correlation += 1 + (thread->at % 4 == 0);
	gen.launches += place->what == LAUNCH || place->what == REPLAY;
	xt_write_call(row(XT_KIND_CALL), &(struct xt_row_call){.thread = index + 1,
							       .api = apis[place->what],
							       .correlation = gen.correlation,
							       .stack = place->stack,
							       .enter_ns = thread->now_ns,
							       .duration_ns = duration_ns});
	if (place->what == ALLOC)
		thread->address = gen.address += 1 << 21;
	if (place->what == REPLAY)
		for (uint64_t node = 1; node <= GRAPH_NODES; node++)
			enqueue(thread, place, stream, node);
	else
		enqueue(thread, place, stream, 0);
	if (thread->buffered >= BUFFER_ROWS)
		take_buffer(thread);
	thread->now_ns += duration_ns + jitter(place->gap_ns);
	thread->at = (thread->at + 1) % STEP_CALLS;
}

/* Returns the thread that is furthest behind, so that all advance at the same pace. */
static uint32_t next_thread(void)
{
	uint32_t next = 0;

	for (uint32_t t = 1; t < gen.thread_count; t++)
		if (gen.threads[t].now_ns < gen.threads[next].now_ns)
			next = t;
	return next;
}

static void open_log(const char *path)
{
	/* Another seed or rank gives another process. gen.random is still the seed here. */
	struct xt_log_header header = {.pid = 4710 + (uint32_t)gen.random + gen.rank,
				       .log_id = gen.random + ((uint64_t)gen.rank << 32),
				       .clock = XT_CLOCK_MONOTONIC,
				       .start_monotonic_ns = START_NS};

	unlink(path);
	check(path, xt_writer_create(path, &header, &gen.log));
	for (int kind = 1; kind < XT_KIND_COUNT; kind++) {
		bool is_large = kind == XT_KIND_CALL || kind == XT_KIND_KERNEL;

		if (kind != XT_KIND_END)
			check("tables", xt_table_init(&gen.tables[kind], (enum xt_kind)kind,
						      is_large ? ROWS : SMALL_ROWS, 128 << 10));
	}
}

/* Matches the rows: a log without an account is not complete. */
static void put_account(void)
{
	static const struct {
		const char *name;
		enum xt_kind kind;
	} accounts[] = {
		{"calls.seen", XT_KIND_CALL},	     {"calls.written", XT_KIND_CALL},
		{"kernels.written", XT_KIND_KERNEL}, {"copies.written", XT_KIND_COPY},
		{"sets.written", XT_KIND_SET},	     {"memory.written", XT_KIND_MEMORY},
		{"nodes.seen", XT_KIND_GRAPH_NODE},  {"ranges.seen", XT_KIND_RANGE},
	};

	for (size_t a = 0; a < sizeof(accounts) / sizeof(accounts[0]); a++) {
		uint64_t count = gen.kind_rows[accounts[a].kind];

		xt_write_account(row(XT_KIND_ACCOUNT),
				 &(struct xt_row_account){xt_text(accounts[a].name), count});
	}
}

static void close_log(void)
{
	for (uint32_t t = 0; t < gen.thread_count; t++)
		take_buffer(&gen.threads[t]);
	put_account();
	write_tables();
	for (int k = 1; k < XT_KIND_COUNT; k++)
		xt_table_free(&gen.tables[k]);
	check("writing", xt_writer_add_end(gen.log));
	check("writing", xt_writer_flush(gen.log));
}

static uint64_t number(int argc, char **argv, int index, uint64_t fallback)
{
	return argc > index ? strtoull(argv[index], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
	uint64_t wanted = number(argc, argv, 2, 0);

	gen.thread_count = (uint32_t)number(argc, argv, 3, 4);
	gen.stream_count = (uint32_t)number(argc, argv, 4, 6);
	gen.random = number(argc, argv, 5, 1);
	gen.rank = (uint32_t)number(argc, argv, 6, 0);
	gen.address = CODE_START;
	if (!wanted || !gen.thread_count || gen.thread_count > THREADS_MAX || !gen.stream_count ||
	    gen.stream_count > THREADS_MAX) {
		fprintf(stderr,
			"usage: log_generator LOG LAUNCHES [THREADS [STREAMS [SEED [RANK]]]]\n");
		return 2;
	}
	gen.threads = calloc(gen.thread_count, sizeof(*gen.threads));
	check("memory", gen.threads ? 0 : -ENOMEM);
	open_log(argv[1]);
	define_apis();
	define_code();
	define_stacks();
	define_kernels();
	define_rest();
	plan_step();
	gen.random += gen.rank; /* ranks run the same program, in other times */
	for (uint32_t t = 0; t < gen.thread_count; t++)
		gen.threads[t].now_ns = START_NS + 1000000000 + t * 12345;
	while (gen.launches < wanted) {
		uint32_t thread = next_thread();

		for (int i = 0; i < BURST_CALLS && gen.launches < wanted; i++)
			call(thread);
	}
	close_log();
	printf("{\"launches\": %llu, \"rows\": %llu, \"bytes\": %llu}\n",
	       (unsigned long long)gen.launches, (unsigned long long)gen.rows,
	       (unsigned long long)xt_writer_file_bytes(gen.log));
	xt_writer_close(gen.log);
	free(gen.threads);
	return 0;
}
