/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The parent of a process, or -1. Its name may contain anything, even a ')'. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[512];
	const char *end;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (proc_file_read(path, text, sizeof(text)) <= 0)
		return -1;
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : -1;
}

/* For kernels that do not list the children of a thread (CONFIG_PROC_CHILDREN). */
static void scan_all(struct sampling *sampling)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && !process_table_find(&sampling->processes, pid) &&
		    process_table_find(&sampling->processes, parent_of(pid)))
			sampling_add_process(sampling, pid);
	}
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
	char path[64], text[CHILDREN_TEXT_BYTES];
	pid_t id = 0;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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
	char path[64];

	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i]->has_ended)
			return false;
	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	return process->thread_count && !stat(path, &status) &&
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
