/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process: its files in /proc, and its memory by process_vm_readv. Never stops it.
 * Any thread.
 */
#ifndef XT_SAMPLER_PROCESS_READ_H
#define XT_SAMPLER_PROCESS_READ_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define THREAD_NAME_BYTES 32

enum thread_file { THREAD_FILE_COUNTS, THREAD_FILE_STAT, THREAD_FILE_SYSCALL, THREAD_FILES };

/*
 * A thread's files in /proc/PID/task/TID. Those that are read in each round stay open while a
 * budget of descriptors lasts.
 */
struct thread_files {
	pid_t pid, tid;
	int descriptors[THREAD_FILES]; /* descriptor + 1; 0: not open */
	int *budget; /* how many more may stay open, over all threads; NULL: none */
};

/* From schedstat. They do not change while a thread is off the CPU, except for ready_ns. */
struct thread_counts {
	uint64_t run_ns;       /* on a CPU */
	uint64_t ready_ns;     /* ready, but waited for a CPU */
	uint64_t switch_count; /* how often it got a CPU */
};

/* From stat. */
struct thread_stat {
	char state; /* R, S, D, T, t, Z, X, I */
	char name[THREAD_NAME_BYTES];
	pid_t parent;
	uint64_t fault_count;  /* page faults, minor and major */
	uint64_t kernel_ticks; /* CPU time in the kernel, of sysconf(_SC_CLK_TCK) in a second */
	uint64_t start_ticks;  /* since boot */
	uint32_t thread_count;
	uint64_t stack_start; /* of the process; changes with exec */
};

enum syscall_kind {
	SYSCALL_UNKNOWN, /* not readable */
	SYSCALL_RUNNING, /* the thread is not blocked */
	SYSCALL_NONE,	 /* blocked outside of a system call, for example in a page fault */
	SYSCALL_BLOCKED, /* blocked in a system call */
};

/* From syscall. */
struct thread_syscall {
	enum syscall_kind kind;
	long number;
	uint64_t arguments[6];
	uint64_t stack_pointer, instruction; /* unless unknown or running */
};

/* Whether an error of the functions below means that the thread or process has ended. */
bool thread_files_is_end(int error);

/* 0 or -errno. */
int thread_files_counts(struct thread_files *files, struct thread_counts *out);
int thread_files_stat(struct thread_files *files, struct thread_stat *out);
void thread_files_syscall(struct thread_files *files, struct thread_syscall *out);
void thread_files_close(struct thread_files *files);

/* The stat of a process. 0 or -errno. */
int process_stat_read(pid_t pid, struct thread_stat *out);

/* The parts that do not need a thread. False if the text has another form. */
bool thread_counts_parse(const char *text, struct thread_counts *out);
bool thread_stat_parse(const char *text, struct thread_stat *out);
void thread_syscall_parse(const char *text, struct thread_syscall *out);

/* The path "/proc/" with what follows, valid up to the end of the block. Cut after 79 bytes. */
#define PROC_PATH(...) proc_path((char[80]){0}, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) const char *proc_path(char path[80], const char *format, ...);

/* Reads a small file of /proc into text, which it terminates. Returns its length or -errno. */
ssize_t proc_file_read(const char *path, char *text, size_t text_bytes);

/* The next id of a process or thread in a folder of /proc. 0: none, or no folder. */
pid_t proc_next_id(DIR *folder);

/* A number in the first 16 KiB of a file of /proc, after this text. -1: none. */
int proc_file_number(const char *path, const char *before);

/*
 * The id of a process or thread in its own PID namespace, from its file `status`. 0: unknown, as
 * before Linux 4.1.
 */
pid_t proc_innermost_id(const char *path);

/* The value of a variable when the process started. NULL: it was not set. The caller frees it. */
char *process_variable(pid_t pid, const char *name);

/* The path of the program of a process; empty if it cannot be read. */
void process_program(pid_t pid, char out[PATH_MAX]);

/*
 * The functions below keep errno. They need the permission to trace the process: a parent has it
 * for its descendants under Yama's ptrace_scope 1.
 */

/* True if all bytes were read. */
bool process_memory_read(pid_t pid, void *to, uint64_t from, size_t bytes);

/* Returns the number of bytes read from the start: less than asked if a page is missing. */
size_t process_memory_read_some(pid_t pid, void *to, uint64_t from, size_t bytes);

struct process_memory_part {
	void *to;
	uint64_t from;
	size_t bytes;
};

/* Whether the kernel forbids to read it, at an address that it has. */
bool process_memory_is_refused(pid_t pid, uint64_t address);

/*
 * Explains why the memory of the process cannot be read, and how to allow it. Empty text: it can,
 * or the process has ended. address: of memory that it has.
 */
void process_memory_explain(pid_t pid, uint64_t address, char *why, size_t why_bytes);

#define PROCESS_MEMORY_PARTS_MAX 64

/* Reads up to PROCESS_MEMORY_PARTS_MAX parts in one system call. True if all were read. */
bool process_memory_read_parts(pid_t pid, const struct process_memory_part *parts, size_t count);

#endif
