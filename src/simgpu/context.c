/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and destroys contexts: those that programs create, and the primary one of each device.
 * Sets their access to other devices.
 */
#include <stdlib.h>

#include "simgpu/sim.h"

#define DEVICE_RECORD_BYTES 24 /* measured with CUPTI 12.9 to 13.0.1 */

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	CUcontext context;
	int retain_count;
	unsigned int flags;
} primary[SIM_DEVICES_MAX]; /* under primary_lock */
static _Atomic uint32_t context_count;
static CUcontext dead_contexts; /* under primary_lock, linked by next_dead */

static CUresult context_make(int device, unsigned int flags, bool is_primary, CUcontext *out)
{
	CUcontext context = calloc(1, sizeof(*context));
	unsigned set_up;

	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->magic = SIM_MAGIC_CONTEXT;
	context->id = 1 + atomic_fetch_add(&context_count, 1);
	context->device = device;
	context->flags = flags;
	context->is_primary = is_primary;
	context->device_records_max =
		atomic_load(&sim_switches.device_graphs_bytes) / DEVICE_RECORD_BYTES;
	context->has_host_records = atomic_load(&sim_switches.has_host_records);
	pthread_mutex_init(&context->lock, NULL);
	sim_stream_init(&context->legacy, context, 0, 0);
	context->legacy.is_legacy = true;
	if (context->id == 1)
		context->legacy.id = SIM_LEGACY_STREAM_ID;
	set_up = sim_set_up_begin();
	sim_resource_notify(XT_CUPTI_RESOURCE_CONTEXT_CREATED, context, NULL, NULL);
	sim_set_up_end(set_up);
	*out = context;
	return CUDA_SUCCESS;
}

/* Keeps the struct, so that a stale handle is recognised. */
static void context_free(CUcontext context)
{
	sim_context_drain(context);
	sim_resource_notify(XT_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, context, NULL, NULL);
	sim_modules_free(context);
	sim_stream_free_own(sim_thread(), context);
	pthread_mutex_lock(&context->lock);
	for (CUstream stream = context->streams; stream; stream = stream->next)
		stream->magic = SIM_MAGIC_DEAD;
	pthread_mutex_unlock(&context->lock);
	sim_stream_fini(&context->legacy);
	context->magic = SIM_MAGIC_DEAD;
	pthread_mutex_lock(&primary_lock);
	context->next_dead = dead_contexts;
	dead_contexts = context;
	pthread_mutex_unlock(&primary_lock);
}

CUresult sim_ctx_create(CUcontext *out, unsigned int flags, CUdevice device)
{
	CUresult result;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = context_make(device, flags, false, out);
	return result ? result : sim_context_push(*out);
}

CUresult sim_ctx_create_with_params(CUcontext *out, CUctxCreateParams *params, unsigned int flags,
				    CUdevice device)
{
	return params ? CUDA_ERROR_NOT_SUPPORTED : sim_ctx_create(out, flags, device);
}

CUresult sim_ctx_destroy(CUcontext context)
{
	struct sim_thread *thread = sim_thread();

	if (!sim_context_is_valid(context) || context->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_free(context);
	if (sim_context_current() == context)
		thread->context_count--;
	return CUDA_SUCCESS;
}

CUresult sim_device_primary_ctx_retain(CUcontext *out, CUdevice device)
{
	CUresult result = CUDA_SUCCESS;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	if (!primary[device].context)
		result =
			context_make(device, primary[device].flags, true, &primary[device].context);
	if (result == CUDA_SUCCESS) {
		primary[device].retain_count++;
		*out = primary[device].context;
	}
	pthread_mutex_unlock(&primary_lock);
	return result;
}

/* Destroys the primary context: a release with the last reference, a reset at once. */
static CUresult primary_release(CUdevice device, bool is_reset)
{
	CUcontext doomed = NULL;

	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	if (!is_reset && !primary[device].retain_count) {
		pthread_mutex_unlock(&primary_lock);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (is_reset || --primary[device].retain_count == 0) {
		doomed = primary[device].context;
		primary[device].context = NULL;
	}
	pthread_mutex_unlock(&primary_lock);
	if (doomed)
		context_free(doomed);
	return CUDA_SUCCESS;
}

CUresult sim_device_primary_ctx_release(CUdevice device)
{
	return primary_release(device, false);
}

CUresult sim_device_primary_ctx_reset(CUdevice device)
{
	return primary_release(device, true);
}

CUresult sim_device_primary_ctx_get_state(CUdevice device, unsigned int *flags, int *active)
{
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	*flags = primary[device].flags;
	*active = primary[device].context != NULL;
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

CUresult sim_device_primary_ctx_set_flags(CUdevice device, unsigned int flags)
{
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	primary[device].flags = flags;
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

/*
 * With access to the memory of another device, one device copies between both. Without it, a copy
 * goes through the host: out of one device and into the other.
 */
CUresult sim_device_can_access_peer(int *out, CUdevice device, CUdevice peer)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device) || !sim_device_facts(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = device != peer;
	return CUDA_SUCCESS;
}

static CUresult set_access(CUcontext peer, bool is_on)
{
	CUcontext context = sim_context_current();
	uint32_t bit, before;

	if (!sim_context_is_valid(context) || !sim_context_is_valid(peer))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context->device == peer->device)
		return is_on ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	bit = 1u << peer->device;
	before = is_on ? atomic_fetch_or(&context->peers, bit)
		       : atomic_fetch_and(&context->peers, ~bit);
	if (is_on)
		return before & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
	return before & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult sim_ctx_enable_peer_access(CUcontext peer, unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : set_access(peer, true);
}

CUresult sim_ctx_disable_peer_access(CUcontext peer)
{
	return set_access(peer, false);
}

bool sim_peer_is_direct(CUcontext source, CUcontext destination)
{
	return atomic_load(&source->peers) & 1u << destination->device ||
	       atomic_load(&destination->peers) & 1u << source->device;
}

struct sim_place sim_peer_place(CUcontext context, struct sim_place stream)
{
	uint32_t id, none = 0;

	if (stream.context_id == context->id)
		return stream;
	id = atomic_load(&context->copy_stream_id);
	if (!id) {
		id = sim_stream_take_id();
		if (!atomic_compare_exchange_strong(&context->copy_stream_id, &none, id))
			id = none;
	}
	return (struct sim_place){(uint32_t)context->device, context->id, id};
}
