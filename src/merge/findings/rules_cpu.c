/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/rules_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
#include "merge/findings/headline.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/idle_paths.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"

#define PROCESSES_MAX 64 /* other processes that are counted */

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

/*
 * Names of the C library's functions, without the additions that c_name() removes. These allocate
 * or free memory.
 */
static const char *const allocators[] = {
	"malloc", "calloc",	 "realloc",   "mmap",	   "munmap", "madvise",
	"brk",	  "_int_malloc", "_int_free", "sysmalloc", "free",   "posix_memalign",
	"_Znwm",  "_Znam",	 NULL,
};
#define ALLOCATOR_FRAMES 3 /* from the innermost on */

/* These read, write or open files. */
static const char *const file_io[] = {
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
	NULL,
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

static bool is_in_list(const char *const *names, const char *function)
{
	size_t length;

	function = c_name(function, &length);
	for (; *names; names++)
		if (strlen(*names) == length && !strncmp(*names, function, length))
			return true;
	return false;
}

/* From glibc 2.41 on, system calls that are cancellation points have such frames inside. */
static bool is_syscall_wrapper(const char *function)
{
	return strstr(function, "syscall_cancel") != NULL;
}

/* Whether one of the first `count` innermost native frames has one of the names. */
static bool is_innermost_in(const struct run *run, const struct idle_path_part *part,
			    const char *const *names, uint32_t count)
{
	const struct cpu_log *log = &run->cpu->logs->list[part->log];
	const struct stack *stack = part->stack < log->model->stacks.count
					    ? &log->model->stacks.rows[part->stack]
					    : NULL;

	for (uint32_t f = 0; stack && f < stack->frame_count && count; f++) {
		const struct merged_frame frame = {MERGED_NATIVE, f};
		const char *function = text_of(log, stack, &frame).function;

		if (is_in_list(names, function))
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

/*
 * The rule that reports this path. Always one of the rules from RULE_CPU_FIRST on. docs/FINDINGS.md
 * lists the causes and how each can be wrong.
 */
static enum rule cpu_cause(const struct run *run, const struct idle_path *path,
			   enum idle_class class)
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
	    is_innermost_in(run, last, allocators, ALLOCATOR_FRAMES))
		return RULE_HOST_MEMORY;
	if (last->state == XT_CPU_IN_KERNEL && is_innermost_in(run, last, file_io, 1))
		return RULE_BLOCKING_IO;
	if (path->own.state == XT_CPU_RUNNING && class == IDLE_LAUNCH_LATE && has_python)
		return RULE_PYTHON_OVERHEAD;
	return rule_of_state[path->own.state];
}

static void add_part(struct run *run, const struct idle_path_part *part,
		     struct finding_place *place)
{
	const struct cpu_log *log = &run->cpu->logs->list[part->log];
	/* Resolving lines only reads a log. */
	struct reading reading = {
		.run = run,
		.model = log->model,
		.frames = log->frames,
		.process = {.log = log->input,
			    .model = log->model,
			    .frames = &log->frames,
			    .paths = &run->paths,
			    .names = (struct demangle_cache *)&log->names},
	};

	if (!part->stack || !frames_has_stack(&log->frames, part->stack))
		return;
	finding_add_stack(&reading, part->stack, place);
}

/*
 * Fills an empty place with the frames of the thread. If it waited for another thread, the frames
 * of that thread follow, and the line to look at is theirs.
 */
static void cpu_place(struct run *run, const struct idle_path *path, struct finding_place *place)
{
	struct finding_frame own;

	add_part(run, &path->own, place);
	if (!path->has_other)
		return;
	/* The line to look at is that of the other thread, if it has one. */
	own = place->at;
	place->at.line = 0;
	add_part(run, &path->other, place);
	if (!place->at.line)
		place->at = own;
}

/* Time of a rule at one line. */
struct cpu_group {
	enum rule rule;
	struct finding_place place;
	uint64_t ns;
	uint64_t most_ns; /* of its most expensive path */
	struct idle_path most;
	uint64_t path_count;
	uint32_t logs[PROCESSES_MAX]; /* other processes that the path continues in */
	size_t log_count;
};

struct cpu_groups {
	struct interner keys;	/* a rule and the line to look at */
	struct cpu_group *list; /* by id of the key - 1 */
	size_t capacity;
};

static struct cpu_group *group_of(struct cpu_groups *groups, enum rule rule,
				  const struct finding_frame *at)
{
	const uint32_t key[] = {(uint32_t)rule, at->name, at->file, at->line};
	bool is_new;
	uint32_t id = xt_intern(&groups->keys, key, sizeof(key), &is_new);

	xt_grow(groups->list, groups->capacity, id);
	groups->list[id - 1].rule = rule;
	return &groups->list[id - 1];
}

static void free_groups(struct cpu_groups *groups)
{
	for (size_t g = 0; g < groups->keys.count; g++)
		free(groups->list[g].place.frames);
	free(groups->list);
	interner_free(&groups->keys);
}

/* Adds time to the group of its line. The place is that of the first path there. */
static void add_span(struct run *run, struct cpu_groups *groups, const struct idle_path *path,
		     uint64_t ns)
{
	struct finding_place place = {0};
	struct cpu_group *group;

	cpu_place(run, path, &place);
	group = group_of(groups, RULE_HOST_CODE, &place.at);
	if (group->ns)
		free(place.frames);
	else
		group->place = place;
	saturating_add(&group->ns, ns);
}

static void add_samples(struct reading *reading, const struct cpu_log *log,
			const struct cpu_thread *thread, uint64_t from_ns, uint64_t until_ns,
			struct cpu_groups *groups)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;

	for (size_t r = cpu_samples_covering(samples, thread, from_ns);
	     r < thread->end && samples->list[r].cover.from_ns < until_ns; r++) {
		struct cpu_cover cover = samples->list[r].cover;
		uint64_t begin_ns = larger(cover.from_ns, from_ns);
		uint64_t end_ns = smaller(cover.until_ns, until_ns);
		struct idle_path path;

		if (begin_ns >= end_ns)
			continue;
		path = idle_paths_follow(reading->run->cpu->logs, log, &samples->list[r],
					 begin_ns + (end_ns - begin_ns) / 2);
		add_span(reading->run, groups, &path, end_ns - begin_ns);
	}
}

void cpu_place_of_span(struct reading *reading, uint32_t tid, uint64_t from_ns, uint64_t until_ns,
		       struct finding_place *place, uint64_t *share_ns_out)
{
	const struct cpu_logs *logs = reading->run->cpu->logs;
	struct cpu_groups groups = {0};
	struct cpu_group *most = NULL;

	*share_ns_out = 0;
	for (size_t l = 0; l < logs->count; l++) {
		const struct cpu_log *log = &logs->list[l];
		const struct cpu_thread *thread =
			log->input->first == reading->process.log->first
				? cpu_samples_of(&log->model->cpu_samples, tid)
				: NULL;

		if (thread)
			add_samples(reading, log, thread, from_ns, until_ns, &groups);
	}
	for (size_t g = 0; g < groups.keys.count; g++)
		if (groups.list[g].place.at.name != NAME_EMPTY &&
		    (!most || groups.list[g].ns > most->ns))
			most = &groups.list[g];
	if (most) {
		*share_ns_out = most->ns;
		*place = most->place;
		most->place.frames = NULL;
	}
	free_groups(&groups);
}

static bool is_explained(const struct reading *reading, const struct total *total)
{
	return total->owner.leaf == LEAF_IDLE && total->weights[WEIGHT_GPU_IDLE] &&
	       idle_paths_explain(&reading->gaps.idle_paths, IDLE_WHAT_PATH(total->owner.what));
}

bool cpu_findings_explain(const struct reading *reading)
{
	uint64_t known_ns = 0, unknown_ns = 0;

	for (uint32_t t = 0; t < reading->aggregate.count; t++) {
		const struct total *total = &reading->aggregate.entries[t];

		if (is_explained(reading, total))
			saturating_add(&known_ns, total->weights[WEIGHT_GPU_IDLE]);
		else if (total->owner.leaf == LEAF_IDLE &&
			 IDLE_WHAT_PATH(total->owner.what) != IDLE_PATH_NONE)
			saturating_add(&unknown_ns, total->weights[WEIGHT_GPU_IDLE]);
	}
	return known_ns > unknown_ns;
}

static void note_process(struct cpu_group *group, const struct idle_path *path)
{
	if (!path->has_other || path->other.log == path->own.log)
		return;
	for (size_t l = 0; l < group->log_count; l++)
		if (group->logs[l] == path->other.log)
			return;
	if (group->log_count < PROCESSES_MAX)
		group->logs[group->log_count++] = path->other.log;
}

/* Adds the idle time of one path. The place of a group is that of its most expensive path. */
static void add_path(struct detection *detection, struct cpu_groups *groups,
		     const struct total *total, uint64_t ns)
{
	struct reading *reading = detection->reading;
	struct run *run = reading->run;
	const struct idle_path *path =
		idle_paths_get(&reading->gaps.idle_paths, IDLE_WHAT_PATH(total->owner.what));
	enum rule rule = cpu_cause(run, path, IDLE_WHAT_CLASS(total->owner.what));
	struct finding_place place = {0};
	struct cpu_group *group;

	cpu_place(run, path, &place);
	group = group_of(groups, rule, &place.at);
	saturating_add(&group->ns, ns);
	group->path_count++;
	note_process(group, path);
	if (ns < group->most_ns) {
		free(place.frames);
		return;
	}
	group->most_ns = ns;
	group->most = *path;
	free(group->place.frames);
	group->place = place;
	group->place.node = build_tree_path(reading, &total->owner);
	group->place.api = run->paths.nodes[group->place.node].name;
}

COMPARE_BY(compare_groups, struct cpu_group, UP(rule) DOWN(ns) UP(place.node))

/* The line of a part of a path, with the state of its thread. */
static char *part_location(struct run *run, const struct idle_path_part *part)
{
	const char *label = cpu_sample_label((enum xt_cpu_state)part->state, part->stack);
	struct finding_place place = {0};
	char *where, *text = NULL;

	cpu_place(run, &(struct idle_path){.own = *part}, &place);
	where = finding_place_location(&run->paths, &place);
	free(place.frames);
	text = xt_asprintf("%s%s%s", where, label ? " " : "", label ? label : "");
	free(where);
	return text;
}

/* Where a thread waits, and what it waits for. */
static char *wait_location(struct run *run, const struct idle_path *path)
{
	char *own = part_location(run, &path->own), *other, *text;

	if (!path->has_other)
		return own;
	other = part_location(run, &path->other);
	text = xt_asprintf("%s, which waits for %s", own, other);
	free_all(own, other);
	return text;
}

static void describe(struct run *run, const struct cpu_group *groups, size_t count,
		     struct finding *finding)
{
	char processes[64] = "";
	char *where = finding->rule == RULE_HOST_WAIT ? wait_location(run, &groups->most)
						      : finding_location(&run->paths, finding);

	if (groups->log_count)
		snprintf(processes, sizeof(processes), ", in %zu other process%s",
			 groups->log_count, groups->log_count == 1 ? "" : "es");
	finding->what = xt_asprintf(
		"The GPU is idle for %s%s, %s of the %s, because %s%s %s%s.", finding_cost(finding),
		finding->is_outside ? " outside the steps" : "", finding_share(finding),
		finding->step_count ? finding_whole_text(finding)
				    : "time from its first to its last work",
		rule_specs[finding->rule].why, count > 1 ? ", most in" : " in", where ? where : "?",
		processes);
	free(where);
	finding_add_evidence(finding, "gpu_idle_ns", finding->cost_ns);
	finding_add_evidence(finding, "place_count", count);
	finding_add_evidence(finding, "other_process_count", groups->log_count);
}

/* Reports the groups of one rule. Takes over the frames of the places. */
static void add_finding(struct detection *detection, struct cpu_group *groups, size_t count)
{
	const struct reading *reading = detection->reading;
	struct finding *finding;
	uint64_t cost_ns = 0;

	for (size_t g = 0; g < count; g++)
		saturating_add(&cost_ns, groups[g].ns);
	finding = finding_add(reading->run, groups->rule, reading->process.index, cost_ns,
			      detection->step_count
				      ? detection->whole_ns
				      : larger(devices_span_ns(&reading->sums.callsites), 1u));
	if (!finding)
		return;
	finding->step_count = detection->step_count;
	finding->is_outside = detection->is_outside;
	finding->place_all_count = count;
	for (size_t g = 0; g < count && g < FINDING_PLACES_MAX; g++) {
		struct finding_place *place = &finding->places[finding->place_count++];

		*place = groups[g].place;
		place->cost_ns = groups[g].ns;
		place->path_cost_ns = groups[g].most_ns;
		place->count = groups[g].path_count;
		groups[g].place.frames = NULL;
	}
	describe(reading->run, groups, count, finding);
}

/* Idle time of a total in the part of the run that is judged. */
static uint64_t idle_ns_of(const struct detection *detection, uint32_t index)
{
	uint64_t ns = detection->reading->aggregate.entries[index].weights[WEIGHT_GPU_IDLE];

	if (detection->is_outside)
		return ns - smaller(detection->step_idle_ns[index], ns);
	return detection->step_count ? detection->step_idle_ns[index] : ns;
}

void cpu_findings_detect(struct detection *detection)
{
	const struct aggregate *aggregate = &detection->reading->aggregate;
	struct cpu_groups groups = {0};
	size_t count;

	for (uint32_t t = 0; t < aggregate->count; t++) {
		const struct total *total = &aggregate->entries[t];
		uint64_t ns = idle_ns_of(detection, t) / detection->device_count;

		if (ns && is_explained(detection->reading, total))
			add_path(detection, &groups, total, ns);
	}
	count = groups.keys.count;
	SORT(groups.list, count, compare_groups);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1;
		     end < count && groups.list[end].rule == groups.list[first].rule;)
			end++;
		add_finding(detection, &groups.list[first], end - first);
	}
	free_groups(&groups);
}
