/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder turns what rings and activity buffers hold into rows of the log. It is the writer
 * thread's: every function here runs on that thread alone, and may allocate.
 *
 * Nothing leaves a ring or a buffer before it is in the file: rows wait in tables, and only a
 * flush that succeeded frees the ring space and the buffers they came from. So whatever is
 * committed is, at any moment, either in the log or in the spool.
 */
#ifndef XT_INJECT_RECORDER_H
#define XT_INJECT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/activity.h"
#include "inject/intern.h"
#include "inject/lane.h"
#include "log/writer.h"

#define HELD_BUFFERS_MAX 64

struct recorder {
	struct xt_writer *writer;
	uint64_t start_ns;
	struct xt_table tables[XT_KIND_COUNT];
	struct intern strings, stacks, streams, shapes;

	/* Buffers whose records are in tables but not in the file yet. */
	struct activity_buffer *held[HELD_BUFFERS_MAX];
	uint32_t held_count;
	uint64_t last_buffer_sequence;

	/* In the file, and in tables or the writer's buffer. */
	uint64_t calls_written, calls_pending, calls_write_failed;
	uint64_t kernels_written, kernels_pending, kernels_write_failed;
	uint64_t kernels_invalid, records_other, records_dropped, buffers_completed;
	uint64_t threads_seen;
	uint64_t rounds; /* of record_calls() */
	bool devices_named;
	bool write_failed; /* the last flush; said once */
};

/* Opens the tables on a writer, which the recorder then owns. 0 or -errno. */
int recorder_init(struct recorder *rec, struct xt_writer *writer, uint64_t start_ns);
void recorder_free(struct recorder *rec);

/*
 * The table of a kind with room for one more row that brings `content` bytes or elements to a
 * column; makes room by turning all tables into chunks. NULL if that failed or never fits.
 */
struct xt_table *recorder_table(struct recorder *rec, enum xt_kind kind, size_t content);

/* Tables to chunks to the file; then frees what they came from. 0 or -errno; after an error the
 * rows are lost and counted, and all interned tables begin anew. */
int recorder_flush(struct recorder *rec);

/* record_run.c: the run around the events. */
void record_meta(struct recorder *rec, const char *key, const char *value);
void record_start(struct recorder *rec);	 /* META and API rows, first CLOCK */
void record_modules(struct recorder *rec);	 /* modules that came or went */
void record_modules_again(struct recorder *rec); /* all of them, after a failed write */
void record_thread(struct recorder *rec, struct lane *lane);
void record_clock(struct recorder *rec);
void record_devices(struct recorder *rec); /* once the driver is up */
void record_account(struct recorder *rec);
bool record_is_balanced(const struct recorder *rec); /* calls seen = written + lost, for now */

/* record_calls.c: takes what all rings hold. Returns the largest share of a ring, in percent,
 * that waits to be freed by a flush. */
uint32_t record_calls(struct recorder *rec);

/* record_kernels.c: takes what completed buffers hold, as long as they can be held. */
void record_kernels(struct recorder *rec);

#endif
