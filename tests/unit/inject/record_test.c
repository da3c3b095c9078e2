/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how rings and activity buffers become rows of the log. The test runs the writer's functions
 * and acts as CUPTI.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/process.h"
#include "inject/writer/record.h"
#include "support.h"

static char folder[PATH_MAX], path[PATH_MAX + 16];
static struct recorder rec;
static _Thread_local volatile int sink;

static const struct {
	uint32_t kind;
	size_t bytes;
} record_sizes[] = {
	{XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL, sizeof(struct cupti_activity_kernel)},
	{XT_CUPTI_ACTIVITY_KERNEL, sizeof(struct cupti_activity_kernel)},
	{XT_CUPTI_ACTIVITY_MEMCPY, sizeof(struct cupti_activity_memcpy)},
	{XT_CUPTI_ACTIVITY_MEMCPY2, sizeof(struct cupti_activity_memcpy_peer)},
	{XT_CUPTI_ACTIVITY_MEMSET, sizeof(struct cupti_activity_memset)},
	{XT_CUPTI_ACTIVITY_MEMORY2, sizeof(struct cupti_activity_memory)},
	{XT_CUPTI_ACTIVITY_OVERHEAD, 64},
};

static size_t size_of(uint32_t kind)
{
	for (size_t i = 0; i < sizeof(record_sizes) / sizeof(*record_sizes); i++)
		if (record_sizes[i].kind == kind)
			return record_sizes[i].bytes;
	return 0;
}

static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : buffer;

	if (next == buffer + valid_bytes)
		return XT_CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (struct cupti_activity *)next;
	return XT_CUPTI_SUCCESS;
}

static uint32_t node_id_of(void *node, uint64_t *id)
{
	*id = (uint64_t)node;
	return XT_CUPTI_SUCCESS;
}

/* A new number gives new names, stacks, shapes and streams. */
static uint32_t novelty;

static uint8_t *buffer;
static size_t buffer_bytes, buffer_used;

static void *add_record(uint32_t kind)
{
	struct cupti_activity *record = (void *)(buffer + buffer_used);

	buffer_used += size_of(kind);
	assert_true(buffer_used <= buffer_bytes);
	record->kind = kind;
	return record;
}

static void add_kernel(uint32_t correlation_id, const char *name, uint64_t start_ns,
		       uint64_t end_ns)
{
	struct cupti_activity_kernel *kernel = add_record(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);

	kernel->correlation_id = correlation_id;
	kernel->name = name;
	kernel->start_ns = start_ns;
	kernel->end_ns = end_ns;
	kernel->stream_id = 7 + novelty;
	kernel->grid[0] = 3 + (int32_t)novelty;
	kernel->block[0] = 32;
}

static void add_copies(uint32_t correlation_id)
{
	struct cupti_activity_memcpy *copy = add_record(XT_CUPTI_ACTIVITY_MEMCPY);
	struct cupti_activity_memcpy_peer *peer = add_record(XT_CUPTI_ACTIVITY_MEMCPY2);
	struct cupti_activity_memset *set = add_record(XT_CUPTI_ACTIVITY_MEMSET);

	copy->copy_kind = XT_CUPTI_COPY_HTOD;
	copy->source_kind = XT_CUPTI_MEMORY_PINNED;
	copy->destination_kind = XT_CUPTI_MEMORY_DEVICE;
	copy->flags = novelty ? XT_CUPTI_FLAG_ASYNC : 0;
	copy->bytes = 4096;
	copy->start_ns = 10;
	copy->end_ns = 30;
	copy->correlation_id = correlation_id;
	peer->copy_kind = XT_CUPTI_COPY_PTOP;
	peer->destination_device_id = 1;
	peer->bytes = 8192;
	peer->start_ns = peer->end_ns = 40;
	peer->correlation_id = correlation_id;
	set->memory_kind = XT_CUPTI_MEMORY_DEVICE;
	set->bytes = 100;
	set->start_ns = 50;
	set->end_ns = 51;
	set->correlation_id = correlation_id;
}

static void add_memory(uint32_t correlation_id)
{
	for (uint32_t operation = 1; operation <= 2; operation++) {
		struct cupti_activity_memory *memory = add_record(XT_CUPTI_ACTIVITY_MEMORY2);

		memory->operation = operation;
		memory->correlation_id = correlation_id;
		memory->address = 0x7f0000000000;
		memory->bytes = 1 << 20;
		memory->timestamp_ns = 60 + operation;
	}
}

/* One round of calls and work, and the rows that it must add. */
enum { ROUND_CALLS = 3, ROUND_KERNELS = 2, ROUND_COPIES = 2, ROUND_SETS = 1, ROUND_MEMORY = 2 };

static NOINLINE void call(void)
{
	volatile char *memory =
		alloca(16 + 64 * novelty); /* a different place, so a different stack */
	struct fake_call call;

	memory[0] = 1;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

static NOINLINE void make_node(uint64_t id, uint64_t origin_id)
{
	struct cupti_graph_data graph = {.node = (void *)id, .original_node = (void *)origin_id};
	struct cupti_resource_data data = {.descriptor = &graph};

	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_RESOURCE,
		       origin_id ? XT_CUPTI_RESOURCE_GRAPHNODE_CLONED
				 : XT_CUPTI_RESOURCE_GRAPHNODE_CREATED,
		       &data);
	sink++;
}

static NOINLINE void one_round(void)
{
	static const char *const names[][2] = {{"first_kernel", "second_kernel"},
					       {"third_kernel", "fourth_kernel"}};
	const char *const *name = names[novelty];
	size_t max_records;

	for (volatile int i = 0; i < ROUND_CALLS; i++)
		call();
	make_node(11, 0);
	make_node(12, 11);
	activity_requested(&buffer, &buffer_bytes, &max_records);
	buffer_used = 0;
	add_kernel(fake_correlation_ids, name[0], 100, 200);
	add_kernel(fake_correlation_ids, name[0], 0, 0); /* unfinished */
	add_kernel(fake_correlation_ids, name[1], 300, 299);
	add_kernel(fake_correlation_ids, name[1], 300, 300);
	add_copies(fake_correlation_ids);
	add_memory(fake_correlation_ids);
	add_record(XT_CUPTI_ACTIVITY_OVERHEAD);
	activity_completed(NULL, 0, buffer, buffer_bytes, buffer_used);
	record_calls(&rec);
	record_activity(&rec);
}

static void begin_log(void)
{
	struct xt_log_header header = {.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC};
	struct xt_writer *writer;

	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	assert_int_equal(recorder_init(&rec, writer, monotonic_ns()), 0);
	record_start(&rec);
	record_modules(&rec);
	/* Thread buffers outlive a log; the next log has other ids. */
	for (uint32_t i = 0; i < thread_buffer_count(); i++) {
		struct thread_buffer *tb = thread_buffer_at(i);

		memset(tb->slot_stack_id, 0, sizeof(tb->slot_stack_id));
		memset(tb->slot_module_id, 0, sizeof(tb->slot_module_id));
		tb->slots_changed = tb->slots_used;
		atomic_fetch_add(&tb->cache_epoch_wanted, 1);
		if (tb->known_thread_id)
			assert_true(record_thread(&rec, tb));
	}
}

static void end_log(void)
{
	assert_true(record_account(&rec));
	assert_int_equal(recorder_flush(&rec), 0);
	assert_int_equal(xt_writer_add_end(rec.writer), 0);
	assert_int_equal(xt_writer_flush(rec.writer), 0);
	recorder_free(&rec);
}

/* Counts of all logs so far: thread buffers outlive a log. */
static uint64_t calls_before;

static void check_rows(uint64_t rounds, uint64_t other_calls)
{
	assert_int_equal(log_rows(path, XT_KIND_CALL), rounds * ROUND_CALLS + other_calls);
	assert_int_equal(log_rows(path, XT_KIND_KERNEL), rounds * ROUND_KERNELS);
	assert_int_equal(log_rows(path, XT_KIND_COPY), rounds * ROUND_COPIES);
	assert_int_equal(log_rows(path, XT_KIND_SET), rounds * ROUND_SETS);
	assert_int_equal(log_rows(path, XT_KIND_MEMORY), rounds * ROUND_MEMORY);
	assert_int_equal(log_rows(path, XT_KIND_GRAPH_NODE), rounds * 2);
	assert_int_equal(log_account(path, "calls.written"), rounds * ROUND_CALLS + other_calls);
	assert_int_equal(log_account(path, "kernels.written"), rounds * ROUND_KERNELS);
	assert_int_equal(log_account(path, "copies.written"), rounds * ROUND_COPIES);
	assert_int_equal(log_account(path, "sets.written"), rounds * ROUND_SETS);
	assert_int_equal(log_account(path, "memory.written"), rounds * ROUND_MEMORY);
}

static void writes_rows_of_every_kind(void **unused)
{
	const uint64_t rounds = 20;

	(void)unused;
	begin_log();
	for (uint64_t i = 0; i < rounds; i++) {
		one_round();
		assert_int_equal(recorder_flush(&rec), 0);
	}
	end_log();
	assert_log_is_good(path);
	check_rows(rounds, 0);
	assert_int_equal(log_account(path, "kernels.invalid"), rounds * 2);
	assert_int_equal(log_account(path, "records.other"), rounds);
	assert_int_equal(log_account(path, "buffers.completed"), rounds);
	assert_int_equal(log_account(path, "calls.seen"), rounds * ROUND_CALLS);
	assert_int_equal(log_account(path, "nodes.seen"), rounds * 2);
	assert_int_equal(log_rows(path, XT_KIND_SHAPE), 2);
	assert_int_equal(log_rows(path, XT_KIND_COPY_SHAPE), 2);
	assert_int_equal(log_rows(path, XT_KIND_STREAM), 2);
	assert_int_equal(log_rows(path, XT_KIND_THREAD), 1);
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_STACK), 0);
	assert_int_equal(log_zeros(path, XT_KIND_GRAPH_NODE, XT_GRAPH_NODE_STACK),
			 rounds); /* the clones */
	calls_before = rounds * ROUND_CALLS;
}

/* Many rows between two flushes: full tables become chunks, buffers are held. */
static void cuts_full_tables(void **unused)
{
	const uint64_t rounds = HELD_BUFFERS_MAX + 10;

	(void)unused;
	begin_log();
	rec.calls.write_failed = calls_before; /* of the previous log */
	for (uint64_t i = 0; i < rounds; i++)
		one_round();
	assert_int_equal(rec.held_count, HELD_BUFFERS_MAX);
	assert_int_equal(recorder_flush(&rec), 0);
	assert_int_equal(rec.held_count, 0);
	record_activity(&rec);
	assert_int_equal(rec.held_count, 10);
	for (uint32_t i = 0; i < 40000; i++) /* more than fit a table */
		xt_table_end_row(recorder_table(&rec, XT_KIND_COPY, 0));
	assert_int_equal(rec.tables[XT_KIND_CALL].row_count, 0);
	rec.copies.pending += 40000;
	assert_int_equal(recorder_flush(&rec), 0);
	assert_int_equal(rec.copies.written, rounds * ROUND_COPIES + 40000);
	recorder_free(&rec);
	assert_int_equal(log_rows(path, XT_KIND_COPY), rounds * ROUND_COPIES + 40000);
	assert_int_equal(log_rows(path, XT_KIND_CALL), rounds * ROUND_CALLS);
	calls_before += rounds * ROUND_CALLS;
}

static rlim_t limit_files_to(rlim_t bytes)
{
	struct rlimit limit;
	rlim_t before;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return before;
}

/* A thread that first appears while writes fail, and continues afterwards. */
static sem_t go_on, has_called;

static void *other_thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		sem_wait(&go_on);
		call();
		sem_post(&has_called);
	}
	return current_thread_buffer;
}

static void let_other_call(void)
{
	sem_post(&go_on);
	sem_wait(&has_called);
	record_calls(&rec);
}

/* After a failed flush, events stay in the ring and in completed buffers. */
static void flush_in_vain(uint64_t free_pos)
{
	assert_int_equal(recorder_flush(&rec), -EFBIG);
	assert_int_equal(rec.write_error, -EFBIG);
	assert_int_equal(current_thread_buffer->ring->free_pos, free_pos);
	assert_int_equal(rec.held_count, 1);
	assert_true(atomic_load(&thread_buffers_are_stalled));
}

/*
 * Writes fail in rounds 1 to 3; in round 1 everything is new. All rounds run from one place, so
 * that later stacks are cached.
 */
enum { FAIL_FIRST = 1, FAIL_LAST = 3, ALL_ROUNDS = 6 };

static void rounds_of_which_some_fail(void)
{
	uint64_t free_pos = 0;
	void *plugin = NULL;
	struct stat status;
	rlim_t before = 0;

	for (int i = 0; i < ALL_ROUNDS; i++) {
		if (i == FAIL_FIRST) {
			assert_int_equal(stat(path, &status), 0);
			before = limit_files_to((rlim_t)status.st_size + 10);
			plugin = dlopen(PLUGIN_A, RTLD_NOW);
			assert_non_null(plugin);
			record_modules(&rec);
			novelty = 1;
			free_pos = current_thread_buffer->ring->free_pos;
			let_other_call();
		}
		one_round();
		if (i >= FAIL_FIRST && i <= FAIL_LAST)
			flush_in_vain(free_pos);
		else
			assert_int_equal(recorder_flush(&rec), 0);
		if (i == FAIL_LAST) {
			limit_files_to(before);
			let_other_call();
		}
	}
	dlclose(plugin);
	novelty = 0;
}

static void wait_for_retirement(const struct thread_buffer *tb)
{
	for (int i = 0; i < 200 && atomic_load(&tb->state) == THREAD_BUFFER_CLAIMED; i++)
		record_calls(&rec);
	assert_int_equal(atomic_load(&tb->state), THREAD_BUFFER_FREE);
}

static void loses_nothing_in_failed_write(void **unused)
{
	uint64_t calls = calls_before;
	pthread_t other;
	void *tb;

	(void)unused;
	sem_init(&go_on, 0, 0);
	sem_init(&has_called, 0, 0);
	assert_int_equal(pthread_create(&other, NULL, other_thread, NULL), 0);
	begin_log();
	rec.calls.write_failed = calls; /* of the previous logs */
	rounds_of_which_some_fail();
	pthread_join(other, &tb);
	record_activity(&rec);
	wait_for_retirement(tb);
	assert_int_equal(rec.write_error, 0);
	assert_false(atomic_load(&thread_buffers_are_stalled));
	end_log();
	assert_log_is_good(path);
	check_rows(ALL_ROUNDS, 2);
	assert_int_equal(log_account(path, "calls.lost.write_failed"), calls);
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_STACK), 0);
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_THREAD), 0);
	assert_int_equal(log_zeros(path, XT_KIND_SHAPE, XT_SHAPE_NAME), 0);
	assert_int_equal(log_zeros(path, XT_KIND_GRAPH_NODE, XT_GRAPH_NODE_STACK), ALL_ROUNDS);
	assert_true(log_modules_named(path, "stack_plugin_a") > 0);
	calls_before += ALL_ROUNDS * ROUND_CALLS + 2;
}

static bool no_memory;

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
	return no_memory ? NULL : __real_realloc(memory, bytes);
}

/* Full tables become chunks, which needs memory. */
static void fill_tables(uint32_t row_capacities[XT_KIND_COUNT])
{
	no_memory = true;
	for (unsigned kind = 0; kind < XT_KIND_COUNT; kind++) {
		row_capacities[kind] = rec.tables[kind].row_capacity;
		rec.tables[kind].row_capacity = rec.tables[kind].row_count;
	}
}

static void empty_tables(const uint32_t row_capacities[XT_KIND_COUNT])
{
	no_memory = false;
	for (unsigned kind = 0; kind < XT_KIND_COUNT; kind++)
		rec.tables[kind].row_capacity = row_capacities[kind];
}

static void *call_twice(void *unused)
{
	call();
	call();
	return unused;
}

/* Each id in a row is defined by another row. Lost rows are counted. */
static void counts_rows_lost_for_memory(void **unused)
{
	uint64_t calls = calls_before;
	uint32_t row_capacities[XT_KIND_COUNT];
	pthread_t other;

	(void)unused;
	begin_log();
	rec.calls.write_failed = calls; /* of the previous logs */
	novelty = 1;
	fill_tables(row_capacities);
	assert_int_equal(pthread_create(&other, NULL, call_twice, NULL), 0);
	pthread_join(other, NULL);
	one_round();
	assert_int_equal(recorder_flush(&rec), -ENOMEM);
	empty_tables(row_capacities);
	assert_int_equal(recorder_flush(&rec), 0);
	for (int i = 0; i < 2; i++)
		one_round();
	novelty = 0;
	end_log();
	assert_log_is_good(path);
	check_rows(2, 2); /* the other thread's events waited for the row of their thread */
	assert_int_equal(log_account(path, "calls.lost.write_failed"), calls + ROUND_CALLS);
	assert_int_equal(log_account(path, "kernels.lost.write_failed"), ROUND_KERNELS);
	assert_int_equal(log_account(path, "copies.lost.write_failed"), ROUND_COPIES);
	assert_int_equal(log_account(path, "sets.lost.write_failed"), ROUND_SETS);
	assert_int_equal(log_account(path, "memory.lost.write_failed"), ROUND_MEMORY);
	assert_int_equal(log_account(path, "nodes.lost"), 2);
	assert_true(log_account(path, "stacks.lost") > 0);
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_STACK), 0);
	assert_int_equal(log_zeros(path, XT_KIND_SHAPE, XT_SHAPE_NAME), 0);
	calls_before += 3 * ROUND_CALLS + 2;
}

static uint32_t define_slot(uint32_t slot, uint64_t frame)
{
	struct xt_record_stack *stack;
	uint32_t bytes = sizeof(*stack) + sizeof(frame) + (uint32_t)xt_stack_modules_bytes(1);

	stack = ring_reserve(current_thread_buffer, bytes);
	assert_non_null(stack);
	memset(stack, 0, bytes);
	stack->head.type = XT_RECORD_STACK;
	stack->head.bytes = (uint16_t)bytes;
	stack->stack_slot = slot;
	stack->frame_count = 1;
	stack->frames[0] = frame;
	ring_commit(current_thread_buffer, bytes);
	record_calls(&rec);
	assert_int_equal(recorder_flush(&rec), 0);
	return current_thread_buffer->ring->slot_stack_id[slot];
}

/* A slot whose new stack is not written must not keep the old one. */
static void clears_slots_in_full_log(void **unused)
{
	const uint32_t slot = XT_STACK_SLOT_COUNT - 1;

	(void)unused;
	begin_log();
	rec.calls.write_failed = calls_before; /* of the previous logs */
	assert_int_not_equal(define_slot(slot, 0x1000), 0);
	rec.size_limit.state = SIZE_LIMIT_REACHED;
	assert_int_equal(define_slot(slot, 0x2000), 0);
	rec.size_limit.state = SIZE_WITHIN_LIMIT;
	assert_int_not_equal(define_slot(slot, 0x3000), 0);
	end_log();
}

static void *short_thread(void *end_inside)
{
	call();
	/* pthread_exit() in a signal handler may end a thread inside a callback. */
	if (end_inside)
		current_thread_buffer->within = 0;
	return current_thread_buffer;
}

static struct thread_buffer *run_thread(bool end_inside)
{
	pthread_t thread;
	void *tb;

	assert_int_equal(pthread_create(&thread, NULL, short_thread, end_inside ? folder : NULL),
			 0);
	assert_int_equal(pthread_join(thread, &tb), 0);
	return tb;
}

static void retires_thread_buffers(void **unused)
{
	uint64_t calls = calls_before, reentered = callbacks_reentered;
	struct thread_buffer *tb;

	(void)unused;
	begin_log();
	rec.calls.write_failed = calls;
	tb = run_thread(true);
	assert_ptr_not_equal(tb, current_thread_buffer);
	/* The events of the ended thread are not in the file yet. */
	for (int i = 0; i < 200; i++)
		record_calls(&rec);
	assert_int_equal(atomic_load(&tb->state), THREAD_BUFFER_CLAIMED);
	assert_int_equal(recorder_flush(&rec), 0);
	wait_for_retirement(tb);
	assert_int_equal(tb->ring->thread_id, 0);
	/* A living thread keeps its buffer. */
	assert_int_equal(atomic_load(&current_thread_buffer->state), THREAD_BUFFER_CLAIMED);
	assert_ptr_equal(run_thread(false), tb);
	record_calls(&rec);
	assert_int_equal(callbacks_reentered, reentered);
	end_log();
	assert_int_equal(log_rows(path, XT_KIND_CALL), 2);
	assert_int_equal(log_rows(path, XT_KIND_THREAD), 3); /* including the test's own thread */
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_THREAD), 0);
	assert_int_equal(log_zeros(path, XT_KIND_CALL, XT_CALL_STACK), 0);
}

static uint64_t flushed_bytes(void)
{
	record_calls(&rec);
	record_modules(&rec);
	assert_int_equal(recorder_flush(&rec), 0);
	return xt_writer_file_bytes(rec.writer);
}

/* A full log does not grow, even if threads and libraries come and go for months. */
static void keeps_size_of_full_log(void **unused)
{
	uint64_t bytes, calls = calls_before + 2; /* of the previous test */
	struct thread_buffer *tb;
	void *plugin;

	(void)unused;
	begin_log();
	rec.calls.write_failed = calls;
	flushed_bytes();
	recording_pause(PAUSED_SIZE);
	rec.size_limit.state = SIZE_LIMIT_REACHED;
	bytes = flushed_bytes();
	for (int i = 0; i < 3; i++) {
		plugin = dlopen(PLUGIN_B, RTLD_NOW);
		assert_non_null(plugin);
		tb = run_thread(false);
		assert_int_equal(flushed_bytes(), bytes);
		assert_int_equal(dlclose(plugin), 0);
		record_switch(&rec, 1, i % 2, XT_SWITCH_ASKED);
		wait_for_retirement(tb);
		assert_int_equal(flushed_bytes(), bytes);
	}
	recording_resume(PAUSED_SIZE);
	end_log();
	assert_int_equal(log_account(path, "calls.lost.size"), 3);
	assert_int_equal(log_rows(path, XT_KIND_CALL), 0);
	assert_int_equal(log_modules_named(path, "stack_plugin_b"), 0);
}

static int remove_folder(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

static int set_up(void **unused)
{
	(void)unused;
	signal(SIGXFSZ, SIG_IGN);
	cupti.cuptiActivityGetNextRecord = next_record;
	cupti.cuptiGetGraphNodeId = node_id_of;
	cupti.found_by = "by the test";
	return api_table_fill(API_LEVEL_WORK) ? -1 : callbacks_set_up();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(writes_rows_of_every_kind),     TEST(cuts_full_tables),
		TEST(loses_nothing_in_failed_write), TEST(counts_rows_lost_for_memory),
		TEST(clears_slots_in_full_log),	     TEST(retires_thread_buffers),
		TEST(keeps_size_of_full_log),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
