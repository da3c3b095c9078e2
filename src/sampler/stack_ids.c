/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/stack_ids.h"

#include <string.h>

#include "log/base/compare.h"
#include "log/base/monotonic.h"

/* A return address may be the first of the next function. */
static bool is_loop_frame(const struct pair_input *in, uint32_t index)
{
	uint64_t frame = in->native->frames[index];
	uint64_t address = frame & XT_FRAME_VALUE_MASK;

	return in->is_loop(in->context,
			   frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN ? address - 1 : address);
}

static uint32_t count_loop_frames(const struct pair_input *in, uint32_t *innermost)
{
	uint32_t count = 0;

	*innermost = in->native->frame_count;
	for (uint32_t i = in->native->frame_count; i-- > 0;)
		if (is_loop_frame(in, i)) {
			count++;
			*innermost = i;
		}
	return count;
}

/*
 * The native frame that contains an address of the stack. The frame count if it is behind the
 * walked frames; -1 if it is below them, where no live frame is.
 */
static int64_t frame_of(const struct native_stack *native, uint64_t address)
{
	if (!native->frame_count || address < native->stack_pointers[0])
		return -1;
	for (uint32_t i = 1; i < native->frame_count; i++)
		if (address < native->stack_pointers[i])
			return i - 1;
	return native->frame_count;
}

/* Sets the places. False if a Python frame is in a native frame that cannot run it. */
static bool place(const struct pair_input *in, struct paired_stacks *out, uint32_t *anchor_count)
{
	const struct native_stack *native = in->native;
	uint64_t last_anchor = 0;
	uint32_t last = 0;

	*anchor_count = 0;
	for (uint32_t i = 0; i < in->python->frame_count; i++) {
		uint64_t anchor = in->python->frames[i].anchor;
		int64_t at = anchor ? frame_of(native, anchor) : native->frame_count;

		if (anchor && anchor != last_anchor)
			++*anchor_count;
		last_anchor = anchor;
		if (at < (int64_t)last)
			return false;
		if (at < native->frame_count && !is_loop_frame(in, (uint32_t)at))
			return false;
		out->places[i] = last = (uint32_t)at;
	}
	return true;
}

/*
 * While the loop runs a frame, or calls from it, a register or the stack from the loop's frame
 * inwards has the frame's address. If none has it, the Python frames are of another moment.
 */
static bool mentions_innermost(const struct pair_input *in, uint32_t innermost_loop)
{
	const struct native_stack *native = in->native;
	uint64_t address = in->python->innermost, end;
	const struct stack_copy *copy = in->copy;
	uint64_t word;

	for (int i = 0; i < THREAD_REGISTERS; i++)
		if (in->registers->known & 1u << i && in->registers->value[i] == address)
			return true;
	end = innermost_loop + 1 < native->frame_count ? native->stack_pointers[innermost_loop + 1]
						       : UINT64_MAX;
	for (size_t at = 0; at + sizeof(word) <= copy->byte_count; at += sizeof(word)) {
		if (copy->address + at >= end)
			return false;
		memcpy(&word, copy->bytes + at, sizeof(word));
		if (word == address)
			return true;
	}
	return false;
}

static bool fits(const struct pair_input *in, struct paired_stacks *out)
{
	uint32_t innermost_loop, anchor_count, loop_count;
	bool is_complete = !(in->native->flags & XT_STACK_TRUNCATED);

	loop_count = count_loop_frames(in, &innermost_loop);
	if (!place(in, out, &anchor_count))
		return false;
	if (is_complete && !in->python->is_truncated && anchor_count != loop_count)
		return false;
	/* Without a loop frame the walk ended before it, which must not hide what ran since. */
	return in->is_still || (loop_count && mentions_innermost(in, innermost_loop));
}

void pair_stacks(const struct pair_input *in, struct paired_stacks *out)
{
	uint32_t innermost_loop;

	out->flags = in->native ? 0 : XT_CPU_NO_NATIVE;
	out->has_native = in->native;
	out->has_python = (in->read == PYTHON_READ_OK || in->read == PYTHON_READ_CHANGED) &&
			  in->python->frame_count;
	out->python_changed = out->has_python && in->read == PYTHON_READ_CHANGED;
	if (out->python_changed) {
		/* Which native frames are inside of the known Python frames is unknown. */
		out->has_native = false;
		out->flags |= XT_CPU_NO_PYTHON | XT_CPU_NATIVE_DROPPED;
		memset(out->places, 0, in->python->frame_count * sizeof(out->places[0]));
		return;
	}
	if (!out->has_python) {
		bool is_missing = in->read == PYTHON_READ_CHANGED || in->read == PYTHON_READ_FAILED;

		if (is_missing && (!in->native || count_loop_frames(in, &innermost_loop)))
			out->flags |= XT_CPU_NO_PYTHON;
		return;
	}
	if (in->native && !fits(in, out)) {
		out->has_native = false;
		out->flags |= XT_CPU_NATIVE_DROPPED;
	}
	if (!out->has_native)
		memset(out->places, 0, in->python->frame_count * sizeof(out->places[0]));
}

/* Functions of PyTorch, by name and end of the file's path. */
static const struct {
	const char *name, *file;
	enum loader_role role;
} loader_functions[] = {
	{"_try_get_data", "torch/utils/data/dataloader.py", LOADER_WAITS},
	{"_get_data", "torch/utils/data/dataloader.py", LOADER_WAITS},
	{"_worker_loop", "torch/utils/data/_utils/worker.py", LOADER_WORKER},
};

/* Python knows the id of a thread in the process's own PID namespace. */
static pid_t own_tid(const struct sampled_process *process, pid_t tid)
{
	const struct sampled_thread *thread =
		process->is_in_other_namespace ? sampled_thread_find(process, tid) : NULL;

	return thread ? thread->log_tid : tid;
}

enum python_read stack_ids_read_python(struct sampling *sampling, struct sampled_process *process,
				       const struct stack_request *request)
{
	enum python_read read;

	if (!process->python)
		return PYTHON_READ_NONE;
	if (!process->is_python_fresh)
		python_process_refresh(process->python);
	process->is_python_fresh = true;
	read = python_process_read(process->python, own_tid(process, request->tid),
				   request->is_running, &sampling->python);
	if (request->is_running && read != PYTHON_READ_NONE) {
		process->counts.python_reads++;
		process->counts.python_changed += read != PYTHON_READ_OK;
	}
	return read;
}

/* A qualified name begins with the class. */
static bool is_named(const char *qualified, const char *name)
{
	const char *dot = strrchr(qualified, '.');

	return !strcmp(dot ? dot + 1 : qualified, name);
}

/* The role that the frames in sampling->python show. */
static enum loader_role stack_ids_role(const struct sampled_process *process,
				       const struct python_stack *python)
{
	const size_t count = sizeof(loader_functions) / sizeof(loader_functions[0]);

	for (uint32_t i = 0; i < python->frame_count; i++) {
		const struct python_function *function =
			python_process_function(process->python, python->frames[i].function);

		for (size_t j = 0; function && function->name && j < count; j++)
			if (is_named(function->name, loader_functions[j].name) &&
			    ends_with(function->file, loader_functions[j].file))
				return loader_functions[j].role;
	}
	return LOADER_NONE;
}

static bool is_loop(const void *context, uint64_t address)
{
	const struct sampled_process *process = context;

	return process->python && python_process_is_loop(process->python, address);
}

void stack_ids_walk(struct sampling *sampling, struct sampled_process *process,
		    const struct stack_request *request)
{
	sampling->native.frame_count = 0;
	if (request->registers)
		remote_unwind(&sampling->native, &process->modules, process->pid,
			      request->registers, request->copy);
}

void stack_ids_make(struct sampling *sampling, struct sampled_process *process,
		    const struct stack_request *request, enum python_read python_read,
		    struct stack_found *out)
{
	struct cpu_log *log = sampling_log(sampling, process);
	static struct paired_stacks paired; /* too large for the stack */
	bool has_native = sampling->native.frame_count;

	*out = (struct stack_found){.flags = XT_CPU_NO_NATIVE};
	if (!log)
		return;
	pair_stacks(&(struct pair_input){.native = has_native ? &sampling->native : NULL,
					 .python = &sampling->python,
					 .read = python_read,
					 .is_still = !request->is_running,
					 .registers = request->registers,
					 .copy = request->copy,
					 .is_loop = is_loop,
					 .context = process},
		    &paired);
	out->flags = paired.flags;
	if (paired.has_python) {
		out->role = stack_ids_role(process, &sampling->python);
		process->is_loader_worker |= out->role == LOADER_WORKER;
		out->python_ns = sampling->python.time_ns;
	}
	out->stack = cpu_log_stack(
		log,
		&(struct cpu_stack){.native = paired.has_native ? &sampling->native : NULL,
				    .modules = &process->modules,
				    .python = paired.has_python ? &sampling->python : NULL,
				    .python_process = process->python,
				    .python_changed = paired.python_changed,
				    .places = paired.places},
		monotonic_ns());
}
