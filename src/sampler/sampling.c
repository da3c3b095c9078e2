/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/base/sampler_socket.h"

#define PEER (UINT64_C(1) << 32) /* in epoll_data: the descriptor is a connection */

void claims_open(struct claims *claims, const char *data_dir)
{
	*claims = (struct claims){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .data_dir = data_dir};
}

void claims_close(struct claims *claims)
{
	if (claims->epoll_fd >= 0)
		close(claims->epoll_fd);
	claims->epoll_fd = -1;
}

static int watch(struct claims *claims, int fd, uint64_t kind)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = kind | (uint32_t)fd};

	return epoll_ctl(claims->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/*
 * Returns the descriptor of the claim, which the caller closes, or -errno. The error is -EADDRINUSE
 * if another sampler has the process. Any other error does not forbid sampling it.
 */
static int claims_take(struct claims *claims, pid_t pid)
{
	int fd = sampler_socket_claim(pid, claims->data_dir), error;

	if (fd < 0)
		return fd;
	error = watch(claims, fd, 0);
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Other users may connect, but this sampler is none of their business. */
static void accept_peers(struct claims *claims, int listener)
{
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) ||
		    peer.uid != geteuid() || watch(claims, fd, PEER))
			close(fd);
}

bool claims_answer(struct claims *claims)
{
	struct epoll_event events[16];
	int count = epoll_wait(claims->epoll_fd, events, 16, 0);
	bool is_end = false;

	for (int i = 0; i < count; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;
		char request = 0;

		if (!(events[i].data.u64 & PEER)) {
			accept_peers(claims, fd);
			continue;
		}
		if (recv(fd, &request, 1, 0) == 1 && request == SAMPLER_SOCKET_END) {
			/* Stays open: its end tells the program that the logs are complete. */
			epoll_ctl(claims->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			is_end = true;
		} else {
			close(fd);
		}
	}
	return is_end;
}

/* The index of the first process whose pid is not smaller. */
static size_t position(const struct process_table *table, pid_t pid)
{
	return FIRST_NOT(i, 0, table->count, table->list[i]->pid < pid);
}

struct sampled_process *process_table_find(const struct process_table *table, pid_t pid)
{
	size_t at = position(table, pid);

	return at < table->count && table->list[at]->pid == pid ? table->list[at] : NULL;
}

/* Inserts a process that is not in the table. Returns 0 or -ENOMEM. */
static int process_table_add(struct process_table *table, struct sampled_process *process)
{
	size_t at = position(table, process->pid);

	if (grow(table->list, table->capacity, table->count + 1))
		return -ENOMEM;
	array_insert(table->list, table->count, at, process);
	return 0;
}

static void process_table_remove(struct process_table *table, struct sampled_process *process)
{
	size_t at = position(table, process->pid);

	array_remove(table->list, table->count, at);
}

/* The place of a thread in the list, or where to insert it. */
static size_t thread_position(const struct sampled_process *process, pid_t tid)
{
	return FIRST_NOT(i, 0, process->thread_count, process->threads[i]->tid < tid);
}

struct sampled_thread *sampled_thread_find(const struct sampled_process *process, pid_t tid)
{
	size_t at = thread_position(process, tid);

	return at < process->thread_count && process->threads[at]->tid == tid ? process->threads[at]
									      : NULL;
}

struct sampled_thread *sampled_thread_find_logged(const struct sampled_process *process,
						  pid_t log_tid)
{
	struct sampled_thread *thread = sampled_thread_find(process, log_tid);

	if (!process->is_in_other_namespace)
		return thread;
	for (size_t t = 0; t < process->thread_count; t++)
		if (process->threads[t]->log_tid == log_tid)
			return process->threads[t];
	return NULL;
}

#define TEXT_BYTES (16u << 10)

static void record_number(const struct sampled_process *process, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cpu_log_meta(process->log, key, text);
}

static void record_link(const struct sampled_process *process, const char *key, const char *name)
{
	char text[PATH_MAX];
	ssize_t length;

	length = readlink(PROC_PATH("%d/%s", process->pid, name), text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	cpu_log_meta(process->log, key, text);
}

/* The facts that exec changes: program, arguments, folder. Call it again after exec. */
static void process_facts_program(const struct sampled_process *process)
{
	char text[TEXT_BYTES];
	ssize_t length;

	record_link(process, "process.exe", "exe");
	record_link(process, "process.cwd", "cwd");
	length = proc_file_read(PROC_PATH("%d/cmdline", process->pid), text, sizeof(text));
	for (ssize_t i = 0; i + 1 < length; i++)
		if (!text[i])
			text[i] = ' ';
	cpu_log_meta(process->log, "process.cmdline", length > 0 ? text : "");
}

/* Seconds since 1970, to hundredths, computed as the injected library does. */
static void record_start(const struct sampled_process *process)
{
	int64_t boot_ns = (int64_t)(realtime_ns() - xt_clock_ns(CLOCK_BOOTTIME));
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK), hundredths;
	char text[40];

	hundredths = (uint64_t)(boot_ns / 10000000) + process->start_ticks * 100 / ticks_per_s;
	snprintf(text, sizeof(text), "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
	cpu_log_meta(process->log, "process.started", text);
}

static void record_host(const struct sampled_process *process)
{
	char text[256];
	struct utsname host;

	if (proc_file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		cpu_log_meta(process->log, "host.boot", text);
	}
	if (uname(&host))
		return;
	cpu_log_meta(process->log, "host.name", host.nodename);
	snprintf(text, sizeof(text), "%s %s", host.sysname, host.release);
	cpu_log_meta(process->log, "host.kernel", text);
}

/* Everything else. Call it once, while the process exists. */
static void process_facts_process(const struct sampled_process *process,
				  const struct sampling_facts *sampling)
{
	struct stat status;

	cpu_log_meta(process->log, "xtrace.version", XTRACE_VERSION);
	cpu_log_meta(process->log, "log.kind", "cpu");
	record_number(process, "cpu.hz", sampling->hz);
	cpu_log_meta(process->log, "cpu.source", sampling->why_no_perf ? "proc" : "perf");
	if (sampling->why_no_perf)
		cpu_log_meta(process->log, "cpu.why", sampling->why_no_perf);
	else if (!sampling->sees_kernel)
		cpu_log_meta(process->log, "cpu.kernel", "estimated");
	if (sampling->why_no_memory)
		cpu_log_meta(process->log, "cpu.memory", sampling->why_no_memory);
	record_number(process, "process.id", (uint64_t)process->log_pid);
	record_number(process, "process.parent", (uint64_t)process->parent);
	if (!stat(PROC_PATH("%d/ns/pid", process->pid), &status))
		record_number(process, "process.pid_namespace", status.st_ino);
	record_start(process);
	record_host(process);
	process_facts_program(process);
}

/* The interpreter, once it was found. */
static void process_facts_python(const struct sampled_process *process)
{
	cpu_log_meta(process->log, "python.version", python_process_version(process->python));
	cpu_log_meta(process->log, "python.path", python_process_path(process->python));
}

/*
 * Whether the process is in another PID namespace than this one. Sets the id that it has there: the
 * injected library in it knows no other.
 */
static bool process_facts_namespace(pid_t pid, pid_t *own_pid)
{
	struct stat own, other;
	pid_t inner;

	*own_pid = pid;
	if (stat("/proc/self/ns/pid", &own) || stat(PROC_PATH("%d/ns/pid", pid), &other) ||
	    own.st_ino == other.st_ino)
		return false;
	inner = proc_innermost_id(PROC_PATH("%d/status", pid));
	if (inner)
		*own_pid = inner;
	return true;
}

/* The id of a thread of such a process in its own namespace. */
static pid_t process_facts_own_tid(pid_t pid, pid_t tid)
{
	pid_t inner;

	inner = proc_innermost_id(PROC_PATH("%d/task/%d/status", pid, tid));
	return inner ? inner : tid;
}

uint64_t process_facts_start_ns(uint64_t start_ticks)
{
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	int64_t boot_ns = (int64_t)(monotonic_ns() - xt_clock_ns(CLOCK_BOOTTIME));
	int64_t start_ns = boot_ns + (int64_t)start_ticks * tick_ns + tick_ns / 2;

	return start_ns > 0 ? (uint64_t)start_ns : 0;
}

/* A program loads most of its modules soon after it started. */
#define MODULES_FIRST_NS 20000000
#define MODULES_LAST_NS	 5000000000

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

	return !stat("/proc/self/exe", &own) && !stat(PROC_PATH("%d/exe", pid), &other) &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

struct sampled_process *sampling_add_process(struct sampling *sampling, pid_t pid)
{
	struct sampled_process *process = process_table_find(&sampling->processes, pid);
	struct thread_stat stat;
	int error;

	/* Our parent is the process between the program and us (cpu_sampler.c), until it ends. */
	if (process || pid == sampling->own_pid || (pid == getppid() && pid != sampling->root))
		return process;
	error = process_stat_read(pid, &stat);
	sampling->lost_observations += error && !thread_files_is_end(error);
	if (error || (strchr("ZX", stat.state) && stat.thread_count < 2))
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
		process->start_ns = monotonic_ns();
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

struct sampled_thread *sampling_add_thread(struct sampling *sampling,
					   struct sampled_process *process, pid_t tid)
{
	size_t at = thread_position(process, tid);
	struct sampled_thread *thread;

	if (grow(process->threads, process->thread_capacity, process->thread_count + 1))
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
	array_insert(process->threads, process->thread_count, at, thread);
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
	DIR *folder;
	pid_t tid;

	for (size_t i = 0; i < process->thread_count; i++)
		process->threads[i]->is_listed = false;
	folder = opendir(PROC_PATH("%d/task", process->pid));
	if (!folder && !thread_files_is_end(-errno)) {
		sampling->lost_observations++;
		return false;
	}
	while ((tid = proc_next_id(folder)))
		note_listed(sampling, process, tid);
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
	if (process->log || process->has_no_log)
		return process->log;
	if (sampling->log_count >= sampling->log_limit) {
		process->has_no_log = true;
		sampling->lost_processes++;
		return NULL;
	}
	if (!sampling_claim(sampling, process))
		return NULL;
	process->log = cpu_log_open(sampling->claims.data_dir, process->log_pid, process->start_ns);
	if (!process->log)
		return NULL;
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
	char text[2];

	return readlink(PROC_PATH("%d/exe", pid), text, sizeof(text)) < 0 &&
	       (errno == EACCES || errno == EPERM);
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
		cpu_log_meta(process->log, "python.missing", why);
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
	process->modules_wait_ns = smaller(process->modules_wait_ns, MODULES_LAST_NS);
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
		sampling_note_write(sampling,
				    cpu_log_close(process->log, &sampling->tables, monotonic_ns()));
		sampling->log_count--;
	}
	if (process->claim >= 0)
		close(process->claim);
	python_process_close(process->python);
	process_modules_free(&process->modules);
	pipe_table_free(&process->pipes);
	free_all(process->threads, process);
}

#define SCAN_NS		    20000000
#define FULL_SCAN_NS	    1000000000
#define CHILDREN_TEXT_BYTES 4096

void process_tree_open(struct process_tree *tree)
{
	*tree = (struct process_tree){
		.loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
		.last_id = -1,
		.lists_children = !access("/proc/thread-self/children", F_OK),
	};
}

/* The parent of a process, or -1. */
static pid_t parent_of(pid_t pid)
{
	struct thread_stat stat;

	return process_stat_read(pid, &stat) ? -1 : stat.parent;
}

/* For kernels that do not list the children of a thread (CONFIG_PROC_CHILDREN). */
static void scan_all(struct sampling *sampling)
{
	DIR *folder = opendir("/proc");
	pid_t pid;

	while ((pid = proc_next_id(folder)))
		if (!process_table_find(&sampling->processes, pid) &&
		    process_table_find(&sampling->processes, parent_of(pid)))
			sampling_add_process(sampling, pid);
	if (folder)
		closedir(folder);
}

/* The newest process or thread id of the system: the last word of the file. -1: unknown. */
static long newest_id(const struct process_tree *tree)
{
	char text[128];
	ssize_t length = pread(tree->loadavg, text, sizeof(text) - 1, 0);
	const char *last;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	last = strrchr(text, ' ');
	return last ? strtol(last, NULL, 10) : -1;
}

void process_tree_add_listed(struct sampling *sampling, const char *text, size_t length, pid_t *id)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			*id = *id * 10 + (text[i] - '0');
			continue;
		}
		if (*id)
			sampling_add_process(sampling, *id);
		*id = 0;
	}
}

/* Adds the processes that a thread started. A read returns a page at most. */
static void scan_children(struct sampling *sampling, pid_t pid, pid_t tid)
{
	char text[CHILDREN_TEXT_BYTES];
	pid_t id = 0;
	ssize_t length;
	int fd;

	fd = open(PROC_PATH("%d/task/%d/children", pid, tid), O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		sampling->lost_observations += !thread_files_is_end(-errno);
		return;
	}
	while ((length = read(fd, text, sizeof(text))) > 0)
		process_tree_add_listed(sampling, text, (size_t)length, &id);
	process_tree_add_listed(sampling, " ", 1, &id);
	close(fd);
}

/* Whether as many threads are known as the process has. The kernel counts them in st_nlink. */
static bool has_all_threads(const struct sampled_process *process)
{
	struct stat status;

	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i]->has_ended)
			return false;
	return process->thread_count && !stat(PROC_PATH("%d/task", process->pid), &status) &&
	       status.st_nlink == process->thread_count + 2;
}

/* A thread that did not run cannot have started a process. */
static void scan_process(struct sampling *sampling, struct sampled_process *process, bool is_full,
			 bool lists_children)
{
	if (!has_all_threads(process))
		sampling_list_threads(sampling, process);
	if (!lists_children || process->is_foreign)
		return;
	if (process->has_no_log) {
		scan_children(sampling, process->pid, process->pid);
		return;
	}
	for (size_t i = 0; i < process->thread_count; i++) {
		struct sampled_thread *thread = process->threads[i];

		if (!is_full && thread->is_known && thread->is_blocked &&
		    thread->scanned_run_ns == thread->counts.run_ns)
			continue;
		thread->scanned_run_ns = thread->counts.run_ns;
		scan_children(sampling, process->pid, thread->tid);
	}
}

void process_tree_begin(struct process_tree *tree, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - tree->scanned_ns;
	long newest;

	tree->is_due = tree->is_full = false;
	if (age_ns < SCAN_NS)
		return;
	newest = newest_id(tree);
	tree->is_full = now_ns - tree->full_ns >= FULL_SCAN_NS;
	tree->is_due = newest != tree->last_id || newest < 0 || tree->is_full;
	if (!tree->is_due)
		return;
	tree->last_id = newest;
	tree->scanned_ns = now_ns;
	if (tree->is_full)
		tree->full_ns = now_ns;
}

void process_tree_scan(struct process_tree *tree, struct sampling *sampling)
{
	if (!tree->is_due)
		return;
	/* The children that it adds have higher ids, mostly, so this loop scans them, too. */
	for (size_t i = 0; i < sampling->processes.count; i++)
		scan_process(sampling, sampling->processes.list[i], tree->is_full,
			     tree->lists_children);
	/* In the order of their ids, parents come before their children, mostly. */
	if (!tree->lists_children)
		scan_all(sampling);
}

static bool is_over(const struct sampled_process *process)
{
	for (size_t i = 0; i < process->thread_count; i++)
		if (!process->threads[i]->has_ended)
			return false;
	return true;
}

void process_tree_sweep(struct sampling *sampling)
{
	for (size_t i = sampling->processes.count; i-- > 0;) {
		struct sampled_process *process = sampling->processes.list[i];

		if (!is_over(process))
			continue;
		/* New threads may have come since the old ones ended. */
		if (!sampling_list_threads(sampling, process) || !is_over(process))
			continue;
		process->has_ended = true;
		if (process->pid != sampling->root)
			sampling_end_process(sampling, process);
	}
}

void process_tree_close(struct process_tree *tree)
{
	if (tree->loadavg >= 0)
		close(tree->loadavg);
	tree->loadavg = -1;
}
