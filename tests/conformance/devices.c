/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks records of several devices: each names its own device, and copies between two devices name
 * both. Skipped if there is only one device.
 */
#include "conformance.h"

#define BYTES (1u << 20)

/* The second device, with its primary context, and memory on both. */
struct pair {
	CUcontext other;
	CUdeviceptr here;
	CUdeviceptr there;
};

static bool has_two_devices(void)
{
	int count = 0;

	if (driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 1)
		return true;
	puts("  skipped: one device");
	return false;
}

static bool open_pair(struct pair *pair)
{
	CUdevice device;

	expect(driver.cuDeviceGet(&device, 1) == CUDA_SUCCESS);
	expect(driver.cuDevicePrimaryCtxRetain(&pair->other, device) == CUDA_SUCCESS);
	expect(driver.cuMemAlloc_v2(&pair->here, BYTES) == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(pair->other) == CUDA_SUCCESS);
	expect(driver.cuMemAlloc_v2(&pair->there, BYTES) == CUDA_SUCCESS);
	expect(driver.cuMemsetD32_v2(pair->there, 1, BYTES / 4) == CUDA_SUCCESS);
	expect(driver.cuCtxSynchronize() == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY2));
	client_clear();
	return true;
}

static bool close_pair(const struct pair *pair)
{
	CUdevice device;

	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY2));
	expect(driver.cuMemFree_v2(pair->here) == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(pair->other) == CUDA_SUCCESS);
	expect(driver.cuMemFree_v2(pair->there) == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	expect(driver.cuDeviceGet(&device, 1) == CUDA_SUCCESS);
	expect(driver.cuDevicePrimaryCtxRelease_v2(device) == CUDA_SUCCESS);
	return true;
}

static uint32_t id_of(CUcontext context)
{
	uint32_t id = 0;

	cupti.cuptiGetContextId(context, &id);
	return id;
}

/* Lets each context use the memory of the other. */
static bool set_access(const struct pair *pair, bool is_on)
{
	CUcontext from[] = {driver.context, pair->other}, to[] = {pair->other, driver.context};

	for (size_t i = 0; i < 2; i++) {
		expect(driver.cuCtxSetCurrent(from[i]) == CUDA_SUCCESS);
		expect((is_on ? driver.cuCtxEnablePeerAccess(to[i], 0)
			      : driver.cuCtxDisablePeerAccess(to[i])) == CUDA_SUCCESS);
	}
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	client_clear();
	return true;
}

static bool can_access(void)
{
	int can = 0;

	return driver.cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS && can;
}

/* Copies from one context's memory to the other's, on the default stream of a context. */
static bool copy(const struct pair *pair, CUcontext context, bool is_fetched, bool by_address)
{
	CUcontext source = is_fetched ? pair->other : driver.context;
	CUcontext destination = is_fetched ? driver.context : pair->other;
	CUdeviceptr from = is_fetched ? pair->there : pair->here;
	CUdeviceptr to = is_fetched ? pair->here : pair->there;

	expect(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
	expect((by_address ? driver.cuMemcpyDtoDAsync_v2(to, from, BYTES, NULL)
			   : driver.cuMemcpyPeerAsync(to, destination, from, source, BYTES,
						      NULL)) == CUDA_SUCCESS);
	expect(driver.cuCtxSynchronize() == CUDA_SUCCESS);
	client_settle();
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	return true;
}

/*
 * Whether a record of a context has the stream of the call: the default stream. If the call was
 * made in the other context, the driver uses a stream of its own.
 */
static bool is_on_stream(uint32_t stream_id, CUcontext context, CUcontext caller)
{
	uint32_t default_id = 0;

	expect(!cupti.cuptiGetStreamIdEx(context, NULL, 0, &default_id));
	return (stream_id == default_id) == (context == caller);
}

/*
 * The only record: a copy from the first device to the second. It is on the first, even if the
 * stream of the call is not.
 */
static bool is_direct(const struct pair *pair, CUcontext context)
{
	const struct cupti_activity_memcpy_peer *copy;

	expect(client_memcpy_count() == 0 && client_peer_copy_count() == 1);
	copy = client_peer_copy(0);
	expect(copy->copy_kind == XT_CUPTI_COPY_PTOP && copy->bytes == BYTES);
	expect(copy->start_ns && copy->start_ns <= copy->end_ns);
	expect(copy->source_kind == XT_CUPTI_MEMORY_DEVICE);
	expect(copy->destination_kind == XT_CUPTI_MEMORY_DEVICE);
	expect(copy->context_id == id_of(driver.context) && copy->device_id == 0);
	expect(is_on_stream(copy->stream_id, driver.context, context));
	expect(copy->source_device_id == 0 && copy->destination_device_id == 1);
	expect(copy->source_context_id == id_of(driver.context));
	expect(copy->destination_context_id == id_of(pair->other));
	return true;
}

/* Both halves of a copy through the host, each on its own device, with the same call. */
static bool is_staged(const struct pair *pair, CUcontext context, bool is_fetched)
{
	CUcontext contexts[] = {is_fetched ? pair->other : driver.context,
				is_fetched ? driver.context : pair->other};
	static const uint8_t kinds[] = {XT_CUPTI_COPY_DTOH, XT_CUPTI_COPY_HTOD};

	expect(client_memcpy_count() == 2 && client_peer_copy_count() == 0);
	expect(client_memcpy(0)->correlation_id == client_memcpy(1)->correlation_id);
	for (size_t i = 0; i < 2; i++) {
		size_t at = client_memcpy(0)->copy_kind == kinds[0] ? i : 1 - i;
		const struct cupti_activity_memcpy *half = client_memcpy(at);

		expect(half->copy_kind == kinds[i] && half->bytes == BYTES);
		expect(half->source_kind == XT_CUPTI_MEMORY_DEVICE);
		expect(half->destination_kind == XT_CUPTI_MEMORY_DEVICE);
		expect(half->context_id == id_of(contexts[i]));
		expect(half->device_id == (contexts[i] != driver.context));
		expect(is_on_stream(half->stream_id, contexts[i], context));
		expect(half->start_ns && half->start_ns <= half->end_ns);
	}
	return true;
}

/* On the stream of either context. */
static bool copies_from_here(const struct pair *pair, bool has_access)
{
	CUcontext contexts[] = {driver.context, pair->other};

	for (size_t i = 0; i < 2; i++) {
		client_clear();
		expect(copy(pair, contexts[i], false, false));
		expect(has_access ? is_direct(pair, contexts[i])
				  : is_staged(pair, contexts[i], false));
	}
	return true;
}

/* In the other direction, and by addresses alone. */
static bool copies_elsewhere_are_staged(const struct pair *pair)
{
	CUcontext contexts[] = {driver.context, pair->other};

	for (unsigned int way = 0; way < 6; way++) {
		bool is_fetched = way < 4, by_address = way >= 2;

		client_clear();
		expect(copy(pair, contexts[way % 2], is_fetched, by_address));
		expect(is_staged(pair, contexts[way % 2], is_fetched));
	}
	return true;
}

/* Without access to each other's memory, a copy goes through the host. */
static bool peer_copy_is_staged_without_access(void)
{
	struct pair pair;

	if (!has_two_devices())
		return true;
	expect(open_pair(&pair));
	expect(copies_from_here(&pair, false));
	expect(copies_elsewhere_are_staged(&pair));
	return close_pair(&pair);
}

static bool peer_copy_names_both_devices(void)
{
	struct pair pair;

	if (!has_two_devices() || !can_access())
		return true;
	expect(open_pair(&pair));
	expect(set_access(&pair, true));
	expect(copies_from_here(&pair, true));
	expect(set_access(&pair, false));
	return close_pair(&pair);
}

static bool kernel_names_its_device(void)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry there()\n{\n\tret;\n}\n";
	const struct kernel_note *kernel;
	struct pair pair;
	CUfunction function;
	CUmodule module;
	uint32_t stream_ids[2];

	if (!has_two_devices())
		return true;
	expect(open_pair(&pair));
	expect(driver.cuCtxSetCurrent(pair.other) == CUDA_SUCCESS);
	expect(driver.cuModuleLoadData(&module, text) == CUDA_SUCCESS);
	expect(driver.cuModuleGetFunction(&function, module, "there") == CUDA_SUCCESS);
	expect(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) ==
	       CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiGetStreamIdEx(pair.other, NULL, 0, &stream_ids[1]));
	expect(driver.cuModuleUnload(module) == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	expect(!cupti.cuptiGetStreamIdEx(driver.context, NULL, 0, &stream_ids[0]));
	expect(client_kernel_count() == 1);
	kernel = client_kernel(0);
	expect(kernel->record.device_id == 1);
	expect(kernel->record.context_id == id_of(pair.other));
	expect(kernel->record.stream_id == stream_ids[1]);
	expect(stream_ids[0] != stream_ids[1]);
	return close_pair(&pair);
}

const struct check device_checks[] = {
	{"peer_copy_is_staged_without_access", peer_copy_is_staged_without_access},
	{"peer_copy_names_both_devices", peer_copy_names_both_devices},
	{"kernel_names_its_device", kernel_names_its_device},
	{NULL, NULL},
};
