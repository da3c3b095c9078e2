/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUPTI's numbers are called: copies, memories, errors.
 */
#ifndef XT_MERGE_LABELS_H
#define XT_MERGE_LABELS_H

#include <stdint.h>

#define COPY_KINDS	11
#define MEMORY_KINDS	8
#define MEMORY_PAGEABLE 1
#define MEMORY_PINNED	2

/* "HtoD"; any number will do. */
const char *copy_kind_label(uint32_t kind);

/* "device"; any number will do. */
const char *memory_kind_label(uint32_t kind);

/* "CUDA_ERROR_OUT_OF_MEMORY", or NULL if the code has no name here. */
const char *error_label(uint64_t code);

#endif
