/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the devices, from NVML. A value that a driver or device does not provide is unknown,
 * which is not an error.
 */
#include "gpu_watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi/nvml_abi.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"

#define DEVICES_MAX   32
#define PROCESSES_MAX 64
#define UNKNOWN	      UINT32_MAX

struct reading {
	uint64_t realtime_ns;
	uint64_t reasons;
	uint32_t values[GPU_VALUES]; /* or UNKNOWN */
};

struct readings {
	struct reading *rows;
	size_t count, room;
};

struct device {
	xt_nvml_device handle;
	char name[XT_NVML_NAME_BYTES];
	char uuid[XT_NVML_UUID_BYTES]; /* in the spelling of the log */
	bool counts;
	struct reading before, after;
	struct readings during;
	struct gpu_run run;
	size_t reason_counts[16]; /* samples under load, by index in the table of reasons */
	uint32_t others[PROCESSES_MAX];
	unsigned int other_count;
};

struct gpu_watch {
	void *library;
	char driver[80];
	struct device devices[DEVICES_MAX];
	unsigned int device_count;

	int (*init)(void);
	int (*shutdown)(void);
	int (*get_driver)(char *version, unsigned int length);
	int (*get_count)(unsigned int *count);
	int (*get_handle)(unsigned int index, xt_nvml_device *device);
	int (*get_name)(xt_nvml_device device, char *name, unsigned int length);
	int (*get_uuid)(xt_nvml_device device, char *uuid, unsigned int length);
	int (*get_clock)(xt_nvml_device device, int clock, unsigned int *mhz);
	int (*get_celsius)(xt_nvml_device device, int sensor, unsigned int *celsius);
	int (*get_milliwatts)(xt_nvml_device device, unsigned int *milliwatts);
	int (*get_reasons)(xt_nvml_device device, unsigned long long *reasons);
	int (*get_processes)(xt_nvml_device device, unsigned int *count,
			     struct xt_nvml_process *processes);
};

/* Looks up the first of the names that exists. */
static const struct {
	size_t place;
	const char *names[2];
	bool is_needed;
} functions[] = {
	{offsetof(struct gpu_watch, init), {"nvmlInit_v2"}, true},
	{offsetof(struct gpu_watch, shutdown), {"nvmlShutdown"}, true},
	{offsetof(struct gpu_watch, get_driver), {"nvmlSystemGetDriverVersion"}, true},
	{offsetof(struct gpu_watch, get_count), {"nvmlDeviceGetCount_v2"}, true},
	{offsetof(struct gpu_watch, get_handle), {"nvmlDeviceGetHandleByIndex_v2"}, true},
	{offsetof(struct gpu_watch, get_name), {"nvmlDeviceGetName"}, true},
	{offsetof(struct gpu_watch, get_uuid), {"nvmlDeviceGetUUID"}, true},
	{offsetof(struct gpu_watch, get_clock), {"nvmlDeviceGetClockInfo"}, true},
	{offsetof(struct gpu_watch, get_celsius), {"nvmlDeviceGetTemperature"}, false},
	{offsetof(struct gpu_watch, get_milliwatts), {"nvmlDeviceGetPowerUsage"}, false},
	{offsetof(struct gpu_watch, get_reasons),
	 {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"},
	 false},
	{offsetof(struct gpu_watch, get_processes),
	 {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
	 false},
};

static const char *const value_names[GPU_VALUES] = {
	[GPU_SM_MHZ] = "sm_mhz",
	[GPU_MEMORY_MHZ] = "memory_mhz",
	[GPU_CELSIUS] = "temperature_celsius",
	[GPU_MILLIWATTS] = "power_milliwatts",
};

static const struct {
	uint64_t bit;
	const char *name;
	const char *words; /* for reasons that throttle a device; NULL: normal operation */
} reasons[] = {
	{XT_NVML_REASON_IDLE, "idle", NULL},
	{XT_NVML_REASON_APPLICATION_CLOCKS, "application_clocks", NULL},
	{XT_NVML_REASON_POWER_CAP, "power_cap", "power limit"},
	{XT_NVML_REASON_HW_SLOWDOWN, "hw_slowdown", "hardware slowdown"},
	{XT_NVML_REASON_SYNC_BOOST, "sync_boost", NULL},
	{XT_NVML_REASON_SW_THERMAL, "sw_thermal", "temperature"},
	{XT_NVML_REASON_HW_THERMAL, "hw_thermal", "temperature (hardware)"},
	{XT_NVML_REASON_POWER_BRAKE, "power_brake", "power brake"},
	{XT_NVML_REASON_DISPLAY_CLOCKS, "display_clocks", NULL},
};

#define REASON_COUNT (sizeof(reasons) / sizeof(reasons[0]))

uint64_t gpu_reasons_text(uint64_t seen, char *out, size_t out_bytes)
{
	uint64_t throttling = 0;

	snprintf(out, out_bytes, "-");
	for (size_t r = 0; r < REASON_COUNT; r++) {
		size_t length = throttling ? strlen(out) : 0;

		if (!reasons[r].words || !(seen & reasons[r].bit))
			continue;
		snprintf(out + length, out_bytes - length, "%s%s", length ? ", " : "",
			 reasons[r].words);
		throttling |= reasons[r].bit;
	}
	return throttling;
}

void gpu_range_text(char *out, const struct gpu_range *range, double unit, const char *words)
{
	double min = range->min / unit, max = range->max / unit;

	if (!range->count)
		snprintf(out, GPU_TEXT_BYTES, "-");
	else if ((long)(min + 0.5) == (long)(max + 0.5))
		snprintf(out, GPU_TEXT_BYTES, "%.0f %s", min, words);
	else
		snprintf(out, GPU_TEXT_BYTES, "%.0f-%.0f %s", min, max, words);
}

static bool find_functions(struct gpu_watch *watch)
{
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		void *function = dlsym(watch->library, functions[f].names[0]);

		if (!function && functions[f].names[1])
			function = dlsym(watch->library, functions[f].names[1]);
		if (!function && functions[f].is_needed)
			return false;
		memcpy((char *)watch + functions[f].place, &function, sizeof(function));
	}
	return true;
}

static void find_devices(struct gpu_watch *watch)
{
	unsigned int count = 0;

	if (watch->get_count(&count))
		count = 0;
	for (unsigned int i = 0; i < count && watch->device_count < DEVICES_MAX; i++) {
		struct device *device = &watch->devices[watch->device_count];
		char uuid[XT_NVML_UUID_BYTES] = "";
		size_t prefix;

		if (watch->get_handle(i, &device->handle) ||
		    watch->get_uuid(device->handle, uuid, sizeof(uuid)))
			continue;
		/* NVML prefixes the log's spelling with "GPU-". */
		prefix = strncmp(uuid, "GPU-", 4) ? 0 : 4;
		memcpy(device->uuid, uuid + prefix, strlen(uuid) - prefix + 1);
		if (watch->get_name(device->handle, device->name, sizeof(device->name)))
			snprintf(device->name, sizeof(device->name), "GPU %u", i);
		device->counts = true;
		watch->device_count++;
	}
}

int gpu_watch_open(struct gpu_watch **watch_out, const char *library, const char **why_out)
{
	struct gpu_watch *watch = calloc(1, sizeof(*watch));

	*watch_out = NULL;
	if (!watch)
		return -ENOMEM;
	watch->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!watch->library) {
		*why_out = "there is no " XT_NVML_LIBRARY;
	} else if (!find_functions(watch)) {
		*why_out = XT_NVML_LIBRARY " lacks functions";
	} else if (watch->init()) {
		*why_out = XT_NVML_LIBRARY " finds no driver";
	} else {
		find_devices(watch);
		if (watch->get_driver(watch->driver, sizeof(watch->driver)))
			watch->driver[0] = '\0';
		*watch_out = watch;
		return 0;
	}
	if (watch->library)
		dlclose(watch->library);
	free(watch);
	return -ENOENT;
}

void gpu_watch_close(struct gpu_watch *watch)
{
	if (!watch)
		return;
	for (unsigned int d = 0; d < watch->device_count; d++)
		free(watch->devices[d].during.rows);
	watch->shutdown();
	dlclose(watch->library);
	free(watch);
}

static struct reading take(const struct gpu_watch *watch, const struct device *device)
{
	xt_nvml_device handle = device->handle;
	struct reading reading;
	unsigned int values[GPU_VALUES];
	unsigned long long bits = 0;
	const bool is_known[GPU_VALUES] = {
		[GPU_SM_MHZ] = !watch->get_clock(handle, XT_NVML_CLOCK_SM, &values[GPU_SM_MHZ]),
		[GPU_MEMORY_MHZ] =
			!watch->get_clock(handle, XT_NVML_CLOCK_MEMORY, &values[GPU_MEMORY_MHZ]),
		[GPU_CELSIUS] =
			watch->get_celsius &&
			!watch->get_celsius(handle, XT_NVML_TEMPERATURE_GPU, &values[GPU_CELSIUS]),
		[GPU_MILLIWATTS] = watch->get_milliwatts &&
				   !watch->get_milliwatts(handle, &values[GPU_MILLIWATTS]),
	};

	if (!watch->get_reasons || watch->get_reasons(handle, &bits))
		bits = 0;
	reading.realtime_ns = realtime_ns();
	reading.reasons = bits;
	for (int v = 0; v < GPU_VALUES; v++)
		reading.values[v] = is_known[v] ? values[v] : UNKNOWN;
	return reading;
}

static void add_other(struct device *device, uint32_t pid)
{
	for (unsigned int i = 0; i < device->other_count; i++)
		if (device->others[i] == pid)
			return;
	if (device->other_count < PROCESSES_MAX)
		device->others[device->other_count++] = pid;
}

/* No program of the bench is running, so any process on the device is foreign. */
static void look_for_others(const struct gpu_watch *watch, struct device *device)
{
	struct xt_nvml_process processes[PROCESSES_MAX];
	unsigned int count = PROCESSES_MAX;

	if (!watch->get_processes || watch->get_processes(device->handle, &count, processes))
		return;
	for (unsigned int i = 0; i < count && i < PROCESSES_MAX; i++)
		add_other(device, processes[i].pid);
}

void gpu_watch_begin(struct gpu_watch *watch)
{
	for (unsigned int d = 0; d < watch->device_count; d++) {
		struct device *device = &watch->devices[d];

		if (!device->counts)
			continue;
		device->during.count = 0;
		device->other_count = 0;
		look_for_others(watch, device);
		device->before = take(watch, device);
	}
}

void gpu_watch_tick(void *context)
{
	struct gpu_watch *watch = context;

	for (unsigned int d = 0; d < watch->device_count; d++) {
		struct readings *during = &watch->devices[d].during;

		if (!watch->devices[d].counts)
			continue;
		if (grow(during->rows, during->room, during->count + 1))
			continue;
		during->rows[during->count++] = take(watch, &watch->devices[d]);
	}
}

static void widen(struct gpu_range *range, double value)
{
	range->min = range->count && range->min < value ? range->min : value;
	range->max = range->count && range->max > value ? range->max : value;
	range->mean += (value - range->mean) / (double)++range->count;
}

static void add_sample(struct device *device, const struct reading *reading)
{
	struct gpu_run *run = &device->run;

	if (reading->reasons & XT_NVML_REASON_IDLE) {
		run->idle_count++;
		return;
	}
	run->load_count++;
	run->reasons |= reading->reasons;
	for (size_t r = 0; r < REASON_COUNT; r++)
		device->reason_counts[r] += (reading->reasons & reasons[r].bit) != 0;
	for (int v = 0; v < GPU_VALUES; v++)
		if (reading->values[v] != UNKNOWN)
			widen(&run->ranges[v], reading->values[v]);
}

static void sum_up(struct device *device, uint64_t start_ns, uint64_t end_ns)
{
	device->run = (struct gpu_run){0};
	memset(device->reason_counts, 0, sizeof(device->reason_counts));
	for (size_t i = 0; i < device->during.count; i++) {
		const struct reading *reading = &device->during.rows[i];

		if (reading->realtime_ns >= start_ns && reading->realtime_ns <= end_ns)
			add_sample(device, reading);
	}
}

static bool is_among(const char *uuid, const char *const *uuids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(uuid, uuids[i]))
			return true;
	return false;
}

void gpu_watch_end(struct gpu_watch *watch, uint64_t start_ns, uint64_t end_ns,
		   const char *const *uuids, size_t uuid_count)
{
	bool any = false;

	for (unsigned int d = 0; d < watch->device_count; d++)
		any |= is_among(watch->devices[d].uuid, uuids, uuid_count);
	for (unsigned int d = 0; d < watch->device_count; d++) {
		struct device *device = &watch->devices[d];

		if (any)
			device->counts =
				device->counts && is_among(device->uuid, uuids, uuid_count);
		if (!device->counts)
			continue;
		look_for_others(watch, device);
		device->after = take(watch, device);
		sum_up(device, start_ns, end_ns);
	}
}

struct gpu_run gpu_watch_sum(const struct gpu_watch *watch)
{
	struct gpu_run sum = {0};
	double power[3] = {0};

	for (unsigned int d = 0; d < watch->device_count; d++) {
		const struct gpu_run *run = &watch->devices[d].run;

		if (!watch->devices[d].counts)
			continue;
		sum.load_count += run->load_count;
		sum.idle_count += run->idle_count;
		sum.reasons |= run->reasons;
		power[0] += run->ranges[GPU_MILLIWATTS].min;
		power[1] += run->ranges[GPU_MILLIWATTS].mean;
		power[2] += run->ranges[GPU_MILLIWATTS].max;
		for (int v = 0; v < GPU_VALUES; v++) {
			const struct gpu_range *range = &run->ranges[v];
			struct gpu_range *all = &sum.ranges[v];

			if (!range->count)
				continue;
			widen(all, range->mean);
			all->min = all->count == 1 || range->min < all->min ? range->min : all->min;
			all->max = all->count == 1 || range->max > all->max ? range->max : all->max;
		}
	}
	sum.ranges[GPU_MILLIWATTS].min = power[0];
	sum.ranges[GPU_MILLIWATTS].mean = power[1];
	sum.ranges[GPU_MILLIWATTS].max = power[2];
	return sum;
}

const char *gpu_watch_name(const struct gpu_watch *watch, size_t *count_out)
{
	const char *name = NULL;

	*count_out = 0;
	for (unsigned int d = 0; d < watch->device_count; d++) {
		if (!watch->devices[d].counts)
			continue;
		name = name ? name : watch->devices[d].name;
		++*count_out;
	}
	return name;
}

uint32_t gpu_watch_other(const struct gpu_watch *watch)
{
	for (unsigned int d = 0; d < watch->device_count; d++)
		if (watch->devices[d].counts && watch->devices[d].other_count)
			return watch->devices[d].others[0];
	return 0;
}

static void add_reasons(cJSON *parent, const char *name, uint64_t bits)
{
	cJSON *list = cJSON_AddArrayToObject(parent, name);

	for (size_t r = 0; r < REASON_COUNT; r++)
		if (bits & reasons[r].bit)
			cJSON_AddItemToArray(list, cJSON_CreateString(reasons[r].name));
}

static void add_reading(cJSON *parent, const char *name, const struct reading *reading)
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	for (int v = 0; v < GPU_VALUES; v++)
		if (reading->values[v] != UNKNOWN)
			cJSON_AddNumberToObject(object, value_names[v], reading->values[v]);
	add_reasons(object, "clock_reasons", reading->reasons);
}

static void add_range(cJSON *parent, const char *name, const struct gpu_range *range)
{
	cJSON *object;

	if (!range->count)
		return;
	object = cJSON_AddObjectToObject(parent, name);
	cJSON_AddNumberToObject(object, "min", range->min);
	cJSON_AddNumberToObject(object, "mean", range->mean);
	cJSON_AddNumberToObject(object, "max", range->max);
}

static cJSON *device_json(const struct device *device)
{
	cJSON *object = cJSON_CreateObject(), *counts, *others;

	cJSON_AddStringToObject(object, "name", device->name);
	cJSON_AddStringToObject(object, "uuid", device->uuid);
	cJSON_AddNumberToObject(object, "load_sample_count", (double)device->run.load_count);
	cJSON_AddNumberToObject(object, "idle_sample_count", (double)device->run.idle_count);
	for (int v = 0; v < GPU_VALUES; v++)
		add_range(object, value_names[v], &device->run.ranges[v]);
	counts = cJSON_AddObjectToObject(object, "clock_reason_sample_counts");
	for (size_t r = 0; r < REASON_COUNT; r++)
		if (device->reason_counts[r])
			cJSON_AddNumberToObject(counts, reasons[r].name,
						(double)device->reason_counts[r]);
	add_reading(object, "before", &device->before);
	add_reading(object, "after", &device->after);
	others = cJSON_AddArrayToObject(object, "other_process_pids");
	for (unsigned int i = 0; i < device->other_count; i++)
		cJSON_AddItemToArray(others, cJSON_CreateNumber(device->others[i]));
	return object;
}

cJSON *gpu_watch_json(const struct gpu_watch *watch)
{
	cJSON *root = cJSON_CreateObject(), *devices;

	cJSON_AddStringToObject(root, "format", "xtrace.gpu");
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "driver", watch->driver);
	cJSON_AddNumberToObject(root, "sample_period_ns", (double)GPU_WATCH_PERIOD_NS);
	devices = cJSON_AddArrayToObject(root, "devices");
	for (unsigned int d = 0; d < watch->device_count; d++)
		if (watch->devices[d].counts)
			cJSON_AddItemToArray(devices, device_json(&watch->devices[d]));
	return root;
}
