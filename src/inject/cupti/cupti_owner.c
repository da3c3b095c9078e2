/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An atomic word holds the state. The thread that changes it to OWNER_RELEASING or OWNER_STARTING
 * does the work; others wait for it, up to a timeout. No lock is held during a CUPTI call.
 *
 * Calls of the flusher thread may block forever, so all waits for it have a timeout. The hooks run
 * in the threads of the other tool.
 */
#include "inject/cupti/cupti_owner.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "log/base/compare.h"

#define SLOW_FLUSH_NS UINT64_C(1000000)

static _Atomic(void (*)(void)) requested_work;
static atomic_bool flusher_is_allowed, flusher_is_stopping, flusher_has_ended;
atomic_uint_fast64_t flusher_flush_count, flusher_cpu_ns, flusher_dropped_records;

/* Flusher thread only: flushes CUPTI's records. flag: enum xt_cupti_flush. */
static void flusher_flush(uint32_t flag)
{
	uint64_t start_ns = monotonic_ns(), took_ns;
	size_t dropped = 0;

	cupti.cuptiActivityFlushAll(flag);
	took_ns = monotonic_ns() - start_ns;
	if (cupti.cuptiActivityGetNumDroppedRecords &&
	    cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == XT_CUPTI_SUCCESS)
		atomic_fetch_add(&flusher_dropped_records, dropped);
	if (took_ns >= SLOW_FLUSH_NS || dropped || flag == XT_CUPTI_FLUSH_FORCED)
		debug_log(DEBUG_CUPTI, "%s flush took %llu us; CUPTI dropped %zu records",
			  flag == XT_CUPTI_FLUSH_FORCED ? "forced" : "slow",
			  (unsigned long long)took_ns / 1000, dropped);
	atomic_store(&flusher_cpu_ns, xt_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	atomic_fetch_add(&flusher_flush_count, 1);
}

/*
 * Flusher thread only: runs requested work. Clears the request only when done: flusher_run() waits
 * for that.
 */
static void flusher_do_work(void)
{
	void (*work)(void) = atomic_load(&requested_work);

	if (work)
		work();
	atomic_compare_exchange_strong(&requested_work, &work, NULL);
}

/*
 * Runs work() on the flusher thread and waits until it is done. False after a timeout, or if the
 * thread has ended. One caller at a time.
 */
static bool flusher_run(void (*work)(void), uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;

	atomic_store(&requested_work, work);
	while (atomic_load(&requested_work) && !atomic_load(&flusher_has_ended) &&
	       monotonic_ns() < deadline_ns)
		xt_sleep_ns(1000000);
	return !atomic_exchange(&requested_work, NULL);
}

void flusher_allow(void)
{
	atomic_store(&flusher_is_allowed, true);
}

void flusher_stop(void)
{
	atomic_store(&flusher_is_stopping, true);
}

bool flusher_is_done(void)
{
	return atomic_load(&flusher_has_ended);
}

#define NAP_NS		   1000000
#define COLLECT_TIMEOUT_NS UINT64_C(300000000)	/* for work that the GPU is executing */
#define STOP_TIMEOUT_NS	   UINT64_C(1000000000) /* how long the other tool's thread waits */
#define QUIET_NS                                                                                   \
	UINT64_C(250000000) /* after it unsubscribed: it may finalise, or subscribe again */
#define CHANGE_RETRY_NS	  UINT64_C(1000000000)
#define START_TIMEOUT_NS  UINT64_C(3000000000) /* xtrace start waits a little longer */
#define WRITER_TIMEOUT_NS UINT64_C(100000000)
#define EVENTS_COUNT	  64

enum state {
	OWNER_RELEASED,	  /* we do not use CUPTI */
	OWNER_GRAPHS,	  /* subscribed, but only to the creation and launch of graphs */
	OWNER_SUBSCRIBED, /* recording */
	OWNER_RELEASING,
	OWNER_STARTING,
};

/*
 * Progress of disabling our records, before another tool enables its own. Either collect_records()
 * does it, or the thread that timed out waiting for it.
 */
enum stop_state { STOP_REQUESTED, STOP_STARTED, STOP_DONE };

static struct cupti_owner_config config;
static atomic_int state;
static atomic_int stop_state;		  /* enum stop_state, valid in OWNER_RELEASING */
static atomic_bool is_wanted;		  /* by the user */
static atomic_bool tool_is_active;	  /* another tool uses CUPTI */
static atomic_bool ids_may_restart;	  /* another tool used it since we did */
static atomic_uint_fast64_t resume_at_ns; /* if it is active; 0: it has not left */
static atomic_bool clock_is_foreign, clock_is_default;
static uint64_t change_again_at_ns; /* flusher thread: a start or a stop was postponed */
static uint64_t start_until_ns;	    /* flusher thread: by then it must succeed; 0: no start waits */
static atomic_bool driver_is_ready; /* set by the flusher thread, because the writer may not ask */
static atomic_bool records_are_left; /* they could not be disabled for another tool */
static atomic_bool is_draining;	     /* flusher thread: records of stopped work are still to come */

/* Why the last start failed; "": it did not. Changed in OWNER_STARTING only. */
static char problem[1024];
static atomic_bool has_problem;

static struct cupti_owner_event
	events[EVENTS_COUNT]; /* written by the thread that changes the state, read by the writer */
static atomic_uint event_count, events_taken;

static void add_event(uint64_t time_ns, bool is_back, const char *who)
{
	unsigned count = atomic_load(&event_count);
	struct cupti_owner_event *event = &events[count % EVENTS_COUNT];

	if (count - atomic_load(&events_taken) == EVENTS_COUNT)
		return;
	event->time_ns = time_ns;
	event->is_back = is_back;
	snprintf(event->who, sizeof(event->who), "%s", who);
	/* Pairs with cupti_owner_next_event(). */
	atomic_store_explicit(&event_count, count + 1, memory_order_release);
}

bool cupti_owner_next_event(struct cupti_owner_event *event)
{
	unsigned taken = atomic_load(&events_taken);

	if (taken == atomic_load_explicit(&event_count, memory_order_acquire))
		return false;
	*event = events[taken % EVENTS_COUNT];
	atomic_store(&events_taken, taken + 1);
	return true;
}

void cupti_owner_begin(const struct cupti_owner_config *initial)
{
	config = *initial;
	config.keeps_graphs |= initial->is_subscribed; /* see start_from() */
	atomic_store(&is_wanted, initial->is_subscribed);
	/* Our clock is not registered yet. */
	atomic_store(&clock_is_default, !initial->is_subscribed);
	atomic_store(&state, OWNER_STARTING);
}

void cupti_owner_ready(void)
{
	atomic_store(&state, config.is_subscribed  ? OWNER_SUBSCRIBED
			     : config.keeps_graphs ? OWNER_GRAPHS
						   : OWNER_RELEASED);
}

void cupti_owner_want(bool recording)
{
	atomic_store(&is_wanted, recording);
	atomic_store(&has_problem, false);
}

void cupti_owner_cancel(void)
{
	atomic_store(&is_wanted, false);
}

/* Records that another tool got, too, must not stay enabled: nobody handles their graphs. */
static bool may_stop(void)
{
	return graph_level_may_stop() || atomic_load(&records_are_left);
}

bool cupti_owner_is_settled(void)
{
	int now = atomic_load(&state);

	if (atomic_load(&is_wanted))
		return now == OWNER_SUBSCRIBED || cupti_owner_problem();
	/* CUPTI is released later, because there is no work yet, or never. */
	if (now == OWNER_SUBSCRIBED && (!atomic_load(&driver_is_ready) || !may_stop()))
		return true;
	return (now == OWNER_RELEASED || now == OWNER_GRAPHS) && !atomic_load(&is_draining);
}

const char *cupti_owner_problem(void)
{
	return atomic_load(&has_problem) ? problem : NULL;
}

/* Whether another tool's call takes effect: we do not use CUPTI. */
static bool cupti_owner_is_released(void)
{
	return atomic_load(&state) == OWNER_RELEASED;
}

bool cupti_owner_left_records(void)
{
	return cupti_owner_is_released() && atomic_load(&records_are_left);
}

/* Flusher thread: whether CUPTI may hold our records. If not, do not call it. */
static bool cupti_owner_may_flush(void)
{
	return atomic_load(&state) == OWNER_SUBSCRIBED || atomic_load(&is_draining);
}

/* ---- Another tool comes and leaves. */

/*
 * Calls that begin now are skipped, and are holders of graph_level.h. Waits for those that began
 * before, and lets no new one begin. The kinds are locked if this is true.
 */
static bool begin_stop(void)
{
	uint64_t deadline_ns = monotonic_ns() + CHANGE_PATIENCE_NS, now_ns;

	xt_sleep_ns(NAP_NS); /* a thread that has just begun a call may not show it at once */
	if (!config.await_work(deadline_ns))
		return false;
	now_ns = monotonic_ns();
	return graph_level_begin_change(now_ns < deadline_ns ? deadline_ns - now_ns : 0);
}

/* False if another thread does it or has done it. */
static bool stop_records(void)
{
	int now = STOP_REQUESTED;
	bool are_locked;

	if (!atomic_compare_exchange_strong(&stop_state, &now, STOP_STARTED))
		return false;
	are_locked = cupti_driver_is_ready() && begin_stop();
	atomic_store(&records_are_left, !are_locked);
	if (are_locked) {
		cupti_subscriber_stop();
	} else {
		are_locked = graph_level_lock_kinds();
		cupti_subscriber_stop_unsafe_kinds();
	}
	graph_level_unlock_kinds(are_locked);
	return true;
}

/*
 * On the flusher thread: waits for the GPU to finish recorded calls and flushes their records. New
 * calls are not recorded.
 */
static void collect_records(void)
{
	uint64_t deadline_ns = monotonic_ns() + COLLECT_TIMEOUT_NS;

	flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
	while (activity_is_at_cupti() && monotonic_ns() < deadline_ns) {
		xt_sleep_ns(NAP_NS);
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
	}
	/* After a timeout, the other tool owns CUPTI. */
	if (!stop_records())
		return;
	flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
	/* A forced flush also returns unfinished records, including the tool's. */
	if (atomic_load(&state) == OWNER_RELEASING)
		flusher_flush(XT_CUPTI_FLUSH_FORCED);
	atomic_store(&stop_state, STOP_DONE);
}

static void wait_for_stop(uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;

	while (atomic_load(&stop_state) != STOP_DONE && monotonic_ns() < deadline_ns)
		xt_sleep_ns(NAP_NS);
}

static void release_to_tool(const char *function, const char *who)
{
	uint64_t time_ns = monotonic_ns();

	recording_pause(PAUSED_HANDOFF);
	add_event(time_ns, false, who);
	atomic_store(&stop_state, STOP_REQUESTED);
	if (!flusher_run(collect_records, STOP_TIMEOUT_NS)) {
		if (!flusher_is_done()) /* else recording has ended */
			log_message("cannot flush CUPTI in time for another tool: some records are "
				    "lost");
		/* collect_records() must not disable the tool's records later. */
		if (!stop_records())
			wait_for_stop(2 * STOP_TIMEOUT_NS);
	}
	cupti_subscriber_unsubscribe();
	if (flusher_is_done()) /* recording has ended with the process */
		return;
	if (config.yields)
		log_message("recording pauses until %s releases CUPTI (%s)%s", who, function,
			    strstr(who, "torch") ? "; PyTorch does so only with TEARDOWN_CUPTI=1"
						 : "");
	else
		log_message("recording ends: %s uses CUPTI (%s)", who, function);
}

static bool change_state(int from, enum state to)
{
	return atomic_compare_exchange_strong(&state, &from, to);
}

/*
 * In the thread of another tool, named `who`, before its call of `function`: releases CUPTI. True
 * if our records were disabled for it.
 */
static bool cupti_owner_yield(const char *function, const char *who)
{
	uint64_t deadline_ns = monotonic_ns() + 2 * STOP_TIMEOUT_NS;

	graph_level_note_tool();
	unsafe_kinds_note_graph_copy();
	atomic_store(&tool_is_active, true);
	atomic_store(&ids_may_restart, true);
	atomic_store(&resume_at_ns, 0);
	do {
		if (change_state(OWNER_SUBSCRIBED, OWNER_RELEASING)) {
			release_to_tool(function, who);
			atomic_store(&state, OWNER_RELEASED);
			return true;
		}
		if (change_state(OWNER_GRAPHS, OWNER_RELEASING)) {
			cupti_subscriber_unsubscribe();
			atomic_store(&state, OWNER_RELEASED);
		}
		if (atomic_load(&state) == OWNER_RELEASED)
			return false;
		xt_sleep_ns(NAP_NS);
	} while (monotonic_ns() < deadline_ns);
	return false;
}

/* ---- The flusher thread starts and stops recording. */

static void set_problem(const char *why)
{
	snprintf(problem, sizeof(problem), "%s", why);
	atomic_store(&has_problem, true);
}

/*
 * New calls are skipped already. The records of calls that have returned arrive even without a
 * subscription.
 */
static void stop_recording(void)
{
	bool are_locked;

	/* A later request may have seen that recording runs. At the end, all is stopped anyway. */
	if (atomic_load(&is_wanted) || atomic_load(&flusher_is_stopping)) {
		atomic_store(&state, OWNER_SUBSCRIBED);
		return;
	}
	are_locked = begin_stop();
	if (!are_locked || !may_stop()) {
		graph_level_unlock_kinds(are_locked);
		change_again_at_ns = monotonic_ns() + CHANGE_RETRY_NS;
		atomic_store(&state, OWNER_SUBSCRIBED);
		return;
	}
	atomic_store(&records_are_left, false);
	cupti_subscriber_stop();
	atomic_store(&cupti_subscriber_records_calls, false);
	graph_level_unlock_kinds(are_locked);
	atomic_store(&is_draining, true);
	atomic_store(&state, OWNER_GRAPHS);
	debug_log(DEBUG_CUPTI, "recording stopped; graphs are still watched");
}

/*
 * Correlation ids may have restarted. The writer must forget the old ones before new calls are
 * skipped.
 */
static void tell_writer_of_new_ids(void)
{
	uint64_t deadline_ns = monotonic_ns() + WRITER_TIMEOUT_NS;

	if (!atomic_exchange(&ids_may_restart, false))
		return;
	add_event(monotonic_ns(), true, "");
	while (atomic_load(&events_taken) != atomic_load(&event_count) &&
	       monotonic_ns() < deadline_ns)
		xt_sleep_ns(NAP_NS);
}

/* Subscribes if needed. On failure, the state is the one before. */
static bool start_from(enum state before)
{
	bool sets_clock = atomic_load(&clock_is_foreign) || atomic_load(&clock_is_default);
	uint64_t start_ns = monotonic_ns();
	char why[sizeof(problem)];
	bool has_failed, are_locked, is_back = atomic_load(&recording_paused) & PAUSED_HANDOFF;

	/* Empties the buffers of another tool, so that they get none of our records. */
	if (atomic_load(&ids_may_restart))
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
	if (before == OWNER_RELEASED && cupti_subscriber_subscribe(why, sizeof(why))) {
		set_problem(why);
		atomic_store(&state, before);
		return false;
	}
	tell_writer_of_new_ids();
	are_locked = cupti_subscriber_begin_start();
	if (!start_until_ns)
		start_until_ns = monotonic_ns() + START_TIMEOUT_NS;
	if (!are_locked) {
		change_again_at_ns = monotonic_ns() + CHANGE_RETRY_NS;
		if (!is_back && monotonic_ns() >= start_until_ns)
			set_problem("a call that launches or copies does not return");
		/* Still subscribed, so that a later start knows that call. */
		atomic_store(&state, OWNER_GRAPHS);
		return false;
	}
	start_until_ns = 0;
	has_failed = cupti_subscriber_start(config.level, sets_clock, why, sizeof(why)) != 0;
	graph_level_unlock_kinds(are_locked);
	if (has_failed) {
		cupti_subscriber_unsubscribe();
		set_problem(why);
		atomic_store(&state, OWNER_RELEASED);
		return false;
	}
	atomic_store(&clock_is_foreign, false);
	atomic_store(&clock_is_default, false);
	/* From now on CUPTI prepares every graph, so later windows must know conditional ones. */
	config.keeps_graphs = true;
	debug_log(DEBUG_CUPTI, "recording started in %llu us",
		  (unsigned long long)(monotonic_ns() - start_ns) / 1000);
	return true;
}

static void start_recording(enum state before)
{
	bool is_back = atomic_load(&recording_paused) & PAUSED_HANDOFF;

	if (!start_from(before)) {
		if (is_back && cupti_owner_problem())
			log_message("cannot resume recording: %s", cupti_owner_problem());
		return;
	}
	if (is_back) {
		recording_resume(PAUSED_HANDOFF);
		log_message("recording resumed: CUPTI is free again");
	}
	atomic_store(&state, OWNER_SUBSCRIBED);
}

/* Like start_recording(), for the creation of graph nodes alone. */
static void watch_graphs(void)
{
	char why[sizeof(problem)];
	bool failed = cupti_subscriber_subscribe(why, sizeof(why)), are_locked;

	if (failed) {
		log_message("cannot watch CUDA graphs: %s", why);
		config.keeps_graphs = false;
	} else {
		are_locked = graph_level_lock_kinds();
		cupti_subscriber_watch_graphs();
		graph_level_unlock_kinds(are_locked);
	}
	/* As if recording: the next update stops the kernels that could not be stopped earlier. */
	atomic_store(&state, failed			      ? OWNER_RELEASED
			     : atomic_load(&records_are_left) ? OWNER_SUBSCRIBED
							      : OWNER_GRAPHS);
}

/* False if another tool uses CUPTI. Forgets one that left some time ago. */
static bool is_free(void)
{
	uint64_t due_ns = atomic_load(&resume_at_ns);

	if (!atomic_load(&tool_is_active))
		return true;
	if (!due_ns || monotonic_ns() < due_ns)
		return false;
	/* It may come back meanwhile: it clears the time before it reads the state. */
	if (!atomic_exchange(&resume_at_ns, 0))
		return false;
	atomic_store(&tool_is_active, false);
	atomic_store(&has_problem, false);
	return true;
}

/* Callbacks cannot print. */
static void report_refusal(void)
{
	static bool is_reported;

	if (is_reported || !graph_level_refusal() || atomic_load(&tool_is_active))
		return;
	is_reported = true;
	log_message("GPU work is not recorded any more: %s", graph_level_refusal());
}

/* Flusher thread, every few milliseconds: starts, stops or resumes. */
static void cupti_owner_update(void)
{
	bool wanted = atomic_load(&is_wanted), is_due;
	int now = atomic_load(&state);

	if (!atomic_load(&driver_is_ready))
		atomic_store(&driver_is_ready, cupti_driver_is_ready());
	report_refusal();
	if (atomic_load(&is_draining) && (wanted || !activity_is_at_cupti()))
		atomic_store(&is_draining, false);
	is_due = monotonic_ns() >= change_again_at_ns;
	if (!wanted && now != OWNER_SUBSCRIBED)
		start_until_ns = change_again_at_ns = 0;
	if (now == OWNER_SUBSCRIBED && !wanted && is_due && atomic_load(&driver_is_ready) &&
	    may_stop() && change_state(now, OWNER_RELEASING))
		stop_recording();
	if (now != OWNER_RELEASED && now != OWNER_GRAPHS)
		return;
	if (!is_free()) {
		if (wanted && !atomic_load(&has_problem) && !atomic_load(&resume_at_ns))
			set_problem("another tool uses CUPTI in this process");
	} else if (wanted && is_due && !atomic_load(&has_problem) &&
		   change_state(now, OWNER_STARTING)) {
		start_recording(now);
	} else if (!wanted && config.keeps_graphs && change_state(OWNER_RELEASED, OWNER_STARTING)) {
		watch_graphs();
	}
}

#define PERIOD_MS     50
#define STOP_CHECK_MS 2
#define IDLE_CHECK_MS 10 /* while nothing is recorded */

void *flusher_main(void *unused)
{
	unsigned waited_ms = 0;

	(void)unused;
	prctl(PR_SET_NAME, "xtrace-flush");
	while (!atomic_load(&flusher_is_stopping)) {
		unsigned nap_ms = cupti_owner_may_flush() ? STOP_CHECK_MS : IDLE_CHECK_MS;

		xt_sleep_ns(nap_ms * 1000000);
		waited_ms += nap_ms;
		flusher_do_work();
		if (!atomic_load(&flusher_is_allowed))
			continue;
		cupti_owner_update();
		if (!cupti_owner_may_flush())
			waited_ms = 0;
		if (waited_ms < PERIOD_MS)
			continue;
		if (!gpu_names() && waited_ms < PERIOD_MS + nap_ms)
			gpu_names_read();
		if (graph_level_may_flush()) {
			flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
			waited_ms = 0;
		}
	}
	if (atomic_load(&flusher_is_allowed) && cupti_owner_may_flush()) {
		if (!gpu_names())
			gpu_names_read();
		/* Completed buffers first, then all records, finished or not. */
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
		flusher_flush(XT_CUPTI_FLUSH_FORCED);
	}
	atomic_store(&flusher_has_ended, true);
	return NULL;
}

/*
 * Notices when another tool in the process starts or stops using CUPTI. The functions that a tool
 * calls first are hooked (symbol_hooks_install()). Before the first one runs, cupti_owner_yield()
 * releases CUPTI. It is taken back once the tool has unsubscribed and wants no more records, or has
 * finalised it.
 *
 * With --no-yield, CUPTI refuses another subscriber. A tool that uses only records still gets
 * CUPTI, and recording ends.
 */
#define UNNAMED "another tool"

static atomic_bool hooks_are_active; /* the hooks have an effect */

/* State of the other tool. */
#define KINDS_COUNT 256
static atomic_bool has_unsubscribed;
static atomic_bool enabled_kinds[KINDS_COUNT];
static _Atomic(xt_cupti_buffer_requested) foreign_requested;
static uintptr_t cupti_begin, cupti_end; /* CUPTI's address range */

static int (*find_object)(void *address,
			  struct dl_find_object *result); /* NULL: glibc is too old */

/*
 * Runs in the tool's thread. It may hold a lock that a holder of the loader's lock waits for. So
 * this must not take the loader's lock, as dladdr() would. The caller's own module stays loaded.
 */
static void module_name(const void *address, char *out, size_t out_bytes)
{
	struct dl_find_object object;
	const char *path;

	if (!find_object || find_object((void *)(uintptr_t)address, &object)) {
		snprintf(out, out_bytes, UNNAMED);
		return;
	}
	path = object.dlfo_link_map->l_name;
	if (!path || !*path)
		path = program_invocation_short_name;
	snprintf(out, out_bytes, "%s", base_name(path));
}

/* The effects of a CUPTI function when another tool calls it. */
enum effect {
	ACQUIRES = 1 << 0,
	RELEASES = 1 << 1,
	SETS_CLOCK = 1 << 2,
	RESETS_CLOCK = 1 << 3,
	NEEDS_CLOCK = 1 << 4,
	SUBSCRIBES = 1 << 5,
	ENABLES = 1 << 6,
	DISABLES = 1 << 7,
	FINALIZES = 1 << 8,
};

static bool is_foreign_call(const void *caller)
{
	/* CUPTI calls some of its functions itself. Not dladdr(), which takes the loader's lock. */
	return atomic_load(&hooks_are_active) &&
	       !((uintptr_t)caller >= cupti_begin && (uintptr_t)caller < cupti_end);
}

static uint32_t (*real_cuptiActivityEnable)(uint32_t kind);

/* Stopping our records also disabled these kinds for the tool. */
static void restore_kinds(void)
{
	for (uint32_t kind = 0; kind < KINDS_COUNT; kind++)
		if (atomic_load(&enabled_kinds[kind]))
			real_cuptiActivityEnable(kind);
}

static void yield_to_tool(const char *function, const void *caller)
{
	char who[CUPTI_OWNER_NAME_BYTES];

	module_name(caller, who, sizeof(who));
	if (cupti_owner_yield(function, who))
		restore_kinds();
}

static void before_foreign_call(const char *function, enum effect effect, const void *caller)
{
	/*
	 * While we are subscribed, CUPTI refuses other subscribers. Enabling a kind alone is
	 * harmless: libraries try which kinds exist.
	 */
	bool comes = effect & ACQUIRES && !(effect & ENABLES) &&
		     (config.yields || !(effect & SUBSCRIBES));

	if (!(effect & ACQUIRES) || !is_foreign_call(caller))
		return;
	if (comes)
		yield_to_tool(function, caller);
	if (comes && effect & SUBSCRIBES)
		atomic_store(&has_unsubscribed, false);
	if (!cupti_owner_is_released())
		return;
	if (effect & (SETS_CLOCK | RESETS_CLOCK))
		atomic_store(&clock_is_foreign, true);
	else if (effect & NEEDS_CLOCK && !atomic_load(&clock_is_foreign) &&
		 !atomic_exchange(&clock_is_default, true))
		/*
		 * Records keep our clock until another is registered. A tool that registers none
		 * expects CUPTI's default. Registering spoils a record, so it is done only then.
		 */
		cupti.cuptiActivityRegisterTimestampCallback(realtime_ns);
}

static bool wants_records(void)
{
	for (size_t i = 0; i < KINDS_COUNT; i++)
		if (atomic_load(&enabled_kinds[i]))
			return true;
	return false;
}

static void after_foreign_call(enum effect effect, uint32_t kind, uint32_t result,
			       const void *caller)
{
	bool is_refused = effect & SUBSCRIBES && result != XT_CUPTI_SUCCESS;

	if (!(effect & (SUBSCRIBES | RELEASES | ENABLES | DISABLES)) ||
	    (result != XT_CUPTI_SUCCESS && !is_refused) || !is_foreign_call(caller))
		return;
	if (effect & (ENABLES | DISABLES) && kind < KINDS_COUNT)
		atomic_store(&enabled_kinds[kind], effect & ENABLES);
	if (effect & FINALIZES)
		atomic_store(&cupti_subscriber_lost_memory, true);
	for (size_t i = 0; effect & FINALIZES && i < KINDS_COUNT; i++)
		atomic_store(&enabled_kinds[i], false);
	if (!cupti_owner_is_released())
		return;
	if (effect & RELEASES || is_refused)
		atomic_store(&has_unsubscribed, true);
	if (config.yields && atomic_load(&has_unsubscribed) && !wants_records())
		/* We may come back in a while. */
		atomic_store(&resume_at_ns, monotonic_ns() + QUIET_NS);
}

/*
 * CUPTI returns all buffers to the last registered callback. For both tools that is
 * activity_completed(), which tells them apart.
 */
static void requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	atomic_load (&foreign_requested)(buffer_out, bytes_out, max_records_out);
}

/* X(name, effect, parameters, argument names, record kind) */
#define HOOKS(X)                                                                                   \
	X(cuptiSubscribe, ACQUIRES | SUBSCRIBES,                                                   \
	  (void **out, xt_cupti_callback callback, void *userdata), (out, callback, userdata), 0)  \
	X(cuptiSubscribe_v2, ACQUIRES | SUBSCRIBES,                                                \
	  (void **out, xt_cupti_callback callback, void *userdata,                                 \
	   struct cupti_subscriber_params *params),                                                \
	  (out, callback, userdata, params), 0)                                                    \
	X(cuptiActivityRegisterTimestampCallback, ACQUIRES | SETS_CLOCK,                           \
	  (xt_cupti_timestamp timestamp), (timestamp), 0)                                          \
	X(cuptiActivityEnable, ACQUIRES | NEEDS_CLOCK | ENABLES, (uint32_t kind), (kind), kind)    \
	X(cuptiActivityEnableContext, ACQUIRES | NEEDS_CLOCK | ENABLES,                            \
	  (void *context, uint32_t kind), (context, kind), kind)                                   \
	X(cuptiActivityDisable, DISABLES, (uint32_t kind), (kind), kind)                           \
	X(cuptiUnsubscribe, RELEASES, (void *subscriber), (subscriber), 0)                         \
	X(cuptiFinalize, ACQUIRES | RELEASES | RESETS_CLOCK | FINALIZES, (void), (), 0)

#define HOOK(name, effect, arguments, passed, kind)                                                \
	static uint32_t(*real_##name) arguments;                                                   \
	static uint32_t hook_##name arguments                                                      \
	{                                                                                          \
		const void *caller = __builtin_return_address(0);                                  \
		uint32_t result;                                                                   \
                                                                                                   \
		symbol_hook_entered();                                                             \
		before_foreign_call(#name, effect, caller);                                        \
		result = real_##name passed;                                                       \
		after_foreign_call(effect, kind, result, caller);                                  \
		return result;                                                                     \
	}
HOOKS(HOOK)

static uint32_t (*real_register)(xt_cupti_buffer_requested, xt_cupti_buffer_completed);

static uint32_t hook_register(xt_cupti_buffer_requested theirs, xt_cupti_buffer_completed completed)
{
	const void *caller = __builtin_return_address(0);

	symbol_hook_entered();
	if (!theirs || !completed || !is_foreign_call(caller))
		return real_register(theirs, completed);
	/* The tool may have enabled kinds before, which changed nothing then. */
	before_foreign_call("cuptiActivityRegisterCallbacks",
			    wants_records() ? ACQUIRES | NEEDS_CLOCK : ACQUIRES, caller);
	atomic_store(&foreign_requested, theirs);
	atomic_store(&activity_foreign_completed, completed);
	return real_register(requested, activity_completed);
}

#define HOOK_ROW(name, effect, arguments, passed, kind)                                            \
	{#name, (void *)(uintptr_t)hook_##name, (void **)&real_##name},
static const struct symbol_hook hooks[] = {HOOKS(HOOK_ROW){"cuptiActivityRegisterCallbacks",
							   (void *)(uintptr_t)hook_register,
							   (void **)&real_register}};

static int find_cupti(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	uintptr_t function = (uintptr_t)cupti.cuptiSubscribe, end = 0;
	bool is_within = false;

	(void)info_bytes, (void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		is_within |= function >= from && function < from + part->p_memsz;
		end = larger(end, from + part->p_memsz);
	}
	if (!is_within)
		return 0;
	cupti_begin = info->dlpi_addr;
	cupti_end = end;
	return 1;
}

void cupti_handoff_begin(void)
{
	int rc;

	find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
	loader_iterate(find_cupti, NULL);
	if (!cupti_end)
		return;
	rc = symbol_hooks_install(cupti.library, hooks, sizeof(hooks) / sizeof(*hooks));
	atomic_store(&hooks_are_active, !rc);
	if (rc && config.yields)
		log_message("cannot step back for another profiler in this program: cannot hook "
			    "%s: %s",
			    cupti.path, strerror(-rc));
}

void cupti_handoff_abandon(void)
{
	atomic_store(&hooks_are_active, false);
}
