/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/unsafe_kinds.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/graph_level.h"

#define DEVICE_NONE UINT32_MAX

#define POINTER_MEMPOOL_HANDLE 17 /* of CUpointer_attribute */
#define POOL_RESERVED_BYTES    5  /* of CUmemPool_attribute */

/* Changes only while the kinds are locked (graph_level.h), except is_unsafe and is_off. */
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

static void disable(struct kind *kind)
{
	if (kind->is_enabled && cupti.cuptiActivityDisable(kind->id) == XT_CUPTI_SUCCESS)
		kind->is_enabled = false;
}

static void enable(struct kind *kind)
{
	uint32_t result = kind->is_enabled ? XT_CUPTI_SUCCESS : cupti.cuptiActivityEnable(kind->id);

	kind->is_enabled = result == XT_CUPTI_SUCCESS;
	if (cupti_has_failed(result))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	/* give_up() may have waited in vain for the lock that this thread has. */
	if (atomic_load(&kind->is_unsafe))
		disable(kind);
}

static void update(struct kind *kind)
{
	bool is_useful = is_recording && kind->is_useful;
	int saved_errno = errno;

	if (is_useful && !atomic_load(&kind->is_unsafe))
		enable(kind);
	else
		disable(kind);
	if (is_useful && atomic_load(&kind->is_unsafe) && !kind->is_lost) {
		kind->is_lost = true;
		atomic_fetch_add(kind->lost_count, 1);
	}
	errno = saved_errno;
}

static void give_up(struct kind *kind)
{
	bool are_locked;

	if (atomic_load(&kind->is_off))
		return;
	atomic_store(&kind->is_unsafe, true);
	are_locked = graph_level_lock_kinds();
	update(kind);
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

void unsafe_kinds_start(bool sees_frees)
{
	if (first_device == DEVICE_NONE)
		find_older_contexts();
	if (!sees_frees || cupti.version < XT_CUPTI_OF_CUDA12)
		atomic_store(&memory.is_unsafe, true);
	is_recording = true;
	/* Another tool may have changed the kinds since the last stop. */
	peer_copies.is_enabled = memory.is_enabled = false;
	update(&peer_copies);
	update(&memory);
	if (atomic_load(&memory.is_unsafe))
		atomic_store(&memory.is_off, true);
}

unsigned unsafe_kinds_stop(void)
{
	unsigned count = peer_copies.is_enabled + memory.is_enabled;

	is_recording = false;
	update(&peer_copies);
	update(&memory);
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
	update(&peer_copies);
	graph_level_unlock_kinds(are_locked);
}

void unsafe_kinds_note_graph_copy(void)
{
	give_up(&peer_copies);
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
		give_up(&memory);
	errno = saved_errno;
}
