/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which logs are to be read, and how their clocks stand to each other.
 */
#ifndef XT_MERGE_INPUTS_H
#define XT_MERGE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "merge/base/report.h"
#include "xtrace/reader.h"

#define INPUTS_DEFAULT		"xtrace.data"
#define INPUT_HOST_BYTES	65
#define INPUT_PROGRAM_BYTES	4096
#define INPUT_FACT_BYTES	40
#define INPUT_DISTINCTION_BYTES 80
#define INPUT_COMMAND_BYTES	1024
#define INPUT_TITLE_BYTES	256

struct input {
	char *path;
	dev_t device; /* … and file number: what tells that two paths are one log */
	ino_t inode;
	struct xt_log_header header;
	uint64_t file_bytes;
	char host[INPUT_HOST_BYTES];
	char program[INPUT_PROGRAM_BYTES]; /* its path */
	char command[INPUT_COMMAND_BYTES]; /* the start of its command line */
	/* Which process it is; each may be empty, in logs that do not say. */
	char identity[INPUT_FACT_BYTES]; /* random, the same in all logs of a process */
	char pid_namespace[INPUT_FACT_BYTES];
	char boot[INPUT_FACT_BYTES]; /* of the host */
	/* What the label of the process needs besides program, pid and host, so that no two
	 * processes have the same: ", ns 4026531836, #2" or less. */
	char distinction[INPUT_DISTINCTION_BYTES];
	int64_t realtime_shift_ns; /* realtime - monotonic, the median of the log's pairs */
	int64_t shift_ns;	   /* to be added to the log's times to have them on one clock */
	bool has_crash_buffer;
	size_t first; /* place of the first log of the same process; mostly this one */
};

struct inputs {
	struct input *logs; /* readable ones, by path as they were found */
	size_t count;
	size_t capacity;
	char **unreadable; /* paths of the others */
	size_t unreadable_count;
	size_t unreadable_capacity;
	bool has_several_hosts;
	int64_t origin_ns; /* the smallest start of a log, on the one clock */
};

/*
 * Finds the logs in the arguments (directories and files; none means INPUTS_DEFAULT) and reads
 * how each begins. What cannot be read is reported. 0, -ENOENT if nothing is readable (which was
 * reported), or -ENOMEM. inputs_free() in any case.
 */
int inputs_find(struct inputs *inputs, char *const *arguments, size_t argument_count,
		struct report *report);
void inputs_free(struct inputs *inputs);

/* Opens a log; what is wrong is reported. NULL if it cannot be read. */
struct xt_reader *inputs_open(const char *path, struct report *report);

#endif
