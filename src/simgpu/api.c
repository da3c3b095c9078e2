/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of the simulated driver: each makes its arguments a struct, tells the tracer
 * where that is wanted, and calls its implementation. Runs on the application's threads.
 *
 * An implementation must never call an entry point: that would be traced.
 */
#include "simgpu/sim.h"

#define SIM_EXPORT __attribute__((visibility("default")))

static _Atomic uint32_t correlation_count;

SIM_EXPORT struct sim_seam xtrace_simgpu_seam = {
	.version = SIM_SEAM_VERSION,
	.usable = sim_is_usable,
	.device_count = sim_device_total,
	.device_facts = sim_device_facts,
	.context_ids = sim_context_ids,
	.stream_id = sim_stream_id,
	.graph_node_id = sim_graph_node_id,
	.graph_id = sim_graph_id,
	.graph_exec_id = sim_graph_exec_id,
	.api_by_cbid = sim_api_by_cbid,
	.number_anew = sim_number_anew,
};

/* Where the kernel stands among the arguments of the calls that launch one. */
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

/* As with a real CUPTI, only a call that is told or recorded takes a number. */
uint32_t sim_correlation_id(void)
{
	struct sim_call *call = sim_thread()->call;

	if (!call->correlation_id)
		call->correlation_id =
			1 + atomic_fetch_add_explicit(&correlation_count, 1, memory_order_relaxed);
	return call->correlation_id;
}

void sim_number_anew(void)
{
	atomic_store_explicit(&correlation_count, 0, memory_order_relaxed);
}

uint32_t sim_correlation_id_borrowed(void)
{
	const struct sim_call *call = sim_thread()->call;

	return call->correlation_id
		       ? call->correlation_id
		       : atomic_load_explicit(&correlation_count, memory_order_relaxed);
}

static void notify(struct sim_thread *thread, struct sim_call *call, enum xt_cupti_site site)
{
	const struct sim_tracer *tracer =
		atomic_load_explicit(&xtrace_simgpu_seam.tracer, memory_order_acquire);
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
	return atomic_load_explicit(&xtrace_simgpu_seam.driver_enabled[api->cbid],
				    memory_order_acquire);
}

static __attribute__((noinline)) void use_stack(size_t bytes)
{
	*(volatile char *)__builtin_alloca(bytes) = 0;
}

/* The partner of call_leave(). Sets call->result to what forbids the call, if anything does. */
static inline void call_enter(struct sim_call *call, const struct sim_api *api, const void *params)
{
	struct sim_thread *thread = sim_thread();

	call->api = api;
	call->params = params;
	call->correlation_id = 0;
	call->correlation_data = 0;
	call->enter_ns = 0;
	call->entered_ns = 0;
	call->result = api->is_early || sim_is_ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	/* Where this call stands there was another one: a signal handler has jumped out of that. */
	if (thread->call == call) {
		thread->call = NULL;
		thread->is_in_callback = false;
	}
	if (thread->is_in_callback) {
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
		notify(thread, call, XT_CUPTI_API_ENTER);
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
	if (is_enabled(call->api))
		notify(thread, call, XT_CUPTI_API_EXIT);
	if (call->entered_ns)
		sim_truth_call(call);
	thread->call = call->outer;
	return call->result;
}

void sim_resource_notify(uint32_t cbid, CUcontext context, CUstream stream, void *descriptor)
{
	const struct cupti_resource_data data = {
		.context = context,
		.stream = stream,
		.descriptor = descriptor,
	};
	struct sim_thread *thread = sim_thread();
	const struct sim_tracer *tracer;

	if (!atomic_load_explicit(&xtrace_simgpu_seam.resource_enabled[cbid], memory_order_acquire))
		return;
	tracer = atomic_load_explicit(&xtrace_simgpu_seam.tracer, memory_order_acquire);
	thread->is_in_callback = true;
	tracer->resource(cbid, &data);
	thread->is_in_callback = false;
}

#define DEFINE_API(name_, implementation, cbid_, early, per_thread, count, ...)                    \
	static const struct sim_api api_##name_ = {                                                \
		.name = #name_, .cbid = cbid_, .is_early = early, .is_per_thread = per_thread};    \
	SIM_EXPORT CUresult CUDAAPI name_(XT_API_DECL_##count(__VA_ARGS__))                        \
	{                                                                                          \
		const struct {                                                                     \
			XT_API_FIELDS_##count(__VA_ARGS__)                                         \
		} params = {XT_API_NAMES_##count(__VA_ARGS__)};                                    \
		struct sim_call call;                                                              \
                                                                                                   \
		call_enter(&call, &api_##name_, &params);                                          \
		if (call.result == CUDA_SUCCESS)                                                   \
			call.result = implementation(XT_API_NAMES_##count(__VA_ARGS__));           \
		return call_leave(&call);                                                          \
	}

#define API(name, implementation, cbid, count, ...)                                                \
	DEFINE_API(name, implementation, cbid, false, false, count, __VA_ARGS__)
#define API_EARLY(name, implementation, cbid, count, ...)                                          \
	DEFINE_API(name, implementation, cbid, true, false, count, __VA_ARGS__)
#define API_PT(name, implementation, cbid, count, ...)                                             \
	DEFINE_API(name, implementation, cbid, false, true, count, __VA_ARGS__)
#include "include/cuda_functions.def"
#undef API
#undef API_EARLY
#undef API_PT

const struct sim_entry sim_entries[] = {
#define API(name, ...) {&api_##name, (void *)name},
#define API_EARLY      API
#define API_PT	       API
#include "include/cuda_functions.def"
#undef API
#undef API_EARLY
#undef API_PT
	{NULL, NULL},
};

const struct sim_api *sim_api_by_cbid(uint32_t cbid)
{
	for (const struct sim_entry *entry = sim_entries; entry->api; entry++)
		if (entry->api->cbid == cbid)
			return entry->api;
	return NULL;
}
