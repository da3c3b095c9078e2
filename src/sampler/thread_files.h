/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a thread's files in /proc/PID/task/TID. Files that are read in each round stay open while a
 * budget of descriptors lasts. Sampler thread only.
 */
#ifndef XT_SAMPLER_THREAD_FILES_H
#define XT_SAMPLER_THREAD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define THREAD_NAME_BYTES 32

enum thread_file { THREAD_FILE_COUNTS, THREAD_FILE_STAT, THREAD_FILE_SYSCALL, THREAD_FILES };

struct thread_files {
	pid_t pid, tid;
	int descriptors[THREAD_FILES]; /* descriptor + 1; 0: not open */
	int *budget;		       /* how many more may stay open, over all threads */
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

/* The parts that do not need a thread. False if the text has another form. */
bool thread_counts_parse(const char *text, struct thread_counts *out);
bool thread_stat_parse(const char *text, struct thread_stat *out);
void thread_syscall_parse(const char *text, struct thread_syscall *out);

/* Reads a small file of /proc into text, which it terminates. Returns its length or -errno. */
ssize_t proc_file_read(const char *path, char *text, size_t text_bytes);

#endif
