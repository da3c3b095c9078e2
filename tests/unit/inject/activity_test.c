/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of activity buffers: no buffer is lost, buffers are taken in order of completion and
 * released zeroed, and discarded buffers are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/activity_pool.h"
#include "inject/memory/memory.h"
#include "inject/memory/crash_buffer.h"

static uint8_t *request(size_t *bytes)
{
	size_t max_records = 4711;
	uint8_t *buffer = NULL;

	activity_requested(&buffer, bytes, &max_records);
	assert_non_null(buffer);
	assert_int_equal((uintptr_t)buffer & 7, 0);
	assert_int_equal(max_records, 0); /* 0: as many as fit */
	return buffer;
}

static struct xt_activity_header *header_of(uint8_t *buffer)
{
	return (struct xt_activity_header *)(buffer - XT_ACTIVITY_DATA_OFFSET);
}

static void release_all(void)
{
	struct activity_buffer *buffer;

	while ((buffer = activity_take_completed()))
		activity_release(buffer);
}

static void takes_in_order_of_completion(void **unused)
{
	uint8_t *buffers[5];
	size_t bytes;

	(void)unused;
	for (int i = 0; i < 5; i++)
		buffers[i] = request(&bytes);
	assert_null(activity_take_completed());
	for (int i = 5; i-- > 0;) {
		buffers[i][0] = 1;
		activity_completed(NULL, 0, buffers[i], bytes, 1 + (size_t)i);
	}
	/* Hold all buffers at once to detect one that is returned twice. */
	for (int i = 5; i-- > 0;) {
		struct activity_buffer *taken = activity_take_completed();

		assert_non_null(taken);
		assert_ptr_equal(taken->data, buffers[i]);
		assert_int_equal(taken->header->valid_bytes, 1 + i);
		assert_int_equal(taken->header->state, XT_ACTIVITY_COMPLETED);
	}
	assert_null(activity_take_completed());
}

static void keeps_held_buffers_until_release(void **unused)
{
	struct activity_buffer *taken;
	uint8_t *buffer;
	size_t bytes;

	(void)unused;
	buffer = request(&bytes);
	activity_completed(NULL, 0, buffer, bytes, 8);
	taken = activity_take_completed();
	assert_non_null(taken);
	/* Until the flush it keeps its state: no other thread gets it, and recovery finds it. */
	for (int i = 0; i < 3; i++)
		assert_ptr_not_equal(request(&bytes), buffer);
	assert_int_equal(taken->header->state, XT_ACTIVITY_COMPLETED);
	activity_release(taken);
	assert_int_equal(header_of(buffer)->state, XT_ACTIVITY_FREE);
}

static void zeroes_released_buffers(void **unused)
{
	struct activity_buffer *taken;
	uint8_t *buffer;
	size_t bytes;

	(void)unused;
	buffer = request(&bytes);
	assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
	memset(buffer, 0xff, bytes);
	activity_completed(NULL, 0, buffer, bytes, bytes);
	taken = activity_take_completed();
	assert_non_null(taken);
	activity_release(taken);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(buffer[i], 0);
	assert_int_equal(header_of(buffer)->valid_bytes, 0);
}

/* Takes as many bytes as CUPTI reports, but no more than the buffer has. */
static void limits_size_to_the_buffer(void **unused)
{
	uint64_t invalid = activity_invalid;
	struct activity_buffer *taken;
	uint8_t *buffers[2], *behind;
	size_t bytes;

	(void)unused;
	/* Areas of the crash buffer may be adjacent. */
	for (int i = 0; i < 2; i++) {
		buffers[i] = request(&bytes);
		memset(buffers[i], 0xff, bytes);
	}
	behind = buffers[0] < buffers[1] ? buffers[1] : buffers[0];
	activity_completed(NULL, 0, behind == buffers[0] ? buffers[1] : buffers[0], bytes,
			   SIZE_MAX);
	assert_int_equal(activity_invalid, invalid + 1);
	taken = activity_take_completed();
	assert_non_null(taken);
	assert_int_equal(taken->header->valid_bytes, ACTIVITY_DATA_BYTES);
	activity_release(taken);
	assert_int_equal(header_of(behind)->state, XT_ACTIVITY_AT_CUPTI);
	activity_completed(NULL, 0, behind, bytes, bytes);
	release_all();
}

/* The second time, the buffer belongs to the writer or is free. */
static void counts_double_completion(void **unused)
{
	unsigned behind = activity_behind;
	uint64_t invalid = activity_invalid;
	struct activity_buffer *taken;
	uint8_t *buffer;
	size_t bytes;

	(void)unused;
	buffer = request(&bytes);
	activity_completed(NULL, 0, buffer, bytes, 8);
	activity_completed(NULL, 0, buffer, bytes, 16);
	assert_int_equal(activity_invalid, invalid + 1);
	assert_int_equal(activity_behind, behind + 1);
	taken = activity_take_completed();
	assert_non_null(taken);
	assert_int_equal(taken->header->valid_bytes, 8);
	activity_release(taken);
	activity_completed(NULL, 0, buffer, bytes, 8);
	assert_int_equal(activity_invalid, invalid + 2);
	assert_int_equal(activity_behind, behind);
	assert_int_equal(header_of(buffer)->state, XT_ACTIVITY_FREE);
	assert_null(activity_take_completed());
}

/*
 * Two threads complete a buffer each. The first draws its number and is delayed. The second draws
 * the next number and publishes. The first buffer must still be found.
 */
static void finds_buffers_published_out_of_order(void **unused)
{
	struct activity_buffer *taken;
	uint8_t *first, *second;
	size_t bytes;

	(void)unused;
	first = request(&bytes);
	second = request(&bytes);
	activity_completed(NULL, 0, first, bytes, 8);
	activity_completed(NULL, 0, second, bytes, 8);
	__atomic_store_n(&header_of(first)->state, XT_ACTIVITY_AT_CUPTI, __ATOMIC_RELEASE);
	taken = activity_take_completed();
	assert_non_null(taken);
	assert_ptr_equal(taken->data, second);
	activity_release(taken);
	assert_null(activity_take_completed());
	__atomic_store_n(&header_of(first)->state, XT_ACTIVITY_COMPLETED, __ATOMIC_RELEASE);
	taken = activity_take_completed();
	assert_non_null(taken);
	assert_ptr_equal(taken->data, first);
	activity_release(taken);
}

#define GIVERS	    4
#define GIVEN_COUNT 30000

static void *giver_main(void *unused)
{
	(void)unused;
	for (int given = 0; given < GIVEN_COUNT;) {
		size_t bytes;
		uint8_t *buffer = request(&bytes);

		buffer[0] = 1;
		activity_completed(NULL, 0, buffer, bytes, 64);
		if (bytes == ACTIVITY_DATA_BYTES)
			given++;
		else
			sched_yield();
	}
	return NULL;
}

static void delivers_all_buffers(void **unused)
{
	struct activity_buffer *buffer;
	pthread_t givers[GIVERS];
	uint64_t taken = 0;

	(void)unused;
	for (int i = 0; i < GIVERS; i++)
		assert_int_equal(pthread_create(&givers[i], NULL, giver_main, NULL), 0);
	/* If a buffer is lost, this loop does not end and the test times out. */
	while (taken < GIVERS * GIVEN_COUNT) {
		buffer = activity_take_completed();
		if (!buffer) {
			sched_yield();
			continue;
		}
		assert_int_equal(buffer->data[0], 1);
		taken++;
		activity_release(buffer);
	}
	for (int i = 0; i < GIVERS; i++)
		pthread_join(givers[i], NULL);
	assert_null(activity_take_completed());
}

static void keeps_spare_buffers(void **unused)
{
	uint64_t discarded = activity_discarded;
	size_t bytes;

	(void)unused;
	activity_refill(20);
	activity_refill(20); /* enough exist already: creates none */
	for (int i = 0; i < 20; i++) {
		request(&bytes);
		assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
	}
	assert_int_equal(activity_discarded, discarded);
}

/*
 * After a fork the buffers belong to the parent. A child must not write to them, even if fork
 * handlers did not run.
 */
static void discards_after_fork(void **unused)
{
	uint64_t discarded = activity_discarded;
	uint8_t *buffer;
	size_t bytes;
	pid_t child;
	int status;

	(void)unused;
	activity_refill(1);
	buffer = request(&bytes);
	assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
	child = fork();
	if (!child) {
		activity_completed(NULL, 0, buffer, bytes, 8);
		if (header_of(buffer)->state != XT_ACTIVITY_AT_CUPTI)
			_exit(1);
		request(&bytes);
		if (bytes == ACTIVITY_DATA_BYTES)
			_exit(2);
		activity_abandon();
		request(&bytes);
		_exit(bytes < ACTIVITY_DATA_BYTES ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(activity_discarded, discarded);
	activity_completed(NULL, 0, buffer, bytes, 8);
	activity_release(activity_take_completed());
}

/* A buffer of another tool is passed on untouched. */
static uint8_t *others_buffer;

static void others_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			     size_t valid_bytes)
{
	(void)context, (void)stream, (void)bytes, (void)valid_bytes;
	others_buffer = buffer;
}

static void passes_on_foreign_buffers(void **unused)
{
	static uint8_t data[2 * XT_ACTIVITY_DATA_OFFSET], untouched[XT_ACTIVITY_DATA_OFFSET];
	uint8_t *buffer = data + XT_ACTIVITY_DATA_OFFSET;

	(void)unused;
	activity_completed(NULL, 0, buffer, XT_ACTIVITY_DATA_OFFSET, 8);
	assert_null(others_buffer);
	activity_foreign_completed = others_completed;
	activity_completed(NULL, 0, buffer, XT_ACTIVITY_DATA_OFFSET, 8);
	assert_ptr_equal(others_buffer, buffer);
	assert_memory_equal(data, untouched, sizeof(untouched));
	assert_null(activity_take_completed());
	activity_foreign_completed = NULL;
}

#define ALIGNMENT (64u << 10)

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

/* Mappings begin at a page of any processor. */
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	uintptr_t place;

	if (at)
		return __real_mmap(at, bytes, protection, flags, fd, offset);
	at = __real_mmap(NULL, bytes + ALIGNMENT, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return at;
	place = ((uintptr_t)at + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
	return __real_mmap((void *)place, bytes, protection, flags | MAP_FIXED, fd, offset);
}

static size_t take_all_budget(void)
{
	size_t all = 0;

	while (budget_take(4096))
		all += 4096;
	return all;
}

static size_t budget_left(void)
{
	size_t all = take_all_budget();

	budget_give_back(all);
	return all;
}

/* The budget that so many buffers use, the process's own and others, all at CUPTI at once. */
static size_t charged_for(uint8_t *buffers[], size_t count, size_t left_before)
{
	size_t bytes;

	for (size_t i = 0; i < count; i++)
		buffers[i] = request(&bytes);
	return left_before - budget_left();
}

static void complete_and_shrink(uint8_t *buffers[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		activity_completed(NULL, 0, buffers[i], ACTIVITY_DATA_BYTES, 8);
	release_all();
	activity_shrink(); /* all were just used */
	activity_shrink();
}

/* In a process of its own, whose pool is empty. Buffers have a page for the header. */
static bool charges_pages(size_t page_bytes, size_t area_bytes)
{
	const size_t others = ACTIVITY_OWN, left = budget_left();
	size_t kept_bytes = page_bytes;
	uint8_t *buffers[2 * ACTIVITY_OWN];

	/* A larger page also has the beginning or the end of the data. */
	if (page_bytes > XT_ACTIVITY_DATA_OFFSET)
		kept_bytes += page_bytes;
	crash_buffer_page_bytes = (uint32_t)page_bytes;
	for (int round = 0; round < 3; round++) {
		if (charged_for(buffers, ACTIVITY_OWN + others, left) != others * area_bytes)
			return false;
		complete_and_shrink(buffers, ACTIVITY_OWN + others);
		if (left - budget_left() != others * kept_bytes)
			return false;
	}
	return true;
}

static void charges_whole_pages(void **unused)
{
	static const struct {
		size_t page_bytes, area_bytes;
	} rows[] = {{4 << 10, 132 << 10}, {16 << 10, 144 << 10}, {64 << 10, 192 << 10}};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(!charges_pages(rows[i].page_bytes, rows[i].area_bytes));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* The writer, running late. */
static void *late_main(void *unused)
{
	(void)unused;
	usleep(20000);
	activity_release(activity_take_completed());
	return NULL;
}

/* While the writer releases buffers, none is added and none is lost. */
static void waits_for_the_writer(void **unused)
{
	uint64_t discarded = activity_discarded;
	uint8_t *own[ACTIVITY_OWN];
	size_t all, bytes;
	pthread_t late;

	(void)unused;
	for (size_t i = 0; i < ACTIVITY_OWN; i++)
		own[i] = request(&bytes);
	all = take_all_budget();
	activity_completed(NULL, 0, own[5], bytes, 64);
	assert_int_equal(pthread_create(&late, NULL, late_main, NULL), 0);
	assert_ptr_equal(request(&bytes), own[5]);
	pthread_join(late, NULL);
	assert_true(activity_waited_ns > 1000000);
	assert_int_equal(activity_buffer_count(), ACTIVITY_OWN);
	assert_int_equal(activity_discarded, discarded);
	for (size_t i = 0; i < ACTIVITY_OWN; i++)
		activity_completed(NULL, 0, own[i], bytes, 64);
	budget_give_back(all);
}

/* Limits the address space to what is used now and more_bytes. Returns the limit before. */
static struct rlimit limit_memory(size_t more_bytes)
{
	struct rlimit before, limit;
	FILE *statm = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%zu", &pages), 1);
	fclose(statm);
	getrlimit(RLIMIT_AS, &before);
	limit = before;
	limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + more_bytes;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	return before;
}

/*
 * Although the writer could release a buffer soon, CUPTI gets one to discard. The rest of
 * the address space remains for the program.
 */
static void drops_without_memory(void **unused)
{
	uint64_t waited_ns = activity_waited_ns;
	uint8_t *own[ACTIVITY_OWN];
	struct rlimit before = limit_memory(8 << 20);
	void *more = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t bytes;

	(void)unused;
	setrlimit(RLIMIT_AS, &before);
	if (more != MAP_FAILED)
		skip(); /* qemu ignores the limit */
	for (size_t i = 0; i < ACTIVITY_OWN; i++)
		own[i] = request(&bytes);
	activity_completed(NULL, 0, own[0], bytes, 64);
	limit_memory(8 << 20);
	request(&bytes);
	assert_true(map_has_failed_lately());
	setrlimit(RLIMIT_AS, &before);
	assert_int_not_equal(bytes, ACTIVITY_DATA_BYTES);
	assert_int_equal(activity_waited_ns, waited_ns);
	assert_int_equal(activity_buffer_count(), ACTIVITY_OWN);
	for (size_t i = 1; i < ACTIVITY_OWN; i++)
		activity_completed(NULL, 0, own[i], ACTIVITY_DATA_BYTES, 64);
	while (map_has_failed_lately())
		usleep(1000);
}

/* The pool grows while CUPTI keeps buffers, and shrinks afterwards. */
static void grows_and_shrinks(void **unused)
{
	size_t all = take_all_budget();
	uint8_t *kept[3 * ACTIVITY_OWN];
	uint32_t most;
	size_t bytes;

	(void)unused;
	for (size_t i = 0; i < 3 * ACTIVITY_OWN; i++) {
		kept[i] = request(&bytes);
		assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
	}
	most = activity_buffer_count();
	assert_true(most >= 3 * ACTIVITY_OWN);
	activity_shrink();
	assert_int_equal(activity_buffer_count(),
			 most); /* all were just used, so none is released */
	for (size_t i = 0; i < 3 * ACTIVITY_OWN; i++) {
		kept[i][0] = 1;
		activity_completed(NULL, 0, kept[i], bytes, 8);
	}
	release_all();
	activity_shrink();
	assert_int_equal(activity_buffer_count(), ACTIVITY_OWN);
	/* Released pages are zeroed when used again. */
	budget_give_back(all);
	for (size_t i = 0; i < 3 * ACTIVITY_OWN; i++) {
		kept[i] = request(&bytes);
		assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
		for (size_t b = 0; b < bytes; b += 8)
			assert_int_equal(kept[i][b], 0);
	}
	for (size_t i = 0; i < 3 * ACTIVITY_OWN; i++)
		activity_completed(NULL, 0, kept[i], bytes, 8);
	release_all();
}

/* Runs last: it uses up all buffers. */
static void discards_when_exhausted(void **unused)
{
	static uint8_t *buffers[ACTIVITY_BUFFERS_MAX];
	uint64_t discarded = activity_discarded;
	uint64_t areas;
	uint32_t count = 0;
	uint8_t *buffer;
	size_t bytes;

	(void)unused;
	while ((buffer = request(&bytes)) && bytes == ACTIVITY_DATA_BYTES) {
		assert_true(count < ACTIVITY_BUFFERS_MAX);
		buffers[count++] = buffer;
	}
	assert_true(count > 0);
	/* CUPTI still gets a buffer each time, and each is counted. */
	assert_true(bytes >= 4096);
	memset(buffer, 0xff, bytes);
	/* No area is created in vain, as areas are never freed. Here all are plain memory. */
	areas = crash_buffer_unbacked_areas();
	assert_true(areas >= count);
	for (uint64_t i = 1; i <= 3; i++) {
		activity_completed(NULL, 0, buffer, bytes, bytes);
		assert_int_equal(activity_discarded, discarded + i);
		assert_null(activity_take_completed());
		assert_ptr_equal(request(&bytes), buffer);
	}
	assert_int_equal(crash_buffer_unbacked_areas(), areas);
	for (uint32_t i = 0; i < count; i++)
		activity_completed(NULL, 0, buffers[i], ACTIVITY_DATA_BYTES, 8);
	release_all();
	request(&bytes);
	assert_int_equal(bytes, ACTIVITY_DATA_BYTES);
	assert_int_equal(activity_discarded, discarded + 3);
}

static int release_all_after(void **unused)
{
	(void)unused;
	release_all();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charges_whole_pages),
		cmocka_unit_test_teardown(waits_for_the_writer, release_all_after),
		cmocka_unit_test_teardown(drops_without_memory, release_all_after),
		cmocka_unit_test_teardown(grows_and_shrinks, release_all_after),
		cmocka_unit_test_teardown(keeps_held_buffers_until_release, release_all_after),
		cmocka_unit_test_teardown(zeroes_released_buffers, release_all_after),
		cmocka_unit_test_teardown(limits_size_to_the_buffer, release_all_after),
		cmocka_unit_test_teardown(counts_double_completion, release_all_after),
		cmocka_unit_test_teardown(finds_buffers_published_out_of_order, release_all_after),
		cmocka_unit_test_teardown(delivers_all_buffers, release_all_after),
		cmocka_unit_test_teardown(keeps_spare_buffers, release_all_after),
		cmocka_unit_test_teardown(discards_after_fork, release_all_after),
		cmocka_unit_test_teardown(passes_on_foreign_buffers, release_all_after),
		cmocka_unit_test(takes_in_order_of_completion),
		cmocka_unit_test(discards_when_exhausted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
