/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace directory: its files, its owner, its locks, and its info.json with the command, the
 * machine, the version and the result. Only files that belong to a trace, and that no process
 * writes to, are removed. Prints and writes JSON documents.
 */
#ifndef XTRACE_DATA_DIR_H
#define XTRACE_DATA_DIR_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEFAULT_DATA_DIR    "xtrace.data" /* of record, report and env */
#define DATA_DIR_INFO	    "info.json"
#define DATA_DIR_REPORT	    "report.html" /* written by xtrace report */
#define DATA_DIR_GPU	    "gpu.json"	  /* written by xtrace bench: the state of the GPUs */
#define DATA_DIR_OUTPUT	    "output.txt"  /* written by xtrace bench: the output of the program */
#define DATA_DIR_FORMAT	    "xtrace.data" /* "format" in info.json, which marks a trace directory */
#define DATA_DIR_LOG_SUFFIX ".xtr"
/* The structured logs of PyTorch, whose names have this form. */
#define DATA_DIR_TORCH_PREFIX "dedicated_log_torch_trace_"
#define DATA_DIR_TORCH_SUFFIX ".log"

/*
 * Removes a trace, if there is one. Refuses, with an error message, a directory that is not a
 * trace, is still written to, or contains other files. Returns 0 or -errno.
 */
int data_dir_remove(const char *path);

/* Removes PyTorch's structured logs. Prints an error message if it cannot. */
void data_dir_remove_torch_trace(const char *path);

/* Makes the checks of data_dir_remove(), with the same error messages. */
int data_dir_check_removable(const char *path);

/* Returns 0, or -ETXTBSY after an error message if a process still writes to a log. */
int data_dir_check_idle(const char *path);

/*
 * Whether a process holds the lock of a log: 1 or 0, -ENOENT if there is no log, or another -errno
 * if that is unknown. folder: of a relative name.
 */
int data_dir_log_lock(int folder, const char *name);

/*
 * Returns 0, or -EACCES after an error message if another user owns or can replace the directory.
 */
int data_dir_check_owner(const char *path_given);

/*
 * The path without trailing slashes. If it names a symlink, the path of the target, so that the
 * names beside it are those of the directory. The caller frees it. NULL if memory ran out.
 */
char *data_dir_resolve(const char *path);

/* The path without trailing slashes. The caller frees it. NULL if memory ran out. */
char *data_dir_trim(const char *path);

/* True if the directory exists and has no entries. */
bool data_dir_is_empty(const char *path);

/* True if the directory contains a file that xtrace did not create. */
bool data_dir_has_foreign_file(const char *path);

/*
 * Locks info.json, so that only one of several recordings moves or removes the directory. Sets
 * *claim_out to a descriptor to close. It is -1 if there is no such file or the file system has no
 * locks. Returns 0, or -EBUSY if another process has the lock.
 */
int data_dir_claim(const char *path, int *claim_out);

/*
 * Lists the paths of the logs in the directory, sorted. Free them with data_dir_free_logs().
 * Returns 0 or -errno.
 */
int data_dir_list_logs(const char *path, char ***logs_out, size_t *count_out);
void data_dir_free_logs(char **logs, size_t count);

struct log_summary {
	const char *name; /* file name; belongs to the caller */
	char *exe;	  /* owned; NULL if unknown */
	uint32_t pid;
	uint64_t launch_count; /* calls that launch kernels or graphs */
	uint64_t kernel_count;
	uint64_t sample_count; /* observations of threads */
	uint64_t lost_count;   /* sum of all losses in the log's account (xtrace/account.h) */
	uint64_t log_bytes;
	bool is_cpu;	 /* a CPU log: the process may also have another one */
	bool simulated;	 /* recorded on the simulated GPU */
	bool closed;	 /* the process wrote the end of the log */
	bool incomplete; /* the account is incomplete, so more may be lost */
	bool running;	 /* the process is still writing */
	bool readable;	 /* if false, only name is valid */
	bool empty;	 /* the process ended before it wrote the header */
};

struct info {
	char **command;		    /* ends with NULL */
	bool simulate;		    /* on the simulated GPU */
	uint64_t start_realtime_ns; /* since 1970 */
	bool finished;		    /* the members below are valid */
	uint64_t duration_ns;
	int exit_status; /* that xtrace returns */
	const struct log_summary *processes;
	size_t process_count;
};

/*
 * Creates and locks info.json. The lock lasts until the caller closes *claim_out, which is close-
 * on-exec. Returns 0, -EEXIST if the file exists, or another -errno. On an error no file is left.
 */
int info_create(const char *data_dir, const struct info *info, int *claim_out);

/* Replaces info.json atomically. Returns 0 or -errno. */
int info_write(const char *data_dir, const struct info *info);

/*
 * Reads the start, duration and exit status of a recording. Returns 0, or -ENODATA if it did not
 * finish.
 */
int info_read(const char *data_dir, struct info *info);

/* True if info.json marks the directory as a trace directory. */
bool info_is_ours(const char *data_dir);

/* Whether a file in the folder is a document whose "format" is this text. */
bool json_has_format(const char *folder, const char *name, const char *wanted);

/* A document that begins with its format and the version of xtrace. */
cJSON *json_new(const char *format);

/* Prints a document to stdout, and deletes it. Returns 0 or -ENOMEM. */
int json_print(cJSON *root);

/* Replaces a file in the folder atomically by a document. Returns 0 or -errno. */
int json_write(const char *folder, const char *name, const cJSON *root);

#endif
