/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks, and the state of the handoff: an atomic word. The thread that changes it to
 * HANDOFF_RELEASING or HANDOFF_RESUMING does the work. Others wait for it, up to a timeout. No lock
 * is held during a CUPTI call.
 */
#include "inject/cupti/cupti_handoff.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/activity_pool.h"
#include "inject/runtime/clock.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/flusher.h"
#include "inject/runtime/find_object.h"
#include "inject/runtime/loader_lock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/recording_state.h"
#include "inject/runtime/sleep.h"
#include "inject/runtime/symbol_hooks.h"

#define NAP_NS		   1000000
#define UNNAMED		   "another tool"
#define COLLECT_TIMEOUT_NS UINT64_C(300000000)	/* for work that the GPU is executing */
#define STOP_TIMEOUT_NS	   UINT64_C(1000000000) /* how long the other tool's thread waits */
#define QUIET_NS                                                                                   \
	UINT64_C(250000000) /* after it unsubscribed: it may finalise, or subscribe again */
#define EVENTS_COUNT 64

enum state {
	HANDOFF_OFF, /* no hooks, or inactive */
	HANDOFF_SUBSCRIBED,
	HANDOFF_RELEASING,
	HANDOFF_RELEASED,
	HANDOFF_RESUMING,
};

/*
 * Progress of disabling our records, before another tool enables its own. Either collect_records()
 * does it, or the thread that timed out waiting for it.
 */
enum stop_state { STOP_REQUESTED, STOP_STARTED, STOP_DONE };

static atomic_int state;
static atomic_int stop_state;		  /* enum stop_state, valid in HANDOFF_RELEASING */
static atomic_uint_fast64_t resume_at_ns; /* 0: the other tool is active */
static atomic_bool clock_is_foreign, clock_is_default;
static bool resumes_later; /* --yield: release to subscribers too, and resume afterwards */
static enum api_level api_level;

/* State of the other tool. */
#define KINDS_COUNT 256
static atomic_bool has_unsubscribed;
static atomic_bool enabled_kinds[KINDS_COUNT];
static _Atomic(xt_cupti_buffer_requested) foreign_requested;
static uintptr_t cupti_begin, cupti_end; /* CUPTI's address range */

static int (*find_object)(void *address,
			  struct dl_find_object *result); /* NULL: glibc is too old */

static struct cupti_handoff_event
	events[EVENTS_COUNT]; /* written by the thread that changes the state, read by the writer */
static atomic_uint event_count, events_taken;

static void add_event(uint64_t time_ns, bool is_back, const char *who)
{
	unsigned count = atomic_load(&event_count);
	struct cupti_handoff_event *event = &events[count % EVENTS_COUNT];

	if (count - atomic_load(&events_taken) == EVENTS_COUNT)
		return;
	event->time_ns = time_ns;
	event->is_back = is_back;
	snprintf(event->who, sizeof(event->who), "%s", who);
	/* Pairs with cupti_handoff_next(). */
	atomic_store_explicit(&event_count, count + 1, memory_order_release);
}

bool cupti_handoff_next(struct cupti_handoff_event *event)
{
	unsigned taken = atomic_load(&events_taken);

	if (taken == atomic_load_explicit(&event_count, memory_order_acquire))
		return false;
	*event = events[taken % EVENTS_COUNT];
	atomic_store(&events_taken, taken + 1);
	return true;
}

/*
 * Runs in the tool's thread. It may hold a lock that a holder of the loader's lock waits for. So
 * this must not take the loader's lock, as dladdr() would. The caller's own module stays loaded.
 */
static void module_name(const void *address, char *out, size_t out_bytes)
{
	struct dl_find_object object;
	const char *path, *slash;

	if (!find_object || find_object((void *)(uintptr_t)address, &object)) {
		snprintf(out, out_bytes, UNNAMED);
		return;
	}
	path = object.dlfo_link_map->l_name;
	if (!path || !*path)
		path = program_invocation_short_name;
	slash = strrchr(path, '/');
	snprintf(out, out_bytes, "%s", slash ? slash + 1 : path);
}

/* False if another thread does it or has done it. */
static bool stop_records(void)
{
	int now = STOP_REQUESTED;

	if (!atomic_compare_exchange_strong(&stop_state, &now, STOP_STARTED))
		return false;
	cupti_subscriber_stop();
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
	if (atomic_load(&state) == HANDOFF_RELEASING)
		flusher_flush(XT_CUPTI_FLUSH_FORCED);
	atomic_store(&stop_state, STOP_DONE);
}

static void wait_for_stop(uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;

	while (atomic_load(&stop_state) != STOP_DONE && monotonic_ns() < deadline_ns)
		xt_sleep_ns(NAP_NS);
}

static void release_cupti(const char *function, const void *caller)
{
	uint64_t time_ns = monotonic_ns();
	char who[CUPTI_HANDOFF_WHO_BYTES];

	module_name(caller, who, sizeof(who));
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
	if (resumes_later)
		log_message("recording paused: %s uses CUPTI (%s)", who, function);
	else
		log_message("recording ends: %s uses CUPTI (%s); to resume afterwards, use --yield",
			    who, function);
}

/* On return, only the caller uses CUPTI. */
static void yield_to_other_tool(const char *function, const void *caller)
{
	uint64_t deadline_ns = monotonic_ns() + 2 * STOP_TIMEOUT_NS;
	int now;

	atomic_store(&resume_at_ns, 0);
	for (;;) {
		now = HANDOFF_SUBSCRIBED;
		if (atomic_compare_exchange_strong(&state, &now, HANDOFF_RELEASING)) {
			release_cupti(function, caller);
			atomic_store(&state, HANDOFF_RELEASED);
			return;
		}
		if ((now != HANDOFF_RELEASING && now != HANDOFF_RESUMING) ||
		    monotonic_ns() >= deadline_ns)
			return;
		xt_sleep_ns(NAP_NS);
	}
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
	return atomic_load(&state) != HANDOFF_OFF &&
	       !((uintptr_t)caller >= cupti_begin && (uintptr_t)caller < cupti_end);
}

/*
 * Records keep our clock until another is registered. A tool that registers none expects CUPTI's
 * default. Registering spoils a record, so it is done only then.
 */
static void adjust_clock(enum effect effect)
{
	if (effect & (SETS_CLOCK | RESETS_CLOCK))
		atomic_store(&clock_is_foreign, true);
	else if (effect & NEEDS_CLOCK && !atomic_load(&clock_is_foreign) &&
		 !atomic_exchange(&clock_is_default, true))
		cupti.cuptiActivityRegisterTimestampCallback(realtime_ns);
}

static void before_foreign_call(const char *function, enum effect effect, const void *caller)
{
	/*
	 * While we are subscribed, CUPTI refuses other subscribers. Enabling a kind is harmless
	 * without --yield: libraries try which kinds exist.
	 */
	bool comes = effect & ACQUIRES && (resumes_later || !(effect & (SUBSCRIBES | ENABLES)));

	if (!(effect & ACQUIRES) || !is_foreign_call(caller))
		return;
	if (comes)
		yield_to_other_tool(function, caller);
	if (comes && effect & SUBSCRIBES)
		atomic_store(&has_unsubscribed, false);
	if (atomic_load(&state) == HANDOFF_RELEASED)
		adjust_clock(effect);
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
	if (!(effect & (RELEASES | ENABLES | DISABLES)) || result != XT_CUPTI_SUCCESS ||
	    !is_foreign_call(caller) || atomic_load(&state) != HANDOFF_RELEASED)
		return;
	if (effect & (ENABLES | DISABLES) && kind < KINDS_COUNT)
		atomic_store(&enabled_kinds[kind], effect & ENABLES);
	for (size_t i = 0; effect & FINALIZES && i < KINDS_COUNT; i++)
		atomic_store(&enabled_kinds[i], false);
	if (effect & RELEASES)
		atomic_store(&has_unsubscribed, true);
	if (resumes_later && atomic_load(&has_unsubscribed) && !wants_records())
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

	if (!theirs || !completed || !is_foreign_call(caller))
		return real_register(theirs, completed);
	/* The tool may have enabled kinds before, which changed nothing then. */
	before_foreign_call("cuptiActivityRegisterCallbacks",
			    resumes_later ? ACQUIRES : ACQUIRES | NEEDS_CLOCK, caller);
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
		if (from + part->p_memsz > end)
			end = from + part->p_memsz;
	}
	if (!is_within)
		return 0;
	cupti_begin = info->dlpi_addr;
	cupti_end = end;
	return 1;
}

void cupti_handoff_begin(enum api_level level, bool resumes)
{
	int rc;

	api_level = level;
	resumes_later = resumes;
	find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
	loader_iterate(find_cupti, NULL);
	if (!cupti_end)
		return;
	rc = symbol_hooks_install(cupti.library, hooks, sizeof(hooks) / sizeof(*hooks));
	if (!rc)
		atomic_store(&state, HANDOFF_SUBSCRIBED);
	else if (resumes_later)
		log_message("cannot yield to other tools: cannot hook %s: %s", cupti.path,
			    strerror(-rc));
}

bool cupti_handoff_is_released(void)
{
	int now = atomic_load(&state);

	return now == HANDOFF_RELEASED || now == HANDOFF_RESUMING;
}

static void resume_recording(void)
{
	bool sets_clock = atomic_load(&clock_is_foreign) || atomic_load(&clock_is_default);
	char why[1024];

	/* Empties the other tool's buffers, so that they get none of our records. */
	flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
	if (cupti_subscriber_subscribe(why, sizeof(why))) {
		atomic_store(&state, HANDOFF_RELEASED); /* a tool subscribed past our hooks */
		return;
	}
	if (cupti_subscriber_start(api_level, sets_clock, why, sizeof(why))) {
		cupti_subscriber_unsubscribe();
		atomic_store(&state, HANDOFF_RELEASED);
		log_message("cannot resume recording: %s", why);
		return;
	}
	atomic_store(&clock_is_foreign, false);
	atomic_store(&clock_is_default, false);
	add_event(monotonic_ns(), true, "");
	recording_resume(PAUSED_HANDOFF);
	atomic_store(&state, HANDOFF_SUBSCRIBED);
	log_message("recording resumed: CUPTI is free again");
}

void cupti_handoff_resume_if_due(void)
{
	uint64_t due_ns = atomic_load(&resume_at_ns);
	int now = HANDOFF_RELEASED;

	if (!due_ns || monotonic_ns() < due_ns ||
	    !atomic_compare_exchange_strong(&state, &now, HANDOFF_RESUMING))
		return;
	/*
	 * Only one thread proceeds: yield_to_other_tool() clears the time before it reads the
	 * state.
	 */
	if (!atomic_exchange(&resume_at_ns, 0)) {
		atomic_store(&state, HANDOFF_RELEASED);
		return;
	}
	resume_recording();
}

void cupti_handoff_abandon(void)
{
	atomic_store(&state, HANDOFF_OFF);
}
