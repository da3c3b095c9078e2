/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot has all rows of the log, then its own: a clock, an account that fits these rows, the
 * reason for it, and END. It is copied in small steps, so that the rings are drained in between.
 * The live log does not change.
 *
 * Triggers (--snapshot-on) only check what the writer thread reads anyway. Writer thread only,
 * except snapshot_begin() and snapshot_triggers_begin().
 */
#include "inject/writer/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/writer/record.h"
#include "log/base/call_result.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/period.h"
#include "log/write/compact.h"

#define STEP_BYTES	 UINT64_C(4194304) /* copied per round; takes a few milliseconds */
#define FLUSH_TIMEOUT_NS UINT64_C(300000000)
#define TRIGGER_BYTES	 256
#define NUMBER_MAX	 1000000
#define PATH_BYTES	 (PATH_MAX + 64)

static struct snapshot_limits limits;

static struct {
	enum {
		SNAPSHOT_NONE,
		SNAPSHOT_FLUSHING, /* CUPTI delivers the records of finished work */
		SNAPSHOT_COPYING,
	} state;
	char trigger[TRIGGER_BYTES];
	bool is_automatic;
	uint64_t time_ns;     /* of the request */
	uint64_t flush_count; /* flushes of CUPTI before */
	uint64_t last_automatic_ns;
	uint32_t last_number; /* of the last snapshot's name */
	bool is_request_done;
} snapshot;

void snapshot_begin(const struct snapshot_limits *wanted)
{
	limits = *wanted;
}

bool snapshot_is_busy(void)
{
	return snapshot.state != SNAPSHOT_NONE;
}

uint64_t snapshot_wants_from_ns(void)
{
	return snapshot_is_busy() ? snapshot.time_ns : monotonic_ns();
}

static void start_snapshot(const char *trigger, size_t trigger_bytes, bool is_automatic)
{
	snprintf(snapshot.trigger, sizeof(snapshot.trigger), "%.*s", (int)trigger_bytes, trigger);
	snapshot.is_automatic = is_automatic;
	snapshot.time_ns = monotonic_ns();
	snapshot.flush_count = atomic_load(&flusher_flush_count);
	snapshot.state = SNAPSHOT_FLUSHING;
	debug_log(DEBUG_WRITER, "snapshot begins: %s", snapshot.trigger);
}

bool snapshot_request(void)
{
	static const char trigger[] = "request";

	if (snapshot_is_busy())
		return false;
	snapshot.is_request_done = false;
	start_snapshot(trigger, strlen(trigger), false);
	return true;
}

bool snapshot_request_is_done(void)
{
	return snapshot.is_request_done;
}

/*
 * A trigger fired: starts a snapshot. False if the limits do not allow one. is_again: it was
 * counted before.
 */
static bool snapshot_fire(struct recorder *rec, const char *trigger, size_t trigger_bytes,
			  bool is_again)
{
	uint64_t now_ns = monotonic_ns();

	rec->triggers_fired += !is_again;
	if (snapshot_is_busy() || rec->snapshots_automatic >= limits.count_max ||
	    (rec->snapshots_automatic &&
	     now_ns - snapshot.last_automatic_ns < limits.interval_ns)) {
		if (!is_again)
			debug_log(DEBUG_WRITER, "trigger %.*s is only counted", (int)trigger_bytes,
				  trigger);
		return false;
	}
	rec->snapshots_automatic++;
	snapshot.last_automatic_ns = now_ns;
	start_snapshot(trigger, trigger_bytes, true);
	return true;
}

static int path_of(const struct recorder *rec, const char *ending, char path[PATH_BYTES])
{
	return xt_snapshot_path(xt_writer_path(rec->writer), ending, path, PATH_BYTES);
}

/* In a shared directory, another user may have made the folder, or a link. */
static int make_folder(const char *path)
{
	struct stat status;

	if (!mkdir(path, 0700))
		return 0;
	if (errno != EEXIST || lstat(path, &status))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? 0 : -EACCES;
}

static int create_draft(struct recorder *rec)
{
	char path[PATH_BYTES], *slash;
	int error = path_of(rec, XT_SNAPSHOT_DRAFT, path);

	if (error)
		return error;
	slash = strrchr(path, '/');
	*slash = '\0';
	error = make_folder(path);
	if (error)
		return error;
	*slash = '/';
	/* A child forked meanwhile would inherit the descriptors. */
	loader_lock();
	error = xt_snapshot_begin(rec->writer, path);
	loader_unlock();
	return error;
}

static void finish_snapshot(const char *path, int error)
{
	snapshot.state = SNAPSHOT_NONE;
	snapshot.is_request_done |= !snapshot.is_automatic;
	crash_buffer_snapshot(error ? 0 : snapshot.last_number, error);
	debug_log(DEBUG_WRITER, "snapshot ends: %s", error ? strerror(-error) : path);
	if (error == -ECANCELED)
		return;
	if (error && snapshot.is_automatic)
		log_message("cannot write a snapshot (%s): %s", snapshot.trigger, strerror(-error));
	else if (snapshot.is_automatic)
		log_message("snapshot (%s): %s", snapshot.trigger, path);
}

static int begin_copy(struct recorder *rec)
{
	struct undelivered_work undelivered;
	int error = rec->write_error ? rec->write_error : recorder_flush(rec);

	if (!error)
		error = create_draft(rec);
	if (error)
		return error;
	find_undelivered_work(&undelivered);
	record_meta(rec, "snapshot.trigger", snapshot.trigger);
	record_meta_number(rec, "snapshot.time", snapshot.time_ns);
	record_clock(rec);
	record_snapshot_account(rec, undelivered.kernel_count);
	error = recorder_cut(rec);
	if (!error)
		error = xt_writer_add_end(rec->writer);
	/* In any case, the rows must not get into the log. */
	if (xt_snapshot_seal(rec->writer))
		return -ENOMEM;
	if (error) {
		xt_table_clear(&rec->tables[XT_KIND_META]);
		xt_table_clear(&rec->tables[XT_KIND_CLOCK]);
		xt_table_clear(&rec->tables[XT_KIND_ACCOUNT]);
		xt_snapshot_give_up(rec->writer);
	}
	return error;
}

/* Gives the copy the next free name. A process with the same name may have left some. */
static int commit_snapshot(struct recorder *rec, char path[PATH_BYTES])
{
	int error = 0;

	do {
		char ending[XT_SNAPSHOT_ENDING_BYTES];

		xt_snapshot_ending(ending, ++snapshot.last_number);
		error = path_of(rec, ending, path);
	} while (!error && !access(path, F_OK) && snapshot.last_number < NUMBER_MAX);
	if (!error)
		return xt_snapshot_commit(rec->writer, path);
	xt_snapshot_give_up(rec->writer);
	return error;
}

void snapshot_update(struct recorder *rec)
{
	char path[PATH_BYTES] = "";
	int error = 0;

	if (snapshot.state == SNAPSHOT_FLUSHING) {
		/* The first of two flushes may have begun before the trigger. */
		if (atomic_load(&flusher_flush_count) < snapshot.flush_count + 2 &&
		    monotonic_ns() < snapshot.time_ns + FLUSH_TIMEOUT_NS)
			return;
		error = begin_copy(rec);
		snapshot.state = SNAPSHOT_COPYING;
	} else if (snapshot.state == SNAPSHOT_COPYING) {
		error = xt_snapshot_step(rec->writer, STEP_BYTES);
		if (error > 0)
			error = commit_snapshot(rec, path);
		else if (!error)
			return;
	} else {
		return;
	}
	if (error || path[0])
		finish_snapshot(path, error);
}

void snapshot_end(struct recorder *rec)
{
	xt_snapshot_give_up(rec->writer);
	if (snapshot_is_busy())
		finish_snapshot("", -ECANCELED);
}

uint64_t typical_time_median_ns(const struct typical_time *typical)
{
	return typical->count < TYPICAL_TIMES_MIN ? 0 : typical->sorted_ns[typical->count / 2];
}

/* The first place whose time is not less. */
static uint32_t time_place(const struct typical_time *typical, uint64_t time_ns)
{
	return FIRST_NOT(i, 0, typical->count, typical->sorted_ns[i] < time_ns);
}

static void forget_oldest(struct typical_time *typical)
{
	uint32_t place = time_place(typical, typical->latest_ns[typical->oldest]);

	typical->count--;
	memmove(&typical->sorted_ns[place], &typical->sorted_ns[place + 1],
		(typical->count - place) * sizeof(*typical->sorted_ns));
}

void typical_time_add(struct typical_time *typical, uint64_t time_ns)
{
	uint32_t place;

	if (typical->count == TYPICAL_TIMES)
		forget_oldest(typical);
	place = time_place(typical, time_ns);
	memmove(&typical->sorted_ns[place + 1], &typical->sorted_ns[place],
		(typical->count - place) * sizeof(*typical->sorted_ns));
	typical->sorted_ns[place] = time_ns;
	typical->count++;
	typical->latest_ns[typical->oldest] = time_ns;
	typical->oldest = (typical->oldest + 1) % TYPICAL_TIMES;
}

#define FIRST_SEARCH 1024u

#define THREADS_MAX 64 /* further ones are not searched */

/* The arrays and what a search needs, at their largest. */
#define PERIOD_BYTES ((size_t)PERIOD_LAUNCHES_MAX * 72)

static void forget_launches(struct launch_period *period)
{
	if (period->launches)
		budget_give_back(PERIOD_BYTES);
	free(period->launches);
	free(period->places);
	xt_hash_free(&period->table);
	period->launches = NULL;
	period->places = NULL;
	period->launch_capacity = period->place_capacity = 0;
	period->launch_count = period->place_count = 0;
	period->next_search = FIRST_SEARCH;
}

/* The index of a place, or UINT32_MAX if out of memory. */
static uint32_t place_index(struct launch_period *period, struct launch_place place)
{
	uint32_t hash = xt_hash_u64((uint64_t)place.thread_id << 32 | place.stack_id);
	struct xt_hash_slot *slot;

	if (!xt_hash_reserve(&period->table, period->place_count + 1))
		return UINT32_MAX;
	for (slot = xt_hash_first(&period->table, hash); slot->item;
	     slot = xt_hash_next(&period->table, slot)) {
		const struct launch_place *known = &period->places[slot->item - 1];

		if (known->thread_id == place.thread_id && known->stack_id == place.stack_id)
			return slot->item - 1;
	}
	if (grow(period->places, period->place_capacity, period->place_count + 1))
		return UINT32_MAX;
	period->places[period->place_count++] = place;
	*slot = (struct xt_hash_slot){hash, period->place_count};
	return period->place_count - 1;
}

/* Returns 0 or -ENOMEM. */
static int keep_launch(struct launch_period *period, struct launch_place place)
{
	uint32_t index;

	if (!period->launches) {
		if (!budget_take(PERIOD_BYTES))
			return -ENOMEM;
		period->launch_capacity = PERIOD_LAUNCHES_MAX;
		period->launches = malloc(period->launch_capacity * sizeof(*period->launches));
		if (!period->launches) {
			budget_give_back(PERIOD_BYTES);
			return -ENOMEM;
		}
		period->next_search = FIRST_SEARCH;
	}
	index = place_index(period, place);
	if (index == UINT32_MAX)
		return -ENOMEM;
	period->launches[period->launch_count++] = index;
	return 0;
}

/* The thread with the most launches. counts has a zero for each place. */
static uint32_t busiest_thread(const struct launch_period *period, uint32_t *counts)
{
	struct {
		uint32_t thread_id, count;
	} threads[THREADS_MAX];
	uint32_t thread_count = 0, best = 0, t;

	for (uint32_t i = 0; i < period->launch_count; i++)
		counts[period->launches[i]]++;
	for (uint32_t p = 0; p < period->place_count; p++) {
		for (t = 0; t < thread_count; t++)
			if (threads[t].thread_id == period->places[p].thread_id)
				break;
		if (t == THREADS_MAX)
			continue;
		if (t == thread_count) {
			threads[thread_count].thread_id = period->places[p].thread_id;
			threads[thread_count++].count = 0;
		}
		threads[t].count += counts[p];
		if (threads[t].count > threads[best].count)
			best = t;
	}
	return threads[best].thread_id;
}

/* Returns 0 or -ENOMEM. */
static int search_period(struct launch_period *period)
{
	uint32_t *own = calloc(period->launch_count, sizeof(*own)), thread_id, count = 0, marker;
	uint32_t *counts = calloc(period->place_count, sizeof(*counts));
	int error = -ENOMEM;

	if (!own || !counts)
		goto out;
	thread_id = busiest_thread(period, counts);
	for (uint32_t i = 0; i < period->launch_count; i++)
		if (period->places[period->launches[i]].thread_id == thread_id)
			own[count++] = period->launches[i];
	error = xt_period_find(own, count, period->place_count, &marker);
	if (!error && marker != XT_PERIOD_NONE) {
		period->marker = period->places[marker];
		debug_log(DEBUG_WRITER, "iterations begin with call path %u in thread %u",
			  period->marker.stack_id, period->marker.thread_id);
	}
out:
	free(own);
	free(counts);
	return error;
}

static int learn_period(struct launch_period *period, struct launch_place place)
{
	int error = keep_launch(period, place);

	if (error || period->launch_count < period->next_search)
		return error;
	error = search_period(period);
	if (period->marker.stack_id || period->launch_count == PERIOD_LAUNCHES_MAX)
		forget_launches(period);
	else
		period->next_search *= 2;
	return error;
}

uint64_t launch_period_add(struct launch_period *period, struct launch_place place,
			   uint64_t time_ns, bool *is_new)
{
	uint64_t passed_ns = period->passed_ns;

	*is_new = false;
	/* Calls without a stack do not show where they are. */
	if (!place.stack_id || period->has_failed)
		return 0;
	if (!period->marker.stack_id) {
		*is_new = true;
		period->has_failed = learn_period(period, place) != 0;
		if (period->has_failed)
			forget_launches(period);
		return 0;
	}
	if (place.stack_id != period->marker.stack_id ||
	    place.thread_id != period->marker.thread_id) {
		/* The program does something else now. */
		if (++period->launches_since > PERIOD_LAUNCHES_MAX)
			*period = (struct launch_period){.next_search = FIRST_SEARCH};
		return 0;
	}
	period->launches_since = 0;
	period->passed_ns = time_ns;
	return passed_ns;
}

#define ALLOC_RETRY_NS UINT64_C(1000000000)

static uint32_t waiting_count; /* threads with a failed allocation */

static void forget_failed_alloc(struct thread_buffer *tb)
{
	waiting_count -= tb->failed_alloc_ns != 0;
	tb->failed_alloc_ns = 0;
}

static void wait_for_retry(struct thread_buffer *tb, const struct xt_record_call *record)
{
	waiting_count += tb->failed_alloc_ns == 0;
	tb->failed_alloc_ns = record->exit_ns;
	tb->failed_alloc_api = record->api;
}

static bool makes_work(uint32_t class)
{
	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	       class == XT_API_SET;
}

/* A call of this thread ended. Returns whether it shows that the program has no memory. */
static bool allocation_retry_call(struct thread_buffer *tb, const struct xt_record_call *record)
{
	uint32_t class = api_class(record->api);

	if (record->result == XT_RESULT_OUT_OF_MEMORY) {
		if (class != XT_API_ALLOC)
			return true;
		wait_for_retry(tb, record);
		return false;
	}
	if (!tb->failed_alloc_ns)
		return false;
	if (makes_work(class)) {
		forget_failed_alloc(tb);
		return true;
	}
	if (record->api == tb->failed_alloc_api)
		forget_failed_alloc(tb);
	else
		tb->failed_alloc_ns = record->exit_ns;
	return false;
}

static bool is_in_call(const struct thread_buffer *tb)
{
	return __atomic_load_n(&tb->ring->open_count, __ATOMIC_ACQUIRE) != 0;
}

/* Whether a thread has not retried in time. In each round, after the rings were drained. */
static bool allocation_retry_is_over(uint64_t now_ns)
{
	struct thread_buffer *tb;
	bool is_over = false;

	for (uint32_t i = 0; waiting_count && (tb = thread_buffer_next(&i));) {
		if (!tb->failed_alloc_ns)
			continue;
		/* A thread that has ended does not retry. */
		if (atomic_load(&tb->state) != THREAD_BUFFER_FREE &&
		    (ring_written(tb) != tb->read_pos || is_in_call(tb) ||
		     now_ns < tb->failed_alloc_ns + ALLOC_RETRY_NS))
			continue;
		is_over = true;
		forget_failed_alloc(tb);
	}
	return is_over;
}

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
	const struct launch_place place = {thread_id, stack_id};
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
