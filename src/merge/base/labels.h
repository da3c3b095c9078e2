/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of CUPTI's numbers: copy kinds, memory kinds, errors.
 */
#ifndef XT_MERGE_LABELS_H
#define XT_MERGE_LABELS_H

#include <stdint.h>

#define COPY_KINDS	11
#define MEMORY_KINDS	8
#define MEMORY_PAGEABLE 1
#define MEMORY_PINNED	2

/* "HtoD". Accepts any number. */
const char *copy_kind_label(uint32_t kind);

/* "device". Accepts any number. */
const char *memory_kind_label(uint32_t kind);

/* "CUDA_ERROR_OUT_OF_MEMORY"; NULL for an unknown code. */
const char *error_label(uint64_t code);

/* Returns the index of a label. Numbers without a label share index 0. */
static inline uint32_t label_index(uint64_t number, uint32_t label_count)
{
	return number < label_count ? (uint32_t)number : 0;
}

#endif
