/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks, and records of the activity API, in the layouts of CUPTI 13, and which kinds are
 * enabled. Kinds that do not apply to a simulated GPU can be enabled but produce no records.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simgpu/tracer.h"

#define KINDS 64

/* Full-size versions of records of which cupti_abi.h declares only the beginning. */
struct device_record {
	struct cupti_activity_device device;
	uint8_t rest[184 - sizeof(struct cupti_activity_device)];
};
struct memory_record {
	struct cupti_activity_memory memory;
	uint8_t rest[128 - sizeof(struct cupti_activity_memory)];
};
struct context_record {
	struct cupti_activity_context context;
	uint8_t rest[32 - sizeof(struct cupti_activity_context)];
};

static const struct {
	uint32_t kind;
	size_t record_bytes; /* 0: never written */
} kinds[] = {
	{XT_CUPTI_ACTIVITY_MEMCPY, sizeof(struct cupti_activity_memcpy)},
	{XT_CUPTI_ACTIVITY_MEMCPY2, sizeof(struct cupti_activity_memcpy_peer)},
	{XT_CUPTI_ACTIVITY_MEMSET, sizeof(struct cupti_activity_memset)},
	{XT_CUPTI_ACTIVITY_KERNEL, sizeof(struct cupti_activity_kernel)},
	{XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL, sizeof(struct cupti_activity_kernel)},
	{XT_CUPTI_ACTIVITY_DRIVER, sizeof(struct cupti_activity_api)},
	{XT_CUPTI_ACTIVITY_DEVICE, sizeof(struct device_record)},
	{XT_CUPTI_ACTIVITY_CONTEXT, sizeof(struct context_record)},
	{XT_CUPTI_ACTIVITY_MEMORY2, sizeof(struct memory_record)},
	{XT_CUPTI_ACTIVITY_GRAPH_TRACE, sizeof(struct cupti_activity_graph_trace)},
	{XT_CUPTI_ACTIVITY_RUNTIME, 0},
	{XT_CUPTI_ACTIVITY_NAME, 0},
	{XT_CUPTI_ACTIVITY_MARKER, 0},
	{XT_CUPTI_ACTIVITY_OVERHEAD, 0},
	{XT_CUPTI_ACTIVITY_SYNCHRONIZATION, 0},
	{XT_CUPTI_ACTIVITY_EXTERNAL_CORRELATION, 0},
	{XT_CUPTI_ACTIVITY_INTERNAL_LAUNCH_API, 0},
};

/* The switch that one or two kinds need in the driver half. */
static const struct {
	enum sim_switch activity;
	uint32_t kind;
	uint32_t other_kind;
} switches[] = {
	{SIM_SWITCH_KERNEL, XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL, XT_CUPTI_ACTIVITY_KERNEL},
	{SIM_SWITCH_COPY, XT_CUPTI_ACTIVITY_MEMCPY, XT_CUPTI_ACTIVITY_MEMCPY2},
	{SIM_SWITCH_SET, XT_CUPTI_ACTIVITY_MEMSET, XT_CUPTI_ACTIVITY_INVALID},
	{SIM_SWITCH_GRAPH, XT_CUPTI_ACTIVITY_GRAPH_TRACE, XT_CUPTI_ACTIVITY_INVALID},
	{SIM_SWITCH_ALLOCATION, XT_CUPTI_ACTIVITY_MEMORY2, XT_CUPTI_ACTIVITY_INVALID},
};

static _Atomic bool is_enabled[KINDS];
static _Atomic bool devices_are_due; /* DEVICE is enabled, but its records are not written yet */
static _Atomic uint64_t contexts_recorded; /* bits of context ids below 64 */

static bool is_kind_enabled(uint32_t kind)
{
	return atomic_load_explicit(&is_enabled[kind], memory_order_relaxed);
}

static size_t tracer_record_bytes(uint32_t kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].kind == kind)
			return kinds[i].record_bytes;
	return 0;
}

static void refresh(void)
{
	struct sim_seam *seam = tracer_seam();

	if (!seam)
		return;
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		bool is_on = atomic_load(&is_enabled[switches[i].kind]) ||
			     atomic_load(&is_enabled[switches[i].other_kind]);

		atomic_store_explicit(&seam->switches->activity_enabled[switches[i].activity],
				      is_on, memory_order_release);
		if (is_on)
			atomic_store(&seam->switches->was_used, true);
	}
	tracer_switch_api_records(atomic_load(&is_enabled[XT_CUPTI_ACTIVITY_DRIVER]));
}

static void tracer_records_reset(void)
{
	for (uint32_t kind = 0; kind < KINDS; kind++)
		atomic_store(&is_enabled[kind], false);
	refresh();
}

/* A real CUPTI 13 ends the process with SIGSEGV now and then. */
static void before_changing(uint32_t kind, bool enable)
{
	struct sim_seam *seam = tracer_seam();

	if ((kind != XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL && kind != XT_CUPTI_ACTIVITY_MEMCPY &&
	     kind != XT_CUPTI_ACTIVITY_MEMSET) ||
	    atomic_load(&is_enabled[kind]) == enable || !atomic_load(&seam->switches->work_count))
		return;
	fputs("xtrace simulated GPU: a kind of records changes during a call that makes work\n",
	      stderr);
	abort();
}

static int set_kind(uint32_t kind, bool enable)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].kind != kind)
			continue;
		before_changing(kind, enable);
		atomic_store(&is_enabled[kind], enable);
		if (kind == XT_CUPTI_ACTIVITY_DEVICE)
			atomic_store(&devices_are_due, enable);
		refresh();
		return XT_CUPTI_SUCCESS;
	}
	return XT_CUPTI_ERROR_INVALID_KIND;
}

SIM_EXPORT int cuptiActivityEnable(uint32_t kind)
{
	int result = tracer_enter(__func__, true);

	if (!result && tracer_fault_is_on(FAULT_NOT_PERMITTED))
		return XT_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
	return result ? result : set_kind(kind, true);
}

/* Fails as a real CUPTI does, see README.md. */
static void before_disabling_kernels(struct sim_switches *driver)
{
	if (atomic_load(&driver->set_up_count)) {
		fputs("xtrace simulated GPU: kernel records are disabled during cuInit(), or while "
		      "a context is made\n",
		      stderr);
		abort();
	}
	if (atomic_load(&driver->has_launched_whole))
		atomic_store(&driver->crashes_launches, true);
	if (!atomic_load(&driver->deadlocks))
		return;
	pthread_mutex_lock(&driver->kinds_lock);
	while (atomic_load(&driver->kinds_waiter_count))
		usleep(100);
	pthread_mutex_unlock(&driver->kinds_lock);
}

SIM_EXPORT int cuptiActivityDisable(uint32_t kind)
{
	static atomic_flag has_been_slow = ATOMIC_FLAG_INIT;
	int result = tracer_enter(__func__, true);

	if (result)
		return result;
	if (kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL && atomic_load(&is_enabled[kind]))
		before_disabling_kernels(tracer_seam()->switches);
	if (tracer_fault_is_on(FAULT_SLOW_DISABLE) && !atomic_flag_test_and_set(&has_been_slow))
		usleep((useconds_t)(1000 * tracer_fault_value(FAULT_SLOW_DISABLE)));
	return set_kind(kind, false);
}

static void append_devices(void)
{
	struct sim_seam *seam = tracer_seam();

	for (int i = 0; i < seam->device_count(); i++) {
		const struct sim_device_facts *facts = seam->device_facts(i);
		struct device_record record = {
			.device.kind = XT_CUPTI_ACTIVITY_DEVICE,
			.device.global_memory_bytes = facts->memory_bytes,
			.device.multiprocessor_count = (uint32_t)facts->multiprocessor_count,
			.device.threads_per_warp = 32,
			.device.max_threads_per_block = 1024,
			.device.compute_capability_major = (uint32_t)facts->capability_major,
			.device.compute_capability_minor = (uint32_t)facts->capability_minor,
			.device.id = (uint32_t)i,
			.device.name = facts->name,
		};

		tracer_append(&record, sizeof(record), (struct sim_span){0, 0});
	}
}

/* Writes the records that must precede the first one of a context. */
static void introduce(const struct sim_place *place)
{
	uint64_t bit = UINT64_C(1) << (place->context_id % 64);
	struct context_record record = {
		.context.kind = XT_CUPTI_ACTIVITY_CONTEXT,
		.context.context_id = place->context_id,
		.context.device_id = place->device_id,
		.context.compute_api_kind = 1, /* CUDA */
		/* That of other contexts is not known here. */
		.context.null_stream_id = place->context_id == 1 ? SIM_LEGACY_STREAM_ID : 0,
	};

	if (atomic_load_explicit(&devices_are_due, memory_order_relaxed) &&
	    atomic_exchange(&devices_are_due, false))
		append_devices();
	if (is_kind_enabled(XT_CUPTI_ACTIVITY_CONTEXT) &&
	    !(atomic_load_explicit(&contexts_recorded, memory_order_relaxed) & bit) &&
	    !(atomic_fetch_or(&contexts_recorded, bit) & bit))
		tracer_append(&record, sizeof(record), (struct sim_span){0, 0});
}

/* Members that all records of work have, those of graph nodes, and those of copies. */
#define WORK(run)                                                                                  \
	.device_id = (run)->place.device_id, .context_id = (run)->place.context_id,                \
	.stream_id = (run)->place.stream_id, .correlation_id = (run)->correlation_id
#define NODE(run) .graph_node_id = (run)->graph_node_id, .graph_id = (run)->graph_id
#define COPY(run)                                                                                  \
	.copy_kind = (run)->copy_kind, .source_kind = (run)->source_kind,                          \
	.destination_kind = (run)->destination_kind,                                               \
	.flags = (run)->is_async ? XT_CUPTI_FLAG_ASYNC : 0, .bytes = (run)->bytes,                 \
	.channel_type = 2 /* copy engine */

static void append_work(const struct sim_place *place, const void *record, size_t bytes,
			struct sim_span span)
{
	introduce(place);
	tracer_append(record, bytes, span);
}

static void tracer_on_kernel(const struct sim_kernel_run *run)
{
	bool is_concurrent = is_kind_enabled(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	const struct cupti_activity_kernel record = {
		.kind = is_concurrent ? XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL
				      : XT_CUPTI_ACTIVITY_KERNEL,
		.registers_per_thread = (uint16_t)run->registers_per_thread,
		WORK(run),
		.grid = {(int)run->grid[0], (int)run->grid[1], (int)run->grid[2]},
		.block = {(int)run->block[0], (int)run->block[1], (int)run->block[2]},
		.static_shared_bytes = (int)run->static_shared_bytes,
		.dynamic_shared_bytes = (int)run->dynamic_shared_bytes,
		.grid_id = run->correlation_id,
		.name = run->name,
		.launch_type = run->is_cooperative,
		NODE(run),
		.channel_type = 1, /* compute */
	};

	append_work(&run->place, &record, sizeof(record), run->span);
}

static void append_peer_copy(const struct sim_memory_run *run)
{
	const struct cupti_activity_memcpy_peer record = {
		.kind = XT_CUPTI_ACTIVITY_MEMCPY2,
		COPY(run),
		WORK(run),
		.source_device_id = run->source.device_id,
		.source_context_id = run->source.context_id,
		.destination_device_id = run->destination.device_id,
		.destination_context_id = run->destination.context_id,
		NODE(run),
	};

	append_work(&run->place, &record, sizeof(record), run->span);
}

static void tracer_on_copy(const struct sim_memory_run *run)
{
	const struct cupti_activity_memcpy record = {
		.kind = XT_CUPTI_ACTIVITY_MEMCPY,
		COPY(run),
		WORK(run),
		NODE(run),
		.copy_count = 1,
	};

	if (run->copy_kind == XT_CUPTI_COPY_PTOP) {
		if (is_kind_enabled(XT_CUPTI_ACTIVITY_MEMCPY2))
			append_peer_copy(run);
		return;
	}
	if (!is_kind_enabled(XT_CUPTI_ACTIVITY_MEMCPY))
		return;
	append_work(&run->place, &record, sizeof(record), run->span);
}

static void tracer_on_set(const struct sim_memory_run *run)
{
	const struct cupti_activity_memset record = {
		.kind = XT_CUPTI_ACTIVITY_MEMSET,
		.value = run->value,
		.bytes = run->bytes,
		WORK(run),
		.flags = run->is_async ? XT_CUPTI_FLAG_ASYNC : 0,
		.memory_kind = run->destination_kind,
		NODE(run),
		.channel_type = 1,
	};

	append_work(&run->place, &record, sizeof(record), run->span);
}

static void tracer_on_graph(const struct sim_graph_run *run)
{
	const struct cupti_activity_graph_trace record = {
		.kind = XT_CUPTI_ACTIVITY_GRAPH_TRACE,
		.graph_id = run->graph_exec_id,
		WORK(run),
		.end_device_id = run->place.device_id,
		.end_context_id = run->place.context_id,
	};

	append_work(&run->place, &record, sizeof(record), run->span);
}

static void tracer_on_allocation(const struct sim_allocation *allocation)
{
	const struct memory_record record = {
		.memory.kind = XT_CUPTI_ACTIVITY_MEMORY2,
		.memory.operation =
			allocation->is_release ? XT_CUPTI_MEMORY_RELEASE : XT_CUPTI_MEMORY_ALLOC,
		.memory.memory_kind = allocation->memory_kind,
		.memory.correlation_id = allocation->correlation_id,
		.memory.address = allocation->address,
		.memory.bytes = allocation->bytes,
		.memory.timestamp_ns = tracer_clock_convert(allocation->when_ns),
		.memory.process_id = (uint32_t)getpid(),
		.memory.device_id = allocation->place.device_id,
		.memory.context_id = allocation->place.context_id,
		.memory.stream_id = allocation->place.stream_id,
	};

	append_work(&allocation->place, &record, sizeof(record), (struct sim_span){0, 0});
}

static void tracer_record_api(const struct sim_call *call, uint64_t exit_ns)
{
	const struct cupti_activity_api record = {
		.kind = XT_CUPTI_ACTIVITY_DRIVER,
		.cbid = call->api->cbid,
		.process_id = (uint32_t)getpid(),
		.thread_id = (uint32_t)syscall(SYS_gettid),
		.correlation_id = call->correlation_id,
		.return_value = call->result,
	};

	tracer_append(&record, sizeof(record), (struct sim_span){call->enter_ns, exit_ns});
}

SIM_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
					  struct cupti_activity **record_inout)
{
	int result = tracer_enter(__func__, buffer && record_inout);
	size_t offset = 0;

	if (result)
		return result;
	if (*record_inout) {
		size_t record_bytes = tracer_record_bytes((*record_inout)->kind);

		if (!record_bytes)
			return XT_CUPTI_ERROR_INVALID_KIND;
		offset = (size_t)((uint8_t *)*record_inout - buffer) + record_bytes;
	}
	if (offset >= valid_bytes)
		return XT_CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record_inout = (struct cupti_activity *)(buffer + offset);
	return XT_CUPTI_SUCCESS;
}

/* The callback API has one subscriber. Callbacks run on the application's threads. */
#define DOMAIN_LAST XT_CUPTI_CB_DOMAIN_STATE

static struct subscriber {
	_Atomic bool is_taken;
	char name[XT_CUPTI_SUBSCRIBER_NAME_BYTES]; /* written by the thread that set is_taken */
	_Atomic(xt_cupti_callback) callback;
	void *_Atomic userdata;
} the_subscriber;

static void tracer_callbacks_reset(void)
{
	atomic_store(&the_subscriber.callback, NULL);
	atomic_store(&the_subscriber.is_taken, false);
}

static int subscribe(void **subscriber_out, xt_cupti_callback callback, void *userdata,
		     const char *name)
{
	if (!subscriber_out || !callback)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	if (tracer_fault_is_on(FAULT_SUBSCRIBER_TAKEN) ||
	    atomic_exchange(&the_subscriber.is_taken, true))
		return XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	snprintf(the_subscriber.name, sizeof(the_subscriber.name), "CUPTI for %s", name);
	atomic_store(&the_subscriber.userdata, userdata);
	atomic_store(&the_subscriber.callback, callback);
	atomic_store(&tracer_seam()->switches->is_subscribed, true);
	*subscriber_out = &the_subscriber;
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiSubscribe(void **subscriber_out, xt_cupti_callback callback, void *userdata)
{
	int result = tracer_enter(__func__, true);

	return result ? result : subscribe(subscriber_out, callback, userdata, "unnamed");
}

SIM_EXPORT int cuptiSubscribe_v2(void **subscriber_out, xt_cupti_callback callback, void *userdata,
				 struct cupti_subscriber_params *params)
{
	int result = tracer_enter(__func__, true);

	if (result)
		return result;
	if (!params || params->struct_bytes < sizeof(*params))
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	result = subscribe(subscriber_out, callback, userdata,
			   params->name ? params->name : "unnamed");
	if (result == XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params->holder)
		snprintf(params->holder, params->holder_bytes, "%s",
			 tracer_fault_is_on(FAULT_SUBSCRIBER_TAKEN) ? "CUPTI for other-tool"
								    : the_subscriber.name);
	return result;
}

static bool is_subscriber(const void *subscriber)
{
	return subscriber == &the_subscriber && atomic_load(&the_subscriber.is_taken);
}

SIM_EXPORT int cuptiUnsubscribe(void *subscriber)
{
	int result = tracer_enter(__func__, is_subscriber(subscriber));

	if (result)
		return result;
	atomic_store(&tracer_seam()->switches->is_subscribed, false);
	for (uint32_t domain = 1; domain <= DOMAIN_LAST; domain++)
		tracer_switch_callbacks(domain, 0, UINT32_MAX, false);
	atomic_store(&the_subscriber.callback, NULL);
	atomic_store(&the_subscriber.is_taken, false);
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain,
				   uint32_t cbid)
{
	int result = tracer_enter(__func__, is_subscriber(subscriber));

	if (result)
		return result;
	return cbid && tracer_switch_callbacks(domain, cbid, cbid, enable != 0)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain)
{
	int result = tracer_enter(__func__, is_subscriber(subscriber));

	if (result)
		return result;
	return tracer_switch_callbacks(domain, 1, UINT32_MAX, enable != 0)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiEnableAllDomains(uint32_t enable, void *subscriber)
{
	int result = XT_CUPTI_SUCCESS;

	for (uint32_t domain = 1; domain <= DOMAIN_LAST && !result; domain++)
		result = cuptiEnableDomain(enable, subscriber, domain);
	return result;
}

static void deliver(uint32_t domain, uint32_t cbid, const void *data)
{
	xt_cupti_callback callback = atomic_load(&the_subscriber.callback);

	if (callback)
		callback(atomic_load(&the_subscriber.userdata), domain, cbid, data);
}

static void tracer_on_api(enum xt_cupti_site site, struct sim_call *call)
{
	struct cupti_callback_data data = {
		.site = site,
		.function_name = call->api->name,
		.function_params = call->params,
		.return_value = site == XT_CUPTI_API_EXIT ? &call->result : NULL,
		.symbol_name = call->symbol_name,
		.context = call->context,
		.context_id = call->context_id,
		.correlation_data = &call->correlation_data,
		.correlation_id = call->correlation_id,
	};

	if (site == XT_CUPTI_API_ENTER)
		call->enter_ns = tracer_monotonic_ns();
	if (tracer_wants_callback(XT_CUPTI_CB_DOMAIN_DRIVER_API, call->api->cbid))
		deliver(XT_CUPTI_CB_DOMAIN_DRIVER_API, call->api->cbid, &data);
	if (site == XT_CUPTI_API_EXIT && call->enter_ns && tracer_wants_api_records())
		tracer_record_api(call, tracer_monotonic_ns());
}

static void tracer_on_resource(uint32_t cbid, const struct cupti_resource_data *data)
{
	deliver(XT_CUPTI_CB_DOMAIN_RESOURCE, cbid, data);
}

/*
 * The library connects to the driver half when it is loaded. A forked child and cuptiFinalize()
 * reset it.
 */
static const struct sim_tracer tracer = {
	.api = tracer_on_api,
	.resource = tracer_on_resource,
	.kernel = tracer_on_kernel,
	.copy = tracer_on_copy,
	.set = tracer_on_set,
	.graph = tracer_on_graph,
	.allocation = tracer_on_allocation,
};

/* A forked child has no worker, and its parent's requests do not apply to it. */
static void reset_in_child(void)
{
	tracer_callbacks_reset();
	tracer_switches_reset();
	tracer_records_reset();
	tracer_buffers_reset();
}

__attribute__((constructor)) static void start(void)
{
	tracer_seam_connect(&tracer);
	pthread_atfork(NULL, NULL, reset_in_child);
}

/*
 * Turns everything off, including the subscription. Correlation ids restart at 1. Both are as with
 * a real CUPTI.
 */
SIM_EXPORT int cuptiFinalize(void)
{
	int result = tracer_enter(__func__, true);

	if (result)
		return result;
	tracer_callbacks_reset();
	tracer_switches_reset();
	tracer_records_reset();
	tracer_seam()->restart_correlation_ids();
	return XT_CUPTI_SUCCESS;
}
