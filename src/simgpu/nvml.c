/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated NVML: a libnvidia-ml.so.1 with the functions that xtrace calls. Its devices are
 * those of the simulated driver. XTRACE_SIMGPU_NVML sets their state as a list of NAME:VALUE,
 * separated by commas:
 *
 *	absent:1	there is no driver
 *	sm_mhz, memory_mhz, celsius, milliwatts	of all devices
 *	sm_mhz_drift, celsius_drift	change for each second since nvmlInit
 *	reasons		why clocks are throttled, as NVML's bits
 *	other_pid	a process that uses all devices
 *
 * Runs on the calling thread and takes no lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi/nvml_abi.h"

#define EXPORT	    __attribute__((visibility("default")))
#define DEVICES_MAX 8

static struct {
	long long absent, sm_mhz, memory_mhz, celsius, milliwatts;
	long long sm_mhz_drift, celsius_drift, reasons, other_pid;
	struct timespec start;
	unsigned int device_count;
} state;

static const struct {
	const char *name;
	long long *value;
	long long usual;
} knobs[] = {
	{"absent", &state.absent, 0},
	{"sm_mhz", &state.sm_mhz, 1980},
	{"memory_mhz", &state.memory_mhz, 2619},
	{"celsius", &state.celsius, 40},
	{"milliwatts", &state.milliwatts, 300000},
	{"sm_mhz_drift", &state.sm_mhz_drift, 0},
	{"celsius_drift", &state.celsius_drift, 0},
	{"reasons", &state.reasons, 0},
	{"other_pid", &state.other_pid, 0},
};

#define KNOB_COUNT (sizeof(knobs) / sizeof(knobs[0]))

static void turn(const char *text, size_t length)
{
	const char *colon = memchr(text, ':', length);
	size_t name_length = colon ? (size_t)(colon - text) : length;

	for (size_t k = 0; k < KNOB_COUNT && colon; k++)
		if (strlen(knobs[k].name) == name_length &&
		    !strncmp(knobs[k].name, text, name_length)) {
			*knobs[k].value = strtoll(colon + 1, NULL, 0);
			return;
		}
	fprintf(stderr, "xtrace simulated GPU: XTRACE_SIMGPU_NVML has no '%.*s'\n", (int)length,
		text);
}

static void read_environment(void)
{
	const char *text = getenv("XTRACE_SIMGPU_NVML"), *count = getenv("XTRACE_SIMGPU_DEVICES");
	int devices = count && *count ? atoi(count) : 1;

	for (size_t k = 0; k < KNOB_COUNT; k++)
		*knobs[k].value = knobs[k].usual;
	while (text && *text) {
		size_t length = strcspn(text, ",");

		turn(text, length);
		text += length + (text[length] == ',');
	}
	state.device_count =
		devices < 0 || devices > DEVICES_MAX ? DEVICES_MAX : (unsigned int)devices;
}

static long long seconds_times(long long by_second)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return by_second *
	       ((now.tv_sec - state.start.tv_sec) * 1000 +
		(now.tv_nsec - state.start.tv_nsec) / 1000000) /
	       1000;
}

static unsigned int positive(long long value)
{
	return value > 0 ? (unsigned int)value : 0;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int length);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, xt_nvml_device *device);
EXPORT int nvmlDeviceGetName(xt_nvml_device device, char *name, unsigned int length);
EXPORT int nvmlDeviceGetUUID(xt_nvml_device device, char *uuid, unsigned int length);
EXPORT int nvmlDeviceGetClockInfo(xt_nvml_device device, int clock, unsigned int *mhz);
EXPORT int nvmlDeviceGetTemperature(xt_nvml_device device, int sensor, unsigned int *celsius);
EXPORT int nvmlDeviceGetPowerUsage(xt_nvml_device device, unsigned int *milliwatts);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(xt_nvml_device device,
						     unsigned long long *reasons);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(xt_nvml_device device, unsigned int *count,
						   struct xt_nvml_process *processes);

int nvmlInit_v2(void)
{
	read_environment();
	clock_gettime(CLOCK_MONOTONIC, &state.start);
	return state.absent ? XT_NVML_DRIVER_NOT_LOADED : XT_NVML_OK;
}

int nvmlShutdown(void)
{
	state.device_count = 0;
	return XT_NVML_OK;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	snprintf(version, length, "simulated");
	return XT_NVML_OK;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = state.device_count;
	return XT_NVML_OK;
}

/* A handle is the index of the device plus 1. */
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, xt_nvml_device *device)
{
	if (index >= state.device_count)
		return XT_NVML_INVALID_ARGUMENT;
	*device = (void *)(uintptr_t)(index + 1);
	return XT_NVML_OK;
}

int nvmlDeviceGetName(xt_nvml_device device, char *name, unsigned int length)
{
	(void)device;
	snprintf(name, length, "xtrace simulated GPU");
	return XT_NVML_OK;
}

/* The same as sim_device_get_uuid(): "simulated", and the index of the device in the last byte. */
int nvmlDeviceGetUUID(xt_nvml_device device, char *uuid, unsigned int length)
{
	snprintf(uuid, length, "GPU-73696d75-6c61-7465-6400-0000000000%02x",
		 (unsigned int)((uintptr_t)device - 1));
	return XT_NVML_OK;
}

int nvmlDeviceGetClockInfo(xt_nvml_device device, int clock, unsigned int *mhz)
{
	(void)device;
	if (clock == XT_NVML_CLOCK_SM)
		*mhz = positive(state.sm_mhz + seconds_times(state.sm_mhz_drift));
	else if (clock == XT_NVML_CLOCK_MEMORY)
		*mhz = positive(state.memory_mhz);
	else
		return XT_NVML_NOT_SUPPORTED;
	return XT_NVML_OK;
}

int nvmlDeviceGetTemperature(xt_nvml_device device, int sensor, unsigned int *celsius)
{
	(void)device;
	if (sensor != XT_NVML_TEMPERATURE_GPU)
		return XT_NVML_NOT_SUPPORTED;
	*celsius = positive(state.celsius + seconds_times(state.celsius_drift));
	return XT_NVML_OK;
}

int nvmlDeviceGetPowerUsage(xt_nvml_device device, unsigned int *milliwatts)
{
	(void)device;
	*milliwatts = positive(state.milliwatts);
	return XT_NVML_OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(xt_nvml_device device, unsigned long long *reasons)
{
	(void)device;
	*reasons = (unsigned long long)state.reasons;
	return XT_NVML_OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(xt_nvml_device device, unsigned int *count,
					    struct xt_nvml_process *processes)
{
	unsigned int room = *count;

	(void)device;
	*count = state.other_pid ? 1 : 0;
	if (room < *count)
		return XT_NVML_INSUFFICIENT_SIZE;
	if (*count)
		processes[0] = (struct xt_nvml_process){.pid = positive(state.other_pid)};
	return XT_NVML_OK;
}
