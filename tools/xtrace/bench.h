/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of xtrace bench. A bench directory of one command contains:
 *
 *	bench.json	the command, and the results of each run
 *	warmup-001	a trace directory for each warm-up run
 *	run-001		a trace directory for each measured run; xtrace diff takes these as one side
 *
 * With two commands it contains two such directories, base and new, and a bench.json that names
 * them.
 */
#ifndef XTRACE_BENCH_H
#define XTRACE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_watch.h"
#include "program.h"

#define BENCH_FILE     "bench.json"
#define BENCH_FORMAT   "xtrace.bench" /* "format" in bench.json */
#define BENCH_BASE     "base"
#define BENCH_NEW      "new"
#define BENCH_RUNS_MAX 999

struct bench_run {
	char name[32];	/* of its trace directory */
	unsigned order; /* position among the runs of both commands, from 1 */
	bool is_warmup;
	bool is_done; /* the members below are valid */
	uint64_t wall_ns, gpu_time_ns;
	bool is_complete; /* its logs lack no events */
	bool has_gpu;	  /* gpu is valid */
	struct gpu_run gpu;
	uint32_t other_pid; /* another process that used a device; 0: none */
};

struct bench_side {
	const char *name; /* BENCH_BASE or BENCH_NEW; "": there is only one command */
	char **command;	  /* ends with NULL */
	char *path;	  /* its bench directory; owned */
	struct bench_run *runs;
	size_t run_count; /* runs that were started */
};

struct bench {
	const char *output;
	const char *vs;		/* the other command, a line for the shell; NULL: none */
	unsigned runs, warmups; /* per side */
	bool shows_output, is_simulated, has_no_diff;
	char **passed; /* options for xtrace record */
	size_t passed_count;
	char **diff_passed; /* options for xtrace diff, which compares two commands at the end */
	size_t diff_passed_count;
	struct bench_side sides[2]; /* the last is the new side */
	size_t side_count;
	unsigned run_count; /* of both sides */
	struct install_paths paths;
	struct gpu_watch *watch; /* NULL: no NVML */
	const char *no_watch;	 /* the reason */
};

/*
 * Creates the directories. An older bench moves to DIR.old and replaces a bench there. Anything
 * else is left alone and is an error. Returns 0, or -errno after an error message.
 */
int bench_dir_create(struct bench *bench);

/*
 * Sets up one side, or BENCH_BASE and BENCH_NEW. Each has room for runs_max runs. command_new may
 * be NULL. Free it with bench_sides_free().
 */
void bench_sides_init(struct bench *bench, size_t runs_max, char **command, char **command_new);
void bench_sides_free(struct bench *bench);

/* Writes bench.json of one side. Returns 0, or -errno after an error message. */
int bench_dir_write(const struct bench_side *side, bool is_whole);

/*
 * Makes the next run of a side, and writes bench.json. Returns 0, or another value after an error
 * message: -ECHILD or -ENODATA if the program is the reason.
 */
int bench_sides_run(struct bench *bench, struct bench_side *side, bool is_warmup);

#endif
