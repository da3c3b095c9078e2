/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the Python frames that follow the native frames of a stack record (struct xt_python_part).
 * Used by the writer thread and by recovery. Never allocates; any thread.
 */
#ifndef XT_LOG_PYTHON_PART_H
#define XT_LOG_PYTHON_PART_H

#include <stdbool.h>

#include "xtrace/crash_buffer_format.h"

/*
 * Returns the Python part of a record, or NULL if it is missing or damaged. All its references stay
 * within the record. has_modules: module slots precede it.
 */
const struct xt_python_part *xt_python_part(const struct xt_record_stack *record, bool has_modules);

/* Iterate over its part->code_count code objects. */
const struct xt_python_code *xt_python_first_code(const struct xt_python_part *part);
const struct xt_python_code *xt_python_next_code(const struct xt_python_code *code);

#endif
