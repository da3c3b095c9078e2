/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the source lines of the Python code that torch.compile generated, for the frames in a log's
 * stacks, and appends them to the log. Without PyTorch's records, the names of the source nodes
 * replace the lines. Frames that the log has already are not searched again, unless they have only
 * names.
 *
 * PyTorch's records are the structured logs in the folder of TORCH_TRACE: the generated code, and
 * the source lines of its calls. The files are untrusted and may be cut off. Unreadable parts are
 * skipped. Memory is bounded: a line has a limit, and only wanted files are kept.
 */
#ifndef XT_MERGE_COMPILED_LINES_H
#define XT_MERGE_COMPILED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/write/writer.h"
#include "merge/read/model.h"

#define GENERATED_TEXT_BYTES 512

/* Zeros are the start of a file. */
struct generated_code {
	uint32_t line;			   /* number of the current line, from 1 */
	char handle[GENERATED_TEXT_BYTES]; /* "extern_kernels.addmm:2"; "": none */
	char nodes[GENERATED_TEXT_BYTES];  /* "linear, gelu"; "": none */
	unsigned lines_left;		   /* in which the call of these comments may follow */
};

/*
 * Returns whether the path is that of a file in the cache of torch.compile. Such a name begins with
 * 'c' and a hash. Its folder has the first two characters of the hash.
 */
bool generated_code_is_file(const char *path);

/*
 * Reads the next line, without its newline. Returns whether it is the call of a kernel. handle and
 * nodes then describe this call.
 */
bool generated_code_next(struct generated_code *code, const char *text, size_t length);

/* A line of a stack trace. Texts are not terminated. */
struct torch_place {
	const char *file, *function;
	const char *source; /* text of that line; NULL: not given */
	uint32_t file_length, function_length, source_length;
	uint32_t line;
};

/* Parses the next line of a stack trace. Returns false at its end. */
bool torch_trace_next_place(const char **text, struct torch_place *place);

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
	LIST(struct compiled_line); /* sorted by frame */
};

/* Reads the files in `folder` of TORCH_TRACE and the generated files. */
void compiled_lines_find(struct compiled_lines *lines, const struct model *model,
			 const char *folder);
void compiled_lines_free(struct compiled_lines *lines);

/* Appends COMPILED chunks. Returns 0 or -errno. */
int compiled_lines_write(const struct compiled_lines *lines, struct xt_writer *writer);

#endif
