/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the unclosed log of a killed process and its crash buffer:
 *
 * - Thread 1: calls 1 and 2 are in the log. The ring has call 2 again, call 3 (stack in the ring),
 *   call 4 (stack in the log), an NVTX push and a graph node. Call 5 has not returned.
 * - Thread 2, which is not in the log: call 6.
 * - Completed buffer:
 *   - kernel 1, which is in the log
 *   - kernel 3, with its name in the crash buffer, and twice on other streams
 *   - kernel 4, whose name is lost
 *   - a copy, a peer copy, a memset, an allocation, a kernel without an end
 * - Buffer at CUPTI:
 *   - kernels 5 and 8, finished
 *   - kernel 6, started
 *   - kernel 7, with times of another clock
 */
#ifndef XT_TEST_RECOVER_MAKER_H
#define XT_TEST_RECOVER_MAKER_H

#include "support.h"
#include "xtrace/crash_buffer_format.h"

#define MADE_LOG_ID	UINT64_C(0x0123456789abcdef)
#define MADE_START_NS	UINT64_C(1000)
#define MADE_RING_BYTES 4096u
#define MADE_CALLS	3 /* added by the rings of all threads */
#define MADE_OPEN_CALLS 1
#define MADE_KERNELS	6

/* Positions in the crash buffer, for tests that change it. */
enum made_area { MADE_RING_1, MADE_RING_2, MADE_COMPLETED, MADE_AT_CUPTI, MADE_NAMES, MADE_AREAS };

struct made_crash_buffer {
	struct blob bytes;
	uint64_t offsets[MADE_AREAS];
	uint64_t records_bytes; /* of thread 1's ring, from its free position */
	uint64_t free_pos;
	uint64_t valid_bytes; /* of the completed buffer */
	uint64_t names_bytes;
};

void make_crash_buffer(struct made_crash_buffer *crash_buffer, uint32_t cupti_version);
struct xt_crash_buffer_header *made_header(struct made_crash_buffer *crash_buffer);
struct xt_ring_header *made_ring(struct made_crash_buffer *crash_buffer, enum made_area area);
struct xt_activity_header *made_buffer(struct made_crash_buffer *crash_buffer, enum made_area area);

/* Writes the log, replacing an existing one. */
void make_log(const char *path);

#endif
