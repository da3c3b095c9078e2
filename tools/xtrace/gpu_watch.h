/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the devices while a program runs, from outside of it: clocks, temperature, power, and why
 * clocks are not higher, as NVML says them. NVML is opened by dlopen(); where it is not there,
 * nothing is watched. One thread.
 *
 * A run is watched from gpu_watch_begin() on, at each gpu_watch_tick(), up to gpu_watch_end(), which
 * sums up. Ranges are of what was seen under load: an idle device lowers its clocks.
 */
#ifndef XTRACE_GPU_WATCH_H
#define XTRACE_GPU_WATCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_WATCH_PERIOD_NS UINT64_C(100000000)

enum gpu_value { GPU_SM_MHZ, GPU_MEMORY_MHZ, GPU_CELSIUS, GPU_MILLIWATTS, GPU_VALUES };

struct gpu_range {
	double min, mean, max;
	size_t count; /* of samples; 0: it is not known */
};

/* Of one run and one device, or of all devices: see gpu_watch_sum(). */
struct gpu_run {
	struct gpu_range ranges[GPU_VALUES];
	size_t load_count, idle_count; /* samples */
	uint64_t reasons;	       /* seen under load, as NVML's bits */
};

struct gpu_watch;

/*
 * library is a path, or a name that the loader looks for. 0, or -ENOENT and *why_out says why (not
 * to be freed), or -ENOMEM.
 */
int gpu_watch_open(struct gpu_watch **watch_out, const char *library, const char **why_out);
void gpu_watch_close(struct gpu_watch *watch);

void gpu_watch_begin(struct gpu_watch *watch);
/* Takes a sample; context is the watch. */
void gpu_watch_tick(void *context);

/*
 * Ends a run, of which the program took the time from start to end (since 1970). uuids are those
 * of the devices that it used, in the log's writing; where none of them is known, all devices
 * count. From then on no others are watched.
 */
void gpu_watch_end(struct gpu_watch *watch, uint64_t start_ns, uint64_t end_ns,
		   const char *const *uuids, size_t uuid_count);

/*
 * Of the last run, over all devices that count: clocks and temperature are the mean of theirs (and the
 * least and most of any), power is their sum.
 */
struct gpu_run gpu_watch_sum(const struct gpu_watch *watch);

/* The name of a device that counts, and how many do. */
const char *gpu_watch_name(const struct gpu_watch *watch, size_t *count_out);

/*
 * A process that had a device open before the run that ended last, or still has; its number as the
 * outermost namespace has it. 0: none.
 */
uint32_t gpu_watch_other(const struct gpu_watch *watch);

/* The last run as gpu.json has it; NULL if there is no memory. */
cJSON *gpu_watch_json(const struct gpu_watch *watch);

/* The n-th of the reasons that mean that a device was held back: its words; NULL after the last. */
const char *gpu_reason_words(size_t n, uint64_t *bit_out);

#endif
