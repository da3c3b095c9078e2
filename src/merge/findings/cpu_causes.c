/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/cpu_causes.h"

#include <string.h>

/*
 * What a frame may reveal: a part of its file (Python) or module (native), and a part of its
 * function. NULL matches everything. The first row that matches any frame of the path decides, so
 * specific causes come first.
 */
static const struct frame_pattern {
	const char *file;
	const char *function;
	enum rule rule;
} patterns[] = {
	{"<frozen importlib", NULL, RULE_IMPORTS},
	{"importlib/", NULL, RULE_IMPORTS},
	{NULL, "_dl_open", RULE_IMPORTS},
	{"torch/_dynamo/", NULL, RULE_JIT},
	{"torch/_inductor/", NULL, RULE_JIT},
	{"triton/compiler/", NULL, RULE_JIT},
	{"triton/runtime/autotuner", NULL, RULE_JIT},
	{"triton/runtime/build", NULL, RULE_JIT},
	{"jax/_src/compiler", NULL, RULE_JIT},
	{"jax/_src/interpreters/", NULL, RULE_JIT},
	{"jax/_src/pjit", "compile", RULE_JIT},
	{"numba/core/", NULL, RULE_JIT},
	{"libnvrtc", NULL, RULE_JIT},
	{"libnvJitLink", NULL, RULE_JIT},
	{"libnvidia-ptxjitcompiler", NULL, RULE_JIT},
	{NULL, "cuModuleLoad", RULE_JIT},
	{NULL, "cuLibraryLoad", RULE_JIT},
	{"torch/utils/data/", NULL, RULE_DATA_LOADING},
	{"torchvision/datasets", NULL, RULE_DATA_LOADING},
	{"/PIL/", NULL, RULE_DATA_LOADING},
	{"webdataset/", NULL, RULE_DATA_LOADING},
	{NULL, "collate", RULE_DATA_LOADING},
	{NULL, "__getitem__", RULE_DATA_LOADING},
	{NULL, "DataLoader", RULE_DATA_LOADING},
	{"torch/serialization.py", NULL, RULE_BLOCKING_IO},
	{"logging/__init__.py", NULL, RULE_BLOCKING_IO},
	{"/tensorboard/", NULL, RULE_BLOCKING_IO},
	{NULL, "checkpoint", RULE_BLOCKING_IO},
};

/* Frames at the innermost end of a running thread that allocates or frees memory. */
static const char *const allocators[] = {
	"malloc",      "calloc",    "realloc",	 "mmap", "munmap",	   "madvise",	    "brk",
	"_int_malloc", "_int_free", "sysmalloc", "free", "posix_memalign", "operator new(",
};
#define ALLOCATOR_FRAMES 3 /* from the innermost on */

static bool has(const char *text, const char *part)
{
	return !part || strstr(text, part);
}

/* The texts of a frame. */
struct frame_text {
	const char *function, *file;
};

static struct frame_text text_of(const struct cpu_log *log, const struct stack *stack,
				 const struct merged_frame *frame)
{
	const struct model *model = log->model;
	const struct address *address;

	if (frame->kind == MERGED_PYTHON) {
		const struct python_frame *row =
			&model->python_frames
				 .rows[frame->index < model->python_frames.count ? frame->index
										 : 0];

		return (struct frame_text){
			names_text(&model->names, model_string(model, row->name), NULL),
			names_text(&model->names, model_string(model, row->file), NULL)};
	}
	if (frame->kind != MERGED_NATIVE)
		return (struct frame_text){"", ""};
	address = &log->addresses.list[log->addresses.by_frame[stack->first_frame + frame->index]];
	return (struct frame_text){
		names_text(&model->names, address->name, NULL),
		names_text(&model->names, model->modules.rows[address->module].path, NULL)};
}

/* The best matching row of a part of a path: its index, or the number of rows. */
static size_t match_part(const struct run *run, const struct idle_path_part *part, bool *has_python)
{
	const struct cpu_log *log = &run->cpu_logs->list[part->log];
	size_t best = sizeof(patterns) / sizeof(*patterns);
	struct merged_frame frame;
	struct frame_merge merge;

	if (!part->stack || !frames_has_stack(&log->frames, part->stack))
		return best;
	frames_merge(&log->frames, log->model, part->stack, &merge);
	while (frame_merge_next(&merge, &frame)) {
		struct frame_text text =
			text_of(log, &log->model->stacks.rows[part->stack], &frame);

		*has_python |= frame.kind == MERGED_PYTHON;
		for (size_t p = 0; p < best; p++)
			if (has(text.file, patterns[p].file) &&
			    has(text.function, patterns[p].function))
				best = p;
	}
	return best;
}

static bool is_allocator(const char *function)
{
	for (size_t a = 0; a < sizeof(allocators) / sizeof(*allocators); a++)
		if (!strcmp(function, allocators[a]) ||
		    (!strncmp(function, "__", 2) && !strcmp(function + 2, allocators[a])))
			return true;
	return false;
}

/* Whether one of the innermost native frames allocates or frees memory. */
static bool allocates(const struct run *run, const struct idle_path_part *part)
{
	const struct cpu_log *log = &run->cpu_logs->list[part->log];
	const struct stack *stack = part->stack < log->model->stacks.count
					    ? &log->model->stacks.rows[part->stack]
					    : NULL;

	for (uint32_t f = 0; stack && f < stack->frame_count && f < ALLOCATOR_FRAMES; f++) {
		const struct merged_frame frame = {MERGED_NATIVE, f};

		if (is_allocator(text_of(log, stack, &frame).function))
			return true;
	}
	return false;
}

/* The rule of each state, for paths whose frames reveal nothing. */
static const enum rule rule_of_state[XT_CPU_STATES] = {
	[XT_CPU_UNKNOWN] = RULE_HOST_CODE,	[XT_CPU_RUNNING] = RULE_HOST_CODE,
	[XT_CPU_IN_KERNEL] = RULE_HOST_CODE,	[XT_CPU_IO] = RULE_BLOCKING_IO,
	[XT_CPU_LOCK] = RULE_HOST_WAIT,		[XT_CPU_SLEEP] = RULE_HOST_WAIT,
	[XT_CPU_PAGE_FAULT] = RULE_HOST_MEMORY, [XT_CPU_GIL] = RULE_GIL,
	[XT_CPU_PROCESS] = RULE_HOST_WAIT,	[XT_CPU_BLOCKED] = RULE_HOST_WAIT,
};

enum rule cpu_cause(const struct run *run, const struct idle_path *path, enum idle_class class)
{
	const size_t none = sizeof(patterns) / sizeof(*patterns);
	const struct idle_path_part *last = path->has_other ? &path->other : &path->own;
	bool has_python = false, is_other_python = false;
	size_t row;

	/* The lock of the interpreter is the reason, whatever the thread wanted to do. */
	if (path->own.state == XT_CPU_GIL)
		return RULE_GIL;
	row = match_part(run, &path->own, &has_python);
	if (path->has_other) {
		size_t other = match_part(run, &path->other, &is_other_python);

		row = other < row ? other : row;
	}
	if (row < none)
		return patterns[row].rule;
	if (last->state == XT_CPU_PAGE_FAULT || allocates(run, last))
		return RULE_HOST_MEMORY;
	if (path->own.state == XT_CPU_RUNNING && class == IDLE_LAUNCH_LATE && has_python)
		return RULE_PYTHON_OVERHEAD;
	return rule_of_state[path->own.state];
}
