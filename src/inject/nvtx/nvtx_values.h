/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_INJECT_NVTX_VALUES_H
#define XT_INJECT_NVTX_VALUES_H

#include <stddef.h>

#include "xtrace/crash_buffer_format.h"

#define VALUES_BYTES_MAX 4096

/*
 * Writer: decodes what payload_take() copied into at most VALUES_BYTES_MAX bytes. Returns the
 * length.
 */
size_t nvtx_payload_values(const struct xt_record_range *record, char *out);

#endif
