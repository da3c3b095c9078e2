/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels and NVTX domains in the crash buffer, so that recovery can name them. Writer
 * thread only; may allocate areas.
 */
#ifndef XT_INJECT_CRASH_BUFFER_NAMES_H
#define XT_INJECT_CRASH_BUFFER_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

/*
 * Adds a name, when it is first seen or has changed. Drops it if CRASH_BUFFER_NAME_AREAS_MAX areas
 * are full; recovered records then have no name.
 */
#define CRASH_BUFFER_NAMES_AREA_BYTES (256u << 10)
#define CRASH_BUFFER_NAME_AREAS_MAX   64
#define CRASH_BUFFER_NAME_BYTES_MAX   16384
void crash_buffer_name_add(enum xt_name_of of, uint64_t key, const char *text, size_t text_bytes);

#endif
