/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the GPUs through NVML while a program runs: clocks, temperature, power, and the reasons
 * for throttling. NVML is loaded with dlopen() and is optional. For one thread.
 *
 * gpu_watch_begin() starts a run, gpu_watch_tick() takes a sample, and gpu_watch_end() sums up.
 * Only samples under load count, because an idle device lowers its clocks.
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
	size_t count; /* samples; 0: the value is unknown */
};

/* One run on one device, or on all devices as in gpu_watch_sum(). */
struct gpu_run {
	struct gpu_range ranges[GPU_VALUES];
	size_t load_count, idle_count; /* samples */
	uint64_t reasons;	       /* under load; NVML's bits */
};

struct gpu_watch;

/*
 * library is a path, or a name for the dynamic loader. Returns 0, -ENOMEM, or -ENOENT with the
 * reason in *why_out, which is static.
 */
int gpu_watch_open(struct gpu_watch **watch_out, const char *library, const char **why_out);
void gpu_watch_close(struct gpu_watch *watch);

void gpu_watch_begin(struct gpu_watch *watch);
/* Takes a sample. context is the struct gpu_watch. */
void gpu_watch_tick(void *context);

/*
 * Ends a run that lasted from start to end, in ns since 1970. uuids are the devices that the
 * program used, in the spelling of the log. If NVML knows none of them, all devices count. Later
 * runs sample only these devices.
 */
void gpu_watch_end(struct gpu_watch *watch, uint64_t start_ns, uint64_t end_ns,
		   const char *const *uuids, size_t uuid_count);

/*
 * The last run over all devices that count. Clocks and temperature are the mean, minimum and
 * maximum over the devices. Power is the sum.
 */
struct gpu_run gpu_watch_sum(const struct gpu_watch *watch);

/* The name of a device that counts, and the number of such devices. */
const char *gpu_watch_name(const struct gpu_watch *watch, size_t *count_out);

/*
 * A foreign process that had a device open before or after the last run, as pid in the host's
 * namespace. 0: none.
 */
uint32_t gpu_watch_other(const struct gpu_watch *watch);

/* The last run as the document for gpu.json. NULL if memory ran out. */
cJSON *gpu_watch_json(const struct gpu_watch *watch);

/* "1980 MHz" or "1755-1980 MHz", or "-" if it is unknown. unit: of the text, as a value. */
#define GPU_TEXT_BYTES 64
void gpu_range_text(char *out, const struct gpu_range *range, double unit, const char *words);

/* Lists the reasons for throttling, or "-". Returns NVML's bits of these. */
uint64_t gpu_reasons_text(uint64_t seen, char *out, size_t out_bytes);

#endif
