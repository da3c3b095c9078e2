/* SPDX-License-Identifier: Apache-2.0 */
/* Activity buffers: CUPTI's threads take and complete them, the writer reads and frees them. */
/* Included for its static variables. */
#include "inject/cupti/activity_pool.c"

#include "scenarios.h"

#define VALID_BYTES 64

const void *const pool_header_place = &pool.buffers[1].header;

static void set_up_buffer(void)
{
	activity_refill(1);
}

/* Does the steps of activity_requested() and activity_completed(). */
static void complete_buffer(void)
{
	uint8_t *data = activity_take_free();

	if (!data)
		return;
	if (*(uint64_t *)data)
		explorer_fail("a free buffer has records");
	*(uint64_t *)data = explorer_thread();
	if (!activity_complete(activity_header_of(data), VALID_BYTES, explorer_thread()))
		explorer_fail("a buffer was taken twice");
}

static void complete_twice(void)
{
	complete_buffer();
	complete_buffer();
}

static void release_buffer(void)
{
	struct activity_buffer *buffer = activity_take_completed();

	if (!buffer)
		return;
	if (buffer->header->valid_bytes != VALID_BYTES ||
	    *(uint64_t *)buffer->data != buffer->header->sequence)
		explorer_fail("a completed buffer is not whole");
	activity_release(buffer);
}

/* Like activity_release(), but zeroes the data last. */
static void release_before_zeroing(void)
{
	struct activity_buffer *buffer = activity_take_completed();
	size_t valid_bytes;

	if (!buffer)
		return;
	valid_bytes = buffer->header->valid_bytes;
	buffer->held = false;
	__atomic_exchange_n(&buffer->header->state, XT_ACTIVITY_IN_LOG, __ATOMIC_ACQ_REL);
	buffer->header->valid_bytes = 0;
	__atomic_store_n(&buffer->header->state, XT_ACTIVITY_FREE, __ATOMIC_RELEASE);
	memset(buffer->data, 0, valid_bytes);
}

/* After a kill, a buffer that recovery reads has its records. */
static void check_pool(void)
{
	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = pool.buffers[i].header;

		if (header && header->state == XT_ACTIVITY_COMPLETED &&
		    (header->valid_bytes != VALID_BYTES ||
		     *(uint64_t *)pool.buffers[i].data != header->sequence))
			explorer_fail("a kill leaves a completed buffer that is not whole");
	}
}

const struct explorer_program pool_one_thread = {
	.set_up = set_up_buffer,
	.threads = {complete_twice, release_buffer},
	.at_each_write = check_pool,
	.at_end = check_pool,
	.switches_max = 3,
};
const struct explorer_program pool_zeroed_last = {
	.set_up = set_up_buffer,
	.threads = {complete_twice, release_before_zeroing},
	.switches_max = 3,
};
const struct explorer_program pool_two_threads = {
	.set_up = set_up_buffer,
	.threads = {complete_buffer, complete_buffer, release_buffer},
	.at_each_write = check_pool,
	.at_end = check_pool,
	.switches_max = 2,
};

/* A buffer that a thread adds while another looks for a free one. */
static void add_free_buffer(void)
{
	add_buffer(XT_ACTIVITY_FREE, true);
}

const struct explorer_program pool_grows = {
	.set_up = set_up_buffer,
	.threads = {add_free_buffer, complete_twice},
	.at_end = check_pool,
	.switches_max = 2,
};
