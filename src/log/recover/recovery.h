/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recovery under way: what was taken out of the crash buffer, what the log has of it, and the tables
 * for the rest. For the recover*.c files alone; belongs to one thread.
 */
#ifndef XT_LOG_RECOVERY_H
#define XT_LOG_RECOVERY_H

#include <stddef.h>

#include "log/base/interner.h"
#include "log/recover/recover.h"
#include "log/write/writer.h"
#include "xtrace/log_format.h"
#include "xtrace/crash_buffer_format.h"

/* Bounds on what a crash buffer makes us keep; what a tracer makes is far below. */
#define RECOVERY_RING_BYTES_MAX	   (4u << 20)
#define RECOVERY_BUFFER_BYTES_MAX  (16u << 20)
#define RECOVERY_NAMES_BYTES_MAX   (16u << 20)
#define RECOVERY_KEPT_BYTES_MAX	   (1u << 30)
#define RECOVERY_WORK_COUNT_MAX	   (8u << 20)
#define RECOVERY_NAME_BYTES_MAX	   65535
#define RECOVERY_THREAD_ID_MAX	   (1u << 24)
#define RECOVERY_ACCOUNTS_MAX	   256
#define RECOVERY_ACCOUNT_NAME_SIZE 48

/* A ring as the crash buffer has it, and what the log has of its thread. */
struct recovery_ring {
	struct xt_ring_header header;
	uint8_t *records; /* those between free and write position, in one piece */
	bool has_thread_row;
	bool has_modules; /* its stacks say what their frames lie in */
	bool is_open_call_in_log[XT_RING_OPEN_CALLS_MAX]; /* or in the ring */
	bool is_last_returning; /* the last open call had been counted as returned */
	uint64_t last_exit_ns, last_range_ns, last_node_ns; /* of the log's rows; 0: none */
};

/* Goes over the records of a ring, {ring, ring->header.free_pos}. */
struct recovery_cursor {
	const struct recovery_ring *ring;
	uint64_t pos; /* behind the record that was given last */
	bool damaged; /* what comes next is no record */
};

/* A record of CUPTI's: work on the GPU, or an allocation. */
struct recovery_work {
	enum xt_kind kind; /* KERNEL, COPY, SET or MEMORY */
	uint32_t correlation_id;
	uint32_t place[3]; /* device, context, stream; of MEMORY: device, memory kind, operation */
	uint64_t start_ns; /* of MEMORY: when it was */
	uint64_t end_ns;
	uint64_t graph_node_id;
	uint64_t name;	  /* of KERNEL: the key of its name */
	uint64_t address; /* of MEMORY */
	uint64_t bytes;	  /* but of KERNEL */
	uint32_t like[9]; /* KERNEL: SHAPE's columns from 3 on; COPY: COPY_SHAPE's from 2 on;
			     SET: the memory's kind */
	bool at_cupti;	  /* found in a buffer that CUPTI had not completed */
	bool is_in_log;
	bool has_call; /* in the log, or in a ring */
};

/* Recording went on or was paused. */
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
	int error; /* the first that came up while rows were made */

	/* From the crash buffer (recover_crash_buffer.c, recover_work.c). */
	int crash_buffer_fd;
	struct xt_crash_buffer_header *crash_buffer;
	struct recovery_ring **rings;
	size_t ring_count;
	uint64_t counters[XT_RING_COUNTERS_MAX]; /* sums over all rings */
	uint64_t left_count;			 /* likewise */
	struct recovery_work *work;
	size_t work_count, work_capacity;
	uint32_t *work_by_call; /* places in work by correlation id (recover_pauses.c) */
	struct interner names;	/* (what, key) of each name */
	uint32_t *name_texts;	/* by id of names: id in texts */
	size_t name_texts_capacity;
	struct interner texts;
	uint64_t kept_bytes;

	/* From the log (recover_log.c). */
	struct xt_log_header log_header;
	struct interner streams; /* (device, context, stream) */
	uint64_t *stream_ids;	 /* by id of streams: XT_STREAM_ID */
	size_t stream_ids_capacity;
	uint64_t last_id[XT_KIND_COUNT]; /* in use, of kinds that define ids */
	uint64_t row_count[XT_KIND_COUNT];
	uint64_t thread_count;	  /* ids of threads */
	uint64_t returning_count; /* calls among out->open_calls that the counters have seen */
	uint64_t last_ns;	  /* the latest moment of which anything is known */
	struct recovery_account accounts[RECOVERY_ACCOUNTS_MAX];
	size_t account_count;
	bool was_closed;
	struct recovery_switch *switches; /* those of rings too */
	size_t switch_count, switch_capacity;

	/* To the log (recover_rows.c). */
	struct xt_table tables[XT_KIND_COUNT];
	uint64_t *text_strings; /* by id of texts: XT_STRING_ID, 0: none yet */
	size_t text_strings_capacity;
	struct interner shapes, copy_shapes, python_frames;
	uint64_t first_shape_id, first_copy_shape_id,
		first_python_frame_id; /* keys' begin behind */
};

/*
 * Makes room for item `index` in an array of items of item_bytes each. New items are zero. `array` points
 * to the array's pointer. False if out of memory.
 */
bool recovery_grow(void *array, size_t *capacity, size_t index, size_t item_bytes);

#endif
