/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, UUIDs and limits of the GPUs, from the driver.
 */
#ifndef XT_INJECT_GPU_NAMES_H
#define XT_INJECT_GPU_NAMES_H

#include <stdint.h>

#define GPUS_MAX       64
#define GPU_NAME_BYTES 128
#define GPU_UUID_BYTES 16

/* Attributes of a device, as "gpu.<n>.<name>" in the log (gpu_limit_names). */
enum gpu_limit {
	GPU_MULTIPROCESSORS,
	GPU_CAPABILITY_MAJOR,
	GPU_CAPABILITY_MINOR,
	GPU_THREADS,
	GPU_BLOCKS,
	GPU_REGISTERS,
	GPU_SHARED_BYTES,
	GPU_RESERVED_SHARED_BYTES,
	GPU_LIMITS
};

extern const char *const gpu_limit_names[GPU_LIMITS];

struct gpu_names {
	uint32_t count;
	char names[GPUS_MAX][GPU_NAME_BYTES];
	int limits[GPUS_MAX][GPU_LIMITS]; /* -1: unknown */
	uint8_t uuids[GPUS_MAX]
		     [GPU_UUID_BYTES]; /* of a MIG instance, if it is one; zeros: unknown */
};

/*
 * Asks the driver. The flusher thread calls it until gpu_names() returns a result. May hang in the
 * driver.
 */
void gpu_names_read(void);

/* NULL until the driver has answered. Any thread. */
const struct gpu_names *gpu_names(void);

#endif
