/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ring records into rows: for the tracer's writer, and for recovery after a kill. The caller
 * checks that the table has room, and resolves stack slots, texts and modules to ids.
 */
#ifndef XT_LOG_EVENT_ROWS_H
#define XT_LOG_EVENT_ROWS_H

#include "log/base/table.h"
#include "xtrace/crash_buffer_format.h"

/* A stack with its ids. Each list belongs to the caller. */
struct xt_stack_ids {
	uint64_t stack_id;
	uint64_t seen_ns;
	const uint64_t *python_ids;    /* XT_PYTHON_FRAME_ID, innermost first */
	const uint64_t *python_places; /* index of the native frame that runs it */
	uint32_t python_count;
	const uint64_t *modules; /* XT_MODULE_ID of each native frame; NULL if unknown */
};

/* XT_STRING_IDs of the texts of an NVTX event; 0: none. */
struct xt_range_texts {
	uint64_t domain;
	uint64_t text;
	uint64_t values; /* decoded payload */
};

struct xt_module_row {
	uint64_t module_id;
	uint64_t load_ns;
	uint64_t start, end, bias;
	const void *path;
	size_t path_bytes;
	const void *build_id;
	size_t build_id_bytes;
};

/* Ids of an autograd state. */
struct xt_autograd_ids {
	uint64_t autograd_id;
	uint64_t type, class_name; /* XT_STRING_ID */
	uint64_t caller_stack;	   /* XT_STACK_ID */
};

/*
 * thread_id is an XT_THREAD_ID, stack_id an XT_STACK_ID, autograd_id an XT_AUTOGRAD_ID; 0: none.
 */
void xt_put_call(struct xt_table *table, const struct xt_record_call *call, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id);
void xt_put_node(struct xt_table *table, const struct xt_record_node *node, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id);
void xt_put_autograd(struct xt_table *table, const struct xt_record_autograd *autograd,
		     const struct xt_autograd_ids *ids);
void xt_put_node_update(struct xt_table *table, const struct xt_record_node *node,
			uint64_t thread_id, uint64_t stack_id);
void xt_put_node_name(struct xt_table *table, const struct xt_record_node_name *record,
		      uint64_t name_id);
void xt_put_range(struct xt_table *table, const struct xt_record_range *range, uint64_t thread_id,
		  uint64_t stack_id, const struct xt_range_texts *texts);
void xt_put_stack(struct xt_table *table, const struct xt_record_stack *stack,
		  const struct xt_stack_ids *ids);
void xt_put_module(struct xt_table *table, const struct xt_module_row *module);

#endif
