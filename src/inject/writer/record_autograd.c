/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/record_autograd.h"

#include "log/write/event_rows.h"

uint32_t record_autograd(struct recorder *rec, const struct xt_record_autograd *record,
			 uint32_t caller_stack)
{
	const struct {
		uint64_t thread, node_thread;
		uint32_t type, class_name, caller, caller_stack;
	} key = {
		.thread = record->thread,
		.node_thread = record->node_thread,
		.type = recorder_string(rec, record->text, record->type_bytes),
		.class_name = recorder_string(rec, record->text + record->type_bytes,
					      record->class_bytes),
		.caller = record->caller,
		.caller_stack = caller_stack,
	};
	struct xt_table *table;
	bool is_new;
	uint32_t id;

	if ((!key.type && record->type_bytes) || (!key.class_name && record->class_bytes))
		return 0;
	id = intern_id(&rec->autograd, &key, sizeof(key), &is_new);
	if (!id || !is_new)
		return id;
	table = recorder_table_of_id(rec, &rec->autograd, XT_KIND_AUTOGRAD, 0);
	if (!table)
		return 0;
	xt_write_autograd(table, &(struct xt_row_autograd){
					 .id = id,
					 .thread = record->thread,
					 .node_type = key.type,
					 .node_class = key.class_name,
					 .node_thread = record->node_thread,
					 .caller = record->caller,
					 .caller_stack = key.caller_stack,
				 });
	return id;
}
