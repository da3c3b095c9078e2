/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges that are open. While recording is stopped, their ends are not recorded, so they end
 * when it stops. Writer thread only.
 */
#ifndef XT_INJECT_OPEN_RANGES_H
#define XT_INJECT_OPEN_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

struct open_range {
	uint64_t key;	 /* of a started range */
	uint64_t domain; /* as in struct xt_record_range */
	uint32_t thread_id;
	bool is_start;
	uint64_t start_ns;
	uint32_t triggers; /* snapshot_triggers_of_range() */
};

struct open_ranges {
	struct open_range *rows;
	size_t count, capacity;
	uint64_t ended_count;	/* ends that record_range_ends() added */
	uint64_t ignored_count; /* ends that open_ranges_note() refused */
	bool had_stop;		/* ignore ends of ranges that began before */
	uint64_t key_before;	/* the last key from before recording started again */
};

/*
 * Notes an event. Returns false if it ends a range that began while recording was stopped. Tracks
 * at most OPEN_RANGES_MAX ranges, and accepts every end beyond that.
 * triggers: of the range, if the event opens one
 * closed: receives the range that the event ends, if it is tracked
 */
#define OPEN_RANGES_MAX 4096
bool open_ranges_note(struct open_ranges *open, const struct xt_record_range *record,
		      uint32_t thread_id, uint32_t triggers, struct open_range *closed);

/* Removes the range that opened last. False if none is open. */
bool open_ranges_take(struct open_ranges *open, struct open_range *range);

void open_ranges_free(struct open_ranges *open);

#endif
