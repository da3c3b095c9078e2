/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the thread of InitializeInjection(), on the flusher thread, and in the thread of another
 * tool. The functions of unsafe kinds also run in callbacks of CUPTI.
 */
#include "inject/cupti/cupti_subscriber.h"

#include <errno.h>
#include <stdio.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/log_message.h"
#include "log/base/compare.h"

#define PROFILER_CALLS_MAX 8

static struct {
	uint32_t api;
	enum profiler_call call;
} profiler_calls[PROFILER_CALLS_MAX];
static uint32_t profiler_call_count;

enum profiler_call profiler_call_of(uint32_t api)
{
	for (uint32_t i = 0; i < profiler_call_count; i++)
		if (profiler_calls[i].api == api)
			return profiler_calls[i].call;
	return PROFILER_NONE;
}

/* CUPTI appends a version to the names of runtime API functions. */
static enum profiler_call profiler_call_of_name(const char *name)
{
	static const struct {
		const char *beginning;
		enum profiler_call call;
	} names[] = {
		{"cuProfilerStart", PROFILER_START},
		{"cuProfilerStop", PROFILER_STOP},
		{"cudaProfilerStart", PROFILER_START},
		{"cudaProfilerStop", PROFILER_STOP},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (begins_with(name, names[i].beginning))
			return names[i].call;
	return PROFILER_NONE;
}

static void profiler_calls_enable_in(void *subscriber, uint32_t domain)
{
	for (uint32_t cbid = 1; cbid < API_CBID_END && profiler_call_count < PROFILER_CALLS_MAX;
	     cbid++) {
		const char *name = NULL;
		enum profiler_call call;

		if (cupti.cuptiGetCallbackName(domain, cbid, &name) != XT_CUPTI_SUCCESS || !name)
			continue;
		call = profiler_call_of_name(name);
		if (call == PROFILER_NONE ||
		    cupti.cuptiEnableCallback(1, subscriber, domain, cbid) != XT_CUPTI_SUCCESS)
			continue;
		profiler_calls[profiler_call_count].api = domain << 16 | cbid;
		profiler_calls[profiler_call_count++].call = call;
		if (domain == XT_CUPTI_CB_DOMAIN_DRIVER_API)
			api_uses[cbid] |= API_IS_PROFILER;
	}
}

/* Enables their callbacks. Once for each subscription, before calls are recorded. */
static void profiler_calls_enable(void *subscriber)
{
	if (!cupti.cuptiGetCallbackName)
		return;
	profiler_call_count = 0; /* a new subscription */
	profiler_calls_enable_in(subscriber, XT_CUPTI_CB_DOMAIN_DRIVER_API);
	profiler_calls_enable_in(subscriber, XT_CUPTI_CB_DOMAIN_RUNTIME_API);
}

#define DEVICE_NONE	       UINT32_MAX
#define POINTER_MEMPOOL_HANDLE 17 /* of CUpointer_attribute */
#define POOL_RESERVED_BYTES    5  /* of CUmemPool_attribute */

/*
 * Kinds of records that are enabled only as far as they are safe. A kind that turns out to be
 * unsafe is disabled for good, and counted. docs/internals/CONDITIONAL_GRAPHS.md has the
 * measurements.
 *
 * MEMCPY2, copies between devices: if this kind and MEMCPY are both enabled while a CUDA graph with
 * copy nodes is launched, the program fails with CUDA_ERROR_LAUNCH_FAILED. Therefore only processes
 * that use several devices enable this kind, and only while no graph has a copy node, as far as we
 * saw all graphs.
 *
 * MEMORY2, allocations and frees: CUPTI ends the process with SIGSEGV in cuMemFreeAsync(), if the
 * memory is from no memory pool or from another process. CUPTI of CUDA 11 does so at graphs that
 * allocate memory, so it does not get this kind.
 *
 * They change only while the kinds are locked (graph_level.h), except is_unsafe and is_off.
 */
static struct kind {
	uint32_t id;
	atomic_uint_fast64_t *lost_count; /* kinds that were given up */
	bool is_useful;			  /* while anything is recorded */
	bool is_enabled;
	bool is_lost;	       /* counted */
	atomic_bool is_unsafe; /* for good */
	atomic_bool is_off;    /* it is unsafe, and disabled for good */
} peer_copies = {.id = XT_CUPTI_ACTIVITY_MEMCPY2, .lost_count = &cupti_unsafe_kinds},
  memory = {.id = XT_CUPTI_ACTIVITY_MEMORY2, .lost_count = &cupti_unsafe_memory, .is_useful = true};
static bool is_recording;
static uint32_t first_device = DEVICE_NONE;

static void disable_kind(struct kind *kind)
{
	if (kind->is_enabled && cupti.cuptiActivityDisable(kind->id) == XT_CUPTI_SUCCESS)
		kind->is_enabled = false;
}

static void enable_kind(struct kind *kind)
{
	uint32_t result = kind->is_enabled ? XT_CUPTI_SUCCESS : cupti.cuptiActivityEnable(kind->id);

	kind->is_enabled = result == XT_CUPTI_SUCCESS;
	if (cupti_has_failed(result))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	/* give_up_kind() may have waited in vain for the lock that this thread has. */
	if (atomic_load(&kind->is_unsafe))
		disable_kind(kind);
}

static void update_kind(struct kind *kind)
{
	bool is_useful = is_recording && kind->is_useful;
	int saved_errno = errno;

	if (is_useful && !atomic_load(&kind->is_unsafe))
		enable_kind(kind);
	else
		disable_kind(kind);
	if (is_useful && atomic_load(&kind->is_unsafe) && !kind->is_lost) {
		kind->is_lost = true;
		atomic_fetch_add(kind->lost_count, 1);
	}
	errno = saved_errno;
}

static void give_up_kind(struct kind *kind)
{
	bool are_locked;

	if (atomic_load(&kind->is_off))
		return;
	atomic_store(&kind->is_unsafe, true);
	are_locked = graph_level_lock_kinds();
	update_kind(kind);
	atomic_store(&kind->is_off, are_locked && !kind->is_enabled);
	graph_level_unlock_kinds(are_locked);
}

static void note_device(uint32_t device)
{
	peer_copies.is_useful |= first_device != DEVICE_NONE && first_device != device;
	first_device = device;
}

/* Contexts that are older than our subscription. Graphs that are as old may have copies. */
static void find_older_contexts(void)
{
	int count = 0, is_active;
	unsigned flags;

	if (!cupti.cuDeviceGetCount || cupti.cuDeviceGetCount(&count) || count < 2 ||
	    !cupti.cuDevicePrimaryCtxGetState)
		return;
	for (int device = 0; device < count; device++) {
		if (cupti.cuDevicePrimaryCtxGetState(device, &flags, &is_active) || !is_active)
			continue;
		note_device((uint32_t)device);
		atomic_store(&peer_copies.is_unsafe, true);
	}
}

/*
 * Recording starts, with copies and memory. sees_frees: unsafe_kinds_note_free() will be called at
 * each cuMemFreeAsync(). The kinds are locked (graph_level.h).
 */
static void unsafe_kinds_start(bool sees_frees)
{
	if (first_device == DEVICE_NONE)
		find_older_contexts();
	if (!sees_frees || cupti.version < XT_CUPTI_OF_CUDA12)
		atomic_store(&memory.is_unsafe, true);
	is_recording = true;
	/* Another tool may have changed the kinds since the last stop. */
	peer_copies.is_enabled = memory.is_enabled = false;
	update_kind(&peer_copies);
	update_kind(&memory);
	if (atomic_load(&memory.is_unsafe))
		atomic_store(&memory.is_off, true);
}

/* Recording stops. The kinds are locked. Returns how many kinds it disabled. */
static unsigned unsafe_kinds_stop(void)
{
	unsigned count = peer_copies.is_enabled + memory.is_enabled;

	is_recording = false;
	update_kind(&peer_copies);
	update_kind(&memory);
	return count - peer_copies.is_enabled - memory.is_enabled;
}

void unsafe_kinds_note_context(void *context)
{
	uint32_t device;
	bool are_locked;

	if (!cupti.cuptiGetDeviceId || cupti.cuptiGetDeviceId(context, &device))
		return;
	are_locked = graph_level_lock_kinds();
	note_device(device);
	update_kind(&peer_copies);
	graph_level_unlock_kinds(are_locked);
}

void unsafe_kinds_note_graph_copy(void)
{
	give_up_kind(&peer_copies);
}

/*
 * The driver refuses the attribute of a pool that belongs to another process. Without a driver, as
 * after fork(), nothing is freed.
 */
static bool is_safe_to_free(uint64_t address)
{
	void *pool = NULL;
	uint64_t bytes;
	int error;

	if (!cupti.cuPointerGetAttribute || !cupti.cuMemPoolGetAttribute)
		return false;
	error = cupti.cuPointerGetAttribute(&pool, POINTER_MEMPOOL_HANDLE, address);
	if (error == XT_CUDA_ERROR_NOT_INITIALIZED || error == XT_CUDA_ERROR_DEINITIALIZED)
		return true;
	return !error && pool && !cupti.cuMemPoolGetAttribute(pool, POOL_RESERVED_BYTES, &bytes);
}

void unsafe_kinds_note_free(uint64_t address)
{
	int saved_errno = errno;

	if (address && !atomic_load(&memory.is_off) && !is_safe_to_free(address))
		give_up_kind(&memory);
	errno = saved_errno;
}

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
 * whether the start can record memory (memory.is_unsafe).
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
