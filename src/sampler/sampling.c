/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/sampling.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log/base/grow.h"
#include "sampler/process_read.h"

/* A program loads most of its modules soon after it started. */
#define MODULES_FIRST_NS 20000000
#define MODULES_LAST_NS	 5000000000

uint64_t sampling_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators"). */
uint32_t sampling_random(struct sampling *sampling, uint32_t limit)
{
	uint64_t x = sampling->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	sampling->random = x;
	return (uint32_t)((x * UINT64_C(2685821657736338717) >> 32) * limit >> 32);
}

static bool was_sampled(const struct sampling *sampling, const struct sampled_process *process)
{
	for (size_t i = 0; i < ENDED_PROCESSES; i++)
		if (sampling->ended[i].pid == process->pid &&
		    sampling->ended[i].start_ticks == process->start_ticks)
			return true;
	return false;
}

/* A sampler is no work of the program. */
static bool is_sampler(pid_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat("/proc/self/exe", &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

struct sampled_process *sampling_add_process(struct sampling *sampling, pid_t pid)
{
	struct sampled_process *process = process_table_find(&sampling->processes, pid);
	struct thread_stat stat;
	char path[64], text[1024];
	ssize_t length;

	/* Our parent is the process between the program and us (cpu_sampler.c), until it ends. */
	if (process || pid == sampling->own_pid || (pid == getppid() && pid != sampling->root))
		return process;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	length = proc_file_read(path, text, sizeof(text));
	sampling->lost_observations += length < 0 && !thread_files_is_end((int)length);
	if (length < 0 || !thread_stat_parse(text, &stat) ||
	    (strchr("ZX", stat.state) && stat.thread_count < 2))
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->parent = stat.parent;
	process->start_ticks = stat.start_ticks;
	process->stack_start = stat.stack_start;
	process->start_ns = process_facts_start_ns(stat.start_ticks);
	if (process->start_ns < sampling->start_ns) {
		process->has_past = sampling->is_late;
		process->start_ns = sampling->start_ns;
	}
	if (was_sampled(sampling, process)) {
		process->has_past = true;
		process->start_ns = sampling_now_ns();
	}
	process->is_in_other_namespace = process_facts_namespace(pid, &process->log_pid);
	process->claim = -1;
	process->is_foreign = pid != sampling->root && is_sampler(pid);
	process->has_no_log = process->is_foreign;
	process->modules_wait_ns = MODULES_FIRST_NS;
	if (process_table_add(&sampling->processes, process)) {
		free(process);
		return NULL;
	}
	return process;
}

/* The place of a thread in the list, or where to insert it. */
static size_t thread_position(const struct sampled_process *process, pid_t tid)
{
	size_t at = process->thread_count;

	/* New threads usually have the highest id. */
	while (at && process->threads[at - 1]->tid >= tid)
		at--;
	return at;
}

struct sampled_thread *sampling_add_thread(struct sampling *sampling,
					   struct sampled_process *process, pid_t tid)
{
	size_t at = thread_position(process, tid);
	struct sampled_thread *thread;

	if (grow(&process->threads, &process->thread_capacity, process->thread_count + 1,
		 sizeof(*process->threads)))
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->log_tid =
		process->is_in_other_namespace ? process_facts_own_tid(process->pid, tid) : tid;
	thread->is_listed = true;
	thread->files.pid = process->pid;
	thread->files.tid = tid;
	thread->files.budget = &sampling->descriptor_budget;
	memmove(process->threads + at + 1, process->threads + at,
		(process->thread_count - at) * sizeof(*process->threads));
	process->threads[at] = thread;
	process->thread_count++;
	return thread;
}

static void end_rows(struct sampled_process *process, struct sampled_thread *thread)
{
	if (process->log && thread->id)
		thread_rows_end(&thread->rows, cpu_log_rows(process->log));
	thread_files_close(&thread->files);
}

static void end_thread(struct sampled_process *process, struct sampled_thread *thread)
{
	end_rows(process, thread);
	free(thread);
}

/*
 * A thread that ended is listed until it is reaped. Its id may also be that of another thread by
 * now, such as one that called exec and so became the main thread.
 */
static void replace_if_alive(struct sampled_process *process, struct sampled_thread *thread)
{
	struct thread_files files = thread->files;
	struct thread_stat stat;
	pid_t log_tid = thread->log_tid;
	int error;

	memset(files.descriptors, 0, sizeof(files.descriptors));
	error = thread_files_stat(&files, &stat);
	if (error || strchr("ZX", stat.state)) {
		/* Unless it has ended, the next observation finds out. */
		thread->has_ended = !error || thread_files_is_end(error);
		thread_files_close(&files);
		return;
	}
	end_rows(process, thread);
	*thread = (struct sampled_thread){
		.tid = files.tid, .log_tid = log_tid, .is_listed = true, .files = files};
}

/* Ends the threads that the last listing did not find. */
static void sweep_threads(struct sampled_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->thread_count; i++) {
		struct sampled_thread *thread = process->threads[i];

		if (thread->is_listed)
			process->threads[kept++] = thread;
		else
			end_thread(process, thread);
	}
	process->thread_count = kept;
}

static void note_listed(struct sampling *sampling, struct sampled_process *process, pid_t tid)
{
	struct sampled_thread *thread = sampled_thread_find(process, tid);

	if (!thread) {
		sampling_add_thread(sampling, process, tid);
		return;
	}
	thread->is_listed = true;
	if (thread->has_ended)
		replace_if_alive(process, thread);
}

bool sampling_list_threads(struct sampling *sampling, struct sampled_process *process)
{
	char path[64];
	struct dirent *entry;
	DIR *folder;

	for (size_t i = 0; i < process->thread_count; i++)
		process->threads[i]->is_listed = false;
	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	folder = opendir(path);
	if (!folder && !thread_files_is_end(-errno)) {
		sampling->lost_observations++;
		return false;
	}
	while (folder && (entry = readdir(folder))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid)
			note_listed(sampling, process, tid);
	}
	if (folder)
		closedir(folder);
	sweep_threads(process);
	return true;
}

bool sampling_claim(struct sampling *sampling, struct sampled_process *process)
{
	if (process->claim < 0)
		process->claim = claims_take(&sampling->claims, process->pid);
	process->is_foreign = process->claim == -EADDRINUSE;
	process->has_no_log |= process->is_foreign;
	return !process->is_foreign;
}

struct cpu_log *sampling_log(struct sampling *sampling, struct sampled_process *process)
{
	struct cpu_log_place place = sampling->place;

	if (process->log || process->has_no_log)
		return process->log;
	if (sampling->log_count >= sampling->log_limit) {
		process->has_no_log = true;
		sampling->lost_processes++;
		return NULL;
	}
	if (!sampling_claim(sampling, process))
		return NULL;
	place.pid = process->log_pid;
	if (cpu_log_open(&process->log, &place, process->start_ns)) {
		cpu_log_close(process->log, &sampling->tables, sampling_now_ns());
		process->log = NULL;
		return NULL;
	}
	sampling->log_count++;
	sampling->total_logs++;
	process_facts_process(process, &sampling->facts);
	if (process->python)
		process_facts_python(process);
	return process->log;
}

void sampling_note_write(struct sampling *sampling, int error)
{
	if (!sampling->write_error)
		sampling->write_error = error;
}

static void forget_program(struct sampled_process *process)
{
	python_process_close(process->python);
	process->python = NULL;
	process->is_python_unsupported = false;
	process->is_loader_worker = false;
	process_modules_free(&process->modules);
	process->modules = (struct process_modules){0};
	process->modules_due_ns = 0;
	process->modules_wait_ns = MODULES_FIRST_NS;
	pipe_table_free(&process->pipes);
	if (process->log)
		cpu_log_forget_program(process->log);
}

/* A process that exits has no program any more, which is another error. */
static bool is_untraceable(pid_t pid)
{
	char path[64], text[2];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, text, sizeof(text)) < 0 && (errno == EACCES || errno == EPERM);
}

bool sampling_check_program(struct sampling *sampling, struct sampled_process *process,
			    const struct thread_stat *stat, uint64_t now_ns)
{
	if (process->pid == sampling->root && process->awaits_exec)
		sampling->is_root_untraceable = !stat->stack_start && is_untraceable(process->pid);
	/* 0: the process may not be traced. */
	if (!stat->stack_start || stat->stack_start == process->stack_start)
		return !process->awaits_exec;
	process->stack_start = stat->stack_start;
	process->awaits_exec = false;
	if (process->pid != sampling->root && is_sampler(process->pid)) {
		process->is_foreign = process->has_no_log = true;
		return false;
	}
	process->has_new_main = process->thread_count > 1;
	forget_program(process);
	if (process->log)
		process_facts_program(process);
	sampling_prepare(process, now_ns);
	return true;
}

static void find_python(struct sampled_process *process)
{
	char why[256] = "";
	int error = python_process_open(&process->python, process->pid, &process->modules, why,
					sizeof(why));

	if (!error && process->log)
		process_facts_python(process);
	if (!error)
		return;
	process->python = NULL;
	process->is_python_unsupported = error == -EINVAL;
	/* If all memory is refused, the log says so itself. */
	if (error == -EINVAL && process->log &&
	    !process_memory_is_refused(process->pid, process->stack_start))
		process_facts_no_python(process, why);
	/* It is starting. */
	if (error == -EAGAIN)
		process->modules_wait_ns = MODULES_FIRST_NS;
}

void sampling_prepare(struct sampled_process *process, uint64_t now_ns)
{
	if (now_ns < process->modules_due_ns || process->awaits_exec)
		return;
	process_modules_refresh(&process->modules, process->pid);
	if (!process->python && !process->is_python_unsupported)
		find_python(process);
	process->modules_due_ns = now_ns + process->modules_wait_ns;
	process->modules_wait_ns *= 2;
	if (process->modules_wait_ns > MODULES_LAST_NS)
		process->modules_wait_ns = MODULES_LAST_NS;
}

static void record_counts(const struct sampled_process *process)
{
	const struct process_counts *counts = &process->counts;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"threads.seen", counts->threads},
		{"cpu.observations", counts->observations},
		{"cpu.perf.samples", counts->perf_samples},
		{"cpu.ended", counts->ended_threads},
		{"cpu.switched", counts->switched},
		{"cpu.python.read", counts->python_reads},
		{"cpu.python.changed", counts->python_changed},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cpu_log_account(process->log, rows[i].name, rows[i].value);
}

void sampling_end_process(struct sampling *sampling, struct sampled_process *process)
{
	process_table_remove(&sampling->processes, process);
	for (size_t i = 0; i < process->thread_count; i++)
		end_thread(process, process->threads[i]);
	if (process->log) {
		sampling->ended[sampling->ended_count++ % ENDED_PROCESSES] =
			(struct ended_process){process->pid, process->start_ticks};
		record_counts(process);
		sampling->total_observations += process->counts.observations;
		sampling_note_write(sampling, cpu_log_close(process->log, &sampling->tables,
							    sampling_now_ns()));
		sampling->log_count--;
	}
	if (process->claim >= 0)
		close(process->claim);
	python_process_close(process->python);
	process_modules_free(&process->modules);
	pipe_table_free(&process->pipes);
	free(process->threads);
	free(process);
}
