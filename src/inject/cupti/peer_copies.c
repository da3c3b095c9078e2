/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/peer_copies.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

static atomic_bool is_recording;
static atomic_bool has_graph_copies;
static atomic_bool is_enabled;
static atomic_bool is_lost;	 /* for good, and counted */
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
	bool is_useful = atomic_load(&is_recording) && atomic_load(&has_several);
	bool wanted = is_useful && !atomic_load(&has_graph_copies);

	if (is_useful && !wanted && !atomic_exchange(&is_lost, true))
		atomic_fetch_add(&cupti_unsafe_kinds, 1);
	if (atomic_exchange(&is_enabled, wanted) == wanted)
		return;
	if (wanted && cupti_has_failed(cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY2)))
		atomic_fetch_add(&cupti_lost_kinds, 1);
	/* Another thread may have noted a graph's copy, and disabled the kind too early. */
	if (!wanted || atomic_load(&has_graph_copies))
		cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY2);
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
	if (!atomic_exchange(&has_graph_copies, true))
		update();
}
