/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/snapshot_triggers.h"

#include <stdio.h>
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
#include "log/base/mask_numbers.h"

#define CHECK_NS UINT64_C(50000000) /* reads all buffers that CUPTI has */

#define STARTS_MAX     32  /* threads with iterations of one name */
#define NAME_BYTES_MAX 256 /* of iterations */

static struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
static uint32_t trigger_count;
static bool watches_gpu, watches_launches, watches_names;

static struct {
	/* In the present state of the GPU: */
	bool has_fired[XT_SNAPSHOT_TRIGGERS_MAX], is_saved[XT_SNAPSHOT_TRIGGERS_MAX];
	uint64_t checked_ns;
	uint64_t recording_since_ns; /* 0: not recording */
	/* The figures that show progress of the GPU, and since when they have not changed. */
	uint64_t work_count, finished_count, stuck_since_ns;
} gpu;

/* The memory of a trigger: its ranges or iterations. */
static struct {
	struct typical_time typical; /* of a trigger with a factor */
	char masked[NAME_BYTES_MAX]; /* the name of iterations, without numbers */
	/* Iterations of this name that have started, one for each thread. */
	struct {
		uint32_t thread_id; /* 0: free */
		uint64_t ns;
	} starts[STARTS_MAX];
} watched[XT_SNAPSHOT_TRIGGERS_MAX];

static struct launch_period launch_period;

static void begin_iteration(uint32_t t)
{
	const struct xt_snapshot_trigger *trigger = &triggers[t];

	watches_launches |= !trigger->name;
	watches_names |= trigger->name != NULL;
	if (!trigger->name)
		return;
	snprintf(watched[t].masked, sizeof(watched[t].masked), "%.*s", (int)trigger->name_bytes,
		 trigger->name);
	xt_mask_numbers(watched[t].masked);
}

void snapshot_triggers_begin(const struct xt_snapshot_trigger *wanted, uint32_t count)
{
	memcpy(triggers, wanted, count * sizeof(*wanted));
	trigger_count = count;
	for (uint32_t t = 0; t < count; t++) {
		watches_gpu |=
			wanted[t].kind == XT_TRIGGER_IDLE || wanted[t].kind == XT_TRIGGER_HANG;
		if (wanted[t].kind == XT_TRIGGER_ITERATION)
			begin_iteration(t);
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
	uint64_t median_ns = typical_time_median_ns(&watched[t].typical);

	if (!trigger->factor) {
		if (time_ns > trigger->limit_ns)
			fire(rec, trigger);
		return;
	}
	typical_time_add(&watched[t].typical, time_ns);
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

/* An iteration from start_ns to end_ns. It does not count if recording was stopped in between. */
static void check_iteration(struct recorder *rec, uint32_t t, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns > rec->last_switch_ns && end_ns > start_ns)
		check_time(rec, t, end_ns - start_ns);
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
	for (uint32_t t = 0; t < trigger_count && (start_ns || is_new); t++) {
		if (triggers[t].kind != XT_TRIGGER_ITERATION || triggers[t].name)
			continue;
		if (is_new)
			watched[t].typical = (struct typical_time){0};
		else
			check_iteration(rec, t, start_ns, time_ns);
	}
}

static bool is_named(uint32_t t, const void *name, size_t name_bytes, const char *masked)
{
	const struct xt_snapshot_trigger *trigger = &triggers[t];

	switch (trigger->kind) {
	case XT_TRIGGER_RANGE:
		return trigger->name_bytes == name_bytes &&
		       !memcmp(trigger->name, name, name_bytes);
	case XT_TRIGGER_ITERATION:
		return trigger->name && !strcmp(watched[t].masked, masked);
	default:
		return false;
	}
}

uint32_t snapshot_triggers_of_range(const void *name, size_t name_bytes)
{
	char masked[NAME_BYTES_MAX] = "";
	uint32_t found = 0;

	if (watches_names) {
		snprintf(masked, sizeof(masked), "%.*s", (int)name_bytes, (const char *)name);
		xt_mask_numbers(masked);
	}
	for (uint32_t t = 0; t < trigger_count; t++)
		if (is_named(t, name, name_bytes, masked))
			found |= UINT32_C(1) << t;
	return found;
}

void snapshot_triggers_range_start(struct recorder *rec, uint32_t found, uint32_t thread_id,
				   uint64_t time_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++) {
		uint32_t s = 0;

		if (!(found >> t & 1) || triggers[t].kind != XT_TRIGGER_ITERATION)
			continue;
		while (s < STARTS_MAX && watched[t].starts[s].thread_id &&
		       watched[t].starts[s].thread_id != thread_id)
			s++;
		if (s == STARTS_MAX)
			continue;
		if (watched[t].starts[s].thread_id)
			check_iteration(rec, t, watched[t].starts[s].ns, time_ns);
		watched[t].starts[s].thread_id = thread_id;
		watched[t].starts[s].ns = time_ns;
	}
}

void snapshot_triggers_range_end(struct recorder *rec, uint32_t found, uint64_t duration_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++)
		if (found >> t & 1 && triggers[t].kind == XT_TRIGGER_RANGE)
			check_time(rec, t, duration_ns);
}

/*
 * Fires triggers of a kind once while this lasts. If a limit forbids a snapshot, it is taken when
 * that is over.
 */
static void fire_once(struct recorder *rec, enum xt_trigger_kind kind, uint64_t lasts_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++) {
		bool is_exceeded = lasts_ns > triggers[t].limit_ns;

		if (triggers[t].kind != kind)
			continue;
		if (!is_exceeded)
			gpu.is_saved[t] = false;
		else if (!gpu.is_saved[t])
			gpu.is_saved[t] = snapshot_fire(rec, triggers[t].text,
							triggers[t].text_bytes, gpu.has_fired[t]);
		gpu.has_fired[t] = is_exceeded;
	}
}

static uint64_t idle_ns(const struct recorder *rec, const struct undelivered_work *undelivered,
			uint64_t now_ns)
{
	uint64_t last_ns = rec->last_work_ns;

	if (undelivered->last_end_ns > last_ns)
		last_ns = undelivered->last_end_ns;
	if (!last_ns || undelivered->unfinished_count)
		return 0;
	if (gpu.recording_since_ns > last_ns)
		last_ns = gpu.recording_since_ns;
	return now_ns > last_ns ? now_ns - last_ns : 0;
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

	if (allocation_retry_is_over(now_ns))
		fire_all(rec, XT_TRIGGER_OOM);
	if (!watches_gpu || now_ns - gpu.checked_ns < CHECK_NS)
		return;
	gpu.checked_ns = now_ns;
	if (atomic_load(&recording_paused) || rec->write_error) {
		gpu.recording_since_ns = 0;
		return;
	}
	if (!gpu.recording_since_ns)
		gpu.recording_since_ns = gpu.stuck_since_ns = now_ns;
	if (!find_undelivered_work(&undelivered))
		return;
	fire_once(rec, XT_TRIGGER_IDLE, idle_ns(rec, &undelivered, now_ns));
	fire_once(rec, XT_TRIGGER_HANG, stuck_ns(rec, &undelivered, now_ns));
}
