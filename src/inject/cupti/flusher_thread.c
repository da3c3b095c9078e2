/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/flusher_thread.h"

#include <stddef.h>
#include <sys/prctl.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/cupti/flusher.h"
#include "inject/cupti/gpu_names.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/sleep.h"

#define PERIOD_MS     50
#define STOP_CHECK_MS 2
#define IDLE_CHECK_MS 10 /* while nothing is recorded */

void *flusher_main(void *unused)
{
	unsigned waited_ms = 0;

	(void)unused;
	prctl(PR_SET_NAME, "xtrace-flush");
	while (!flusher_is_stopping()) {
		unsigned nap_ms = cupti_owner_may_flush() ? STOP_CHECK_MS : IDLE_CHECK_MS;

		xt_sleep_ns(nap_ms * 1000000);
		waited_ms += nap_ms;
		flusher_do_work();
		if (!flusher_is_allowed())
			continue;
		cupti_owner_update();
		if (!cupti_owner_may_flush())
			waited_ms = 0;
		if (waited_ms < PERIOD_MS)
			continue;
		if (!gpu_names() && waited_ms < PERIOD_MS + nap_ms)
			gpu_names_read();
		if (graph_level_may_flush()) {
			flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
			waited_ms = 0;
		}
	}
	if (flusher_is_allowed() && cupti_owner_may_flush()) {
		if (!gpu_names())
			gpu_names_read();
		/* Completed buffers first, then all records, finished or not. */
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
		flusher_flush(XT_CUPTI_FLUSH_FORCED);
	}
	flusher_mark_done();
	return NULL;
}
