/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/absorbed.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/run.h"
#include "merge/sums/timeline.h"

#define PENDING_MAX 64 /* collectives of a device at the same time; more are left out */

/* A device of a rank, as if it had not waited in collectives. */
struct shifted {
	double gpu_ns, cpu_ns;	       /* how much earlier its GPU and its CPU would be */
	double cpu_wait_ns;	       /* of the CPU, since the launch of its last collective */
	uint32_t pending[PENDING_MAX]; /* collectives that may still run */
	size_t pending_count;
	uint32_t *open; /* the collectives whose waits make up gpu_ns, in their order */
	size_t open_count;
	double *left_ns; /* by open collective: what is left of its wait */
};

static double ns_of(uint32_t units)
{
	return units == UINT32_MAX ? HUGE_VAL : (double)((uint64_t)units << RANK_TIME_UNIT_LOG);
}

/* The latest waits are absorbed first. */
static void absorb(struct shifted *device, double ns, const float *waits_ns, float *absorbed_ns)
{
	device->gpu_ns -= ns;
	while (ns > 0 && device->open_count) {
		size_t last = device->open_count - 1;
		uint32_t c = device->open[last];
		double part_ns = fmin(ns, device->left_ns[last]);

		device->left_ns[last] -= part_ns;
		absorbed_ns[c] = (float)((double)waits_ns[c] - device->left_ns[last]);
		ns -= part_ns;
		if (device->left_ns[last] <= 0)
			device->open_count--;
	}
}

/* Adds the waits that have ended: they delay what starts now, but not what ran beside them. */
static void end_waits(struct shifted *device, const struct rank_log *log, int64_t start_ns,
		      const float *waits_ns)
{
	size_t kept = 0;

	for (size_t p = 0; p < device->pending_count; p++) {
		uint32_t c = device->pending[p];

		if (log->list[c].end_ns > start_ns) {
			device->pending[kept++] = c;
			continue;
		}
		device->gpu_ns += (double)waits_ns[c];
		device->left_ns[device->open_count] = (double)waits_ns[c];
		device->open[device->open_count++] = c;
	}
	device->pending_count = kept;
}

/* waits_ns: by collective, the wait that nothing hides. */
static void absorb_device(const struct rank_log *log, uint32_t number, struct shifted *device,
			  const float *waits_ns, float *absorbed_ns)
{
	device->gpu_ns = device->cpu_ns = device->cpu_wait_ns = 0;
	device->open_count = device->pending_count = 0;
	for (size_t c = 0; c < log->count; c++) {
		const struct rank_collective *item = &log->list[c];
		double limit_ns;

		device->cpu_wait_ns += ns_of(item->cpu_wait_units);
		if (log->members[item->member].device != number)
			continue;
		end_waits(device, log, item->start_ns, waits_ns);
		device->cpu_ns = fmin(device->gpu_ns, device->cpu_ns + device->cpu_wait_ns);
		device->cpu_wait_ns = 0;
		limit_ns = device->cpu_ns + ns_of(item->lead_units);
		if (device->gpu_ns > limit_ns)
			absorb(device, device->gpu_ns - limit_ns, waits_ns, absorbed_ns);
		if (waits_ns[c] > 0 && device->pending_count < PENDING_MAX)
			device->pending[device->pending_count++] = (uint32_t)c;
	}
}

static void absorb_log(const struct rank_log *log, const float *waits_ns, float *absorbed_ns)
{
	struct shifted device = {.open = xt_malloc((log->count + 1) * sizeof(*device.open)),
				 .left_ns = xt_malloc((log->count + 1) * sizeof(*device.left_ns))};
	bool is_done[TIMELINE_DEVICES_MAX] = {false};

	for (size_t m = 0; m < log->member_count; m++) {
		uint32_t number = log->members[m].device;

		if (number < TIMELINE_DEVICES_MAX && !is_done[number])
			absorb_device(log, number, &device, waits_ns, absorbed_ns);
		if (number < TIMELINE_DEVICES_MAX)
			is_done[number] = true;
	}
	free(device.open);
	free(device.left_ns);
}

/* Notes the exposed waits of a communicator, by log and collective. */
static void note_waits(const struct collectives_report *report,
		       const struct communicator *communicator, float **waits_ns)
{
	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];
		double exposed_ns;

		for (size_t i = 0; i < member->count; i++) {
			arrivals_wait_ns(communicator, m, member->first + i, &report->clocks,
					 &exposed_ns);
			waits_ns[member->log->log][member->items[i]] = (float)exposed_ns;
		}
	}
}

static void free_lists(float **lists, size_t count)
{
	for (size_t l = 0; lists && l < count; l++)
		free(lists[l]);
	free(lists);
}

void absorbed_free(struct collectives_report *report, size_t log_count)
{
	free_lists(report->absorbed_ns, log_count);
	report->absorbed_ns = NULL;
}

void absorbed_find(struct collectives_report *report, const struct run *run)
{
	size_t log_count = run->inputs->count;
	float **waits_ns = xt_calloc(log_count + 1, sizeof(*waits_ns));

	report->absorbed_ns = xt_calloc(log_count + 1, sizeof(*report->absorbed_ns));
	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];

		waits_ns[log->log] = xt_calloc(log->count + 1, sizeof(**waits_ns));
		report->absorbed_ns[log->log] = xt_calloc(log->count + 1, sizeof(**waits_ns));
	}
	for (size_t c = 0; c < report->communicators.count; c++)
		note_waits(report, &report->communicators.list[c], waits_ns);
	for (size_t l = 0; l < run->compared->log_count; l++)
		absorb_log(&run->compared->logs[l], waits_ns[run->compared->logs[l].log],
			   report->absorbed_ns[run->compared->logs[l].log]);
	free_lists(waits_ns, log_count);
}
