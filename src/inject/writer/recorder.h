/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder turns what rings and activity buffers hold into rows of the log. It is the writer
 * thread's: every function here runs on that thread alone, and may allocate.
 *
 * Nothing leaves a ring or a buffer before it is in the file: rows wait in tables, and only a
 * flush that succeeded frees the ring space and the buffers they came from. So whatever is
 * committed is, at any moment, either in the log or in the crash buffer.
 */
#ifndef XT_INJECT_RECORDER_H
#define XT_INJECT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/cupti/activity.h"
#include "inject/writer/intern.h"
#include "inject/capture/thread_buffer.h"
#include "inject/unwind/module_image.h"
#include "inject/writer/suppressed_ids.h"
#include "log/base/size_text.h"
#include "log/write/writer.h"

#define HELD_BUFFERS_MAX 64
#define KNOWN_NAMES_BITS 12

/* What became of the rows of one kind. */
struct row_counts {
	uint64_t written;	   /* in the file */
	uint64_t pending;	   /* in tables or the writer's buffer */
	uint64_t write_failed;	   /* there was no memory for a row */
	uint64_t invalid;	   /* not made into rows */
	uint64_t beyond_size;	   /* left out to keep the log within its size */
	uint64_t shutdown_dropped; /* of calls while the process ended */
};

struct known_name {
	const char *address;
	uint64_t epoch;
	uint32_t id; /* XT_STRING_ID */
};

/* How near the log is to the size that it may have. */
struct size_limit {
	struct xt_size_bound bound;
	enum {
		SIZE_WITHIN_LIMIT,
		SIZE_COMPACTING,    /* the oldest events are being left out */
		SIZE_PAUSED,	    /* recording has been paused for good … */
		SIZE_LIMIT_REACHED, /* … and what came before is taken: the rest is left out */
	} state;
	uint64_t file_bytes; /* when it was last looked at */
	uint64_t largest_flush_bytes;
};

struct recorder {
	struct xt_writer *writer;
	uint64_t start_ns;
	struct xt_table tables[XT_KIND_COUNT];
	struct intern strings, modules, python_frames, stacks, streams, shapes, copy_shapes;

	struct known_name names[1 << KNOWN_NAMES_BITS]; /* kernel names, by hash of the address */
	struct intern crash_buffer_names;		/* those that the crash buffer has */

	/* Buffers whose records are in tables but not in the file yet. */
	struct activity_buffer *held[HELD_BUFFERS_MAX];
	uint32_t held_count;
	/* Those that are completed and next to be read. */
	struct activity_buffer *taken[HELD_BUFFERS_MAX];

	struct row_counts calls, kernels, copies, sets, memory;
	uint64_t records_other, records_skipped, buffers_completed;
	uint64_t buffers_lost; /* that could not be read to the end */
	uint64_t names_lost;   /* kernels without a name */
	/* There was no memory for their rows. */
	uint64_t stacks_lost, modules_lost, nodes_lost, ranges_lost;
	uint64_t buffers_completed_before; /* as of the last prefetch_names() */
	uint64_t launches;		   /* among the calls: of classes that make kernels */
	uint64_t threads_seen;
	uint64_t rounds;	       /* of record_calls() */
	struct suppressed_ids skipped; /* as the user wishes */
	struct suppressed_ids
		shutdown_dropped;     /* of other threads while the process ends: these are lost */
	uint64_t skipped_beyond_size; /* of these, those that were left out for the log's size */
	uint64_t ranges_beyond_size, nodes_beyond_size;
	uint64_t calls_seen; /* record_calls_seen(), as of the account that was written last */
	bool is_closed;	     /* what is seen and not counted yet comes too late */
	struct size_limit size_limit;
	double limit_percent; /* that the tracer may cost the program's threads; 0: any */
	bool devices_named;
	int write_error; /* -errno of the last flush; while it is not 0, nothing is taken */
	bool has_said_error, has_said_success;
	uint64_t last_scan_ns; /* of the modules */
};

/* Opens the tables on a writer, which the recorder then owns. 0 or -errno. */
int recorder_init(struct recorder *rec, struct xt_writer *writer, uint64_t start_ns);
void recorder_free(struct recorder *rec);

/*
 * The table of a kind with room for one more row that brings `content` bytes or elements to a
 * column; makes room by turning all tables into chunks. NULL if that failed or never fits.
 */
struct xt_table *recorder_table(struct recorder *rec, enum xt_kind kind, size_t content);

/* As recorder_table(), for the row of an id that `known` gave just now. Before it returns NULL, it
 * has `known` forget the id, which must not be used. */
struct xt_table *recorder_table_of_id(struct recorder *rec, struct intern *known, enum xt_kind kind,
				      size_t content);

/* The XT_STRING_ID of a text; 0 if it is empty, or there is no memory. */
uint32_t recorder_string(struct recorder *rec, const void *text, size_t length);

/* The XT_MODULE_ID of a module; load_ns: when it was not there yet, if this is the first that is heard
 * of it. 0 if there is no memory. */
uint32_t recorder_module(struct recorder *rec, const struct module_image *image, const char *path,
			 size_t path_bytes, uint64_t load_ns);

/* Notes in the crash buffer what a number of ours means, once. */
void recorder_crash_buffer_name(struct recorder *rec, enum xt_name_of of, uint64_t key,
				const char *text, size_t length);

/*
 * Tables to chunks to the file; then frees what they came from. 0 or -errno. An error loses
 * nothing: rows and chunks stay for the next flush, and what they came from stays in the crash buffer.
 * Until a flush succeeds, no more is taken, and threads do not wait for room.
 */
int recorder_flush(struct recorder *rec);

/* Is what comes now beyond it? Then it is counted as lost by that. */
static inline bool recorder_is_full(const struct recorder *rec)
{
	return rec->size_limit.state == SIZE_LIMIT_REACHED;
}

#endif
