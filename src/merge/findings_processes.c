/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule about devices of which one has most of the work, where each of several processes of one
 * program has a device of its own, as in distributed training.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/findings_place.h"
#include "merge/findings_rules.h"
#include "merge/grow.h"

static int note_device(const struct looking *looking, const struct site_device *row)
{
	struct reading *reading = looking->reading;
	struct findings *findings = &reading->run->findings;
	struct finding_device *device;
	uint32_t top = sites_top(looking->sites, row->device);
	char key[40];
	int error;

	if (!top || row->kernel_count < DEVICE_KERNELS_LEAST)
		return 0;
	if (grow(&findings->devices, &findings->device_capacity, findings->device_count + 1,
		 sizeof(*findings->devices)) < 0)
		return -ENOMEM;
	device = &findings->devices[findings->device_count++];
	snprintf(key, sizeof(key), "gpu.%u.uuid", row->device);
	device->program = strdup(model_meta(reading->model, "process.exe"));
	device->process = strdup(reading->process.label);
	device->uuid = strdup(model_meta(reading->model, key));
	if (asprintf(&device->name, "GPU%u of %s", row->device, reading->process.label) < 0)
		device->name = NULL;
	device->kernel_union_ns = row->kernel_union_ns;
	device->whole_ns = looking->whole_ns;
	device->process_index = reading->process.index;
	error = finding_place(reading, &looking->sites->list[top], &device->place);
	device->place.count = looking->sites->list[top].count;
	return device->program && device->process && device->uuid && device->name ? error : -ENOMEM;
}

int findings_note_devices(const struct looking *looking)
{
	int error = 0;

	for (size_t d = 0; d < looking->sites->device_count && !error; d++)
		error = note_device(looking, &looking->sites->devices[d]);
	return error;
}

/* The devices of processes of one program. */
struct group {
	struct finding_device *busiest;
	uint64_t count;
	uint64_t sum_ns;
	uint64_t whole_ns;
	bool is_shared;	  /* two of them are one */
	bool has_several; /* processes */
};

static struct group group_of(struct findings *findings, size_t first)
{
	struct finding_device *one = &findings->devices[first];
	struct group group = {.busiest = one};

	for (size_t d = first; d < findings->device_count; d++) {
		struct finding_device *device = &findings->devices[d];

		if (strcmp(device->program, one->program))
			continue;
		group.count++;
		group.sum_ns += device->kernel_union_ns;
		if (device->whole_ns > group.whole_ns)
			group.whole_ns = device->whole_ns;
		if (device->kernel_union_ns > group.busiest->kernel_union_ns)
			group.busiest = device;
		group.has_several |= device->process_index != one->process_index;
		for (size_t e = first; e < d; e++)
			group.is_shared |= !device->uuid[0] ||
					   !strcmp(findings->devices[e].uuid, device->uuid);
	}
	return group;
}

static bool is_first(const struct findings *findings, size_t d)
{
	for (size_t e = 0; e < d; e++)
		if (!strcmp(findings->devices[e].program, findings->devices[d].program))
			return false;
	return true;
}

static int tell(struct run *run, const struct group *group, uint64_t cost_ns)
{
	struct findings *findings = &run->findings;
	struct finding_device *busiest = group->busiest;
	struct finding finding = {
		.rule = RULE_DEVICE_IMBALANCE,
		.process_count = 1,
		.cost_ns = cost_ns,
		.whole_ns = group->whole_ns,
		.places = {busiest->place},
		.place_count = 1,
		.place_all_count = 1,
		.advice = "Give each GPU as much to do as the others.",
	};
	char *where = finding_where(&run->paths, &finding), most[TIME_BYTES], mean[TIME_BYTES],
	     time[TIME_BYTES];

	format_time(most, busiest->kernel_union_ns);
	format_time(mean, group->sum_ns / group->count);
	format_time(time, cost_ns);
	finding_say(
		&finding,
		"Of %llu GPUs of the processes, %s is busy for %s where the mean is %s, mostly "
		"with "
		"what is launched in %s; spread evenly it would take %s less, %s of the time at "
		"work.",
		(unsigned long long)group->count, busiest->name, most, mean, where ? where : "?",
		time, finding_share(cost_ns, group->whole_ns));
	free(where);
	finding_prove(&finding, "device_count", group->count);
	finding_prove(&finding, "busiest_device_time_ns", busiest->kernel_union_ns);
	finding_prove(&finding, "mean_device_time_ns", group->sum_ns / group->count);
	finding.process = strdup(busiest->process);
	finding.places[0].cost_ns = cost_ns;
	if (!finding.what || !finding.process ||
	    grow(&findings->list, &findings->capacity, findings->count + 1,
		 sizeof(*findings->list)) < 0) {
		free(finding.what);
		free(finding.process);
		return -ENOMEM;
	}
	busiest->place.frames = NULL; /* it is the finding's now */
	findings->list[findings->count++] = finding;
	return 0;
}

int findings_compare_devices(struct run *run)
{
	struct findings *findings = &run->findings;
	int error = 0;

	for (size_t d = 0; d < findings->device_count && !error; d++) {
		struct group group;
		uint64_t cost_ns;

		if (!is_first(findings, d))
			continue;
		group = group_of(findings, d);
		cost_ns = uneven_ns(group.busiest->kernel_union_ns, group.sum_ns, group.count);
		if (cost_ns && group.has_several && !group.is_shared &&
		    finding_is_enough(run->settings, RULE_DEVICE_IMBALANCE, cost_ns,
				      group.whole_ns))
			error = tell(run, &group, cost_ns);
	}
	return error;
}
