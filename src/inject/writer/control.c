/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops recording: at the request of another process, and to keep the log within
 * --max-size. At the limit, it stops recording or removes the oldest events, in small steps.
 * Removed events count as lost, by cause: their calls were seen but not written. Writer thread
 * only.
 */
#include "inject/writer/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/memory/crash_buffer.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/writer/record.h"
#include "inject/writer/snapshot.h"
#include "log/write/compact.h"

/* Space for events in progress and the account, written after recording stopped. */
#define RESERVE_BYTES UINT64_C(65536)
#define STEP_BYTES    UINT64_C(4194304) /* copied per round; takes a few milliseconds */
#define RETRY_NS      UINT64_C(1000000000)

static void stop_at_limit(struct recorder *rec)
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
static bool may_retry_compaction(struct recorder *rec, int error)
{
	if (!rec->size_limit.bound.is_flight_recorder || (error != -ENOSPC && error != -EDQUOT))
		return false;
	rec->size_limit.retry_from_ns = monotonic_ns() + RETRY_NS;
	return true;
}

static int start_compaction(struct recorder *rec)
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
	int rc = start_compaction(rec);

	debug_log(DEBUG_WRITER, "compaction starts at %llu bytes: %s",
		  (unsigned long long)rec->size_limit.file_bytes, rc ? strerror(-rc) : "ok");
	if (!rc) {
		rec->size_limit.state = SIZE_COMPACTING;
		return;
	}
	if (rc == -ENODATA || may_retry_compaction(rec, rc))
		return;
	log_message("cannot remove the oldest events from the log: %s",
		    rc == -EFBIG ? "metadata alone exceeds its limit" : strerror(-rc));
	stop_at_limit(rec);
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
	char allocated[1024];

	xt_compact_finish(rec->writer, &compacted);
	count_removed(rec, &compacted, 1);
	record_meta_number(rec, "log.from", compacted.from_ns);
	/* Everything taken so far is in the log: the compaction began with a flush. */
	if (memory_totals_text(&rec->memory_totals, monotonic_ns(), allocated, sizeof(allocated)))
		record_meta(rec, "log.allocated", allocated);
	debug_log(DEBUG_WRITER, "compaction ends: events from %llu ns on are kept",
		  (unsigned long long)compacted.from_ns);
	record_account(rec);
	rec->size_limit.state = SIZE_WITHIN_LIMIT;
	if (!recorder_flush(rec)) {
		rec->size_limit.kept_from_ns = rec->size_limit.next_from_ns;
		return;
	}
	xt_compact_end(rec->writer);
	count_removed(rec, &compacted, (uint64_t)-1);
	if (!may_retry_compaction(rec, rec->write_error))
		stop_at_limit(rec);
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
		if (may_retry_compaction(rec, rc))
			return;
		log_message("cannot remove the oldest events from the log: %s", strerror(-rc));
		stop_at_limit(rec);
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
static bool is_compaction_due(const struct recorder *rec)
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
		if (!is_compaction_due(rec))
			return;
		if (rec->size_limit.bound.keeps_newest)
			begin_compaction(rec);
		else
			stop_at_limit(rec);
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

#define NS_PER_MS	  UINT64_C(1000000)
#define DELETION_CHECK_NS UINT64_C(1000000000)
#define ARRIVAL_NS	  UINT64_C(1000000000) /* for records that CUPTI still has */

static bool keeps_cupti;

static struct {
	uint32_t word; /* the last request that was taken */
	bool is_start, is_pending, is_applied;
	bool has_recorded;	 /* since a start */
	bool has_open_ranges;	 /* since the last stop */
	bool is_incomplete;	 /* stopped, and the file does not end with END yet */
	uint64_t complete_bytes; /* of the file when it ended with END; 0: never */
	uint64_t start_at_ns;
	uint64_t duration_ns;	/* 0: no limit */
	uint64_t stop_at_ns;	/* 0: no limit */
	uint32_t snapshot_word; /* the request of a snapshot; 0: none */
	bool is_snapshot_begun;
	bool is_log_deleted;
	uint64_t deletion_checked_ns;
} control;

void control_begin(bool keeps)
{
	keeps_cupti = keeps;
}

static bool is_stopped(void)
{
	return atomic_load(&recording_paused) & PAUSED_STOPPED;
}

static const char *problem_now(const struct recorder *rec)
{
	static char text[128];
	const char *problem = cupti_owner_problem();

	if (rec->write_error) {
		snprintf(text, sizeof(text), "the log cannot be written: %s",
			 strerror(-rec->write_error));
		return text;
	}
	if (recorder_is_full(rec))
		return "the log has reached --max-size";
	if (control.is_log_deleted)
		return "the log was deleted";
	return problem ? problem : "";
}

static enum xt_tracer_state state_now(void)
{
	unsigned paused = atomic_load(&recording_paused);

	if (control.is_pending && control.is_start && !control.is_applied)
		return XT_STATE_WAITING;
	if (paused & PAUSED_SIZE)
		return XT_STATE_FULL;
	if (paused & PAUSED_STOPPED)
		return control.is_pending && !control.is_start ? XT_STATE_STOPPING
		       : control.has_recorded		       ? XT_STATE_STOPPED
							       : XT_STATE_ARMED;
	if (paused & PAUSED_HANDOFF)
		return XT_STATE_YIELDED;
	return paused & PAUSED_REQUESTED ? XT_STATE_PAUSED : XT_STATE_RECORDING;
}

/* Does not touch a start or stop that is pending. */
static void take_snapshot_request(uint32_t word)
{
	if (word == control.snapshot_word)
		return;
	crash_buffer_request_taken(word);
	control.snapshot_word = word;
	control.is_snapshot_begun = false;
}

/* NVTX ranges from before CUDA started are in the log of an armed process, too. */
static bool has_recorded_nothing(const struct recorder *rec)
{
	return (is_stopped() && !control.has_recorded) ||
	       (!record_calls_seen() && !rec->work_count && !rec->ranges_written &&
		!rec->memory.written);
}

static void update_snapshot(const struct recorder *rec)
{
	if (!control.snapshot_word)
		return;
	if (!control.is_snapshot_begun && !snapshot_is_busy() && has_recorded_nothing(rec)) {
		crash_buffer_snapshot(0, -ENODATA);
		crash_buffer_request_done(control.snapshot_word);
		control.snapshot_word = 0;
	} else if (!control.is_snapshot_begun) {
		control.is_snapshot_begun = snapshot_request();
	} else if (snapshot_request_is_done()) {
		crash_buffer_request_done(control.snapshot_word);
		control.snapshot_word = 0;
	}
}

static void take_request(void)
{
	uint32_t delay_ms, duration_ms, word = crash_buffer_request(&delay_ms, &duration_ms);
	uint64_t now_ns = monotonic_ns();

	if (!(word & XT_REQUEST_MASK) || word & XT_REQUEST_DONE ||
	    (control.is_pending && word == control.word))
		return;
	if ((word & XT_REQUEST_MASK) == XT_REQUEST_SNAPSHOT) {
		take_snapshot_request(word);
		return;
	}
	crash_buffer_request_taken(word);
	control.word = word;
	control.is_pending = true;
	control.is_applied = false;
	control.is_start = (word & XT_REQUEST_MASK) == XT_REQUEST_START;
	control.start_at_ns = control.is_start ? now_ns + delay_ms * NS_PER_MS : now_ns;
	control.duration_ns = control.is_start ? duration_ms * NS_PER_MS : 0;
	control.stop_at_ns = 0;
	debug_log(DEBUG_WRITER, "request: %s, delay %u ms, duration %u ms",
		  control.is_start ? "start" : "stop", delay_ms, duration_ms);
}

static void stop(struct recorder *rec)
{
	uint64_t time_ns = monotonic_ns();
	bool is_armed = is_stopped() && !control.has_recorded;

	if (recording_pause(keeps_cupti ? PAUSED_REQUESTED : PAUSED_STOPPED))
		record_switch(rec, time_ns, false,
			      keeps_cupti ? XT_SWITCH_ASKED : XT_SWITCH_STOPPED);
	if (keeps_cupti)
		return;
	cupti_owner_want(false);
	rec->stopped_ns = time_ns;
	rec->resumed_ns = 0;
	control.has_recorded |= !is_armed;
	control.has_open_ranges = true;
	control.is_incomplete = true;
}

/* CUPTI is ready, so calls may be recorded. */
static void resume(struct recorder *rec)
{
	rec->resumed_ns = monotonic_ns();
	/* Ranges that began before CUDA did are in the rings, and their ends are not. */
	if (is_stopped()) {
		record_range_ends(rec);
		record_ranges_restart(rec);
	}
	if (recording_resume(PAUSED_REQUESTED | PAUSED_STOPPED))
		record_switch(rec, monotonic_ns(), true, XT_SWITCH_ASKED);
	/* Recovery would take the time up to the next flush for a pause. */
	recorder_flush(rec);
	control.is_incomplete = false;
	control.has_recorded = true;
	control.stop_at_ns = control.duration_ns ? monotonic_ns() + control.duration_ns : 0;
}

/* True if everything that CUPTI and the threads have delivered is in the file. */
static bool drain_all(struct recorder *rec)
{
	do {
		record_calls(rec);
		record_activity(rec);
	} while (!recorder_flush(rec) && rec->held_count);
	return !rec->write_error;
}

/*
 * Ends the file like that of a process that has ended, so that it can be read as a whole. Later
 * rows follow that end.
 */
static void complete_log(struct recorder *rec)
{
	if (rec->write_error || !drain_all(rec))
		return; /* again when the log can be written */
	record_clock(rec);
	record_account(rec);
	if (recorder_flush(rec) || xt_writer_add_end(rec->writer) || recorder_flush(rec))
		return;
	control.is_incomplete = false;
	control.complete_bytes = xt_writer_file_bytes(rec->writer);
}

static bool may_record(const struct recorder *rec)
{
	return !recorder_is_full(rec) && !control.is_log_deleted;
}

static void apply(struct recorder *rec)
{
	control.is_applied = true;
	if (!control.is_start)
		stop(rec);
	else if (may_record(rec))
		cupti_owner_want(true);
}

/*
 * True when the request, or the end of its duration, is done. A start has CUPTI before it resumes;
 * a stop waits for the GPU. A start that fails does not happen later.
 */
static bool execute(struct recorder *rec)
{
	if (!control.is_applied && monotonic_ns() < control.start_at_ns)
		return false;
	if (!control.is_applied)
		apply(rec);
	if (!cupti_owner_is_settled())
		return false;
	if (!control.is_start && !keeps_cupti && monotonic_ns() < rec->stopped_ns + ARRIVAL_NS &&
	    cupti_holds_unfinished_work(rec->stopped_ns))
		return false;
	if (!control.is_start && keeps_cupti)
		recorder_flush(rec);
	else if (!control.is_start)
		complete_log(rec);
	else if (may_record(rec) && !cupti_owner_problem())
		resume(rec);
	else if (is_stopped())
		cupti_owner_cancel();
	return true;
}

bool control_is_idle(void)
{
	return !control.is_pending && is_stopped();
}

/* Without a request: at the end of a duration, or because the log was deleted. */
static void begin_unasked_stop(void)
{
	control.is_pending = true;
	control.is_start = control.is_applied = false;
	control.stop_at_ns = control.start_at_ns = control.duration_ns = 0;
}

/* A deleted file fills the disk, and no report can read it. */
static void check_deletion(const struct recorder *rec)
{
	uint64_t now_ns = monotonic_ns();

	if (control.is_log_deleted || now_ns - control.deletion_checked_ns < DELETION_CHECK_NS)
		return;
	control.deletion_checked_ns = now_ns;
	if (!xt_writer_is_deleted(rec->writer))
		return;
	control.is_log_deleted = true;
	keeps_cupti = false; /* no start will follow */
	log_message("recording ends: %s was deleted; restart the program to record it",
		    xt_writer_path(rec->writer));
	begin_unasked_stop();
}

bool control_log_is_deleted(void)
{
	return control.is_log_deleted;
}

void control_update(struct recorder *rec)
{
	/* The rings were drained since the stop. */
	if (control.has_open_ranges)
		record_range_ends(rec);
	control.has_open_ranges = false;
	take_request();
	update_snapshot(rec);
	if (control.is_pending && execute(rec)) {
		control.is_pending = false;
		crash_buffer_state(state_now(), problem_now(rec));
		crash_buffer_request_done(control.word);
	}
	if (!control.is_pending && control.stop_at_ns && monotonic_ns() >= control.stop_at_ns)
		begin_unasked_stop();
	check_deletion(rec);
	/* A stopped process may still load libraries. */
	if (control_is_idle() && (control.is_incomplete ||
				  (control.complete_bytes &&
				   xt_writer_file_bytes(rec->writer) != control.complete_bytes)))
		complete_log(rec);
	crash_buffer_state(state_now(), problem_now(rec));
}
