/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/unsafe_kinds.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/graph_level.h"

#define DEVICE_NONE	UINT32_MAX
#define CUPTI_OF_CUDA12 19 /* CUPTI_API_VERSION */

#define POINTER_MEMPOOL_HANDLE 17 /* of CUpointer_attribute */
#define POOL_RESERVED_BYTES    5  /* of CUmemPool_attribute */

/* All of this but is_off changes only while the kinds are locked (graph_level.h). */
static struct kind {
	uint32_t id;
	bool is_useful; /* while anything is recorded */
	bool is_unsafe;
	bool is_enabled;
	bool is_lost;	    /* for good, and counted */
	atomic_bool is_off; /* is_unsafe, and disabled since */
} peer_copies = {.id = XT_CUPTI_ACTIVITY_MEMCPY2},
  memory = {.id = XT_CUPTI_ACTIVITY_MEMORY2, .is_useful = true};
static bool is_recording;
static uint32_t first_device = DEVICE_NONE;

static void update(struct kind *kind)
{
	bool is_useful = is_recording && kind->is_useful;
	bool wanted = is_useful && !kind->is_unsafe;
	int saved_errno = errno;

	if (is_useful && kind->is_unsafe && !kind->is_lost) {
		kind->is_lost = true;
		atomic_fetch_add(&cupti_unsafe_kinds, 1);
	}
	if (kind->is_enabled && !wanted)
		cupti.cuptiActivityDisable(kind->id);
	else if (wanted && !kind->is_enabled &&
		 cupti_has_failed(cupti.cuptiActivityEnable(kind->id)))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	kind->is_enabled = wanted;
	errno = saved_errno;
}

static void give_up(struct kind *kind)
{
	bool are_locked;

	if (atomic_load(&kind->is_off))
		return;
	are_locked = graph_level_lock_kinds();
	kind->is_unsafe = true;
	update(kind);
	atomic_store(&kind->is_off, true);
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
		peer_copies.is_unsafe = true;
	}
}

void unsafe_kinds_start(void)
{
	if (first_device == DEVICE_NONE)
		find_older_contexts();
	memory.is_unsafe |= cupti.version < CUPTI_OF_CUDA12;
	is_recording = true;
	update(&peer_copies);
	update(&memory);
}

unsigned unsafe_kinds_stop(void)
{
	unsigned count = peer_copies.is_enabled + memory.is_enabled;

	is_recording = false;
	update(&peer_copies);
	update(&memory);
	return count;
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

/* The driver refuses this attribute of a pool that belongs to another process. */
static bool is_from_own_pool(uint64_t address)
{
	void *pool = NULL;
	uint64_t bytes;

	return cupti.cuPointerGetAttribute && cupti.cuMemPoolGetAttribute &&
	       !cupti.cuPointerGetAttribute(&pool, POINTER_MEMPOOL_HANDLE, address) && pool &&
	       !cupti.cuMemPoolGetAttribute(pool, POOL_RESERVED_BYTES, &bytes);
}

void unsafe_kinds_note_free(uint64_t address)
{
	if (address && !atomic_load(&memory.is_off) && !is_from_own_pool(address))
		give_up(&memory);
}
