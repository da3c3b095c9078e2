/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the life cycle of activity buffers, and flushing.
 */
#include <pthread.h>
#include <unistd.h>

#include "conformance.h"

static bool buffers_come_back_once(void)
{
	struct buffer_note before;
	struct buffer_note after;

	client_set_buffer_bytes(64 << 10);
	client_clear();
	before = client_buffers();
	for (int i = 0; i < 5000; i++)
		expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_settle();
	after = client_buffers();
	client_set_buffer_bytes(1 << 20);
	expect(client_kernel_count() == 5000);
	expect(after.requested_count > before.requested_count + 10); /* 64 KiB hold about 300 */
	expect(after.completed_count > before.completed_count + 10);
	expect(after.completed_count <= after.requested_count);
	expect(after.strange_count == 0);
	return true;
}

static bool records_fill_the_valid_bytes(void)
{
	struct buffer_note buffers = client_buffers();

	expect(buffers.completed_count > 0);
	expect(buffers.unparsed_count == 0);
	expect(buffers.unaligned_count == 0);
	return true;
}

static void *launch_once(void *tid_out)
{
	*(int *)tid_out = gettid();
	driver.cuCtxSetCurrent(driver.context);
	launch_empty(NULL);
	return NULL;
}

/* True since 13.0, which has one buffer for each thread. */
static bool buffer_is_requested_by_the_launching_thread(void)
{
	uint64_t before_count;
	uint32_t version = 0;
	pthread_t thread;
	int tid = 0;

	expect(!cupti.cuptiGetVersion(&version));
	client_clear();
	before_count = client_buffers().requested_count;
	expect(!pthread_create(&thread, NULL, launch_once, &tid));
	expect(!pthread_join(thread, NULL));
	if (version >= 130000) {
		expect(client_buffers().requested_count == before_count + 1);
		expect(client_buffers().request_tid == tid);
	}
	client_settle();
	expect(client_kernel_count() == 1);
	return true;
}

static bool records_of_ended_threads_arrive(void)
{
	enum { THREADS = 50 };

	client_clear();
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		int tid;

		expect(!pthread_create(&thread, NULL, launch_once, &tid));
		expect(!pthread_join(thread, NULL));
	}
	client_settle();
	expect(client_kernel_count() == THREADS);
	return true;
}

static size_t incomplete_count(void)
{
	size_t count = 0;

	for (size_t i = 0; i < client_kernel_count(); i++)
		if (!client_kernel(i)->record.end_ns)
			count++;
	return count;
}

static bool plain_flush_brings_complete_records_only(void)
{
	enum { LAUNCHES = 300 };

	client_clear();
	for (int i = 0; i < LAUNCHES; i++) {
		expect(launch_spin(NULL, 100000) == CUDA_SUCCESS);
		if (i % 10 == 0)
			client_take_kernels();
	}
	expect(incomplete_count() == 0);
	client_settle();
	expect(client_kernel_count() == LAUNCHES);
	expect(incomplete_count() == 0);
	return true;
}

/* Every record comes exactly once. A kernel that still runs has no end. */
static bool forced_flush_brings_everything_once(void)
{
	enum { LAUNCHES = 50 };

	client_clear();
	for (int i = 0; i < LAUNCHES; i++)
		expect(launch_spin(NULL, 2000000) == CUDA_SUCCESS);
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_FORCED);
	client_settle();
	expect(client_kernel_count() == LAUNCHES);
	for (size_t i = 0; i < LAUNCHES; i++) {
		const struct kernel_note *kernel = client_kernel(i);

		expect(find_kernel(kernel->record.correlation_id) == kernel);
		expect(!kernel->record.end_ns || kernel->record.start_ns < kernel->record.end_ns);
	}
	return true;
}

static bool nothing_was_dropped(void)
{
	size_t dropped = 99;

	expect(!cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	expect(dropped == 0);
	return true;
}

const struct check buffer_checks[] = {
	{"buffers_come_back_once", buffers_come_back_once},
	{"records_fill_the_valid_bytes", records_fill_the_valid_bytes},
	{"buffer_is_requested_by_the_launching_thread",
	 buffer_is_requested_by_the_launching_thread},
	{"records_of_ended_threads_arrive", records_of_ended_threads_arrive},
	{"plain_flush_brings_complete_records_only", plain_flush_brings_complete_records_only},
	{"forced_flush_brings_everything_once", forced_flush_brings_everything_once},
	{"nothing_was_dropped", nothing_was_dropped},
	{NULL, NULL},
};
