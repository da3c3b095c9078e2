/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callbacks and API records that the client wants. Sets the driver half's switches accordingly.
 */
#include <pthread.h>

#include "simgpu/tracer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool driver_wanted[SIM_DRIVER_CBIDS];
static _Atomic bool runtime_wanted[SIM_DRIVER_CBIDS]; /* stored, but never delivered */
static _Atomic bool resource_wanted[SIM_RESOURCE_CBIDS];
static _Atomic bool other_wanted[SIM_RESOURCE_CBIDS];
static _Atomic bool api_records_wanted;

static const struct {
	uint32_t domain;
	_Atomic bool *wanted;
	uint32_t count;
} domains[] = {
	{XT_CUPTI_CB_DOMAIN_DRIVER_API, driver_wanted, SIM_DRIVER_CBIDS},
	{XT_CUPTI_CB_DOMAIN_RUNTIME_API, runtime_wanted, SIM_DRIVER_CBIDS},
	{XT_CUPTI_CB_DOMAIN_RESOURCE, resource_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_SYNCHRONIZE, other_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_NVTX, other_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_STATE, other_wanted, SIM_RESOURCE_CBIDS},
};
#define DOMAINS (sizeof(domains) / sizeof(domains[0]))

bool tracer_wants_callback(uint32_t domain, uint32_t cbid)
{
	for (size_t i = 0; i < DOMAINS; i++)
		if (domains[i].domain == domain)
			return cbid < domains[i].count && atomic_load(&domains[i].wanted[cbid]);
	return false;
}

bool tracer_wants_api_records(void)
{
	return atomic_load(&api_records_wanted);
}

static void update_switches(void)
{
	struct sim_seam *seam = tracer_seam();
	bool wants_records;

	if (!seam)
		return;
	pthread_mutex_lock(&lock);
	wants_records = tracer_wants_api_records();
	for (uint32_t cbid = 0; cbid < SIM_DRIVER_CBIDS; cbid++)
		atomic_store_explicit(&seam->switches->driver_enabled[cbid],
				      wants_records || atomic_load(&driver_wanted[cbid]),
				      memory_order_release);
	for (uint32_t cbid = 0; cbid < SIM_RESOURCE_CBIDS; cbid++)
		atomic_store_explicit(&seam->switches->resource_enabled[cbid],
				      atomic_load(&resource_wanted[cbid]), memory_order_release);
	pthread_mutex_unlock(&lock);
}

static void note_use(void)
{
	struct sim_seam *seam = tracer_seam();

	if (seam)
		atomic_store(&seam->switches->was_used, true);
}

bool tracer_switch_callbacks(uint32_t domain, uint32_t first_cbid, uint32_t last_cbid, bool enable)
{
	for (size_t i = 0; i < DOMAINS; i++) {
		if (domains[i].domain != domain || first_cbid >= domains[i].count)
			continue;
		for (uint32_t cbid = first_cbid; cbid <= last_cbid && cbid < domains[i].count;
		     cbid++)
			atomic_store(&domains[i].wanted[cbid], enable);
		update_switches();
		if (enable)
			note_use();
		return true;
	}
	return false;
}

void tracer_switch_api_records(bool enable)
{
	atomic_store(&api_records_wanted, enable);
	update_switches();
}

void tracer_switches_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; i < DOMAINS; i++)
		for (uint32_t cbid = 0; cbid < domains[i].count; cbid++)
			atomic_store(&domains[i].wanted[cbid], false);
	tracer_switch_api_records(false);
}
