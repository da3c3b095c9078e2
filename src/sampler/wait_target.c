/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/wait_target.h"

#include <poll.h>
#include <string.h>
#include <sys/select.h>

#include "sampler/process_read.h"
#include "sampler/wait_class.h"

/* The descriptors that a thread waits for. */
struct waited_for {
	uint32_t count; /* of those looked at */
	enum descriptor_kind kinds[WAIT_DESCRIPTORS_MAX];
	struct descriptor pipe; /* the first pipe; inode 0: none */
};

static void look_at(struct waited_for *waited, pid_t pid, int fd)
{
	struct descriptor descriptor = descriptor_of(pid, fd);

	if (waited->count == WAIT_DESCRIPTORS_MAX)
		return;
	waited->kinds[waited->count++] = descriptor.kind;
	if (descriptor.kind == DESCRIPTOR_PIPE && !waited->pipe.inode)
		waited->pipe = descriptor;
}

static bool look_at_poll(struct waited_for *waited, pid_t pid, uint64_t address, uint64_t count)
{
	struct pollfd polled[WAIT_DESCRIPTORS_MAX];

	if (count > WAIT_DESCRIPTORS_MAX)
		count = WAIT_DESCRIPTORS_MAX;
	if (count && !process_memory_read(pid, polled, address, count * sizeof(*polled)))
		return false;
	for (uint64_t i = 0; i < count; i++)
		if (polled[i].fd >= 0)
			look_at(waited, pid, polled[i].fd);
	return true;
}

static bool look_at_sets(struct waited_for *waited, pid_t pid, const uint64_t *arguments)
{
	int count = arguments[0] < FD_SETSIZE ? (int)arguments[0] : FD_SETSIZE;

	for (int set = 1; set <= 3; set++) {
		fd_set bits;

		/* The kernel reads only as many bytes as the descriptors need. */
		FD_ZERO(&bits);
		if (!arguments[set] || !count)
			continue;
		if (!process_memory_read(pid, &bits, arguments[set], (size_t)(count + 63) / 64 * 8))
			return false;
		for (int fd = 0; fd < count; fd++)
			if (FD_ISSET(fd, &bits))
				look_at(waited, pid, fd);
	}
	return true;
}

static bool look_at_epoll(struct waited_for *waited, pid_t pid, int fd)
{
	int members[WAIT_DESCRIPTORS_MAX];
	uint32_t count = descriptors_of_epoll(pid, fd, members, WAIT_DESCRIPTORS_MAX);

	for (uint32_t i = 0; i < count; i++)
		look_at(waited, pid, members[i]);
	return true;
}

/* False if the descriptors cannot be read. */
static bool find_descriptors(struct waited_for *waited, pid_t pid, const struct wait_rule *rule,
			     const struct thread_syscall *call)
{
	const uint64_t *arguments = call->arguments;
	uint64_t first = arguments[rule->argument];

	switch (rule->subject) {
	case WAIT_DESCRIPTOR:
		look_at(waited, pid, (int)first);
		return waited->kinds[0] != DESCRIPTOR_UNKNOWN;
	case WAIT_DESCRIPTORS:
		return look_at_poll(waited, pid, first, arguments[rule->argument + 1]);
	case WAIT_SETS:
		return look_at_sets(waited, pid, arguments);
	case WAIT_EPOLL:
		return look_at_epoll(waited, pid, (int)first);
	default:
		return false;
	}
}

static bool is_busy(const struct sampled_process *process)
{
	const struct sampled_thread *main = sampled_process_main(process);

	return main && main->is_known && !main->is_blocked && !main->has_ended;
}

/*
 * Whom a thread waits for if there are several: one at random, so that over many observations each
 * gets its share. Those that work precede those that wait themselves.
 */
struct choice {
	struct sampled_process *chosen;
	bool is_busy;
	uint32_t count; /* of equally good ones so far */
};

static void consider(struct sampling *sampling, struct choice *choice,
		     struct sampled_process *process)
{
	bool busy = is_busy(process);

	if (busy < choice->is_busy)
		return;
	if (busy > choice->is_busy)
		choice->count = 0;
	choice->is_busy = busy;
	if (!sampling_random(sampling, ++choice->count))
		choice->chosen = process;
}

static void set_target(struct wait *out, const struct sampled_process *process)
{
	if (!process)
		return;
	out->state = XT_CPU_PROCESS;
	out->pid = out->tid = (uint32_t)process->log_pid;
}

/* Processes with the opposite end of a pipe. */
static void find_pipe_partner(struct sampling *sampling, const struct sampled_process *waiter,
			      const struct descriptor *pipe, struct wait *out)
{
	uint64_t now_ns = sampling_now_ns();
	struct choice choice = {0};

	for (size_t i = 0; i < sampling->processes.count; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		if (process == waiter || process->has_ended)
			continue;
		pipe_table_refresh(&process->pipes, process->pid, now_ns);
		if (pipe_table_has(&process->pipes, pipe->inode, pipe->can_read))
			consider(sampling, &choice, process);
	}
	set_target(out, choice.chosen);
}

/* pid: the child's, or none if the thread waits for any of them. */
static void find_child(struct sampling *sampling, const struct sampled_process *waiter, pid_t pid,
		       struct wait *out)
{
	struct choice choice = {0}, any = {0};

	for (size_t i = 0; i < sampling->processes.count; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		if (process->parent != waiter->pid || process->has_ended)
			continue;
		consider(sampling, &any, process);
		if (process->log_pid == pid)
			consider(sampling, &choice, process);
	}
	set_target(out, choice.chosen ? choice.chosen : any.chosen);
}

static void find_loader_worker(struct sampling *sampling, const struct sampled_process *waiter,
			       struct wait *out)
{
	struct choice choice = {0};

	for (size_t i = 0; i < sampling->processes.count; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		if (process->parent == waiter->pid && process->is_loader_worker &&
		    !process->has_ended)
			consider(sampling, &choice, process);
	}
	set_target(out, choice.chosen);
}

static void find_gil_holder(const struct sampled_process *process, struct wait *out)
{
	pid_t holder = python_process_gil_holder(process->python);
	const struct sampled_thread *thread =
		holder ? sampled_thread_find_logged(process, holder) : NULL;

	out->state = XT_CPU_GIL;
	if (!thread)
		return;
	out->pid = (uint32_t)process->log_pid;
	out->tid = (uint32_t)thread->log_tid;
}

/*
 * The start of glibc's struct __pthread_mutex_s (sysdeps/nptl/bits/struct_mutex.h). A thread that
 * waits for a mutex waits on its first word.
 */
struct mutex_start {
	int32_t lock; /* 2: held, and others wait */
	uint32_t count;
	int32_t owner; /* thread id; 0 for kinds that keep none */
	uint32_t user_count;
};

/* Other futexes, such as those of condition variables, do not have the id of a thread there. */
static void find_mutex_owner(const struct sampled_process *process, uint64_t futex,
			     struct wait *out)
{
	struct mutex_start mutex;
	const struct sampled_thread *thread;

	if (!process_memory_read(process->pid, &mutex, futex, sizeof(mutex)) || mutex.lock != 2 ||
	    mutex.owner <= 0 || !mutex.user_count)
		return;
	thread = sampled_thread_find_logged(process, mutex.owner);
	if (!thread)
		return;
	out->pid = (uint32_t)process->log_pid;
	out->tid = (uint32_t)thread->log_tid;
}

static void apply_rule(struct sampling *sampling, struct sampled_process *process,
		       const struct wait_rule *rule, const struct thread_syscall *call,
		       struct wait *out)
{
	struct waited_for waited = {0};

	out->state = rule->state;
	if (rule->subject == WAIT_FUTEX) {
		if (process->python && python_process_is_gil(process->python, call->arguments[0]))
			find_gil_holder(process, out);
		else
			find_mutex_owner(process, call->arguments[0], out);
	} else if (rule->subject == WAIT_CHILD) {
		find_child(sampling, process, (pid_t)call->arguments[rule->argument], out);
	} else if (find_descriptors(&waited, process->pid, rule, call)) {
		out->state = wait_state_of_descriptors(waited.kinds, waited.count);
		if (out->state == XT_CPU_PROCESS && waited.pipe.inode)
			find_pipe_partner(sampling, process, &waited.pipe, out);
	}
}

void wait_target_find(struct sampling *sampling, struct sampled_process *process, char proc_state,
		      const struct thread_syscall *call, enum loader_role role, struct wait *out)
{
	const struct wait_rule *rule = NULL;

	*out = (struct wait){.state = XT_CPU_BLOCKED};
	if (call->kind == SYSCALL_NONE)
		out->state = wait_state_outside_calls(proc_state);
	else if (call->kind == SYSCALL_BLOCKED)
		rule = wait_rule_find(call->number);
	if (rule)
		apply_rule(sampling, process, rule, call, out);
	if (proc_state == 'D')
		out->state = wait_state_uninterruptible(out->state);
	if (role == LOADER_WAITS && out->state != XT_CPU_GIL)
		find_loader_worker(sampling, process, out);
}
