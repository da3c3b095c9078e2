/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the structured logs that PyTorch writes into the folder of TORCH_TRACE: the generated code
 * of torch.compile, and the source lines of its calls.
 *
 * The files are untrusted and may be cut off. Unreadable parts are skipped. Memory is bounded: a
 * line has a limit, and only wanted files are kept.
 */
#ifndef XT_MERGE_TORCH_TRACE_H
#define XT_MERGE_TORCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TORCH_TRACE_FILE_PREFIX "dedicated_log_torch_trace_"
#define TORCH_TRACE_FILE_SUFFIX ".log"

/* A call in generated code. The texts are valid during the callback. */
struct torch_call {
	const char *file; /* the generated file */
	uint32_t line;
	const char *nodes; /* "linear, gelu", or "" */
	/* Source lines as Python prints stack traces; trace_count is 0 if they are unknown. */
	const char *const *traces;
	uint32_t trace_count;
};

struct torch_trace_sink {
	void *context;
	/* Whether calls of this generated file are wanted. */
	bool (*wants)(void *context, const char *file);
	/* Returns 0, or an error that ends the reading. */
	int (*add)(void *context, const struct torch_call *call);
};

/*
 * Reads what the process wrote into the folder. Calls without known source lines are added too.
 * Returns 0 if there is no such folder, or the error of add.
 */
int torch_trace_read(const char *folder, uint32_t pid, const struct torch_trace_sink *sink);

/* Reads a generated file itself, without source lines. Returns 0 if it cannot be read. */
int torch_trace_read_code(const char *file, const struct torch_trace_sink *sink);

/* A line of a stack trace. Texts are not terminated. */
struct torch_place {
	const char *file, *function;
	const char *source; /* text of that line; NULL: not given */
	uint32_t file_length, function_length, source_length;
	uint32_t line;
};

/* Parses the next line of a stack trace. Returns false at its end. */
bool torch_trace_next_place(const char **text, struct torch_place *place);

#endif
