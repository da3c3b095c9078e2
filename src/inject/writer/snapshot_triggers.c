/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/snapshot_triggers.h"

#include <string.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/recording_state.h"
#include "inject/writer/snapshot.h"
#include "inject/writer/undelivered_work.h"

#define CHECK_NS UINT64_C(50000000) /* reads all buffers that CUPTI has */

#define RESULT_OUT_OF_MEMORY 2
#define RESULT_NOT_READY     600 /* the answer of a query, not a failure */

static struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
static uint32_t trigger_count;
static bool watches_gpu;

static struct {
	/* In the present state of the GPU: */
	bool has_fired[XT_SNAPSHOT_TRIGGERS_MAX], is_saved[XT_SNAPSHOT_TRIGGERS_MAX];
	uint64_t checked_ns;
	uint64_t recording_since_ns; /* 0: not recording */
	/* What shows progress of the GPU, and since when it has not changed. */
	uint64_t work_count, finished_count, stuck_since_ns;
} gpu;

void snapshot_triggers_begin(const struct xt_snapshot_trigger *wanted, uint32_t count)
{
	memcpy(triggers, wanted, count * sizeof(*wanted));
	trigger_count = count;
	for (uint32_t t = 0; t < count; t++)
		watches_gpu |=
			wanted[t].kind == XT_TRIGGER_IDLE || wanted[t].kind == XT_TRIGGER_HANG;
}

static void fire(struct recorder *rec, const struct xt_snapshot_trigger *trigger)
{
	snapshot_fire(rec, trigger->text, trigger->text_bytes, false);
}

void snapshot_triggers_call(struct recorder *rec, int32_t result)
{
	enum xt_trigger_kind kind =
		result == RESULT_OUT_OF_MEMORY ? XT_TRIGGER_OOM : XT_TRIGGER_ERROR;

	for (uint32_t t = 0; t < trigger_count && result != RESULT_NOT_READY; t++)
		if (triggers[t].kind == kind)
			fire(rec, &triggers[t]);
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

void snapshot_triggers_range(struct recorder *rec, uint32_t found, uint64_t duration_ns)
{
	for (uint32_t t = 0; t < trigger_count; t++)
		if (found >> t & 1 && duration_ns > triggers[t].limit_ns)
			fire(rec, &triggers[t]);
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
