/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps an instruction of a Python code object to its line.
 */
#ifndef XT_PYTHON_LINES_H
#define XT_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "python/python_layout.h"

/*
 * Returns the line of the instruction at `offset` bytes from the first one (may be negative), or 0
 * if it has none. Tolerates any table contents. *used_out is how many bytes were read. Any thread;
 * no memory, no system call.
 */
uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t table_bytes,
		     uint32_t first_line, int64_t offset, size_t *used_out);

#endif
