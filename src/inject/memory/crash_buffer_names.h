/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernel name pointers and domain numbers mean, noted in the crash buffer: without these, what is
 * found there after a kill would be nameless. Writer thread only; it may allocate areas.
 */
#ifndef XT_INJECT_CRASH_BUFFER_NAMES_H
#define XT_INJECT_CRASH_BUFFER_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

/* Adds a name. To be called when it is met first, or has changed. Names that no longer fit into
 * CRASH_BUFFER_NAME_AREAS_MAX areas are left out: after a kill they are missing, nothing more. */
#define CRASH_BUFFER_NAMES_AREA_BYTES (256u << 10)
#define CRASH_BUFFER_NAME_AREAS_MAX   64
#define CRASH_BUFFER_NAME_BYTES_MAX   16384
void crash_buffer_name_add(enum xt_name_of of, uint64_t key, const char *text, size_t text_bytes);

#endif
