/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ring records into rows: for the tracer's writer, and for recovery after a kill. The caller
 * checks that the table has room, and resolves stack slots, texts and modules to ids.
 *
 * Also reads the Python frames that follow the native frames of a stack record (struct
 * xt_python_part). Never allocates.
 */
#ifndef XT_LOG_EVENT_ROWS_H
#define XT_LOG_EVENT_ROWS_H

#include <stdbool.h>

#include "log/read/rows.h"
#include "xtrace/crash_buffer_format.h"

/*
 * Returns the Python part of a record, or NULL if it is missing or damaged. All its references stay
 * within the record. has_modules: module slots precede it.
 */
const struct xt_python_part *xt_python_part(const struct xt_record_stack *record, bool has_modules);

/* Iterate over its part->code_count code objects. */
const struct xt_python_code *xt_python_first_code(const struct xt_python_part *part);
const struct xt_python_code *xt_python_next_code(const struct xt_python_code *code);

/* XT_STRING_IDs of the texts of an NVTX event; 0: none. */
struct xt_range_texts {
	uint64_t domain;
	uint64_t text;
	uint64_t values; /* decoded payload */
};

/*
 * thread_id is an XT_THREAD_ID, stack_id an XT_STACK_ID, autograd_id an XT_AUTOGRAD_ID; 0: none.
 */
void xt_put_call(struct xt_table *table, const struct xt_record_call *call, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id);
void xt_put_node(struct xt_table *table, const struct xt_record_node *node, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id);
void xt_put_node_update(struct xt_table *table, const struct xt_record_node *node,
			uint64_t thread_id, uint64_t stack_id);
void xt_put_range(struct xt_table *table, const struct xt_record_range *range, uint64_t thread_id,
		  uint64_t stack_id, const struct xt_range_texts *texts);

/*
 * A row of a kind that interns tuples of numbers: STREAM, SHAPE, COPY_SHAPE or PYTHON_FRAME. The
 * members are the columns from 2 on.
 */
void xt_put_tuple(struct xt_table *table, uint64_t id, const uint32_t *members, uint32_t count);

#endif
