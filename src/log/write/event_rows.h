/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ring records and CUPTI's records into rows: for the tracer's writer, and for recovery after
 * a kill. The caller checks that the table has room, and resolves stack slots, texts and modules to
 * ids.
 *
 * Also reads the Python frames that follow the native frames of a stack record (struct
 * xt_python_part). Never allocates.
 */
#ifndef XT_LOG_EVENT_ROWS_H
#define XT_LOG_EVENT_ROWS_H

#include <stdbool.h>

#include "cuda_abi/cupti_abi.h"
#include "log/read/rows.h"
#include "xtrace/crash_buffer_format.h"

/*
 * Returns the Python part of a record, or NULL if it is missing or damaged. All its references stay
 * within the record.
 */
const struct xt_python_part *xt_python_part(const struct xt_record_stack *record);

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

/* What the tracer or recovery needs of a CUPTI record: GPU work, or an allocation. */
struct xt_gpu_work {
	enum xt_kind kind; /* KERNEL, COPY, SET or MEMORY */
	uint32_t correlation_id;
	uint32_t place[3]; /* device, context, stream; for MEMORY: device, memory kind, operation */
	uint64_t start_ns; /* for MEMORY: time of the operation */
	uint64_t end_ns;
	uint64_t graph_node_id;
	uint64_t name;	  /* for KERNEL: the address of its name; 0 for a whole graph */
	uint64_t address; /* for MEMORY */
	uint64_t bytes;	  /* except for KERNEL */
	/* KERNEL: SHAPE columns from 3 on; COPY: COPY_SHAPE columns from 2 on; SET: memory kind */
	uint32_t like[9];
};

/*
 * Reads a record of that enum xt_cupti_activity_kind, which is as long as its structure. False if
 * it is neither GPU work nor an allocation.
 */
bool xt_gpu_work_of(uint32_t kind, const struct cupti_activity *record, struct xt_gpu_work *work);

/* Whether it is the execution of a graph that was recorded as a whole. */
static inline bool xt_gpu_work_is_graph(const struct xt_gpu_work *work)
{
	return (uint32_t)work->graph_node_id == XT_NODE_WHOLE_GRAPH;
}

/* shape_id: XT_SHAPE_ID of a kernel or XT_COPY_SHAPE_ID of a copy. */
void xt_put_work(struct xt_table *table, const struct xt_gpu_work *work, uint64_t stream_id,
		 uint64_t shape_id);

/*
 * A row of a kind that interns tuples of numbers: STREAM, SHAPE, COPY_SHAPE or PYTHON_FRAME. The
 * members are the columns from 2 on.
 */
void xt_put_tuple(struct xt_table *table, uint64_t id, const uint32_t *members, uint32_t count);

#endif
