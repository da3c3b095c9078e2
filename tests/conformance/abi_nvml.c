/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares cuda_abi/nvml_abi.h with nvml.h at compile time, if that is installed.
 */
#include <stddef.h>

#include <nvml.h>

#include "cuda_abi/nvml_abi.h"

#define SAME(ours, theirs)                                                                         \
	_Static_assert((long long)XT_NVML_##ours == (long long)(theirs), #ours " is " #theirs)
#define PLACE(field, their_field)                                                                  \
	_Static_assert(offsetof(struct xt_nvml_process, field) ==                                  \
			       offsetof(nvmlProcessInfo_t, their_field),                           \
		       #field " is " #their_field)

SAME(OK, NVML_SUCCESS);
SAME(UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME(INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(CLOCK_SM, NVML_CLOCK_SM);
SAME(CLOCK_MEMORY, NVML_CLOCK_MEM);
SAME(TEMPERATURE_GPU, NVML_TEMPERATURE_GPU);
SAME(REASON_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME(REASON_APPLICATION_CLOCKS, nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME(REASON_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME(REASON_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(REASON_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost);
SAME(REASON_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME(REASON_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(REASON_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(REASON_DISPLAY_CLOCKS, nvmlClocksThrottleReasonDisplayClockSetting);

_Static_assert(sizeof(struct xt_nvml_process) == sizeof(nvmlProcessInfo_t),
	       "a process is as long as theirs");
PLACE(pid, pid);
PLACE(used_bytes, usedGpuMemory);
PLACE(gpu_instance, gpuInstanceId);
PLACE(compute_instance, computeInstanceId);
