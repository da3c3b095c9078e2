/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this test launch with: a kernel by name, on the driver API.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Not inlined, so that every launch has this one caller, in every program. */
void device_open(void);
void device_launch(unsigned blocks);
void device_close(void);

#ifdef __cplusplus
}
#endif

#endif
