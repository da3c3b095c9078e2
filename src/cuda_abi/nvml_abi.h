/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of NVML, the driver's library for device state, that xtrace uses. No NVIDIA header is
 * needed, and no name clashes with one. tests/conformance compares them with nvml.h, if it is
 * installed.
 */
#ifndef XTRACE_CUDA_ABI_NVML_ABI_H
#define XTRACE_CUDA_ABI_NVML_ABI_H

#include <stdint.h>

#define XT_NVML_LIBRARY "libnvidia-ml.so.1"

enum xt_nvml_result {
	XT_NVML_OK = 0,
	XT_NVML_UNINITIALIZED = 1,
	XT_NVML_INVALID_ARGUMENT = 2,
	XT_NVML_NOT_SUPPORTED = 3,
	XT_NVML_INSUFFICIENT_SIZE = 7,
	XT_NVML_DRIVER_NOT_LOADED = 9,
};

enum xt_nvml_clock {
	XT_NVML_CLOCK_SM = 1,
	XT_NVML_CLOCK_MEMORY = 2,
};

#define XT_NVML_TEMPERATURE_GPU 0

/* Reasons for clocks below their maximum, as bits. */
#define XT_NVML_REASON_IDLE		  UINT64_C(0x1)
#define XT_NVML_REASON_APPLICATION_CLOCKS UINT64_C(0x2)
#define XT_NVML_REASON_POWER_CAP	  UINT64_C(0x4)
#define XT_NVML_REASON_HW_SLOWDOWN	  UINT64_C(0x8)
#define XT_NVML_REASON_SYNC_BOOST	  UINT64_C(0x10)
#define XT_NVML_REASON_SW_THERMAL	  UINT64_C(0x20)
#define XT_NVML_REASON_HW_THERMAL	  UINT64_C(0x40)
#define XT_NVML_REASON_POWER_BRAKE	  UINT64_C(0x80)
#define XT_NVML_REASON_DISPLAY_CLOCKS	  UINT64_C(0x100)

#define XT_NVML_NAME_BYTES 96
#define XT_NVML_UUID_BYTES 96

struct xt_nvml_process {
	unsigned int pid; /* process id in the outermost namespace */
	unsigned long long used_bytes;
	unsigned int gpu_instance;
	unsigned int compute_instance;
};

/* NVML's handle of a device. */
typedef void *xt_nvml_device;

#endif
