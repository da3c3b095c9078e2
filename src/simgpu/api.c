/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of the simulated driver. Each one packs its arguments into a struct, runs the
 * enabled callbacks, and calls its implementation. Runs on the application's threads.
 *
 * An implementation must never call an entry point, because that call would be traced.
 */
#include <string.h>

#include "simgpu/sim.h"

#define SIM_EXPORT __attribute__((visibility("default")))

/* The kernel among the arguments of a launch. NULL for other calls. */
static CUfunction launched_function(const struct sim_call *call)
{
	switch (call->api->cbid) {
	case XT_CUPTI_CBID_cuLaunchKernel:
	case XT_CUPTI_CBID_cuLaunchKernel_ptsz:
	case XT_CUPTI_CBID_cuLaunchCooperativeKernel:
	case XT_CUPTI_CBID_cuLaunchCooperativeKernel_ptsz:
		return ((const CUfunction *)call->params)[0];
	case XT_CUPTI_CBID_cuLaunchKernelEx:
	case XT_CUPTI_CBID_cuLaunchKernelEx_ptsz:
		return ((const CUfunction *)call->params)[1];
	default:
		return NULL;
	}
}

static void notify(struct sim_thread *thread, struct sim_call *call, enum xt_cupti_site site)
{
	const struct sim_tracer *tracer =
		atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
	CUfunction function = launched_function(call);

	call->symbol_name = sim_function_is_valid(function) ? function->name : NULL;
	call->context = sim_context_current();
	call->context_id = call->context ? call->context->id : 0;
	sim_correlation_id();
	thread->is_in_callback = true;
	tracer->api(site, call);
	thread->is_in_callback = false;
}

static inline bool is_enabled(const struct sim_api *api)
{
	return atomic_load_explicit(&sim_switches.driver_enabled[api->cbid], memory_order_acquire);
}

static bool makes_work(const struct sim_api *api)
{
	static const char *const prefixes[] = {"cuLaunchKernel", "cuLaunchCooperativeKernel",
					       "cuGraphLaunch", "cuMemcpy", "cuMemset"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(api->name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void report_enter(struct sim_thread *thread, struct sim_call *call)
{
	notify(thread, call, XT_CUPTI_API_ENTER);
	call->was_reported = true;
	call->makes_work = atomic_load(&sim_switches.is_cupti13) && makes_work(call->api);
	if (call->makes_work)
		atomic_fetch_add(&sim_switches.work_count, 1);
}

static void report_exit(struct sim_thread *thread, struct sim_call *call)
{
	if (call->was_reported && call->makes_work)
		atomic_fetch_sub(&sim_switches.work_count, 1);
	if (is_enabled(call->api))
		notify(thread, call, XT_CUPTI_API_EXIT);
	else if (call->was_reported && atomic_load(&sim_switches.is_cupti13) &&
		 atomic_load(&sim_switches.is_subscribed))
		thread->frozen_id = call->correlation_id;
}

static __attribute__((noinline)) void use_stack(size_t bytes)
{
	*(volatile char *)__builtin_alloca(bytes) = 0;
}

/* The only functions that callbacks may call, as on a real GPU: they read a field. */
static bool is_allowed_in_callback(uint32_t cbid)
{
	enum { POINTER_GET_ATTRIBUTE = 310, MEM_POOL_GET_ATTRIBUTE = 604, FUNC_GET_NAME = 718 };

	return cbid == POINTER_GET_ATTRIBUTE || cbid == MEM_POOL_GET_ATTRIBUTE ||
	       cbid == FUNC_GET_NAME;
}

/* The partner of call_leave(). Sets call->result to the error that forbids the call, if any. */
static inline void call_enter(struct sim_call *call, const struct sim_api *api, const void *params)
{
	struct sim_thread *thread = sim_thread();

	call->api = api;
	call->params = params;
	call->correlation_id = 0;
	call->correlation_data = 0;
	call->enter_ns = 0;
	call->entered_ns = 0;
	call->was_reported = false;
	call->result = api->is_early || sim_is_ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	/* A signal handler jumped out of an earlier call whose struct was at this address. */
	if (thread->call == call) {
		thread->call = NULL;
		thread->is_in_callback = false;
	}
	if (thread->is_in_callback) {
		if (is_allowed_in_callback(api->cbid))
			return;
		sim_truth_violation(call);
		call->result = CUDA_ERROR_UNKNOWN;
		return;
	}
	call->outer = thread->call;
	thread->call = call;
	if (!call->outer)
		call->number = thread->call_count++;
	if (!call->outer && sim_truth_is_on())
		call->entered_ns = sim_now_ns();
	if (is_enabled(api))
		report_enter(thread, call);
	if (sim_config()->stack_bytes)
		use_stack(sim_config()->stack_bytes);
	if (call->entered_ns)
		call->began_ns = sim_now_ns();
}

static inline CUresult call_leave(struct sim_call *call)
{
	struct sim_thread *thread = sim_thread();

	if (thread->is_in_callback)
		return call->result;
	if (call->entered_ns)
		call->ended_ns = sim_now_ns();
	report_exit(thread, call);
	if (call->entered_ns)
		sim_truth_call(call);
	thread->call = call->outer;
	return call->result;
}

#define DEFINE_API(name_, implementation, cbid_, early, per_thread, count, ...)                    \
	static const struct sim_api api_##name_ = {                                                \
		.name = #name_, .cbid = cbid_, .is_early = early, .is_per_thread = per_thread};    \
	SIM_EXPORT CUresult CUDAAPI name_(XT_API_PARAMETERS(count, ##__VA_ARGS__))                 \
	{                                                                                          \
		const struct {                                                                     \
			XT_API_FIELDS(count, ##__VA_ARGS__)                                        \
		} params = {XT_API_NAMES(count, ##__VA_ARGS__)};                                   \
		struct sim_call call;                                                              \
                                                                                                   \
		call_enter(&call, &api_##name_, &params);                                          \
		if (call.result == CUDA_SUCCESS)                                                   \
			call.result = implementation(XT_API_NAMES(count, ##__VA_ARGS__));          \
		return call_leave(&call);                                                          \
	}

#define API(name, implementation, cbid, count, ...)                                                \
	DEFINE_API(name, implementation, cbid, false, false, count, ##__VA_ARGS__)
#define API_EARLY(name, implementation, cbid, count, ...)                                          \
	DEFINE_API(name, implementation, cbid, true, false, count, ##__VA_ARGS__)
#define API_PT(name, implementation, cbid, count, ...)                                             \
	DEFINE_API(name, implementation, cbid, false, true, count, ##__VA_ARGS__)
#include "include/cuda_functions.def"

/* All entry points, ended by a NULL name. */
static const struct {
	const struct sim_api *api;
	void *function;
} entries[] = {
#define API(name, ...) {&api_##name, (void *)name},
#include "include/cuda_functions.def"
	{NULL, NULL},
};

/* How well an entry matches a plain name: 0 for no match, else its version. The largest wins. */
static int entry_version(const char *entry, const char *name, bool is_per_thread)
{
	const char *rest = entry + strlen(name);
	int version = 1;

	if (strncmp(entry, name, strlen(name)))
		return 0;
	if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9') {
		version = rest[2] - '0';
		rest += 3;
	}
	if (is_per_thread && (!strcmp(rest, "_ptsz") || !strcmp(rest, "_ptds")))
		return version;
	return *rest ? 0 : version;
}

/* True if the entry's arguments differ from those of older entries of that name. */
static bool is_too_new(const char *entry, int cuda_version)
{
	return !strcmp(entry, "cuCtxCreate_v4") && cuda_version < 12050;
}

static void *find_entry(const char *name, int cuda_version, bool is_per_thread)
{
	void *best = NULL;
	int best_version = 0;

	for (size_t i = 0; entries[i].api; i++) {
		const struct sim_api *api = entries[i].api;
		int version;

		if (api->is_per_thread != is_per_thread || is_too_new(api->name, cuda_version))
			continue;
		version = entry_version(api->name, name, is_per_thread);
		if (version > best_version) {
			best_version = version;
			best = entries[i].function;
		}
	}
	return best;
}

CUresult sim_get_proc_address(const char *name, void **function, int version, cuuint64_t flags,
			      CUdriverProcAddressQueryResult *status)
{
	if (!name || !function || version <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*function = NULL;
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		*function = find_entry(name, version, true);
	if (!*function)
		*function = find_entry(name, version, false);
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
				    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static const struct sim_api *api_by_cbid(uint32_t cbid)
{
	for (size_t i = 0; entries[i].api; i++)
		if (entries[i].api->cbid == cbid)
			return entries[i].api;
	return NULL;
}

SIM_EXPORT struct sim_seam xtrace_simgpu_seam = {
	.version = SIM_SEAM_VERSION,
	.switches = &sim_switches,
	.usable = sim_is_usable,
	.device_count = sim_device_total,
	.device_facts = sim_device_facts,
	.context_ids = sim_context_ids,
	.stream_id = sim_stream_id,
	.graph_node_id = sim_graph_node_id,
	.graph_id = sim_graph_id,
	.graph_exec_id = sim_graph_exec_id,
	.api_by_cbid = api_by_cbid,
	.restart_correlation_ids = sim_restart_correlation_ids,
};
