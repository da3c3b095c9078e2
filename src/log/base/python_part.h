/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frames behind the native ones of a stack record (struct xt_python_part), read by the
 * writer thread and by whoever recovers a crash buffer. No memory, any thread.
 */
#ifndef XT_LOG_PYTHON_PART_H
#define XT_LOG_PYTHON_PART_H

#include <stdbool.h>

#include "xtrace/crash_buffer_format.h"

/* The part of a record that is all there; NULL if it has none, or one that is damaged. What it
 * refers to lies within the record. has_modules: module slots stand before it. */
const struct xt_python_part *xt_python_part(const struct xt_record_stack *record, bool has_modules);

/* Its code objects, of which there are part->code_count. */
const struct xt_python_code *xt_python_first_code(const struct xt_python_part *part);
const struct xt_python_code *xt_python_next_code(const struct xt_python_code *code);

#endif
