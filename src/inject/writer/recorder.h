/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder turns the contents of rings and activity buffers into rows of the log. Writer thread
 * only; may allocate.
 *
 * Rows wait in tables. Only a successful flush frees the ring space and the buffers they came from.
 * So everything committed is in the log or in the crash buffer at any time.
 */
#ifndef XT_INJECT_RECORDER_H
#define XT_INJECT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/activity.h"
#include "inject/unwind/stack_walk.h"
#include "log/base/allocations.h"
#include "log/base/number_format.h"
#include "log/read/rows.h"
#include "log/base/hash_table.h"
#include "log/write/writer.h"

#define HELD_BUFFERS_MAX 64
#define KNOWN_NAMES_BITS 12

/*
 * Gives equal keys equal ids, for interned tables of the log: strings, stacks, streams, shapes.
 */
struct intern {
	struct interner keys;
	size_t keys_limit; /* above this, or the budget, the keys are forgotten */
	size_t charged_bytes;
	uint32_t forgotten_count; /* keys that were forgotten; ids continue after them */
};

#define SKIPPED_PAGES_MAX 64

/*
 * Correlation ids of calls that were not recorded, so that their GPU work is dropped too.
 *
 * A bit set in pages that are created as needed. Zero-initialised means empty. Keeps the latest
 * thirty million calls; the GPU work of older ones has ended.
 */
struct suppressed_ids {
	uint8_t **pages;
	uint32_t made[SKIPPED_PAGES_MAX]; /* page numbers in order of creation, a ring buffer */
	uint32_t made_count; /* pages ever made; modulo SKIPPED_PAGES_MAX: place of the oldest */
	uint64_t count;	     /* ids ever added */
};

/* Counts rows of one kind. */
struct row_counts {
	uint64_t written;	   /* in the file */
	uint64_t pending;	   /* in tables or the writer's buffer */
	uint64_t write_failed;	   /* out of memory */
	uint64_t invalid;	   /* invalid records */
	uint64_t beyond_size;	   /* dropped to keep the log within --max-size */
	uint64_t shutdown_dropped; /* of calls during process exit */
};

struct known_name {
	const char *address;
	uint64_t epoch;
	uint32_t id; /* XT_STRING_ID */
};

/*
 * NVTX ranges that are open. While recording is stopped, their ends are not recorded, so they end
 * when it stops.
 */
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
	uint64_t ignored_count; /* ends that note_range() refused */
	bool had_stop;		/* recording was stopped: ignore ends of ranges that began before */
	uint64_t key_before;	/* the last key from before recording started again */
};

#define MEMORY_TOTALS_DEVICES_MAX 64

/*
 * The GPU memory that is allocated, for readers of logs that lack their beginning. Zeros are a
 * program that has not allocated anything.
 */
struct memory_totals {
	struct xt_allocations allocations;
	uint64_t bytes[MEMORY_TOTALS_DEVICES_MAX];
	bool is_used[MEMORY_TOTALS_DEVICES_MAX];
	bool is_unknown; /* too many allocations, or out of memory */
};

/* The log's size relative to --max-size. */
struct size_limit {
	struct xt_size_bound bound;
	enum {
		SIZE_WITHIN_LIMIT,
		SIZE_COMPACTING, /* the oldest events are being removed */
		SIZE_PAUSED, /* recording is paused for good; events before that are still taken */
		SIZE_LIMIT_REACHED, /* all further events are dropped */
	} state;
	uint64_t file_bytes;	/* at the last check */
	uint64_t kept_from_ns;	/* for a limit of time: events since then are kept; 0: all */
	uint64_t next_from_ns;	/* the same, after the compaction in progress */
	uint64_t retry_from_ns; /* no compaction before then, because the last one failed */
	uint64_t largest_flush_bytes;
};

struct recorder {
	struct xt_writer *writer;
	uint64_t start_ns;
	uint64_t stopped_ns, resumed_ns; /* of recording, last; 0: never, or not since the stop */
	struct xt_table tables[XT_KIND_COUNT];
	struct intern strings, modules, python_frames, stacks, streams, shapes, copy_shapes,
		autograd;

	struct known_name names[1 << KNOWN_NAMES_BITS]; /* kernel names, by hash of the address */
	struct intern crash_buffer_names;		/* names stored in the crash buffer */

	/* Buffers whose rows are not in the file yet. */
	struct activity_buffer *held[HELD_BUFFERS_MAX];
	uint32_t held_count;
	/* Completed buffers to read next. */
	struct activity_buffer *taken[HELD_BUFFERS_MAX];

	struct row_counts calls, kernels, copies, sets, memory;
	uint64_t records_other, records_skipped, buffers_completed;
	uint64_t buffers_lost; /* not readable to the end */
	uint64_t names_lost;   /* kernels without a name */
	/* Rows lost for lack of memory. */
	uint64_t stacks_lost, modules_lost, nodes_lost, ranges_lost;
	uint64_t scans_failed; /* of modules, for lack of memory; the next one makes up for one */
	uint64_t buffers_completed_before; /* at the last prefetch_names() */
	uint64_t launches;		   /* calls of classes that launch kernels */
	uint64_t threads_seen;
	uint64_t rounds;			/* of record_calls() */
	struct suppressed_ids skipped;		/* not recorded on request */
	struct suppressed_ids shutdown_dropped; /* calls during process exit; these count as lost */
	uint64_t skipped_beyond_size;		/* part of `skipped`: because of --max-size */
	uint64_t ranges_beyond_size, nodes_beyond_size;
	uint64_t ranges_forgotten;		/* dropped by a flight recorder, so no loss */
	uint64_t ranges_written, nodes_written; /* rows in the log or on their way */
	uint64_t work_count;			/* rows of GPU work */
	uint64_t snapshots_automatic, triggers_fired;
	uint64_t calls_seen; /* record_calls_seen() of the last account */
	bool is_closed;	     /* further calls come after the end */
	struct size_limit size_limit;
	struct open_ranges open_ranges;
	struct memory_totals memory_totals; /* only if the log may lose its beginning */
	bool devices_named;
	int write_error; /* -errno of the last flush; while not 0, nothing is drained */
	bool has_reported_error, has_reported_success;
	uint64_t last_scan_ns;	 /* of the modules */
	uint64_t last_switch_ns; /* when recording was last stopped or started; 0: never */
};

/* Creates the tables. The recorder then owns `writer`. 0 or -errno. */
int recorder_init(struct recorder *rec, struct xt_writer *writer, uint64_t start_ns);
void recorder_free(struct recorder *rec);

/*
 * The table of a kind with room for one more row with `content` bytes or list elements; turns all
 * tables into chunks if needed. NULL if that failed or the row never fits.
 */
struct xt_table *recorder_table(struct recorder *rec, enum xt_kind kind, size_t content);

/*
 * The id of a key; 0 if out of memory. *table: for the row of a new key, as by recorder_table(), or
 * NULL.
 */
uint32_t recorder_id(struct recorder *rec, struct intern *known, const void *key, size_t key_bytes,
		     enum xt_kind kind, size_t content, struct xt_table **table);

/* The XT_STRING_ID of a text; 0 if it is empty or out of memory. */
uint32_t recorder_string(struct recorder *rec, const void *text, size_t length);

/*
 * The XT_MODULE_ID of a module; 0 if out of memory. load_ns: a time before it was loaded, used if
 * the module is new.
 */
uint32_t recorder_module(struct recorder *rec, const struct module_image *image, const char *path,
			 size_t path_bytes, uint64_t load_ns);

/* Stores a name in the crash buffer, once. */
void recorder_crash_buffer_name(struct recorder *rec, enum xt_name_of of, uint64_t key,
				const char *text, size_t length);

/* Turns all tables into chunks in the writer's buffer. 0 or -ENOMEM. */
int recorder_cut(struct recorder *rec);

/*
 * Writes all tables to the file, then frees the sources of their rows. 0 or -errno. An error loses
 * nothing: rows stay in memory and their sources in the crash buffer. Until a flush succeeds,
 * nothing more is drained, and threads do not wait for room.
 */
int recorder_flush(struct recorder *rec);

/* Whether events are dropped because of --max-size. They count as lost for that cause. */
static inline bool recorder_is_full(const struct recorder *rec)
{
	return rec->size_limit.state == SIZE_LIMIT_REACHED;
}

/* The string id of the name at that address; 0: unknown, or out of memory. */
uint32_t kernel_name_id(struct recorder *rec, const char *name);

/* Writes the row of a graph node's kernel. */
void record_node_name(struct recorder *rec, const struct xt_record_node_name *record);

/* Takes an allocation or a free that was added to the log. */
void memory_totals_take(struct memory_totals *totals, const struct cupti_activity_memory *memory);

/*
 * "TIME DEVICE:BYTES ...", as of the last one taken. False if that is not known, if there was none,
 * or if it does not fit.
 */
bool memory_totals_text(const struct memory_totals *totals, uint64_t now_ns, char *out,
			size_t out_bytes);

/* Returns the key's id; *is_new if it was assigned by this call. 0 if out of memory. */
uint32_t intern_id(struct intern *known, const void *key, size_t key_bytes, bool *is_new);

/* Forgets all keys, which get new ids, and frees their memory. */
void intern_forget(struct intern *known);

/* If out of memory, the id is not added; its GPU work then appears without a call. */
void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id);

/* A recorded call reuses the id. */
void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id);
bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id);
/* CUPTI restarts its ids: removes all, keeps the count. */
void suppressed_ids_forget(struct suppressed_ids *set);
void suppressed_ids_free(struct suppressed_ids *set);

#endif
