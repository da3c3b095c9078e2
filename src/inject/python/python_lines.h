/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an instruction of a Python function to its line, by the table of its code object.
 */
#ifndef XT_INJECT_PYTHON_LINES_H
#define XT_INJECT_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "inject/python/python_layout.h"

/*
 * The line of the instruction that is `offset` bytes behind the first one (negative: before it),
 * 0 if it has none. Any table will do; *used_out is as far as it was looked at. Any thread, no
 * memory, no system call.
 */
uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t table_bytes,
		     uint32_t first_line, int64_t offset, size_t *used_out);

#endif
