/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the headers of Debian 11 (glibc 2.31), for which tools/portable.sh builds, do
 * not know. From 424 on, all architectures share one number. Include this instead of
 * <sys/syscall.h>.
 */
#ifndef XT_LOG_NEW_SYSCALLS_H
#define XT_LOG_NEW_SYSCALLS_H

#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

#endif
