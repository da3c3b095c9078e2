/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of activity buffers. CUPTI's callbacks call it on any thread: no lock, no malloc. If no
 * buffer is free, they make system calls and may sleep. Other functions run on the writer thread.
 *
 * Undelivered work is in buffers that CUPTI writes on other threads. So each word is read only
 * once. The race is intended, hence no thread sanitizer.
 */
#include "inject/cupti/activity_pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/machine.h"

#define RECHECK_NS  100000000  /* another thread may have taken the released buffer */
#define FIRST_BYTES (8u << 10) /* faulted in by a thread that needs a buffer at once */
#define AREA_BYTES  (XT_ACTIVITY_DATA_OFFSET + ACTIVITY_DATA_BYTES)

atomic_uint_fast64_t activity_waited_ns;
atomic_uint activity_behind;

/* On pages that are zeroed in a forked child, because the buffers are the parent's. */
static struct {
	_Alignas(MACHINE_PAGE_BYTES_MAX) struct activity_buffer buffers[ACTIVITY_BUFFERS_MAX];
	atomic_bool is_here;
} pool;
static atomic_bool is_watched;
static atomic_bool is_stalled; /* no buffer is released while true */

static atomic_uint reserved_count; /* entries of pool.buffers[] in use or being created */
static atomic_uint
	without_pages_count;	     /* entries without pages; their state is XT_ACTIVITY_IN_LOG */
static atomic_size_t released_bytes; /* of each of these; equal, as areas start at a page */
static atomic_uint release_count;    /* counts releases; waiting threads sleep on it */
static atomic_uint waiting_count;
static atomic_uint highest_taken; /* index used since activity_shrink() */
static atomic_uint backoff_pos;	  /* release_count + 1 at the last timeout; 0: none */

static uint32_t buffer_count(void)
{
	unsigned count = atomic_load(&reserved_count);

	return count < ACTIVITY_BUFFERS_MAX ? count : ACTIVITY_BUFFERS_MAX;
}

uint32_t activity_buffer_count(void)
{
	return buffer_count() - atomic_load(&without_pages_count);
}

static struct xt_activity_header *header_of(uint32_t index)
{
	/* Pairs with the release in make_new(). */
	return __atomic_load_n(&pool.buffers[index].header, __ATOMIC_ACQUIRE);
}

struct xt_activity_header *activity_header_of(const uint8_t *data)
{
	for (uint32_t i = 0; i < buffer_count(); i++)
		if (header_of(i) && pool.buffers[i].data == data)
			return pool.buffers[i].header;
	return NULL;
}

static uint32_t state_of(const struct xt_activity_header *header)
{
	return header ? __atomic_load_n(&header->state, __ATOMIC_RELAXED) : XT_ACTIVITY_IN_LOG;
}

static bool change_state(struct xt_activity_header *header, enum xt_activity_state from,
			 enum xt_activity_state to)
{
	uint32_t expected = from;

	return state_of(header) == expected &&
	       __atomic_compare_exchange_n(&header->state, &expected, to, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

bool activity_complete(struct xt_activity_header *header, size_t valid_bytes, uint64_t sequence)
{
	uint32_t expected = XT_ACTIVITY_AT_CUPTI;

	if (state_of(header) != expected)
		return false;
	header->valid_bytes = valid_bytes;
	header->sequence = sequence;
	atomic_fetch_add(&activity_behind, 1);
	/* Pairs with the acquire in activity_take_completed(). */
	if (__atomic_compare_exchange_n(&header->state, &expected, XT_ACTIVITY_COMPLETED, false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return true;
	atomic_fetch_sub(&activity_behind, 1);
	return false;
}

static struct activity_buffer *make_new(void)
{
	struct xt_activity_header *header;
	unsigned index;

	/* Check before creating: an area is never freed. */
	if (atomic_load(&reserved_count) >= ACTIVITY_BUFFERS_MAX)
		return NULL;
	header = crash_buffer_area(AREA_BYTES, XT_AREA_ACTIVITY);
	if (!header)
		return NULL;
	index = atomic_fetch_add(&reserved_count, 1);
	if (index >= ACTIVITY_BUFFERS_MAX)
		return NULL;
	header->data_bytes = ACTIVITY_DATA_BYTES;
	header->state = XT_ACTIVITY_IN_LOG;
	pool.buffers[index].is_unbacked = !crash_buffer_contains(header);
	pool.buffers[index].data = (uint8_t *)header + XT_ACTIVITY_DATA_OFFSET;
	__atomic_store_n(&pool.buffers[index].header, header, __ATOMIC_RELEASE);
	return &pool.buffers[index];
}

static struct activity_buffer *refill(void)
{
	for (uint32_t i = 0; i < buffer_count(); i++) {
		if (!header_of(i) || !atomic_exchange(&pool.buffers[i].is_empty, false))
			continue;
		if (crash_buffer_restore_pages(pool.buffers[i].data, ACTIVITY_DATA_BYTES)) {
			atomic_fetch_sub(&without_pages_count, 1);
			return &pool.buffers[i];
		}
		atomic_store(&pool.buffers[i].is_empty, true);
		return NULL;
	}
	return NULL;
}

/* Adds a buffer in this state, within the budget or, if in_any_case, beyond it. */
static struct activity_buffer *add_buffer(enum xt_activity_state state, bool in_any_case)
{
	bool is_own = activity_buffer_count() < ACTIVITY_OWN;
	bool refills = atomic_load(&without_pages_count);
	size_t bytes =
		refills ? atomic_load(&released_bytes) : crash_buffer_occupied_bytes(AREA_BYTES);
	bool is_budgeted = !is_own && budget_take(bytes);
	struct activity_buffer *buffer = NULL;

	if (is_own || is_budgeted || in_any_case)
		buffer = refills ? refill() : make_new();
	if (!buffer) {
		if (is_budgeted)
			budget_give_back(bytes);
		return NULL;
	}
	buffer->is_budgeted = is_budgeted;
	/*
	 * The writer creates buffers ahead of need. Any other thread is in the middle of a launch.
	 */
	crash_buffer_touch(buffer->data,
			   state == XT_ACTIVITY_FREE ? ACTIVITY_DATA_BYTES : FIRST_BYTES);
	/* Pairs with the acquire in change_state(). */
	__atomic_store_n(&buffer->header->state, state, __ATOMIC_RELEASE);
	return buffer;
}

uint8_t *activity_take_free(void)
{
	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = header_of(i);

		if (!change_state(header, XT_ACTIVITY_FREE, XT_ACTIVITY_AT_CUPTI))
			continue;
		/*
		 * If two threads store at once, a buffer may be released too early, which is
		 * harmless.
		 */
		if (i > atomic_load(&highest_taken))
			atomic_store(&highest_taken, i);
		return pool.buffers[i].data;
	}
	return NULL;
}

/*
 * Sleeps until the writer releases a buffer. Hundreds of threads may wait: polling would starve the
 * writer. A raw system call, because futex waits must not be cancellation points; see clock.h.
 */
static void sleep_until_release(unsigned seen)
{
	const struct timespec timeout = {.tv_nsec = RECHECK_NS};

	atomic_fetch_add(&waiting_count, 1);
	syscall(SYS_futex, &release_count, FUTEX_WAIT_PRIVATE, seen, &timeout, NULL, 0);
	atomic_fetch_sub(&waiting_count, 1);
}

static void wake(int thread_count)
{
	atomic_fetch_add(&release_count, 1);
	/*
	 * Pairs with sleep_until_release(): a thread counts itself before the kernel compares
	 * release_count.
	 */
	if (atomic_load(&waiting_count))
		syscall(SYS_futex, &release_count, FUTEX_WAKE_PRIVATE, thread_count, NULL, NULL, 0);
}

/* Waits while the writer has buffers to release, up to a timeout. */
static uint8_t *wait_for_writer(void)
{
	uint64_t start_ns = monotonic_ns(), now_ns;
	uint8_t *data;

	if (atomic_load(&backoff_pos) == atomic_load(&release_count) + 1)
		return NULL;
	for (;;) {
		unsigned seen = atomic_load(&release_count);

		data = activity_take_free();
		now_ns = monotonic_ns();
		if (data || atomic_load(&is_stalled) || !atomic_load(&activity_behind) ||
		    now_ns - start_ns >= ACTIVITY_TIMEOUT_NS)
			break;
		sleep_until_release(seen);
	}
	if (!data && !atomic_load(&is_stalled) && atomic_load(&activity_behind))
		atomic_store(&backoff_pos, atomic_load(&release_count) + 1);
	atomic_fetch_add(&activity_waited_ns, now_ns - start_ns);
	return data;
}

uint8_t *activity_make_or_wait(void)
{
	unsigned behind = atomic_load(&activity_behind);
	struct activity_buffer *buffer = NULL;
	int saved_errno = errno;
	uint8_t *data = NULL;

	if (atomic_load(&is_watched) && !atomic_load(&pool.is_here))
		return NULL;
	if (behind < ACTIVITY_BACKLOG_MAX)
		buffer = add_buffer(XT_ACTIVITY_AT_CUPTI, behind == 0);
	/* Without memory, records are dropped, as with a full disk. */
	if (!buffer && !map_has_failed_lately())
		data = wait_for_writer();
	if (!buffer && !data)
		buffer = add_buffer(XT_ACTIVITY_AT_CUPTI, atomic_load(&activity_behind) == 0);
	errno = saved_errno;
	return buffer ? buffer->data : data;
}

static uint32_t free_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < buffer_count(); i++)
		count += state_of(header_of(i)) == XT_ACTIVITY_FREE;
	return count;
}

void activity_refill(uint32_t count)
{
	if (!atomic_load(&is_watched)) {
		atomic_store(&pool.is_here, true);
		atomic_store(&is_watched, !madvise(&pool, sizeof(pool), MADV_WIPEONFORK));
	}
	for (uint32_t have = free_count(); have < count; have++)
		if (!add_buffer(XT_ACTIVITY_FREE, false))
			return;
}

static bool empty(struct activity_buffer *buffer)
{
	size_t bytes;

	if (!change_state(buffer->header, XT_ACTIVITY_FREE, XT_ACTIVITY_IN_LOG))
		return true;
	bytes = crash_buffer_release_pages(buffer->data, ACTIVITY_DATA_BYTES);
	if (!bytes) {
		__atomic_store_n(&buffer->header->state, XT_ACTIVITY_FREE, __ATOMIC_RELEASE);
		return false;
	}
	/* The rest of the area keeps its pages, and stays charged. */
	if (buffer->is_budgeted)
		budget_give_back(bytes);
	atomic_store(&released_bytes, bytes);
	atomic_fetch_add(&without_pages_count, 1);
	atomic_store(&buffer->is_empty, true);
	return true;
}

void activity_shrink(void)
{
	/* Threads take the first free buffer, so those above the highest taken were not needed. */
	uint32_t needed = atomic_exchange(&highest_taken, 0) + 1 + ACTIVITY_SPARE;

	if (needed < ACTIVITY_OWN)
		needed = ACTIVITY_OWN;
	for (uint32_t i = buffer_count(); i-- > needed;)
		if (header_of(i) && !atomic_load(&pool.buffers[i].is_empty) &&
		    !empty(&pool.buffers[i]))
			return;
}

struct activity_buffer *activity_take_completed(void)
{
	struct activity_buffer *next = NULL;

	/*
	 * Compare states, not sequence numbers: a buffer may draw its number first and be published
	 * last.
	 */
	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = header_of(i);

		if (!header || pool.buffers[i].held ||
		    __atomic_load_n(&header->state, __ATOMIC_ACQUIRE) != XT_ACTIVITY_COMPLETED)
			continue;
		if (!next || header->sequence < next->header->sequence)
			next = &pool.buffers[i];
	}
	if (next)
		next->held = true;
	return next;
}

/*
 * Writer: the next buffer from *index on that CUPTI owns, or has completed and the writer has not
 * taken. NULL at the end. Start with *index = 0.
 */
static struct activity_buffer *next_buffer(uint32_t *index, bool with_completed)
{
	while (*index < buffer_count()) {
		struct activity_buffer *buffer = &pool.buffers[*index];
		uint32_t state = state_of(header_of((*index)++));

		if (state == XT_ACTIVITY_AT_CUPTI ||
		    (with_completed && state == XT_ACTIVITY_COMPLETED && !buffer->held))
			return buffer;
	}
	return NULL;
}

struct activity_buffer *activity_next_unread(uint32_t *index)
{
	return next_buffer(index, true);
}

void activity_stall(bool stalled)
{
	atomic_store(&is_stalled, stalled);
	if (stalled)
		wake(INT_MAX);
}

uint32_t activity_unbacked(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < buffer_count(); i++)
		count += state_of(header_of(i)) == XT_ACTIVITY_COMPLETED &&
			 pool.buffers[i].is_unbacked;
	return count;
}

bool activity_is_at_cupti(void)
{
	uint32_t index = 0;

	return next_buffer(&index, false) != NULL;
}

void activity_release(struct activity_buffer *buffer)
{
	struct xt_activity_header *header = buffer->header;

	buffer->held = false;
	buffer->peeked_bytes = 0;
	/* After a kill, recovery must not read a half-zeroed buffer. */
	__atomic_exchange_n(&header->state, XT_ACTIVITY_IN_LOG, __ATOMIC_ACQ_REL);
	memset(buffer->data, 0, header->valid_bytes);
	header->valid_bytes = 0;
	/* Pairs with the acquire in change_state(): a free buffer is zeroed. */
	__atomic_store_n(&header->state, XT_ACTIVITY_FREE, __ATOMIC_RELEASE);
	atomic_fetch_sub(&activity_behind, 1);
	wake(1);
}

#define RECORD_BYTES_MAX 4096 /* longer than any CUPTI record */

static uint32_t learned_bytes[XT_CRASH_BUFFER_RECORD_KINDS];

void undelivered_learn_bytes(const struct cupti_activity *record, const struct cupti_activity *next)
{
	ptrdiff_t bytes = (const uint8_t *)next - (const uint8_t *)record;

	if (record->kind >= XT_CRASH_BUFFER_RECORD_KINDS || bytes <= 0 ||
	    bytes > RECORD_BYTES_MAX ||
	    (learned_bytes[record->kind] && learned_bytes[record->kind] <= (uint32_t)bytes))
		return;
	learned_bytes[record->kind] = (uint32_t)bytes;
	crash_buffer_record_bytes(record->kind, (uint32_t)bytes);
}

uint32_t undelivered_record_bytes(uint32_t kind)
{
	uint32_t bytes = kind < XT_CRASH_BUFFER_RECORD_KINDS ? learned_bytes[kind] : 0;

	if (!bytes)
		bytes = xt_cupti_record_bytes(cupti.version, kind);
	return bytes % 8 ? 0 : bytes;
}

/* Offsets of a record's times, by kind; unknown for kinds not listed. */
static const struct {
	size_t start, end;
} times[] = {
#define TIMES(type, first, last)                                                                   \
	{                                                                                          \
		offsetof(struct type, first), offsetof(struct type, last)                          \
	}
	[XT_CUPTI_ACTIVITY_KERNEL] = TIMES(cupti_activity_kernel, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] = TIMES(cupti_activity_kernel, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMCPY] = TIMES(cupti_activity_memcpy, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMCPY2] = TIMES(cupti_activity_memcpy_peer, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMSET] = TIMES(cupti_activity_memset, start_ns, end_ns),
	[XT_CUPTI_ACTIVITY_MEMORY2] = TIMES(cupti_activity_memory, timestamp_ns, timestamp_ns),
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = TIMES(cupti_activity_graph_trace, start_ns, end_ns),
#undef TIMES
};

__attribute__((no_sanitize("thread"))) static void
count_record(struct undelivered_work *undelivered, const uint8_t *record, uint32_t word)
{
	uint32_t kind = word & ~XT_CUPTI_RECORD_BEGUN;
	uint64_t end_ns;

	if (kind >= sizeof(times) / sizeof(*times) || !times[kind].start ||
	    kind == XT_CUPTI_ACTIVITY_MEMORY2)
		return;
	undelivered->kernel_count +=
		kind == XT_CUPTI_ACTIVITY_KERNEL || kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL;
	end_ns = __atomic_load_n((const uint64_t *)(record + times[kind].end), __ATOMIC_RELAXED);
	if (word & XT_CUPTI_RECORD_BEGUN || !end_ns)
		undelivered->unfinished_count++;
	else
		undelivered->finished_count++;
}

__attribute__((no_sanitize("thread"))) bool
find_undelivered_work(struct undelivered_work *undelivered)
{
	const size_t end = ACTIVITY_DATA_BYTES - sizeof(struct cupti_activity_kernel);
	struct activity_buffer *buffer;
	uint32_t index = 0;

	*undelivered = (struct undelivered_work){0};
	while ((buffer = activity_next_unread(&index))) {
		for (size_t place = 0; place <= end;) {
			const uint8_t *record = buffer->data + place;
			uint32_t word = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
			uint32_t bytes = undelivered_record_bytes(word & ~XT_CUPTI_RECORD_BEGUN);

			if (!word)
				break;
			if (!bytes)
				return false;
			count_record(undelivered, record, word);
			place += bytes;
		}
	}
	return true;
}

__attribute__((no_sanitize("thread"))) bool cupti_holds_unfinished_work(uint64_t since_ns)
{
	struct activity_buffer *buffer;
	uint32_t index = 0;

	while ((buffer = next_buffer(&index, false))) {
		uint32_t kind = __atomic_load_n((uint32_t *)buffer->data, __ATOMIC_RELAXED);
		uint64_t start_ns, end_ns;

		if (kind >= sizeof(times) / sizeof(*times) || !times[kind].start)
			continue;
		start_ns = __atomic_load_n((uint64_t *)(buffer->data + times[kind].start),
					   __ATOMIC_RELAXED);
		end_ns = __atomic_load_n((uint64_t *)(buffer->data + times[kind].end),
					 __ATOMIC_RELAXED);
		if (start_ns && start_ns <= end_ns && end_ns < since_ns)
			return true;
	}
	return false;
}
