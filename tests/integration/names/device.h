/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels by name through the driver API.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Not inlined, so that it is the caller of every launch in every program. */
void device_open(void);
void device_launch(unsigned blocks);
void device_close(void);

#ifdef __cplusplus
}
#endif

#endif
