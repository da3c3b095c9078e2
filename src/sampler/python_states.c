/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads start and end while their list is read. So a state counts only if it names the
 * interpreter it was reached from, and a reader of its frames checks its thread once more.
 */
#include "sampler/python_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "sampler/process_read.h"
#include "sampler/thread_descriptor.h"

#define STATE_BYTES_MAX 256
#define STATES_MAX	65536 /* a list that changes may look endless */
#define BATCH		(PROCESS_MEMORY_PARTS_MAX / 2)

static uint64_t word(const uint8_t *bytes, size_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* From the links to the number of the thread. */
static size_t state_bytes(const struct python_layout *layout)
{
	size_t end = layout->state_native_id ? layout->state_native_id : layout->state_pthread;

	return end + 8 < STATE_BYTES_MAX ? end + 8 : STATE_BYTES_MAX;
}

static void fill_state(struct python_state *out, uint64_t address,
		       const struct python_layout *layout, const uint8_t *bytes)
{
	*out = (struct python_state){.address = address,
				     .previous = word(bytes, 0),
				     .next = word(bytes, 8),
				     .interpreter = word(bytes, 16),
				     .pthread = word(bytes, layout->state_pthread)};
	if (layout->state_native_id && out->pthread)
		out->tid = (pid_t)word(bytes, layout->state_native_id);
}

static void fill_tid(struct python_state *state, const uint8_t *pthread)
{
	if (!thread_descriptor_is_valid(pthread, state->pthread))
		return;
	state->has_tid_word = true;
	state->tid = thread_descriptor_tid(pthread);
}

static bool is_same(const struct python_state *a, const struct python_state *b)
{
	return a->address == b->address && a->previous == b->previous && a->next == b->next &&
	       a->interpreter == b->interpreter && a->pthread == b->pthread && a->tid == b->tid &&
	       a->has_tid_word == b->has_tid_word;
}

/* Whether these states are as they were. One system call for all. */
static bool batch_is_current(const struct python_state *states, size_t count,
			     const struct python_place *place)
{
	uint8_t state_copies[BATCH][STATE_BYTES_MAX],
		pthread_copies[BATCH][THREAD_DESCRIPTOR_BYTES];
	struct process_memory_part parts[PROCESS_MEMORY_PARTS_MAX];
	size_t part_count = 0;

	for (size_t i = 0; i < count; i++) {
		parts[part_count++] = (struct process_memory_part){
			state_copies[i], states[i].address, state_bytes(&place->layout)};
		if (states[i].has_tid_word)
			parts[part_count++] = (struct process_memory_part){
				pthread_copies[i], states[i].pthread, THREAD_DESCRIPTOR_BYTES};
	}
	if (!process_memory_read_parts(place->pid, parts, part_count))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct python_state now;

		fill_state(&now, states[i].address, &place->layout, state_copies[i]);
		if (states[i].has_tid_word && now.pthread == states[i].pthread)
			fill_tid(&now, pthread_copies[i]);
		if (!is_same(&now, &states[i]))
			return false;
	}
	return true;
}

static bool read_interpreters(const struct python_place *place, struct python_interpreter *out,
			      uint32_t *count_out)
{
	const struct python_layout *layout = &place->layout;
	uint64_t at;

	*count_out = 0;
	if (!process_memory_read(place->pid, &at, place->runtime + layout->runtime_head,
				 sizeof(at)))
		return false;
	for (; at && *count_out < PYTHON_INTERPRETERS_MAX; at = out[(*count_out)++].next) {
		struct python_interpreter *next = &out[*count_out];
		const struct process_memory_part parts[] = {
			{&next->next, at + layout->interpreter_next, 8},
			{&next->threads, at + layout->interpreter_threads, 8}};

		next->address = at;
		if (at % 8 || !process_memory_read_parts(place->pid, parts, 2))
			return false;
	}
	return true;
}

static bool is_current(const struct python_states *states, const struct python_place *place,
		       const struct python_interpreter *interpreters, uint32_t interpreter_count)
{
	if (interpreter_count != states->interpreter_count ||
	    memcmp(interpreters, states->interpreters, interpreter_count * sizeof(*interpreters)))
		return false;
	for (size_t i = 0; i < states->count; i += BATCH) {
		size_t count = states->count - i < BATCH ? states->count - i : BATCH;

		if (!batch_is_current(&states->list[i], count, place))
			return false;
	}
	return true;
}

/* Follows the list of an interpreter. */
static int list_threads(struct python_states *out, const struct python_place *place,
			const struct python_interpreter *interpreter)
{
	uint64_t previous = 0, at = interpreter->threads;
	uint8_t bytes[STATE_BYTES_MAX], pthread[THREAD_DESCRIPTOR_BYTES];
	struct python_state state;
	int rc = 0;

	while (at && !rc) {
		if (at % 8 || out->count == STATES_MAX ||
		    !process_memory_read(place->pid, bytes, at, state_bytes(&place->layout)))
			return -EAGAIN;
		fill_state(&state, at, &place->layout, bytes);
		if (state.interpreter != interpreter->address || state.previous != previous)
			return -EAGAIN;
		if (state.pthread &&
		    process_memory_read(place->pid, pthread, state.pthread, sizeof(pthread)))
			fill_tid(&state, pthread);
		rc = grow(&out->list, &out->capacity, out->count + 1, sizeof(*out->list));
		if (!rc)
			out->list[out->count++] = state;
		previous = at;
		at = state.next;
	}
	return rc;
}

static int by_tid(const void *a, const void *b)
{
	const struct python_state *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

/* See struct _gil_runtime_state in CPython's pycore_gil.h. */
#define GIL_BYTES	 208
#define GIL_LAST_HOLDER	 8
#define GIL_LOCKED	 16
#define GIL_WAITED	 32 /* two pairs of a condition variable and a mutex, to the end */
#define GIL_MUTEX	 80
#define GIL_SWITCH_MUTEX 168
#define GIL_TRIES_MAX	 100
#define GIL_SEARCH_BYTES 16384
#define INTERVAL_MAX_US	 UINT64_C(100000000)
/* glibc's condition variables have this flag if they use the monotonic clock, as CPython's do. */
#define CLOCK_FLAG	2u
#define CLOCK_WORD	36
#define CLOCK_WORD_2_41 28
#define MUTEX_KIND	16

static uint32_t half(const uint8_t *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static bool looks_like_gil(const struct python_states *states, const uint8_t *at)
{
	uint64_t interval_us = word(at, 0), holder = word(at, GIL_LAST_HOLDER);
	uint32_t flags = half(at, GIL_WAITED + CLOCK_WORD) | half(at, GIL_WAITED + CLOCK_WORD_2_41);

	if (!interval_us || interval_us > INTERVAL_MAX_US || half(at, GIL_LOCKED) > 1 ||
	    !(flags & CLOCK_FLAG) || half(at, GIL_MUTEX) > 2 || half(at, GIL_SWITCH_MUTEX) > 2 ||
	    half(at, GIL_MUTEX + MUTEX_KIND) || half(at, GIL_SWITCH_MUTEX + MUTEX_KIND))
		return false;
	for (size_t i = 0; i < states->count; i++)
		if (states->list[i].address == holder)
			return true;
	return false;
}

static uint64_t gil_base(const struct python_states *states, const struct python_place *place,
			 uint32_t interpreter)
{
	/* To 3.11 all interpreters share one lock. */
	return place->layout.runtime_interpreters ? place->runtime
						  : states->interpreters[interpreter].address;
}

/* The structure moved between releases, but its contents did not. */
static void find_gil(struct python_states *states, const struct python_place *place)
{
	static uint8_t bytes[GIL_SEARCH_BYTES];
	size_t byte_count;

	if (states->gil_offset || !states->interpreter_count ||
	    states->gil_tries++ == GIL_TRIES_MAX)
		return;
	byte_count = process_memory_read_some(
		place->pid, bytes, gil_base(states, place, states->interpreter_count - 1),
		sizeof(bytes));
	for (size_t at = 8; at + GIL_BYTES <= byte_count; at += 8)
		if (looks_like_gil(states, bytes + at)) {
			states->gil_offset = (uint32_t)at;
			return;
		}
}

int python_states_refresh(struct python_states *states, const struct python_place *place)
{
	struct python_states fresh = *states;
	int rc = 0;

	if (!read_interpreters(place, fresh.interpreters, &fresh.interpreter_count))
		return -EAGAIN;
	if (!is_current(states, place, fresh.interpreters, fresh.interpreter_count)) {
		fresh.list = NULL;
		fresh.count = fresh.capacity = 0;
		for (uint32_t i = 0; i < fresh.interpreter_count && !rc; i++)
			rc = list_threads(&fresh, place, &fresh.interpreters[i]);
		if (rc) {
			free(fresh.list);
			return rc;
		}
		qsort(fresh.list, fresh.count, sizeof(*fresh.list), by_tid);
		free(states->list);
		*states = fresh;
	}
	find_gil(states, place);
	return 0;
}

const struct python_state *python_states_of(const struct python_states *states, pid_t tid,
					    size_t *count_out)
{
	size_t low = 0, high = states->count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (states->list[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < states->count && states->list[end].tid == tid;)
		end++;
	*count_out = end - low;
	return end > low ? &states->list[low] : NULL;
}

bool python_states_is_gil(const struct python_states *states, const struct python_place *place,
			  uint64_t futex_address)
{
	for (uint32_t i = 0; i < states->interpreter_count && states->gil_offset; i++) {
		uint64_t gil = gil_base(states, place, i) + states->gil_offset;

		if (futex_address - (gil + GIL_WAITED) < GIL_BYTES - GIL_WAITED)
			return true;
	}
	return false;
}

uint64_t python_states_gil_holder(const struct python_states *states,
				  const struct python_place *place)
{
	uint8_t gil[GIL_LOCKED + 4];

	/* The main interpreter first. */
	for (uint32_t i = states->interpreter_count; i-- > 0 && states->gil_offset;) {
		if (process_memory_read(place->pid, gil,
					gil_base(states, place, i) + states->gil_offset,
					sizeof(gil)) &&
		    half(gil, GIL_LOCKED) == 1 && word(gil, GIL_LAST_HOLDER))
			return word(gil, GIL_LAST_HOLDER);
	}
	return 0;
}

pid_t python_states_tid(const struct python_states *states, uint64_t address)
{
	for (size_t i = 0; i < states->count; i++)
		if (states->list[i].address == address)
			return states->list[i].tid;
	return 0;
}

void python_states_free(struct python_states *states)
{
	free(states->list);
	*states = (struct python_states){0};
}
