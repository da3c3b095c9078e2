/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback API: one subscriber, and the callbacks that it has enabled. Callbacks run on the
 * application's threads.
 */
#include <stdio.h>

#include "simgpu/tracer.h"

#define DOMAIN_LAST XT_CUPTI_CB_DOMAIN_STATE

static struct subscriber {
	_Atomic bool is_taken;
	char name[XT_CUPTI_SUBSCRIBER_NAME_BYTES]; /* written by the thread that set is_taken */
	_Atomic(xt_cupti_callback) callback;
	void *_Atomic userdata;
} the_subscriber;

void tracer_callbacks_reset(void)
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
	int result = tracer_enter(__func__);

	return result ? result : subscribe(subscriber_out, callback, userdata, "unnamed");
}

SIM_EXPORT int cuptiSubscribe_v2(void **subscriber_out, xt_cupti_callback callback, void *userdata,
				 struct cupti_subscriber_params *params)
{
	int result = tracer_enter(__func__);

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
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!is_subscriber(subscriber))
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
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
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!is_subscriber(subscriber))
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	return cbid && tracer_switch_callbacks(domain, cbid, cbid, enable != 0)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!is_subscriber(subscriber))
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
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

void tracer_on_api(enum xt_cupti_site site, struct sim_call *call)
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

void tracer_on_resource(uint32_t cbid, const struct cupti_resource_data *data)
{
	deliver(XT_CUPTI_CB_DOMAIN_RESOURCE, cbid, data);
}
