/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels are collectives: communication between devices, as NCCL's. Such a kernel mostly waits
 * for the other ranks, so its time is neither compute nor idle time.
 */
#ifndef XT_MERGE_COLLECTIVES_H
#define XT_MERGE_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>

/* name: as the compiler mangled it, or as it is shown. */
bool is_collective_kernel(const char *name, size_t length);

#endif
