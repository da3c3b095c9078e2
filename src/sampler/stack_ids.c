/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/stack_ids.h"

#include <string.h>

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

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), ending_length = strlen(ending);

	return length >= ending_length && !strcmp(text + length - ending_length, ending);
}

/* A qualified name begins with the class. */
static bool is_named(const char *qualified, const char *name)
{
	const char *dot = strrchr(qualified, '.');

	return !strcmp(dot ? dot + 1 : qualified, name);
}

enum loader_role stack_ids_role(const struct sampled_process *process,
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
	struct paired_stacks *paired = &sampling->paired;
	bool has_native = sampling->native.frame_count;

	*out = (struct stack_found){.python_read = python_read, .flags = XT_CPU_NO_NATIVE};
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
		    paired);
	out->flags = paired->flags;
	if (paired->has_python) {
		out->role = stack_ids_role(process, &sampling->python);
		out->python_ns = sampling->python.time_ns;
	}
	out->stack = cpu_log_stack(
		log,
		&(struct cpu_stack){.native = paired->has_native ? &sampling->native : NULL,
				    .modules = &process->modules,
				    .python = paired->has_python ? &sampling->python : NULL,
				    .python_process = process->python,
				    .python_changed = paired->python_changed,
				    .places = paired->places},
		sampling_now_ns());
}
