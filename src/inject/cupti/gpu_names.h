/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, UUIDs and multiprocessor counts of the GPUs, from the driver.
 */
#ifndef XT_INJECT_GPU_NAMES_H
#define XT_INJECT_GPU_NAMES_H

#include <stdint.h>

#define GPUS_MAX       64
#define GPU_NAME_BYTES 128
#define GPU_UUID_BYTES 16

struct gpu_names {
	uint32_t count;
	char names[GPUS_MAX][GPU_NAME_BYTES];
	int multiprocessors[GPUS_MAX]; /* 0: unknown */
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
