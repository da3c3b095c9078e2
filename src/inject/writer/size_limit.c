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
#include "inject/writer/snapshot.h"
#include "log/write/compact.h"

/* Space for events in progress and the account, written after recording stopped. */
#define RESERVE_BYTES UINT64_C(65536)
#define STEP_BYTES    UINT64_C(4194304) /* copied per round; takes a few milliseconds */
#define RETRY_NS      UINT64_C(1000000000)

static void stop(struct recorder *rec)
{
	uint64_t time_ns = monotonic_ns();

	if (rec->size_limit.state != SIZE_WITHIN_LIMIT)
		return;
	recording_pause(PAUSED_SIZE);
	record_switch(rec, time_ns, false, XT_SWITCH_SIZE);
	if (rec->size_limit.bound.is_flight_recorder)
		record_meta(rec, "log.flight_recorder", ""); /* the newest events are lost */
	debug_log(DEBUG_WRITER, "size limit reached at %llu bytes",
		  (unsigned long long)rec->size_limit.file_bytes);
	rec->size_limit.state = SIZE_PAUSED;
	record_account(rec);
	/* After a kill, only the switch tells which GPU work has no call. */
	recorder_flush(rec);
	log_message(rec->size_limit.bound.is_flight_recorder
			    ? "recording stops: cannot keep the log within --flight-recorder"
			    : "recording stops: the log has reached --max-size");
}

/* The log of a flight recorder may wait for space. Others must stay within their limit. */
static bool may_retry(struct recorder *rec, int error)
{
	if (!rec->size_limit.bound.is_flight_recorder || (error != -ENOSPC && error != -EDQUOT))
		return false;
	rec->size_limit.retry_from_ns = monotonic_ns() + RETRY_NS;
	return true;
}

static int start_copy(struct recorder *rec)
{
	const struct xt_size_bound *bound = &rec->size_limit.bound;
	uint64_t from_ns = snapshot_wants_from_ns() - bound->keep_ns;
	int rc;

	if (!bound->keep_ns)
		return xt_compact_begin(rec->writer, bound->bytes / 2);
	rc = xt_compact_begin_since(rec->writer, from_ns);
	rec->size_limit.next_from_ns = from_ns;
	if (rc == -ENODATA)
		rec->size_limit.kept_from_ns = from_ns;
	return rc;
}

static void begin_compaction(struct recorder *rec)
{
	int rc = start_copy(rec);

	debug_log(DEBUG_WRITER, "compaction starts at %llu bytes: %s",
		  (unsigned long long)rec->size_limit.file_bytes, rc ? strerror(-rc) : "ok");
	if (!rc) {
		rec->size_limit.state = SIZE_COMPACTING;
		return;
	}
	if (rc == -ENODATA || may_retry(rec, rc))
		return;
	log_message("cannot remove the oldest events from the log: %s",
		    rc == -EFBIG ? "metadata alone exceeds its limit" : strerror(-rc));
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
	rec->ranges_written -= sign * compacted->rows[XT_KIND_RANGE];
	if (rec->size_limit.bound.is_flight_recorder)
		rec->ranges_forgotten += sign * compacted->rows[XT_KIND_RANGE];
	else
		rec->ranges_beyond_size += sign * compacted->rows[XT_KIND_RANGE];
}

static void finish_compaction(struct recorder *rec)
{
	struct xt_compacted compacted;
	char from[24], allocated[1024];

	xt_compact_finish(rec->writer, &compacted);
	count_removed(rec, &compacted, 1);
	snprintf(from, sizeof(from), "%llu", (unsigned long long)compacted.from_ns);
	record_meta(rec, "log.from", from);
	/* Everything taken so far is in the log: the compaction began with a flush. */
	if (memory_totals_text(&rec->memory_totals, monotonic_ns(), allocated, sizeof(allocated)))
		record_meta(rec, "log.allocated", allocated);
	debug_log(DEBUG_WRITER, "compaction ends: events from %s ns on are kept", from);
	record_account(rec);
	rec->size_limit.state = SIZE_WITHIN_LIMIT;
	if (!recorder_flush(rec)) {
		rec->size_limit.kept_from_ns = rec->size_limit.next_from_ns;
		return;
	}
	xt_compact_end(rec->writer);
	count_removed(rec, &compacted, (uint64_t)-1);
	if (!may_retry(rec, rec->write_error))
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
		rec->size_limit.state = SIZE_WITHIN_LIMIT;
		if (may_retry(rec, rc))
			return;
		log_message("cannot remove the oldest events from the log: %s", strerror(-rc));
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

/* A log of a limited time may have events of twice that time, so that each is copied once. */
static bool is_due(const struct recorder *rec)
{
	const struct size_limit *limit = &rec->size_limit;
	uint64_t now_ns = monotonic_ns(), ahead, from_ns;

	if (now_ns < limit->retry_from_ns)
		return false;
	if (limit->bound.keep_ns) {
		from_ns = limit->kept_from_ns ? limit->kept_from_ns : rec->start_ns;
		/* During a pause, the events before it remain the newest. */
		return now_ns >= from_ns + 2 * limit->bound.keep_ns &&
		       !atomic_load(&recording_paused);
	}
	ahead = 2 * limit->largest_flush_bytes + RESERVE_BYTES;
	return limit->file_bytes + ahead >= limit->bound.bytes;
}

void size_limit_enforce(struct recorder *rec)
{
	const struct xt_size_bound *bound = &rec->size_limit.bound;

	if ((!bound->bytes && !bound->keep_ns) || rec->write_error)
		return;
	measure_flush(rec);
	switch (rec->size_limit.state) {
	case SIZE_WITHIN_LIMIT:
		if (!is_due(rec))
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
