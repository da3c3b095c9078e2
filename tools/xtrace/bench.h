/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of xtrace bench: what a bench is, how one run is made, where runs lie, and what is said.
 *
 * A bench directory holds the runs of one command:
 *
 *	bench.json	what was run, and of each run how long it took
 *	warmup-001	a trace directory for each run that only warms up,
 *	run-001		and for each one that counts; xtrace diff takes these as one side
 *
 * and of two commands it holds two of them, base and new, and a bench.json that names them.
 */
#ifndef XTRACE_BENCH_H
#define XTRACE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_watch.h"
#include "install_paths.h"

#define BENCH_FILE     "bench.json"
#define BENCH_FORMAT   "xtrace.bench" /* "format" in bench.json */
#define BENCH_BASE     "base"
#define BENCH_NEW      "new"
#define BENCH_RUNS_MAX 999

struct bench_run {
	char name[32];	/* of its trace directory */
	unsigned order; /* among all runs of both commands, from 1 on */
	bool is_warmup;
	bool is_done; /* what follows is known */
	uint64_t wall_ns, gpu_time_ns;
	bool is_complete; /* nothing is missing in its logs */
	bool has_gpu;	  /* the devices were watched */
	struct gpu_run gpu;
	uint32_t other_pid; /* a process that used a device, too; 0: none */
};

struct bench_side {
	const char *name; /* BENCH_BASE or BENCH_NEW; NULL: there is one command alone */
	char **command;	  /* ends with NULL */
	char *path;	  /* of its bench directory; owned */
	struct bench_run *runs;
	size_t run_count; /* of those that were begun */
};

struct bench {
	const char *output;
	const char *vs;		/* the other command, a line for the shell; NULL: none */
	unsigned runs, warmups; /* of each side */
	bool shows_output, is_simulated, has_no_diff;
	char **passed; /* options for xtrace record */
	size_t passed_count;
	char **diff_passed; /* those for xtrace diff, which compares two commands in the end */
	size_t diff_passed_count;
	struct bench_side sides[2]; /* the last is the new one */
	size_t side_count;
	struct install_paths paths;
	struct gpu_watch *watch; /* NULL: no NVML */
	const char *no_watch;	 /* why */
};

/*
 * Makes the directories. An older bench moves to DIR.old, in place of an older one there; what is no
 * bench of ours is left alone and refused, with a message. 0 or -errno.
 */
int bench_dir_create(struct bench *bench);

/* Writes bench.json of one side; is_whole: all runs were made. 0 or -errno, with a message. */
int bench_dir_write(const struct bench_side *side, bool is_whole);

/* Makes one run, and fills it in. 0; else a message has been given. */
int bench_run(struct bench *bench, struct bench_side *side, struct bench_run *run);

/* Lines on stdout: before the first run, of each run, and of all. */
void bench_table_begin(const struct bench *bench);
void bench_table_row(const struct bench *bench, const struct bench_side *side,
		     const struct bench_run *run);
void bench_table_end(const struct bench *bench);

/* What makes the runs worse to compare, on stderr. */
void bench_warn(const struct bench *bench);

#endif
