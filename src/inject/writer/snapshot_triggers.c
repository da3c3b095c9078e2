/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/snapshot_triggers.h"

#include <string.h>

#include "inject/cupti/api_table.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/debug_log.h"
#include "inject/runtime/recording_state.h"
#include "inject/writer/allocation_retry.h"
#include "inject/writer/launch_period.h"
#include "inject/writer/snapshot.h"
#include "inject/writer/typical_time.h"
#include "inject/writer/undelivered_work.h"
#include "log/base/call_result.h"

#define CHECK_NS UINT64_C(50000000) /* reads all buffers that CUPTI has */

static struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
static uint32_t trigger_count;
static bool watches_gpu, watches_launches;

static struct {
	/* In the present hang: */
	bool has_fired[XT_SNAPSHOT_TRIGGERS_MAX], is_saved[XT_SNAPSHOT_TRIGGERS_MAX];
	bool was_recording;
	uint64_t checked_ns;
	/* The figures that show progress of the GPU, and since when they have not changed. */
	uint64_t work_count, finished_count, stuck_since_ns;
} gpu;

/* The times of a trigger with a factor. */
static struct typical_time typical[XT_SNAPSHOT_TRIGGERS_MAX];

static struct launch_period launch_period;

void snapshot_triggers_begin(const struct xt_snapshot_trigger *wanted, uint32_t count)
{
	memcpy(triggers, wanted, count * sizeof(*wanted));
	trigger_count = count;
	for (uint32_t t = 0; t < count; t++) {
		watches_gpu |= wanted[t].kind == XT_TRIGGER_HANG;
		watches_launches |= wanted[t].kind == XT_TRIGGER_ITERATION;
	}
}

static void fire(struct recorder *rec, const struct xt_snapshot_trigger *trigger)
{
	snapshot_fire(rec, trigger->text, trigger->text_bytes, false);
}

static void fire_all(struct recorder *rec, enum xt_trigger_kind kind)
{
	for (uint32_t t = 0; t < trigger_count; t++)
		if (triggers[t].kind == kind)
			fire(rec, &triggers[t]);
}

/* A range or an iteration of this trigger took so long. */
static void check_time(struct recorder *rec, uint32_t t, uint64_t time_ns)
{
	const struct xt_snapshot_trigger *trigger = &triggers[t];
	uint64_t median_ns = typical_time_median_ns(&typical[t]);

	if (!trigger->factor) {
		if (time_ns > trigger->limit_ns)
			fire(rec, trigger);
		return;
	}
	typical_time_add(&typical[t], time_ns);
	if (!median_ns || (double)time_ns <= trigger->factor * (double)median_ns)
		return;
	debug_log(DEBUG_WRITER, "%.*s: %llu ns, median %llu ns", (int)trigger->text_bytes,
		  trigger->text, (unsigned long long)time_ns, (unsigned long long)median_ns);
	fire(rec, trigger);
}

void snapshot_triggers_call(struct recorder *rec, struct thread_buffer *tb,
			    const struct xt_record_call *record)
{
	if (allocation_retry_call(tb, record))
		fire_all(rec, XT_TRIGGER_OOM);
	if (record->result != XT_RESULT_OUT_OF_MEMORY &&
	    xt_call_failed(api_class(record->api), (uint64_t)record->result))
		fire_all(rec, XT_TRIGGER_ERROR);
}

void snapshot_triggers_launch(struct recorder *rec, uint32_t thread_id, uint32_t stack_id,
			      uint64_t time_ns)
{
	const struct launch_place place = {thread_id, stack_id == XT_STACK_LOST ? 0 : stack_id};
	uint64_t start_ns;
	bool is_new;

	if (!watches_launches)
		return;
	start_ns = launch_period_add(&launch_period, place, time_ns, &is_new);
	/* An iteration in which recording was stopped does not count. */
	for (uint32_t t = 0; t < trigger_count && (start_ns || is_new); t++) {
		if (triggers[t].kind != XT_TRIGGER_ITERATION)
			continue;
		if (is_new)
			typical[t] = (struct typical_time){0};
		else if (start_ns > rec->last_switch_ns && time_ns > start_ns)
			check_time(rec, t, time_ns - start_ns);
	}
}

uint32_t snapshot_triggers_of_range(const void *name, size_t name_bytes)
{
	uint32_t found = 0;

	for (uint32_t t = 0; t < trigger_count; t++)
		if (triggers[t].kind == XT_TRIGGER_RANGE && triggers[t].name_bytes == name_bytes &&
		    !memcmp(triggers[t].name, name, name_bytes))
			found |= UINT32_C(1) << t;
	return found;
}

void snapshot_triggers_range_end(struct recorder *rec, uint32_t found, uint64_t duration_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++)
		if (found >> t & 1)
			check_time(rec, t, duration_ns);
}

/*
 * Fires triggers once while the GPU hangs. If a limit forbids a snapshot, it is taken when that is
 * over.
 */
static void check_hang(struct recorder *rec, uint64_t lasts_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++) {
		bool is_exceeded = lasts_ns > triggers[t].limit_ns;

		if (triggers[t].kind != XT_TRIGGER_HANG)
			continue;
		if (!is_exceeded)
			gpu.is_saved[t] = false;
		else if (!gpu.is_saved[t])
			gpu.is_saved[t] = snapshot_fire(rec, triggers[t].text,
							triggers[t].text_bytes, gpu.has_fired[t]);
		gpu.has_fired[t] = is_exceeded;
	}
}

/* How long there has been unfinished work, and none was finished. */
static uint64_t stuck_ns(const struct recorder *rec, const struct undelivered_work *undelivered,
			 uint64_t now_ns)
{
	if (!undelivered->unfinished_count || rec->work_count != gpu.work_count ||
	    undelivered->finished_count != gpu.finished_count)
		gpu.stuck_since_ns = now_ns;
	gpu.work_count = rec->work_count;
	gpu.finished_count = undelivered->finished_count;
	return now_ns - gpu.stuck_since_ns;
}

void snapshot_triggers_update(struct recorder *rec)
{
	struct undelivered_work undelivered;
	uint64_t now_ns = monotonic_ns();
	bool is_recording;

	if (allocation_retry_is_over(now_ns))
		fire_all(rec, XT_TRIGGER_OOM);
	if (!watches_gpu || now_ns - gpu.checked_ns < CHECK_NS)
		return;
	gpu.checked_ns = now_ns;
	is_recording = !atomic_load(&recording_paused) && !rec->write_error;
	if (is_recording && !gpu.was_recording)
		gpu.stuck_since_ns = now_ns;
	gpu.was_recording = is_recording;
	if (is_recording && find_undelivered_work(&undelivered))
		check_hang(rec, stuck_ns(rec, &undelivered, now_ns));
}
