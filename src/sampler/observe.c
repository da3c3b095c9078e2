/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/observe.h"

#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "log/base/monotonic.h"
#include "sampler/process_read.h"
#include "sampler/stack_ids.h"
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
	const struct sampled_thread *main = sampled_thread_find(process, process->pid);

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
	uint64_t now_ns = monotonic_ns();
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

/* pid: the child's, or none if the thread waits for any of them, or of the workers of a loader. */
static void find_child(struct sampling *sampling, const struct sampled_process *waiter, pid_t pid,
		       bool is_loader, struct wait *out)
{
	struct choice choice = {0}, any = {0};

	for (size_t i = 0; i < sampling->processes.count; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		if (process->parent != waiter->pid || process->has_ended ||
		    (is_loader && !process->is_loader_worker))
			continue;
		consider(sampling, &any, process);
		if (process->log_pid == pid)
			consider(sampling, &choice, process);
	}
	set_target(out, choice.chosen ? choice.chosen : any.chosen);
}

static void set_holder(struct wait *out, const struct sampled_process *process, pid_t tid)
{
	const struct sampled_thread *thread = tid ? sampled_thread_find_logged(process, tid) : NULL;

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

	if (process_memory_read(process->pid, &mutex, futex, sizeof(mutex)) && mutex.lock == 2 &&
	    mutex.owner > 0 && mutex.user_count)
		set_holder(out, process, mutex.owner);
}

static void apply_rule(struct sampling *sampling, struct sampled_process *process,
		       const struct wait_rule *rule, const struct thread_syscall *call,
		       struct wait *out)
{
	struct waited_for waited = {0};

	out->state = rule->state;
	if (rule->subject == WAIT_FUTEX) {
		if (process->python && python_process_is_gil(process->python, call->arguments[0])) {
			out->state = XT_CPU_GIL;
			set_holder(out, process, python_process_gil_holder(process->python));
		} else {
			find_mutex_owner(process, call->arguments[0], out);
		}
	} else if (rule->subject == WAIT_CHILD) {
		find_child(sampling, process, (pid_t)call->arguments[rule->argument], false, out);
	} else if (find_descriptors(&waited, process->pid, rule, call)) {
		out->state = wait_state_of_descriptors(waited.kinds, waited.count);
		if (out->state == XT_CPU_PROCESS && waited.pipe.inode)
			find_pipe_partner(sampling, process, &waited.pipe, out);
	}
}

/*
 * proc_state is that of stat. role is that of the thread's Python frames. Reads the memory and the
 * descriptors of the process.
 */
static void wait_target_find(struct sampling *sampling, struct sampled_process *process,
			     char proc_state, const struct thread_syscall *call,
			     enum loader_role role, struct wait *out)
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
		find_child(sampling, process, -1, true, out);
}

/*
 * The kernel drops samples inside the kernel. A thread that ran longer than this many percent of a
 * period without one may have been there; periods vary by 20 %. Each CPU counts its own period, so
 * a thread that moves can also run long without a sample. So the kernel must have counted at least
 * half of the time as its own.
 */
#define KERNEL_PERCENT 125

/* After so many percent of a period, a row without native frames is better than a late one. */
#define UNSAMPLED_PERCENT 800

/*
 * A page fault takes about 1 us, so 100 in 1 ms are at least a tenth of the time. A thread that was
 * found in the kernel then most likely handled one. Calls that read into new memory count as well.
 */
#define FAULTS_PER_MS 100

/* After so many rounds, another process is chosen that a thread waits for. */
#define CHOICE_ROUNDS 4

/* Up to this age, a sample's period has hardly begun. */
#define NEW_SAMPLE_NS 500000

/* One observation in progress. */
struct observation {
	struct sampling *sampling;
	struct sampled_process *process;
	struct sampled_thread *thread;
	uint64_t now_ns;
	struct thread_stat stat;
	/* Since the last observation: */
	uint64_t run_ns, fault_count, switch_count;
	bool has_run;
};

static struct cpu_row_list *rows_of(const struct observation *o)
{
	return cpu_log_rows(o->process->log);
}

static void add_running(struct observation *o, const struct xt_row_cpu_sample *row,
			uint64_t share_ns)
{
	thread_rows_add_running(&o->thread->rows, row, share_ns, rows_of(o));
	o->process->counts.observations++;
}

static void restart_unsampled(struct observation *o)
{
	o->thread->unsampled_ns = 0;
	o->thread->sampled_kernel_ticks = o->stat.kernel_ticks;
}

/* Rows for the samples since the last observation. They share the CPU time equally. */
static bool add_held_samples(struct observation *o)
{
	struct sampled_thread *thread = o->thread;
	uint64_t last_ns = thread->rows.last.time_ns;
	uint32_t left = thread->held_count;

	/* The kernel updates the CPU time of a running thread a few times per second only. */
	if (!left || !thread->rows.run_ns)
		return false;
	for (uint32_t i = 0; i < thread->held_count; i++, left--) {
		const struct held_sample *held = &thread->held[i];
		const struct xt_row_cpu_sample row = {
			.time_ns = held->time_ns > last_ns ? held->time_ns : last_ns,
			.state = held->state,
			.stack = held->stack,
			.flags = held->flags};

		add_running(o, &row, thread->rows.run_ns / left);
	}
	thread->held_count = thread->held_seen = 0;
	restart_unsampled(o);
	return true;
}

/* If samples come from inside the kernel, nothing has to be concluded. */
static bool is_in_kernel(const struct observation *o)
{
	const struct sampled_thread *thread = o->thread;
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t ticks = o->stat.kernel_ticks - thread->sampled_kernel_ticks;

	return !o->sampling->facts.sees_kernel &&
	       thread->unsampled_ns * 100 > o->sampling->period_ns * KERNEL_PERCENT &&
	       ticks * tick_ns * 2 >= thread->unsampled_ns;
}

/* The state of a thread on a CPU that the kernel took no sample of. */
static enum xt_cpu_state unsampled_state(const struct observation *o)
{
	if (o->sampling->facts.why_no_perf || !is_in_kernel(o))
		return XT_CPU_RUNNING;
	if (o->fault_count * 1000000 >= o->run_ns * FAULTS_PER_MS && o->run_ns)
		return XT_CPU_PAGE_FAULT;
	return XT_CPU_IN_KERNEL;
}

/* With the kernel's events, a sample that represents the time up to now most likely comes soon. */
static bool awaits_sample(const struct observation *o)
{
	return !o->sampling->facts.why_no_perf && !is_in_kernel(o) &&
	       o->thread->unsampled_ns * 100 < o->sampling->period_ns * UNSAMPLED_PERCENT;
}

/*
 * The time of a row with this stack. The Python frames of a thread that runs are those of the
 * moment when they were read, whatever caused the read.
 */
static uint64_t time_of(const struct stack_found *found, uint64_t time_ns)
{
	return found->python_ns > time_ns ? found->python_ns : time_ns;
}

/* A running thread without a sample has no native frames. */
static void observe_running(struct observation *o)
{
	const struct stack_request request = {.tid = o->thread->tid, .is_running = true};
	struct held_sample *fault = &o->thread->fault;
	enum python_read python_read;
	struct stack_found found;
	struct xt_row_cpu_sample row;

	if (o->thread->is_blocked && o->switch_count == 1)
		thread_rows_end_wait(&o->thread->rows);
	o->thread->is_blocked = false;
	o->thread->state = XT_CPU_RUNNING;
	if (add_held_samples(o) || awaits_sample(o))
		return;
	python_read = stack_ids_read_python(o->sampling, o->process, &request);
	stack_ids_walk(o->sampling, o->process, &request);
	stack_ids_make(o->sampling, o->process, &request, python_read, &found);
	row = (struct xt_row_cpu_sample){.time_ns = time_of(&found, o->now_ns),
					 .state = unsampled_state(o),
					 .stack = found.stack,
					 .flags = found.flags};
	if (row.state == XT_CPU_PAGE_FAULT && fault->time_ns && fault->stack) {
		row.stack = fault->stack;
		row.flags = fault->flags;
	}
	fault->time_ns = 0;
	add_running(o, &row, o->thread->rows.run_ns);
	o->thread->state = row.state;
	restart_unsampled(o);
}

static void add_blocked(struct observation *o, const struct xt_row_cpu_sample *row)
{
	thread_rows_add_blocked(&o->thread->rows, row, o->has_run, rows_of(o));
	o->process->counts.observations++;
	o->thread->state = row->state;
}

/* Adds an observation of a blocked thread, after it found out what the thread waits for. */
static void add_wait(struct observation *o, uint64_t time_ns, uint32_t stack, uint8_t flags)
{
	const struct sampled_thread *thread = o->thread;
	struct wait wait;

	wait_target_find(o->sampling, o->process, thread->proc_state, &thread->call,
			 (enum loader_role)thread->role, &wait);
	/* It has got meanwhile what it waited for. */
	if (wait.tid == (uint32_t)thread->log_tid && wait.pid == (uint32_t)o->process->log_pid)
		wait.pid = wait.tid = 0;
	add_blocked(o, &(struct xt_row_cpu_sample){.time_ns = time_ns,
						   .state = (uint8_t)wait.state,
						   .stack = stack,
						   .wait_pid = wait.pid,
						   .wait_tid = wait.tid,
						   .flags = flags});
}

/* Whether the thread ran since the observation began. */
static bool has_switched(const struct observation *o)
{
	struct thread_counts counts;

	return thread_files_counts(&o->thread->files, &counts) ||
	       counts.run_ns != o->thread->counts.run_ns ||
	       counts.switch_count != o->thread->counts.switch_count;
}

static void copy_stack(struct observation *o, const struct thread_syscall *call,
		       struct stack_copy *out)
{
	struct sampling *sampling = o->sampling;

	out->address = call->stack_pointer;
	out->bytes = sampling->stack_copy;
	out->is_live = true; /* has_switched() checks that */
	out->byte_count = process_memory_read_some(o->process->pid, sampling->stack_copy,
						   call->stack_pointer, STACK_COPY_BYTES);
}

/* Whether the thread is in the same system call as before, which may be the next of its kind. */
static bool is_in_same_call(const struct observation *o)
{
	const struct thread_syscall *call = &o->thread->call;
	struct thread_syscall now;

	thread_files_syscall(&o->thread->files, &now);
	return now.kind == SYSCALL_BLOCKED && call->kind == SYSCALL_BLOCKED &&
	       now.number == call->number && now.instruction == call->instruction &&
	       now.stack_pointer == call->stack_pointer;
}

/*
 * The thread ran while it was read: it may wait for a disk again and again. Its system call is
 * known before and after the read, and its Python frames were read twice in between.
 */
static void observe_switched(struct observation *o, enum python_read python_read)
{
	const struct stack_request request = {.tid = o->thread->tid, .is_running = true};
	bool is_waiting = is_in_same_call(o);
	struct stack_found found;

	stack_ids_walk(o->sampling, o->process, &request);
	stack_ids_make(o->sampling, o->process, &request, python_read, &found);
	o->process->counts.switched++;
	o->thread->role = found.role;
	o->thread->proc_state = o->stat.state;
	if (is_waiting)
		add_wait(o, time_of(&found, o->now_ns), found.stack, found.flags);
	else
		add_blocked(o, &(struct xt_row_cpu_sample){.time_ns = time_of(&found, o->now_ns),
							   .stack = found.stack,
							   .flags = found.flags});
	o->thread->is_blocked = false; /* so that the next round looks again */
}

/* Reads everything first, and uses it only if the thread did not run meanwhile. */
static void observe_blocked(struct observation *o)
{
	struct sampled_thread *thread = o->thread;
	struct stack_request request = {.tid = thread->tid};
	struct thread_registers registers = {0};
	struct stack_copy copy = {0};
	const struct thread_syscall *call = &thread->call;
	struct stack_found found;
	enum python_read python_read;

	thread_files_syscall(&thread->files, &thread->call);
	if (call->kind == SYSCALL_RUNNING) {
		observe_running(o);
		return;
	}
	add_held_samples(o);
	thread->is_blocked = true;
	python_read = stack_ids_read_python(o->sampling, o->process, &request);
	if (call->kind != SYSCALL_UNKNOWN) {
		copy_stack(o, call, &copy);
		registers.value[THREAD_RIP] = call->instruction;
		registers.value[THREAD_RSP] = call->stack_pointer;
		registers.known = 1u << THREAD_RIP | 1u << THREAD_RSP;
		request.registers = &registers;
		request.copy = &copy;
	}
	stack_ids_walk(o->sampling, o->process, &request);
	if (has_switched(o)) {
		observe_switched(o, python_read);
		return;
	}
	stack_ids_make(o->sampling, o->process, &request, python_read, &found);
	thread->role = found.role;
	thread->proc_state = o->stat.state;
	add_wait(o, o->now_ns, found.stack, found.flags);
}

/*
 * A wait for one of several processes is charged to each of them in turn. Processes that are found
 * during the wait count, too.
 */
static void observe_wait_again(struct observation *o)
{
	struct sampled_thread *thread = o->thread;
	const struct xt_row_cpu_sample *last = &thread->rows.last;

	if (thread->state == XT_CPU_PROCESS && last->thread &&
	    (!last->wait_pid || thread->quiet_rounds % CHOICE_ROUNDS == 0)) {
		add_wait(o, o->now_ns, last->stack, last->flags);
		return;
	}
	thread_rows_extend(&thread->rows, o->now_ns);
	o->process->counts.observations++;
}

/* Starts counting at this moment: the time before is not part of this log. */
static void skip_past(struct observation *o, const struct thread_counts *counts)
{
	struct sampled_thread *thread = o->thread;

	thread->counts = *counts;
	thread->fault_count = o->stat.fault_count;
	restart_unsampled(o);
}

static bool begin_thread(struct observation *o, const struct thread_counts *counts)
{
	struct sampling *sampling = o->sampling;
	struct sampled_thread *thread = o->thread;
	uint64_t start_ns = process_facts_start_ns(o->stat.start_ticks);
	uint64_t used_ns = counts->run_ns + counts->ready_ns;
	struct cpu_log *log = sampling_log(sampling, o->process);
	bool has_past = false;

	if (!log)
		return false;
	/* The kernel's clock ticks are coarse: the thread is at least as old as its CPU time. */
	if (start_ns + used_ns > o->now_ns)
		start_ns = o->now_ns - used_ns;
	if (start_ns < o->process->start_ns) {
		has_past = o->process->has_past;
		start_ns = o->process->start_ns;
	}
	thread->start_ticks = o->stat.start_ticks;
	thread->start_ns = start_ns;
	thread->id = cpu_log_thread(log, thread->log_tid, o->stat.name, start_ns);
	strcpy(thread->name, o->stat.name);
	thread_rows_start(&thread->rows, thread->id, start_ns);
	thread->is_known = true;
	if (has_past)
		skip_past(o, counts);
	sampling->total_threads++;
	o->process->counts.threads++;
	return true;
}

static void note_name(struct observation *o)
{
	struct sampled_thread *thread = o->thread;

	if (!strcmp(thread->name, o->stat.name))
		return;
	strcpy(thread->name, o->stat.name);
	cpu_log_rename_thread(o->process->log, thread->id, thread->log_tid, thread->name,
			      thread->start_ns);
}

/*
 * The tracer's own threads are no work of the program. The main thread has the name of the program,
 * which may be one of these, too.
 */
static bool is_of_tracer(const struct observation *o)
{
	static const char *const names[] = {"xtrace-writer", "xtrace-flush", "xtrace-sampler"};

	if (o->thread->tid == o->process->pid)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(o->stat.name, names[i]))
			return true;
	return false;
}

static void end_thread(struct observation *o)
{
	o->thread->has_ended = true;
	o->process->counts.ended_threads += !o->thread->is_known;
}

/* A file could not be read. If the thread lives, such as after EMFILE, try again next round. */
static void note_error(struct observation *o, int error)
{
	if (thread_files_is_end(error))
		end_thread(o);
	else
		o->sampling->lost_observations++;
}

/* False if the thread has ended, or is not to be observed. */
static bool read_stat(struct observation *o)
{
	struct sampled_thread *thread = o->thread;
	int error = thread_files_stat(&thread->files, &o->stat);

	if (error) {
		note_error(o, error);
		return false;
	}
	if (strchr("ZX", o->stat.state) ||
	    (thread->is_known && thread->start_ticks != o->stat.start_ticks)) {
		end_thread(o);
		return false;
	}
	return !is_of_tracer(o) &&
	       sampling_check_program(o->sampling, o->process, &o->stat, o->now_ns);
}

/*
 * A thread that calls exec becomes the main thread. The files then show its counts. There is no
 * difference to those of the former main thread.
 */
static void check_identity(struct observation *o, const struct thread_counts *counts)
{
	struct sampled_thread *thread = o->thread;
	bool is_new_main = o->process->has_new_main && thread->tid == o->process->pid;

	if (is_new_main || counts->run_ns < thread->counts.run_ns ||
	    counts->ready_ns < thread->counts.ready_ns ||
	    counts->switch_count < thread->counts.switch_count) {
		skip_past(o, counts);
	}
	if (is_new_main)
		o->process->has_new_main = false;
}

static void note_counts(struct observation *o, const struct thread_counts *counts)
{
	struct sampled_thread *thread = o->thread;

	o->run_ns = counts->run_ns - thread->counts.run_ns;
	o->switch_count = counts->switch_count - thread->counts.switch_count;
	o->has_run = o->run_ns || o->switch_count;
	thread_rows_advance(&thread->rows, o->now_ns, o->run_ns,
			    counts->ready_ns - thread->counts.ready_ns);
	thread->unsampled_ns += o->run_ns;
	thread->quiet_rounds = o->has_run ? 0 : thread->quiet_rounds + 1;
	thread->counts = *counts;
}

static bool is_unchanged(const struct sampled_thread *thread, const struct thread_counts *counts)
{
	return thread->is_known && thread->is_blocked && thread->counts.run_ns == counts->run_ns &&
	       thread->counts.switch_count == counts->switch_count;
}

/* To compare it with the CPU time of the whole program, which includes the tracer's threads. */
static void add_to_total(struct sampling *sampling, struct sampled_thread *thread,
			 const struct thread_counts *counts)
{
	if (counts->run_ns > thread->total_run_ns)
		sampling->total_run_ns += counts->run_ns - thread->total_run_ns;
	thread->total_run_ns = counts->run_ns;
}

void observe_thread(struct sampling *sampling, struct sampled_process *process,
		    struct sampled_thread *thread)
{
	struct observation o = {.sampling = sampling, .process = process, .thread = thread};
	struct thread_counts counts;
	int error = thread_files_counts(&thread->files, &counts);

	if (error) {
		note_error(&o, error);
		return;
	}
	add_to_total(sampling, thread, &counts);
	o.now_ns = monotonic_ns();
	if (is_unchanged(thread, &counts)) {
		note_counts(&o, &counts);
		observe_wait_again(&o);
		return;
	}
	if (!read_stat(&o) || (!thread->is_known && !begin_thread(&o, &counts)))
		return;
	check_identity(&o, &counts);
	o.fault_count = o.stat.fault_count - thread->fault_count;
	thread->fault_count = o.stat.fault_count;
	note_counts(&o, &counts);
	note_name(&o);
	if (o.stat.state == 'R')
		observe_running(&o);
	else
		observe_blocked(&o);
}

/* Keeps each of the samples since the last observation with the same probability. */
static void hold_sample(struct sampling *sampling, struct sampled_thread *thread,
			const struct held_sample *held)
{
	uint32_t at = thread->held_seen++;

	if (at >= HELD_SAMPLES_MAX) {
		at = sampling_random(sampling, thread->held_seen);
		if (at >= HELD_SAMPLES_MAX)
			return;
		/* They stay in the order of their times. */
		memmove(&thread->held[at], &thread->held[at + 1],
			(HELD_SAMPLES_MAX - 1 - at) * sizeof(*held));
		at = HELD_SAMPLES_MAX - 1;
		thread->held_count = at;
	}
	thread->held[at] = *held;
	thread->held_count = at + 1;
}

/* The process and thread of a sample. False if they are gone, or not to be sampled yet. */
static bool find_thread(struct sampling *sampling, const struct perf_sample *sample,
			struct sampled_process **process, struct sampled_thread **thread)
{
	struct thread_stat stat;

	*process = sampling_add_process(sampling, sample->pid);
	if (!*process || (*process)->has_no_log)
		return false;
	*thread = sampled_thread_find(*process, sample->tid);
	if (!*thread) {
		*thread = sampling_add_thread(sampling, *process, sample->tid);
		(*process)->is_python_fresh = false;
	}
	/* The memory below must be of the program that the sample is of. */
	return *thread && !thread_files_stat(&(*thread)->files, &stat) &&
	       sampling_check_program(sampling, *process, &stat, monotonic_ns());
}

/* A system call ends with the instruction "syscall", so that its return address is behind it. */
static bool is_in_call(const struct perf_sample *sample)
{
	uint8_t code[2];

	return process_memory_read(sample->pid, code,
				   sample->registers.value[THREAD_RIP] - sizeof(code),
				   sizeof(code)) &&
	       code[0] == 0x0f && code[1] == 0x05;
}

/* Code outside of a system call enters the kernel nearly always by a page fault. */
static enum xt_cpu_state state_of(const struct perf_sample *sample)
{
	if (sample->is_fault)
		return XT_CPU_PAGE_FAULT;
	if (!sample->is_in_kernel)
		return XT_CPU_RUNNING;
	return is_in_call(sample) ? XT_CPU_IN_KERNEL : XT_CPU_PAGE_FAULT;
}

void observe_sample(void *context, const struct perf_sample *sample)
{
	struct sampling *sampling = context;
	const struct stack_copy copy = {.address = sample->registers.value[THREAD_RSP],
					.bytes = sample->stack,
					.byte_count = sample->stack_bytes};
	const struct stack_request request = {.tid = sample->tid,
					      .is_running = true,
					      .registers = &sample->registers,
					      .copy = &copy};
	struct sampled_process *process;
	struct sampled_thread *thread;
	enum python_read python_read;
	struct held_sample held;
	struct stack_found found;

	sampling->has_root_sample |=
		sample->tid == sampling->root && monotonic_ns() - sample->time_ns < NEW_SAMPLE_NS;
	if (!find_thread(sampling, sample, &process, &thread))
		return;
	sampling_prepare(process, monotonic_ns());
	process->counts.perf_samples++;
	thread->quiet_rounds = 0;
	python_read = stack_ids_read_python(sampling, process, &request);
	stack_ids_walk(sampling, process, &request);
	stack_ids_make(sampling, process, &request, python_read, &found);
	held = (struct held_sample){time_of(&found, sample->time_ns), found.stack, found.flags,
				    (uint8_t)state_of(sample)};
	if (sample->is_fault)
		thread->fault = held;
	else
		hold_sample(sampling, thread, &held);
}
