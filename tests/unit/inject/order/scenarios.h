/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for the explorer, and the objects whose orders order_test.c weakens. */
#ifndef XT_TEST_SCENARIOS_H
#define XT_TEST_SCENARIOS_H

#include "explorer.h"
#include "inject/capture/thread_buffer.h"

/* A ring as in the crash buffer: header, then data. */
extern struct scenario_ring {
	struct xt_ring_header header;
	uint8_t rest[XT_RING_DATA_OFFSET + RING_DATA_BYTES - sizeof(struct xt_ring_header)];
} scenario_ring;
extern struct thread_buffer scenario_thread_buffer;

extern const struct explorer_program ring_records, ring_turns, ring_widens, stack_slots;
extern const struct explorer_program guarded_words, guarded_words_writers, settled_account;

extern const struct explorer_program buffers_claimed, buffers_reused;
extern const struct explorer_program buffers_inherited, buffers_inherited_unnoticed;
extern const struct explorer_program pool_one_thread, pool_two_threads, pool_grows;
extern const struct explorer_program file_created, file_areas;

/* The first mapping of at most so many bytes. */
#define SCENARIO_AREA_BYTES (512u << 10)
extern uint8_t scenario_area[SCENARIO_AREA_BYTES];

extern bool scenario_threads_have_ended; /* as the kernel answers about any thread */
#define SCENARIO_FD 100

extern const void *scenario_state; /* of the only buffer */
extern const void *const buffers_place, *const has_writer_place;
extern const void *const pool_header_place;
extern const void *const file_header_place, *const file_kind_place;
extern atomic_uint_fast64_t guarded_sequence;
extern uint64_t scenario_lost;

/* With steps in a wrong order, or without a check: these must fail. */
extern const struct explorer_program stack_slots_freed_first, account_seen_first;
extern const struct explorer_program pool_zeroed_last;

#endif
