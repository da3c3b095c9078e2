/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of activity buffers. activity_requested() and activity_completed() run on threads of
 * the application or of CUPTI, in the middle of a launch or a flush: no lock, no malloc, and a
 * system call only when the pool has run dry.
 */
#include "inject/activity.h"

#include <string.h>

#include "inject/spool.h"
#include "inject/hotpath.h"

atomic_uint_fast64_t activity_discarded;

static struct activity_buffer buffers[ACTIVITY_BUFFERS_MAX];
static atomic_uint reserved_count; /* entries of buffers[] that are made or being made */
static atomic_uint_fast64_t completions;
static atomic_bool abandoned;

/* CUPTI crashes when it is given no buffer. What it writes here is never read. */
static _Alignas(64) uint8_t discard_data[64 << 10];

static uint32_t buffer_count(void)
{
	unsigned count = atomic_load(&reserved_count);

	return count < ACTIVITY_BUFFERS_MAX ? count : ACTIVITY_BUFFERS_MAX;
}

static struct xt_activity_header *header_of(uint32_t index)
{
	/* Pairs with the release in make_buffer(). */
	return __atomic_load_n(&buffers[index].header, __ATOMIC_ACQUIRE);
}

static uint8_t *make_buffer(enum xt_activity_state state)
{
	struct xt_activity_header *header;
	unsigned index;

	/* What cannot be entered must not be made: an area is never given back. */
	if (atomic_load(&reserved_count) >= ACTIVITY_BUFFERS_MAX)
		return NULL;
	header = spool_area(XT_ACTIVITY_DATA_OFFSET + ACTIVITY_DATA_BYTES, XT_AREA_ACTIVITY);
	if (!header)
		return NULL;
	index = atomic_fetch_add(&reserved_count, 1);
	if (index >= ACTIVITY_BUFFERS_MAX)
		return NULL;
	header->data_bytes = ACTIVITY_DATA_BYTES;
	header->state = state;
	buffers[index].data = (uint8_t *)header + XT_ACTIVITY_DATA_OFFSET;
	__atomic_store_n(&buffers[index].header, header, __ATOMIC_RELEASE);
	return buffers[index].data;
}

static uint8_t *take_free_buffer(void)
{
	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = header_of(i);
		uint32_t expected = XT_ACTIVITY_FREE;

		if (header && __atomic_load_n(&header->state, __ATOMIC_RELAXED) == expected &&
		    __atomic_compare_exchange_n(&header->state, &expected, XT_ACTIVITY_AT_CUPTI,
						false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return buffers[i].data;
	}
	return NULL;
}

void activity_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	bool ours = !atomic_load_explicit(&abandoned, memory_order_relaxed);
	uint8_t *data = ours ? take_free_buffer() : NULL;

	if (!data && ours)
		data = make_buffer(XT_ACTIVITY_AT_CUPTI);
	*max_records_out = 0;
	if (data) {
		*buffer_out = data;
		*bytes_out = ACTIVITY_DATA_BYTES;
		return;
	}
	*buffer_out = discard_data;
	*bytes_out = sizeof(discard_data);
}

void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes)
{
	struct xt_activity_header *header;

	(void)context, (void)stream_id, (void)bytes;
	if (atomic_load_explicit(&abandoned, memory_order_relaxed))
		return;
	if (buffer == discard_data) {
		atomic_fetch_add(&activity_discarded, 1);
		return;
	}
	header = (struct xt_activity_header *)(buffer - XT_ACTIVITY_DATA_OFFSET);
	header->valid_bytes = valid_bytes;
	header->sequence = atomic_fetch_add(&completions, 1) + 1;
	/* Pairs with the acquire in activity_take_completed(). */
	__atomic_store_n(&header->state, XT_ACTIVITY_COMPLETED, __ATOMIC_RELEASE);
}

bool activity_is_at_cupti(void)
{
	for (uint32_t i = 0; i < buffer_count(); i++) {
		const struct xt_activity_header *header = header_of(i);

		if (header &&
		    __atomic_load_n(&header->state, __ATOMIC_RELAXED) == XT_ACTIVITY_AT_CUPTI)
			return true;
	}
	return false;
}

void activity_abandon(void)
{
	atomic_store(&abandoned, true);
}

void activity_stock(uint32_t count)
{
	uint32_t free_count = 0;

	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = header_of(i);

		if (header && __atomic_load_n(&header->state, __ATOMIC_RELAXED) == XT_ACTIVITY_FREE)
			free_count++;
	}
	while (free_count++ < count)
		if (!make_buffer(XT_ACTIVITY_FREE))
			return;
}

struct activity_buffer *activity_take_completed(void)
{
	struct activity_buffer *next = NULL;

	/* By state, not by sequence: a buffer may take its number first and be published last. */
	for (uint32_t i = 0; i < buffer_count(); i++) {
		struct xt_activity_header *header = header_of(i);

		if (!header || buffers[i].held ||
		    __atomic_load_n(&header->state, __ATOMIC_ACQUIRE) != XT_ACTIVITY_COMPLETED)
			continue;
		if (!next || header->sequence < next->header->sequence)
			next = &buffers[i];
	}
	if (next)
		next->held = true;
	return next;
}

struct activity_buffer *activity_next_at_cupti(uint32_t *index)
{
	while (*index < buffer_count()) {
		uint32_t i = (*index)++;
		struct xt_activity_header *header = header_of(i);

		if (header &&
		    __atomic_load_n(&header->state, __ATOMIC_RELAXED) == XT_ACTIVITY_AT_CUPTI)
			return &buffers[i];
	}
	return NULL;
}

void activity_hand_back(struct activity_buffer *buffer)
{
	struct xt_activity_header *header = buffer->header;

	buffer->held = false;
	buffer->peeked_bytes = 0;
	/* What is half zeroed must not be taken for records after a kill. */
	__atomic_exchange_n(&header->state, XT_ACTIVITY_IN_LOG, __ATOMIC_ACQ_REL);
	memset(buffer->data, 0, header->valid_bytes);
	header->valid_bytes = 0;
	/* Pairs with the acquire in take_free_buffer(): the zeroes are there before it is free. */
	__atomic_store_n(&header->state, XT_ACTIVITY_FREE, __ATOMIC_RELEASE);
}
