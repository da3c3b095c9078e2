/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a recovery: data from the crash buffer, what the log already has, and the tables for the
 * rest. For src/log/recover alone; belongs to one thread.
 *
 * Reads the crash buffer of a dead process. Its content is untrusted: every size and offset is
 * checked against the file and the limits below.
 */
#ifndef XT_LOG_RECOVER_CRASH_BUFFER_H
#define XT_LOG_RECOVER_CRASH_BUFFER_H

#include <stddef.h>

#include "log/base/hash_table.h"
#include "log/recover/recover.h"
#include "log/write/event_rows.h"
#include "log/write/writer.h"
#include "xtrace/crash_buffer_format.h"
#include "xtrace/log_format.h"

#define RECOVERY_THREAD_ID_MAX	   (1u << 24)
#define RECOVERY_ACCOUNTS_MAX	   256
#define RECOVERY_ACCOUNT_NAME_SIZE 48

/* A ring of the crash buffer, and what the log has of its thread. */
struct recovery_ring {
	struct xt_ring_header header;
	uint8_t *records; /* from the free to the write position, contiguous */
	bool has_thread_row;
	bool is_open_call_in_log[XT_RING_OPEN_CALLS_MAX]; /* or committed to the ring */
	bool is_last_returning; /* the last open call was already counted as returned */
	uint64_t last_exit_ns, last_range_ns, last_node_ns; /* latest times in the log; 0: none */
};

/* Iterates over the records of a ring. Start with {ring, ring->header.free_pos}. */
struct recovery_cursor {
	const struct recovery_ring *ring;
	uint64_t pos; /* end of the last returned record */
	bool damaged; /* the data at pos is not a record */
};

/* A record of CUPTI. */
struct recovery_work {
	struct xt_gpu_work gpu;
	bool at_cupti; /* from a buffer that CUPTI had not completed */
	bool is_in_log;
	bool has_call; /* its call is in the log or in a ring */
};

/* Recording was resumed or paused. */
struct recovery_switch {
	uint64_t time_ns;
	bool is_on;
};

struct recovery_account {
	char name[RECOVERY_ACCOUNT_NAME_SIZE];
	uint64_t value;
};

struct recovery {
	struct xt_recovered *out;
	struct xt_writer *writer;
	int error; /* first error while building rows */

	/* From the crash buffer (recover_crash_buffer.c). */
	int crash_buffer_fd;
	struct xt_crash_buffer_header *crash_buffer;
	struct recovery_ring **rings;
	size_t ring_count;
	uint64_t counters[XT_RING_COUNTERS_MAX];       /* sums over all rings */
	uint64_t shutdown_drop_count, size_drop_count; /* sums over all rings */
	struct recovery_work *work;
	size_t work_count, work_capacity;
	uint32_t *work_by_call; /* indexes of work, sorted by correlation id */
	struct interner names;	/* key: (what, key) of each name */
	uint32_t *name_texts;	/* by id in names: id in texts */
	size_t name_texts_capacity;
	struct interner texts;
	uint64_t kept_bytes;

	/* From the log (recover_log.c). */
	struct xt_log_header log_header;
	struct interner streams; /* key: (device, context, stream) */
	uint64_t *stream_ids;	 /* by id in streams: XT_STREAM_ID */
	size_t stream_ids_capacity;
	uint64_t last_id[XT_KIND_COUNT]; /* largest id in use, for kinds that define ids */
	uint64_t row_count[XT_KIND_COUNT];
	uint64_t thread_count;	  /* number of thread ids */
	uint64_t returning_count; /* calls in out->open_calls that the counters include */
	uint64_t last_ns;	  /* latest known moment */
	struct recovery_account accounts[RECOVERY_ACCOUNTS_MAX];
	size_t account_count;
	bool was_closed;
	struct recovery_switch *switches; /* including those in rings */
	size_t switch_count, switch_capacity;

	/* To the log (recover_log.c). */
	struct xt_table tables[XT_KIND_COUNT];
	uint64_t *text_strings; /* by id in texts: XT_STRING_ID; 0: none yet */
	size_t text_strings_capacity;
	struct interner shapes, copy_shapes, python_frames;
	uint64_t first_shape_id, first_copy_shape_id,
		first_python_frame_id; /* ids of interned keys continue after these */
};

/* Opens the file and checks its header. 0, -ENOENT, -EBADMSG or -errno. */
int recovery_open_crash_buffer(struct recovery *recovery, const char *path);

/*
 * Whether the opened file is a crash buffer, complete or half created: only then may it be deleted.
 */
bool recovery_is_unused(const struct recovery *recovery);

/* Reads rings, activity buffers and names into *recovery. 0 or -errno. */
int recovery_read_crash_buffer(struct recovery *recovery);

/* The next whole record, or NULL at the end or where the ring is damaged. */
const struct xt_record *recovery_next_record(struct recovery_cursor *cursor);

#endif
