/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the logs to read, recovers events of killed processes from their crash buffers before that,
 * and aligns the clocks.
 *
 * Command line and inputs can be packed for the workers of a merge. So all processes see the same
 * logs under the same numbers, even if other hosts have other files.
 */
#ifndef XT_MERGE_INPUTS_H
#define XT_MERGE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "merge/base/pack.h"
#include "merge/base/report.h"
#include "xtrace/reader.h"

#define INPUT_HOST_BYTES	65
#define INPUT_PROGRAM_BYTES	4096
#define INPUT_FACT_BYTES	40
#define INPUT_DISTINCTION_BYTES 176
#define INPUT_COMMAND_BYTES	1024
#define INPUT_TITLE_BYTES	256
#define INPUT_RANK_BYTES	48
#define INPUT_JOB_BYTES		64
#define INPUT_ALIAS_BYTES	32

#define RANK_UNKNOWN UINT32_MAX

struct input {
	char *path;
	char alias[INPUT_ALIAS_BYTES]; /* shown instead of the path, if not "": see --redact */
	dev_t device;		       /* with file: identifies a log that has two paths */
	ino_t inode;
	dev_t recording_device; /* with the next: file that marks the trace directory */
	ino_t recording;	/* 0: the log is in no trace directory */
	struct xt_log_header header;
	uint64_t file_bytes;
	char host[INPUT_HOST_BYTES];
	char program[INPUT_PROGRAM_BYTES]; /* path of the executable */
	char command[INPUT_COMMAND_BYTES]; /* start of the command line */
	/* Identity of the process. Each may be empty. */
	char identity[INPUT_FACT_BYTES]; /* random, the same in all logs of a process */
	char pid_namespace[INPUT_FACT_BYTES];
	char boot[INPUT_FACT_BYTES]; /* identifies the boot of the host */
	/* Position in a distributed job, from the environment. RANK_UNKNOWN: not set. */
	uint32_t rank;
	uint32_t local_rank; /* on its host */
	uint32_t world_size;
	/* The job: torchrun's number or name, and the batch system's. "": not set. */
	char run[INPUT_JOB_BYTES], batch_job[INPUT_JOB_BYTES];
	/*
	 * Suffix that makes the process label unique if title, pid, host and rank do not, such as
	 * ", pid ns 4026531836, #2".
	 */
	char distinction[INPUT_DISTINCTION_BYTES];
	int64_t realtime_shift_ns; /* realtime - monotonic, the median of the log's pairs */
	int64_t shift_ns;	   /* add this to the log's times to get the common clock */
	int64_t aligned_ns; /* the part of shift_ns by which collectives align the host (align.h) */
	bool has_crash_buffer;
	bool is_cpu;	     /* a CPU log: what host threads did between their calls */
	bool is_sampled;     /* a CPU log whose sampler still writes it */
	uint64_t started_cs; /* start of the process, hundredths of a second since 1970 */
	size_t first;	     /* index of the first log of the same process; usually this log */
};

struct inputs {
	struct input *logs; /* readable ones, by path; then the CPU logs */
	size_t count;	    /* without the CPU logs */
	size_t all_count;   /* with them */
	size_t capacity;
	LIST(struct input) unreadable; /* the others */
	bool has_several_hosts;
	int64_t origin_ns; /* earliest start of a log, on the common clock */
};

/*
 * Finds the logs in the arguments and reads their headers. Arguments are directories and files;
 * none means INPUTS_DEFAULT. Reports unreadable logs. Returns 0, or -ENOENT after a report if no
 * log is readable. Call inputs_free() in any case.
 */
int inputs_find(struct inputs *inputs, char *const *arguments, size_t argument_count,
		struct report *report);
void inputs_free(struct inputs *inputs);

/* Makes the labels of processes unique again, after what they are made of has changed. */
void inputs_distinguish(struct inputs *inputs);

/* The name of the log in messages and outputs. */
static inline const char *input_shown(const struct input *log)
{
	return log->alias[0] ? log->alias : log->path;
}

/* Whether a process id means the same process in both logs. */
bool input_shares_pids(const struct input *a, const struct input *b);

/*
 * Writes "rank 3", "rank 11, local 3" or "local rank 3"; "" if the log has no rank. A local rank
 * that equals the rank is left out.
 */
void input_rank_text(const struct input *log, char out[INPUT_RANK_BYTES]);

/* Opens a log. Returns NULL after a report if it cannot be read. */
struct xt_reader *inputs_open(const char *path, struct report *report);

/* When reading: free *argv with free_argv(), and the inputs with inputs_free(), in any case. */
void pack_argv(struct pack *pack, int *argc, char ***argv);
void free_argv(int argc, char **argv);
void pack_inputs(struct pack *pack, struct inputs *inputs);

/*
 * Completes each log that has the crash buffer of a dead process, and reports the result. On errors
 * the log stays unchanged. Deletes unused crash buffers of empty logs.
 */
void recovery_run(struct inputs *inputs, struct report *report);

#endif
