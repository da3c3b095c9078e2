/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the thread of InitializeInjection(), on the flusher thread, and in the thread of another
 * tool.
 */
#include "inject/cupti/cupti_subscriber.h"

#include <errno.h>
#include <stdio.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/api_table.h"
#include "inject/runtime/clock.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/graph_level.h"
#include "inject/cupti/profiler_calls.h"
#include "inject/cupti/unsafe_kinds.h"
#include "inject/runtime/debug_log.h"
#include "inject/runtime/sleep.h"

atomic_bool cupti_subscriber_records_calls, cupti_subscriber_lost_memory;

static xt_cupti_callback api_callback;
static void *subscriber;
static bool follows_profiler;
static uint32_t enabled_calls; /* callbacks; old versions of CUPTI lack some */
static uint8_t zeroed_before;  /* the attribute's original value */

/* For calls that began before their callbacks were enabled. Few last longer. */
#define UNSEEN_CALLS_NS UINT64_C(20000000)

/* More than programs need, for a CUPTI that can fail when it allocates another one. */
#define DEVICE_BUFFERS 16

/* Kinds besides kernels. An old CUPTI may lack one; recording continues without it. */
static const uint32_t extra_kinds[] = {XT_CUPTI_ACTIVITY_MEMCPY, XT_CUPTI_ACTIVITY_MEMSET};
#define EXTRA_KINDS (sizeof(extra_kinds) / sizeof(*extra_kinds))

/* Newer versions report the current subscriber's name. */
static uint32_t subscribe_by_name(char *holder, size_t holder_bytes)
{
	struct cupti_subscriber_params params = {
		.struct_bytes = sizeof(params),
		.name = "xtrace",
		.holder = holder,
		.holder_bytes = holder_bytes,
	};

	holder[0] = '\0';
	if (!cupti.cuptiSubscribe_v2)
		return XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	return cupti.cuptiSubscribe_v2(&subscriber, api_callback, NULL, &params);
}

void cupti_subscriber_set_callback(xt_cupti_callback callback)
{
	api_callback = callback;
}

bool cupti_subscriber_needs_host_memory(void)
{
	return cupti.version >= XT_CUPTI_OF_CUDA12_9 && cupti.version < XT_CUPTI_OF_CUDA13_0_1;
}

static int refuse(bool is_late, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes,
		 "CUPTI %s could make this program fail: use %sCUPTI 13.0.1 or later "
		 "(XTRACE_CUPTI=FILE)",
		 cupti.version < XT_CUPTI_OF_CUDA13 ? "12.9" : "13.0.0",
		 is_late ? "xtrace record, with --armed to start later, or " : "");
	return -ENOTSUP;
}

int cupti_subscriber_prepare(bool is_late, char *why, size_t why_bytes)
{
	size_t bytes = 1, buffers = DEVICE_BUFFERS, buffers_bytes = sizeof(buffers);
	uint8_t yes = 1;
	bool is_kept = !is_late && cupti.version < XT_CUPTI_OF_CUDA13_0_1 &&
		       cupti.cuptiActivitySetAttribute &&
		       cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED,
						       &bytes, &yes) == XT_CUPTI_SUCCESS;

	if (!cupti_subscriber_needs_host_memory())
		return 0;
	if (is_kept)
		cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE,
						&buffers_bytes, &buffers);
	return is_kept ? 0 : refuse(is_late, why, why_bytes);
}

int cupti_subscriber_subscribe(char *why, size_t why_bytes)
{
	char holder[XT_CUPTI_SUBSCRIBER_NAME_BYTES + 1] = "";
	uint32_t result;

	if (cupti_subscriber_needs_host_memory() && atomic_load(&cupti_subscriber_lost_memory))
		return refuse(false, why, why_bytes);
	result = cupti.cuptiSubscribe(&subscriber, api_callback, NULL);
	if (result == XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		result = subscribe_by_name(holder, sizeof(holder) - 1);
	if (result == XT_CUPTI_SUCCESS) {
		graph_level_open();
		return 0;
	}
	holder[sizeof(holder) - 1] = '\0';
	for (char *c = holder; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (result == XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		snprintf(why, why_bytes,
			 "another tool already uses CUPTI in this process%s%s; run without it",
			 holder[0] ? ": " : "", holder);
	else
		snprintf(why, why_bytes, "CUPTI refuses a subscription: %s (%s)",
			 cupti_result_text(result), cupti.path);
	return -EBUSY;
}

/* Our buffers are zeroed already; CUPTI need not zero them in the program's threads. */
static void set_zeroed_buffers(uint8_t value)
{
	size_t bytes = sizeof(value);

	if (cupti.cuptiActivitySetAttribute)
		cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes,
						&value);
}

static void save_zeroed_buffers(void)
{
	size_t bytes = sizeof(zeroed_before);

	if (!cupti.cuptiActivityGetAttribute ||
	    cupti.cuptiActivityGetAttribute(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes,
					    &zeroed_before) != XT_CUPTI_SUCCESS)
		zeroed_before = 0;
}

static bool enable_callback(uint32_t domain, uint32_t cbid)
{
	uint32_t result = cupti.cuptiEnableCallback(1, subscriber, domain, cbid);

	if (cupti_has_failed(result))
		atomic_fetch_add(&cupti_lost_apis, 1);
	return result == XT_CUPTI_SUCCESS;
}

/*
 * Calls that matter before recording starts. Waits tell whether a graph may still run. Frees tell
 * whether the start can record memory (unsafe_kinds.h).
 */
static bool is_watched(uint32_t cbid)
{
	uint32_t use = api_uses[cbid];

	return use & (API_MAKES_GRAPHS | API_LAUNCHES_GRAPH | API_SYNCS | API_DELAYS_STOP) ||
	       (use & API_FREES_ASYNC && !(use & API_IS_UNRECORDED));
}

/* These calls, and the creation of nodes and contexts. Every level needs them. */
static void enable_watched_callbacks(void)
{
	static const uint32_t resource_cbids[] = {
		XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, XT_CUPTI_RESOURCE_GRAPHNODE_CREATED,
		XT_CUPTI_RESOURCE_GRAPHNODE_CLONED, XT_CUPTI_RESOURCE_CONTEXT_CREATED};

	for (uint32_t cbid = 0; cbid < API_CBID_END; cbid++)
		if (is_watched(cbid))
			enable_callback(XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid);
	for (size_t i = 0; i < sizeof(resource_cbids) / sizeof(*resource_cbids); i++)
		enable_callback(XT_CUPTI_CB_DOMAIN_RESOURCE, resource_cbids[i]);
}

/* Whether the callbacks of all frees that may be unsafe are enabled. */
static bool sees_frees(void)
{
	uint32_t known = 0, seen = 0;

	for (uint32_t cbid = 0; cbid < API_CBID_END; cbid++) {
		if (!(api_uses[cbid] & API_FREES_ASYNC))
			continue;
		known++;
		seen += cupti.cuptiEnableCallback(1, subscriber, XT_CUPTI_CB_DOMAIN_DRIVER_API,
						  cbid) == XT_CUPTI_SUCCESS;
	}
	return known && seen == known;
}

/*
 * Kernel names are cached by address until a module is unloaded. Earlier unloads were not seen, for
 * example while another tool used CUPTI, so this forgets all names. Call before kernels are
 * recorded.
 */
static void watch_unloads(void)
{
	enable_callback(XT_CUPTI_CB_DOMAIN_RESOURCE, XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING);
	atomic_fetch_add(&cupti_module_unloads, 1);
}

/*
 * They stay enabled until the subscription ends. If the callback of a call is disabled while a
 * thread is in it, CUPTI 13 gives all later calls of that thread the same correlation id.
 */
static bool enable_call_callbacks(void)
{
	if (enabled_calls)
		return false;
	enable_watched_callbacks();
	for (uint32_t i = 0; i < recorded_apis.count; i++)
		enabled_calls += enable_callback(recorded_apis.apis[i].id >> 16,
						 recorded_apis.apis[i].id & 0xffff);
	return true;
}

bool cupti_subscriber_begin_start(void)
{
	bool are_locked = graph_level_lock_kinds(), are_new = enable_call_callbacks();

	graph_level_unlock_kinds(are_locked);
	if (are_new)
		xt_sleep_ns(UNSEEN_CALLS_NS);
	return graph_level_begin_change(CHANGE_PATIENCE_NS);
}

int cupti_subscriber_start(enum api_level level, bool sets_clock, char *why, size_t why_bytes)
{
	uint32_t result = XT_CUPTI_SUCCESS;

	if (graph_level_refusal()) {
		snprintf(why, why_bytes, "%s", graph_level_refusal());
		return -EIO;
	}
	save_zeroed_buffers();
	set_zeroed_buffers(1);
	if (sets_clock)
		result = cupti.cuptiActivityRegisterTimestampCallback(monotonic_ns);
	if (result == XT_CUPTI_SUCCESS)
		result = cupti.cuptiActivityRegisterCallbacks(activity_requested,
							      activity_completed);
	/*
	 * Callbacks before records: while other threads launch, a kernel whose call was not seen
	 * would have no call path.
	 */
	if (result == XT_CUPTI_SUCCESS) {
		watch_unloads();
		atomic_store(&cupti_subscriber_records_calls, true);
		enable_call_callbacks();
	}
	if (enabled_calls)
		result = cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	for (size_t i = 0; enabled_calls && i < EXTRA_KINDS && level > API_LEVEL_LAUNCH &&
			   result == XT_CUPTI_SUCCESS;
	     i++)
		if (cupti_has_failed(cupti.cuptiActivityEnable(extra_kinds[i])))
			atomic_fetch_add(&cupti_lost_kinds, 1);
	if (enabled_calls && result == XT_CUPTI_SUCCESS) {
		if (level > API_LEVEL_LAUNCH)
			unsafe_kinds_start(sees_frees());
		debug_log(DEBUG_CUPTI, "subscribed: %u of %u API callbacks enabled", enabled_calls,
			  recorded_apis.count);
		if (follows_profiler)
			profiler_calls_enable(subscriber);
		return 0;
	}
	snprintf(why, why_bytes, "CUPTI cannot record kernels: %s (%s)%s",
		 cupti_result_text(result), cupti.path,
		 result == XT_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
			 ? "; the driver lets only administrators profile: set its option "
			   "NVreg_RestrictProfilingToAdminUsers=0, or add CAP_SYS_ADMIN"
			 : "");
	/* Unused records would still slow the program down. */
	cupti_subscriber_stop();
	if (sets_clock)
		cupti.cuptiActivityRegisterTimestampCallback(realtime_ns);
	return -EIO;
}

unsigned cupti_subscriber_stop(void)
{
	unsigned count =
		cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL) == XT_CUPTI_SUCCESS;

	for (size_t i = 0; i < EXTRA_KINDS; i++)
		count += cupti.cuptiActivityDisable(extra_kinds[i]) == XT_CUPTI_SUCCESS;
	return count + cupti_subscriber_stop_unsafe_kinds();
}

unsigned cupti_subscriber_stop_unsafe_kinds(void)
{
	set_zeroed_buffers(zeroed_before);
	return unsafe_kinds_stop();
}

void cupti_subscriber_watch_graphs(void)
{
	watch_unloads();
	enable_watched_callbacks();
}

void cupti_subscriber_unsubscribe(void)
{
	graph_level_close();
	cupti.cuptiUnsubscribe(subscriber);
	enabled_calls = 0;
}

void cupti_subscriber_follow_profiler(void)
{
	follows_profiler = true;
	profiler_calls_enable(subscriber);
}
