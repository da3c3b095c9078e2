/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the source lines of the generated Python code in a log's stacks, and appends them to the
 * log. Without PyTorch's records, the names of the source nodes replace the lines. Frames that the
 * log has already are not searched again, unless they have only names.
 */
#ifndef XT_MERGE_COMPILED_LINES_H
#define XT_MERGE_COMPILED_LINES_H

#include "log/write/writer.h"
#include "merge/read/model.h"

/* Lines of one Python frame. The texts belong to the list. */
struct compiled_line {
	uint32_t frame; /* XT_PYTHON_FRAME_ID */
	uint32_t trace; /* as XT_COMPILED_TRACE */
	uint32_t line;
	size_t order; /* of its discovery: outermost first in a trace */
	char *function;
	char *file;
};

struct compiled_lines {
	struct compiled_line *list; /* sorted by frame */
	size_t count, capacity;
};

/*
 * Reads the files of folder (torch_trace.h) and the generated files. Returns 0 or -errno; call
 * compiled_lines_free() in both cases.
 */
int compiled_lines_find(struct compiled_lines *lines, const struct model *model,
			const char *folder);
void compiled_lines_free(struct compiled_lines *lines);

/* Appends COMPILED chunks. Returns 0 or -errno. */
int compiled_lines_write(const struct compiled_lines *lines, struct xt_writer *writer);

#endif
