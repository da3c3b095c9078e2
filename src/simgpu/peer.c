/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access of a context to the memory of other devices. With it, one device copies between both.
 * Without it, a copy goes through the host: out of one device and into the other.
 */
#include "simgpu/sim.h"

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
