/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops recording or removes the oldest events, in small steps. Removed events count as lost, by
 * cause: their calls were seen but not written.
 */
#include "inject/writer/size_limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inject/capture/callbacks.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/debug_log.h"
#include "inject/writer/recorder.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/recording_state.h"
#include "inject/writer/record_account.h"
#include "inject/writer/record_run.h"
#include "log/write/compact.h"

/* Space for events in progress and the account, written after recording stopped. */
#define RESERVE_BYTES UINT64_C(65536)
#define STEP_BYTES    UINT64_C(4194304) /* copied per round; takes a few milliseconds */

static void stop(struct recorder *rec)
{
	uint64_t time_ns = monotonic_ns();

	if (rec->size_limit.state != SIZE_WITHIN_LIMIT)
		return;
	recording_pause(PAUSED_SIZE);
	record_stop(rec, time_ns);
	debug_log(DEBUG_WRITER, "size limit reached at %llu bytes",
		  (unsigned long long)rec->size_limit.file_bytes);
	rec->size_limit.state = SIZE_PAUSED;
	record_account(rec);
	log_message("recording stops: the log has reached --max-size");
}

static void begin_compaction(struct recorder *rec)
{
	int rc = xt_compact_begin(rec->writer, rec->size_limit.bound.bytes / 2);

	debug_log(DEBUG_WRITER, "compaction starts at %llu bytes: %s",
		  (unsigned long long)rec->size_limit.file_bytes, rc ? strerror(-rc) : "ok");
	if (!rc) {
		rec->size_limit.state = SIZE_COMPACTING;
		return;
	}
	log_message("cannot remove the oldest events from the log: %s",
		    rc == -EFBIG ? "metadata alone exceeds --max-size" : strerror(-rc));
	stop(rec);
}

static struct row_counts *row_counts_of(struct recorder *rec, enum xt_kind kind)
{
	switch (kind) {
	case XT_KIND_CALL:
		return &rec->calls;
	case XT_KIND_KERNEL:
		return &rec->kernels;
	case XT_KIND_COPY:
		return &rec->copies;
	case XT_KIND_SET:
		return &rec->sets;
	case XT_KIND_MEMORY:
		return &rec->memory;
	default:
		return NULL;
	}
}

/* sign: 1, or -1 to undo it. */
static void count_removed(struct recorder *rec, const struct xt_compacted *compacted, uint64_t sign)
{
	for (unsigned kind = 0; kind < XT_KIND_COUNT; kind++) {
		struct row_counts *row_counts = row_counts_of(rec, kind);

		if (!row_counts)
			continue;
		row_counts->written -= sign * compacted->rows[kind];
		row_counts->beyond_size += sign * compacted->rows[kind];
	}
	rec->ranges_beyond_size += sign * compacted->rows[XT_KIND_RANGE];
}

static void finish_compaction(struct recorder *rec)
{
	struct xt_compacted compacted;
	char from[24];

	xt_compact_finish(rec->writer, &compacted);
	count_removed(rec, &compacted, 1);
	snprintf(from, sizeof(from), "%llu", (unsigned long long)compacted.from_ns);
	record_meta(rec, "log.from", from);
	debug_log(DEBUG_WRITER, "compaction ends: events from %s ns on are kept", from);
	record_account(rec);
	rec->size_limit.state = SIZE_WITHIN_LIMIT;
	if (!recorder_flush(rec))
		return;
	xt_compact_end(rec->writer);
	count_removed(rec, &compacted, (uint64_t)-1);
	stop(rec);
}

/* Starts with a flush: nothing may be added between a flush and freeing its sources. */
static void continue_compaction(struct recorder *rec)
{
	int rc;

	/* The next flush reopens the file and discards the copy. */
	if (!xt_writer_is_open(rec->writer))
		return;
	rc = xt_compact_step(rec->writer, STEP_BYTES);
	if (rc > 0) {
		/* On an error, retries in a later round. */
		if (recorder_flush(rec) || rec->size_limit.state != SIZE_COMPACTING)
			return;
		rc = xt_compact_step(rec->writer, UINT64_MAX);
	}
	if (rc > 0) {
		finish_compaction(rec);
	} else if (rc < 0) {
		log_message("cannot remove the oldest events from the log: %s", strerror(-rc));
		rec->size_limit.state = SIZE_WITHIN_LIMIT;
		stop(rec);
	}
}

static void measure_flush(struct recorder *rec)
{
	uint64_t bytes = xt_writer_file_bytes(rec->writer);

	if (bytes > rec->size_limit.file_bytes &&
	    bytes - rec->size_limit.file_bytes > rec->size_limit.largest_flush_bytes)
		rec->size_limit.largest_flush_bytes = bytes - rec->size_limit.file_bytes;
	rec->size_limit.file_bytes = bytes;
}

void size_limit_end(struct recorder *rec)
{
	if (rec->size_limit.state == SIZE_COMPACTING)
		rec->size_limit.state = SIZE_WITHIN_LIMIT;
	xt_compact_end(rec->writer);
}

void size_limit_enforce(struct recorder *rec)
{
	uint64_t limit = rec->size_limit.bound.bytes, ahead;

	if (!limit || rec->write_error)
		return;
	measure_flush(rec);
	ahead = 2 * rec->size_limit.largest_flush_bytes + RESERVE_BYTES;
	switch (rec->size_limit.state) {
	case SIZE_WITHIN_LIMIT:
		if (rec->size_limit.file_bytes + ahead < limit)
			return;
		if (rec->size_limit.bound.keeps_newest)
			begin_compaction(rec);
		else
			stop(rec);
		return;
	case SIZE_COMPACTING:
		continue_compaction(rec);
		return;
	case SIZE_PAUSED: /* all calls from before the pause have been drained */
		rec->size_limit.state = SIZE_LIMIT_REACHED;
		return;
	case SIZE_LIMIT_REACHED:
		return;
	}
}
