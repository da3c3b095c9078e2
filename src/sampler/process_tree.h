/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the processes that a program starts, and their threads. Sampler thread only.
 */
#ifndef XT_SAMPLER_PROCESS_TREE_H
#define XT_SAMPLER_PROCESS_TREE_H

#include "sampler/sampling.h"

struct process_tree {
	int loadavg; /* descriptor of /proc/loadavg; -1: not open */
	long last_id;
	uint64_t scanned_ns, full_ns; /* when all threads were asked for their children */
	bool is_due, is_full;	      /* set by process_tree_begin() */
	bool lists_children;	      /* the kernel lists the children of a thread */
};

void process_tree_open(struct process_tree *tree);

/* Finds out whether anything was created since the last scan. Call it before the threads are
 * observed, because the scan relies on what they did. */
void process_tree_begin(struct process_tree *tree, uint64_t now_ns);

/* Looks for new processes and threads if there can be any. */
void process_tree_scan(struct process_tree *tree, struct sampling *sampling);

/*
 * Adds the processes of a list of ids, which may come in parts. *id is the part of an id at the end
 * of the previous text, and 0 at first.
 */
void process_tree_add_listed(struct sampling *sampling, const char *text, size_t length, pid_t *id);

/* Ends the processes that have no thread any more, except for the root. */
void process_tree_sweep(struct sampling *sampling);
void process_tree_close(struct process_tree *tree);

#endif
