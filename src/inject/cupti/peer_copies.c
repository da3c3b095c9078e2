/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/peer_copies.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

static atomic_bool is_recording;
static atomic_bool has_graph_copies;
static atomic_bool is_enabled;
static atomic_uint first_device; /* number of the first device with a context, plus 1 */
static atomic_bool has_several;

/* Devices whose contexts were created before CUPTI was subscribed. */
static bool may_have_several(void)
{
	int count = 0;

	return cupti.cuDeviceGetCount && !cupti.cuDeviceGetCount(&count) && count > 1;
}

static void update(void)
{
	bool wanted = atomic_load(&is_recording) && atomic_load(&has_several) &&
		      !atomic_load(&has_graph_copies);

	if (atomic_exchange(&is_enabled, wanted) == wanted)
		return;
	if (!wanted)
		cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY2);
	else if (cupti_has_failed(cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY2)))
		atomic_fetch_add(&cupti_lost_kinds, 1);
}

void peer_copies_start(void)
{
	if (may_have_several())
		atomic_store(&has_several, true);
	atomic_store(&is_recording, true);
	update();
}

void peer_copies_stop(void)
{
	atomic_store(&is_recording, false);
	update();
}

void peer_copies_note_context(void *context)
{
	unsigned none = 0;
	uint32_t device;

	if (!cupti.cuptiGetDeviceId || cupti.cuptiGetDeviceId(context, &device))
		return;
	if (!atomic_compare_exchange_strong(&first_device, &none, device + 1) && none != device + 1)
		atomic_store(&has_several, true);
	update();
}

void peer_copies_note_graph_copy(void)
{
	if (atomic_exchange(&has_graph_copies, true))
		return;
	if (atomic_load(&is_enabled))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	update();
}
