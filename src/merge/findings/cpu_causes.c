/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/cpu_causes.h"

#include <string.h>

#include "merge/sums/cpu_logs.h"
#include "merge/sums/idle_paths.h"
#include "merge/sums/run.h"

/* Where a sample must have been taken for a pattern to apply. */
enum pattern_state {
	ANY_STATE,
	IN_IO, /* in the kernel, or waiting for I/O */
};

/*
 * Patterns of frames that reveal a cause: a part of the file (Python) or module (native), and a
 * part of the function. NULL matches everything. The first row that matches any frame of the path
 * decides, so specific causes come first.
 */
static const struct frame_pattern {
	const char *file;
	const char *function;
	enum rule rule;
	enum pattern_state state;
} patterns[] = {
	/* MPI, and gloo with PyTorch's wait for it. A thread of gloo without work is in neither. */
	{NULL, "MPI_File_", RULE_BLOCKING_IO, ANY_STATE},
	{NULL, "MPI_Init", RULE_HOST_CODE, ANY_STATE},
	{NULL, "MPI_Finalize", RULE_HOST_CODE, ANY_STATE},
	{NULL, "MPI_", RULE_RANK_WAIT, ANY_STATE},
	{NULL, "_ZN4gloo", RULE_RANK_WAIT, ANY_STATE},
	{NULL, "_ZN4c10d4Work4wait", RULE_RANK_WAIT, ANY_STATE},
	{NULL, "_ZN4c10d16ProcessGroupGloo9AsyncWork4wait", RULE_RANK_WAIT, ANY_STATE},
	{"<frozen importlib", NULL, RULE_IMPORTS, ANY_STATE},
	{"importlib/", NULL, RULE_IMPORTS, ANY_STATE},
	{NULL, "_dl_open", RULE_IMPORTS, ANY_STATE},
	/* Compiled code runs inside the packages of its compiler. So these are entry points. */
	{"torch/_dynamo/convert_frame.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_dynamo/output_graph.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_dynamo/symbolic_convert.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/async_compile.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/autotune_process.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/codecache.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/compile_fx", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/compile_worker/", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/graph.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/runtime/compile_tasks.py", NULL, RULE_JIT, ANY_STATE},
	{"torch/_inductor/runtime/triton_heuristics.py", "autotune", RULE_JIT, ANY_STATE},
	{"torch/_inductor/runtime/triton_heuristics.py", "bench", RULE_JIT, ANY_STATE},
	{"torch/_inductor/runtime/triton_heuristics.py", "compile", RULE_JIT, ANY_STATE},
	{"torch/_inductor/select_algorithm.py", "autotune", RULE_JIT, ANY_STATE},
	{"triton/compiler/code_generator", NULL, RULE_JIT, ANY_STATE},
	{"triton/compiler/compiler", "_init_handles", RULE_JIT, ANY_STATE},
	{"triton/compiler/compiler", "compile", RULE_JIT, ANY_STATE},
	{"triton/runtime/autotuner", "_bench", RULE_JIT, ANY_STATE},
	{"triton/runtime/autotuner", "prune_configs", RULE_JIT, ANY_STATE},
	{"triton/runtime/build", NULL, RULE_JIT, ANY_STATE},
	{"triton/runtime/jit", "compile", RULE_JIT, ANY_STATE},
	{"jax/_src/compiler", NULL, RULE_JIT, ANY_STATE},
	{"jax/_src/interpreters/mlir", NULL, RULE_JIT, ANY_STATE},
	{"jax/_src/interpreters/partial_eval", NULL, RULE_JIT, ANY_STATE},
	{"jax/_src/interpreters/pxla", "compile", RULE_JIT, ANY_STATE},
	{"jax/_src/interpreters/pxla", "from_hlo", RULE_JIT, ANY_STATE},
	{"jax/_src/interpreters/pxla", "lower", RULE_JIT, ANY_STATE},
	{"jax/_src/pjit", "compile", RULE_JIT, ANY_STATE},
	{"numba/core/", "compile", RULE_JIT, ANY_STATE},
	{"numba/cuda/", "compile", RULE_JIT, ANY_STATE},
	{"libnvrtc", NULL, RULE_JIT, ANY_STATE},
	{"libnvJitLink", NULL, RULE_JIT, ANY_STATE},
	{"libnvidia-ptxjitcompiler", NULL, RULE_JIT, ANY_STATE},
	{NULL, "cuModuleLoad", RULE_JIT, ANY_STATE},
	{NULL, "cuLibraryLoad", RULE_JIT, ANY_STATE},
	/* Datasets are called by these. A __getitem__ elsewhere may be of any container. */
	{"torch/utils/data/", NULL, RULE_DATA_LOADING, ANY_STATE},
	{"torchvision/datasets", NULL, RULE_DATA_LOADING, ANY_STATE},
	{"/PIL/", NULL, RULE_DATA_LOADING, ANY_STATE},
	{"webdataset/", NULL, RULE_DATA_LOADING, ANY_STATE},
	{NULL, "collate", RULE_DATA_LOADING, ANY_STATE},
	{NULL, "DataLoader", RULE_DATA_LOADING, ANY_STATE},
	{"torch/serialization.py", NULL, RULE_BLOCKING_IO, ANY_STATE},
	{"logging/__init__.py", NULL, RULE_BLOCKING_IO, ANY_STATE},
	{"/tensorboard/", NULL, RULE_BLOCKING_IO, ANY_STATE},
	{NULL, "save_checkpoint", RULE_BLOCKING_IO, ANY_STATE},
	{NULL, "load_checkpoint", RULE_BLOCKING_IO, ANY_STATE},
	/* The name may also mean that activations are computed again. That does no I/O. */
	{NULL, "checkpoint", RULE_BLOCKING_IO, IN_IO},
};
#define PATTERNS (sizeof(patterns) / sizeof(*patterns))

/*
 * Frames that reveal nothing, although a pattern matches them: steps of compiled code, and
 * PyTorch's activation checkpointing. The function is compared without its class. NULL matches
 * everything.
 */
static const struct plain_frame {
	const char *file;
	const char *function;
} plain_frames[] = {
	{"torch/_inductor/codecache.py", "__call__"}, /* CompiledFxGraph, before PyTorch 2.6 */
	{"torch/_inductor/codecache.py", "run"},
	{"torch/_inductor/compile_fx.py", "run"}, /* align_inputs(), cudagraphify() */
	{"torch/utils/checkpoint.py", NULL},
	{"/activation_checkpointing/", NULL},
};

/* Names of the C library's functions, without the additions that c_name() removes. */
struct name_list {
	const char *const *names;
	size_t count;
};

/* They allocate or free memory. */
static const char *const allocator_names[] = {
	"malloc",      "calloc",    "realloc",	 "mmap", "munmap",	   "madvise", "brk",
	"_int_malloc", "_int_free", "sysmalloc", "free", "posix_memalign", "_Znwm",   "_Znam",
};
static const struct name_list allocators = {
	allocator_names,
	sizeof(allocator_names) / sizeof(*allocator_names),
};
#define ALLOCATOR_FRAMES 3 /* from the innermost on */

/* They read, write or open files. */
static const char *const file_io_names[] = {
	"read",	     "write",
	"pread",     "pwrite",
	"readv",     "writev",
	"preadv",    "pwritev",
	"preadv2",   "pwritev2",
	"fsync",     "fdatasync",
	"syncfs",    "sync",
	"msync",     "open",
	"openat",    "creat",
	"sendfile",  "ftruncate",
	"truncate",  "posix_fallocate",
	"fallocate", "copy_file_range",
};
static const struct name_list file_io = {
	file_io_names,
	sizeof(file_io_names) / sizeof(*file_io_names),
};

static const char *const name_prefixes[] = {"__GI_", "__libc_", "__"};
static const char *const name_suffixes[] = {"_nocancel", "64"};

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

/* The function without its class or enclosing function. */
static const char *last_component(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot ? dot + 1 : function;
}

static bool is_plain(const struct frame_text *text)
{
	for (size_t p = 0; p < sizeof(plain_frames) / sizeof(*plain_frames); p++) {
		const struct plain_frame *plain = &plain_frames[p];

		if (strstr(text->file, plain->file) &&
		    (!plain->function || !strcmp(last_component(text->function), plain->function)))
			return true;
	}
	return false;
}

static bool is_in_io(uint32_t state)
{
	return state == XT_CPU_IO || state == XT_CPU_IN_KERNEL;
}

/* The first row before `end` that matches a frame, or `end`. */
static size_t match_frame(const struct frame_text *text, uint32_t state, size_t end)
{
	if (is_plain(text))
		return end;
	for (size_t p = 0; p < end; p++)
		if (has(text->file, patterns[p].file) &&
		    has(text->function, patterns[p].function) &&
		    (patterns[p].state == ANY_STATE || is_in_io(state)))
			return p;
	return end;
}

/* The best matching row of a part of a path: its index, or the number of rows. */
static size_t match_part(const struct run *run, const struct idle_path_part *part, bool *has_python)
{
	const struct cpu_log *log = &run->cpu->logs->list[part->log];
	size_t best = PATTERNS;
	struct merged_frame frame;
	struct frame_merge merge;

	if (!part->stack || !frames_has_stack(&log->frames, part->stack))
		return best;
	frames_merge(&log->frames, log->model, part->stack, &merge);
	while (frame_merge_next(&merge, &frame)) {
		struct frame_text text =
			text_of(log, &log->model->stacks.rows[part->stack], &frame);

		*has_python |= frame.kind == MERGED_PYTHON;
		best = match_frame(&text, part->state, best);
	}
	return best;
}

/* Removes what glibc adds to its names: __GI___write, __libc_write and write64 are write. */
static const char *c_name(const char *function, size_t *length_out)
{
	for (size_t p = 0; p < sizeof(name_prefixes) / sizeof(*name_prefixes); p++) {
		size_t length = strlen(name_prefixes[p]);

		if (!strncmp(function, name_prefixes[p], length))
			function += length;
	}
	*length_out = strcspn(function, "@"); /* the version of the symbol */
	for (size_t s = 0; s < sizeof(name_suffixes) / sizeof(*name_suffixes); s++) {
		size_t length = strlen(name_suffixes[s]);

		if (*length_out > length &&
		    !strncmp(function + *length_out - length, name_suffixes[s], length))
			*length_out -= length;
	}
	return function;
}

static bool is_in_list(const struct name_list *list, const char *function)
{
	size_t length;

	function = c_name(function, &length);
	for (size_t n = 0; n < list->count; n++)
		if (strlen(list->names[n]) == length && !strncmp(list->names[n], function, length))
			return true;
	return false;
}

/* From glibc 2.41 on, system calls that are cancellation points have such frames inside. */
static bool is_syscall_wrapper(const char *function)
{
	return strstr(function, "syscall_cancel") != NULL;
}

/* Whether one of the first `count` innermost native frames is in the list. */
static bool is_innermost_in(const struct run *run, const struct idle_path_part *part,
			    const struct name_list *list, uint32_t count)
{
	const struct cpu_log *log = &run->cpu->logs->list[part->log];
	const struct stack *stack = part->stack < log->model->stacks.count
					    ? &log->model->stacks.rows[part->stack]
					    : NULL;

	for (uint32_t f = 0; stack && f < stack->frame_count && count; f++) {
		const struct merged_frame frame = {MERGED_NATIVE, f};
		const char *function = text_of(log, stack, &frame).function;

		if (is_in_list(list, function))
			return true;
		count -= !is_syscall_wrapper(function);
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
	[XT_CPU_READY] = RULE_CPU_SHORTAGE,
};

enum rule cpu_cause(const struct run *run, const struct idle_path *path, enum idle_class class)
{
	const struct idle_path_part *last = path->has_other ? &path->other : &path->own;
	bool has_python = false, is_other_python = false;
	size_t row;

	/* These are the reason, whatever the thread wanted to do. */
	if (path->own.state == XT_CPU_GIL)
		return RULE_GIL;
	if (last->state == XT_CPU_READY)
		return RULE_CPU_SHORTAGE;
	row = match_part(run, &path->own, &has_python);
	if (path->has_other) {
		size_t other = match_part(run, &path->other, &is_other_python);

		row = other < row ? other : row;
	}
	if (row < PATTERNS)
		return patterns[row].rule;
	if (last->state == XT_CPU_PAGE_FAULT ||
	    is_innermost_in(run, last, &allocators, ALLOCATOR_FRAMES))
		return RULE_HOST_MEMORY;
	if (last->state == XT_CPU_IN_KERNEL && is_innermost_in(run, last, &file_io, 1))
		return RULE_BLOCKING_IO;
	if (path->own.state == XT_CPU_RUNNING && class == IDLE_LAUNCH_LATE && has_python)
		return RULE_PYTHON_OVERHEAD;
	return rule_of_state[path->own.state];
}
