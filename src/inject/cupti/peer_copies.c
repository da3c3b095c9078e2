/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/peer_copies.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/graph_level.h"

#define DEVICE_NONE UINT32_MAX

/* All of this changes only while the kinds are locked (graph_level.h). */
static bool is_recording, is_enabled, has_several, has_copies;
static bool is_lost; /* for good, and counted */
static uint32_t first_device = DEVICE_NONE;

static atomic_bool has_graph_copies; /* the kind is disabled for good */

static void update(void)
{
	bool is_useful = is_recording && has_several;
	bool wanted = is_useful && !has_copies;
	int saved_errno = errno;

	if (is_useful && has_copies && !is_lost) {
		is_lost = true;
		atomic_fetch_add(&cupti_unsafe_kinds, 1);
	}
	if (is_enabled && !wanted)
		cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY2);
	else if (wanted && !is_enabled &&
		 cupti_has_failed(cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY2)))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	is_enabled = wanted;
	errno = saved_errno;
}

static void note_device(uint32_t device)
{
	has_several |= first_device != DEVICE_NONE && first_device != device;
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
		has_copies = true;
	}
}

void peer_copies_start(void)
{
	if (first_device == DEVICE_NONE)
		find_older_contexts();
	is_recording = true;
	update();
}

void peer_copies_stop(void)
{
	is_recording = false;
	update();
}

void peer_copies_note_context(void *context)
{
	uint32_t device;
	bool are_locked;

	if (!cupti.cuptiGetDeviceId || cupti.cuptiGetDeviceId(context, &device))
		return;
	are_locked = graph_level_lock_kinds();
	note_device(device);
	update();
	graph_level_unlock_kinds(are_locked);
}

void peer_copies_note_graph_copy(void)
{
	bool are_locked;

	if (atomic_load(&has_graph_copies))
		return;
	are_locked = graph_level_lock_kinds();
	has_copies = true;
	update();
	atomic_store(&has_graph_copies, true);
	graph_level_unlock_kinds(are_locked);
}
