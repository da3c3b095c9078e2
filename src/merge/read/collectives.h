/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises collectives: kernels that communicate between devices, such as NCCL's. They mostly
 * wait for other ranks, so their time is neither compute nor idle time.
 */
#ifndef XT_MERGE_COLLECTIVES_H
#define XT_MERGE_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>

/* name: mangled or demangled. */
bool is_collective_kernel(const char *name, size_t length);

#endif
