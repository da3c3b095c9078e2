/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that share their memory: after vfork(), or clone() with CLONE_VM. A library that is
 * loaded into one of them would appear in both, and a damaged stack would be that of both.
 */
#ifndef XT_ATTACH_SHARED_MEMORY_H
#define XT_ATTACH_SHARED_MEMORY_H

#include <sys/types.h>

/* Returns another process that shares the memory of this one, or 0. */
pid_t shared_memory_find(pid_t pid);

#endif
