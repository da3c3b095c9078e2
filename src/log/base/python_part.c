/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every size is checked against the size of the record before it is used.
 */
#include "log/base/python_part.h"

#include <stddef.h>

static size_t code_bytes(const struct xt_python_code *code)
{
	return (sizeof(*code) + code->name_bytes + code->file_bytes + 7) & ~(size_t)7;
}

const struct xt_python_code *xt_python_first_code(const struct xt_python_part *part)
{
	return (const void *)&part->frames[part->frame_count];
}

const struct xt_python_code *xt_python_next_code(const struct xt_python_code *code)
{
	return (const void *)((const uint8_t *)code + code_bytes(code));
}

const struct xt_python_part *xt_python_part(const struct xt_record_stack *record, bool has_modules)
{
	const uint8_t *end = (const uint8_t *)record + record->head.bytes;
	size_t module_bytes = has_modules ? xt_stack_modules_bytes(record->frame_count) : 0;
	const struct xt_python_part *part =
		(const void *)&record->frames[record->frame_count + module_bytes / 8];
	const struct xt_python_code *code;
	size_t bytes;

	if (record->head.bytes <
	    sizeof(*record) + record->frame_count * sizeof(uint64_t) + module_bytes + sizeof(*part))
		return NULL;
	bytes = (size_t)(end - (const uint8_t *)part) - sizeof(*part);
	if (!part->frame_count || part->frame_count > XT_PYTHON_FRAMES_MAX ||
	    part->code_count > XT_PYTHON_CODES_MAX ||
	    bytes < part->frame_count * sizeof(part->frames[0]))
		return NULL;
	bytes -= part->frame_count * sizeof(part->frames[0]);
	code = xt_python_first_code(part);
	for (uint32_t i = 0; i < part->code_count; i++) {
		if (bytes < sizeof(*code) || bytes < code_bytes(code))
			return NULL;
		bytes -= code_bytes(code);
		code = xt_python_next_code(code);
	}
	for (uint32_t i = 0; i < part->frame_count; i++)
		if (part->frames[i].code >= part->code_count ||
		    part->frames[i].place > record->frame_count)
			return NULL;
	return part;
}
