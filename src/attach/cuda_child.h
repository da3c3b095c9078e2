/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that uses CUDA below a launcher that does not.
 */
#ifndef XT_ATTACH_CUDA_CHILD_H
#define XT_ATTACH_CUDA_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The first descendant of a process that has loaded CUDA, or 0. *carries_xtrace: it also has
 * xtrace's library. Kernels without CONFIG_PROC_CHILDREN list none.
 */
pid_t cuda_child_find(pid_t pid, bool *carries_xtrace);

#endif
