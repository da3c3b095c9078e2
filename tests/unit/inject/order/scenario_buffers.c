/* SPDX-License-Identifier: Apache-2.0 */
/* Thread buffers: publication, claims, reuse, and a writer that starts while one is inherited. */
#include "inject/capture/thread_buffer.h"

/* One buffer of an ended thread is enough to inherit it. */
#undef THREAD_BUFFERS_KEPT
#define THREAD_BUFFERS_KEPT 1
/* Included for its static variables. */
#include "inject/capture/thread_buffer.c"

#include "scenarios.h"

static struct thread_buffer *claimed[EXPLORER_THREADS_MAX];

const void *const buffers_place = &thread_buffers[1];
const void *const has_writer_place = &has_writer;

static void claim(void)
{
	claimed[explorer_thread()] = thread_buffer_claim();
}

/* Reads a buffer like drain_ring() and record_thread(). */
static uint32_t read_buffer(struct thread_buffer *tb)
{
	if (!tb || atomic_load(&tb->state) == THREAD_BUFFER_INHERITED ||
	    !__atomic_load_n(&tb->ring->thread_id, __ATOMIC_ACQUIRE))
		return 0;
	if (!tb->ring->start_ns || !tb->ring->tid)
		explorer_fail("a claimed buffer is not filled in");
	return tb->ring->tid;
}

/* Reads a counter like thread_buffers_sum(), which does not read the state. */
static void sum_counter(const struct thread_buffer *tb)
{
	if (tb && __atomic_load_n(&tb->ring->counters[XT_RING_CALLS_SEEN], __ATOMIC_ACQUIRE))
		explorer_fail("a new buffer has counted calls");
}

static void read_buffers(void)
{
	for (uint32_t i = 0; i < thread_buffer_count(); i++) {
		sum_counter(thread_buffer_at(i));
		read_buffer(thread_buffer_at(i));
	}
	if (!thread_buffers_await_work(0))
		explorer_fail("a new buffer has open calls");
}

static void set_up_spare(void)
{
	/* Only the writer makes spare buffers. */
	thread_buffers_set_writer();
	thread_buffer_create_spare();
}

static void check_claims(void)
{
	if (claimed[1] == claimed[2] || !claimed[1] || !claimed[2] ||
	    claimed[1]->ring->thread_id == claimed[2]->ring->thread_id)
		explorer_fail("two threads have one buffer or number");
}

const struct explorer_program buffers_claimed = {
	.set_up = set_up_spare,
	.threads = {claim, claim, read_buffers},
	.at_end = check_claims,
	.switches_max = 2,
};

bool scenario_threads_have_ended;

static void set_up_ended(void)
{
	scenario_threads_have_ended = true;
	thread_buffer_create_spare();
	thread_buffer_claim();
}

/* Does the steps of retire_thread_buffer(), after the ring was drained. */
static void retire(void)
{
	struct thread_buffer *tb = thread_buffer_at(0);

	read_buffer(tb);
	tb->within = THREAD_BUFFER_IDLE;
	__atomic_store_n(&tb->ring->thread_id, 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&tb->state, THREAD_BUFFER_FREE, memory_order_release);
}

static void set_writer(void)
{
	thread_buffers_set_writer();
}

static void set_up_reuse(void)
{
	set_up_ended();
	set_writer();
	/* The place of its state is known, so that its order can be weakened. */
	scenario_state = (const void *)&thread_buffer_at(0)->state;
}

static void claim_if_free(void)
{
	struct thread_buffer *tb = take_free_thread_buffer();

	if (!tb)
		return;
	tb->ring->tid = 7;
	tb->within = 7;
}

const void *scenario_state;

const struct explorer_program buffers_reused = {
	.set_up = set_up_reuse,
	.threads = {retire, claim_if_free},
};

/* ---- The writer starts while a thread inherits the buffer of an ended one. */

static void set_up_inheritance(void)
{
	struct thread_buffer *tb;

	set_up_ended();
	tb = thread_buffer_at(0);
	for (unsigned i = 0; i < 2; i++) {
		struct xt_record *record = ring_reserve(tb, 16);

		record->type = XT_RECORD_SKIP;
		record->bytes = 16;
		ring_commit(tb, 16);
	}
	scenario_state = (const void *)&tb->state;
}

static void inherit(void)
{
	struct thread_buffer *tb = inherit_thread_buffer();

	if (tb)
		atomic_store(&tb->state, THREAD_BUFFER_CLAIMED);
}

/* Does the first round of the writer: free_sources(), then drain_ring(). */
static void write_first_round(bool skips_inherited)
{
	struct thread_buffer *tb;

	set_writer();
	tb = thread_buffer_at(0);
	if (skips_inherited && atomic_load(&tb->state) == THREAD_BUFFER_INHERITED)
		return;
	if (tb->ring->free_pos != tb->read_pos)
		ring_free(tb, tb->read_pos);
	tb->read_pos = ring_written(tb);
}

static void start_writer(void)
{
	write_first_round(true);
}

static void start_writer_wrongly(void)
{
	write_first_round(false);
}

const struct explorer_program buffers_inherited = {
	.set_up = set_up_inheritance,
	.threads = {inherit, start_writer},
};
const struct explorer_program buffers_inherited_unnoticed = {
	.set_up = set_up_inheritance,
	.threads = {inherit, start_writer_wrongly},
};
