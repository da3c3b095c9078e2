/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the Python frames of a stack record into STRING and PYTHON_FRAME rows.
 */
#include "inject/writer/record_python.h"

#include "inject/writer/recorder.h"
#include "log/base/python_part.h"

struct frame_key {
	uint32_t name, file, line, first_line;
};

static uint32_t frame_id(struct recorder *rec, const struct frame_key *key)
{
	bool is_new;
	uint32_t id = intern_id(&rec->python_frames, key, sizeof(*key), &is_new);
	struct xt_table *table;

	if (!is_new)
		return id;
	table = recorder_table_of_id(rec, &rec->python_frames, XT_KIND_PYTHON_FRAME, 0);
	if (!table)
		return 0;
	xt_write_python_frame(table, &(struct xt_row_python_frame){id, key->name, key->file,
								   key->line, key->first_line});
	return id;
}

bool record_python_frames(struct recorder *rec, const struct xt_record_stack *record,
			  struct recorded_python *out)
{
	const struct xt_python_part *part = xt_python_part(record, true);
	struct frame_key codes[XT_PYTHON_CODES_MAX];
	const struct xt_python_code *code;

	out->count = part ? part->frame_count : 0;
	code = part ? xt_python_first_code(part) : NULL;
	for (uint32_t i = 0; part && i < part->code_count; i++) {
		codes[i].name = recorder_string(rec, code->text, code->name_bytes);
		codes[i].file =
			recorder_string(rec, code->text + code->name_bytes, code->file_bytes);
		if ((!codes[i].name && code->name_bytes) || (!codes[i].file && code->file_bytes))
			return false;
		codes[i].first_line = code->first_line;
		code = xt_python_next_code(code);
	}
	for (uint32_t i = 0; i < out->count; i++) {
		struct frame_key key = codes[part->frames[i].code];

		key.line = part->frames[i].line;
		out->ids[i] = frame_id(rec, &key);
		if (!out->ids[i])
			return false;
		out->places[i] = part->frames[i].place;
	}
	return true;
}
