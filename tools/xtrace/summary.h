/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event counts of a log, read after the run.
 */
#ifndef XTRACE_SUMMARY_H
#define XTRACE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

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

/*
 * Finds out whether the process is still writing and whether it closed the log. Call it before
 * appending to the log.
 */
void summary_probe(const char *path, struct log_summary *summary);

/*
 * Counts launches and kernels, and takes the losses from the log's account. Returns 0 or -errno.
 * Call summary_clear() in both cases.
 */
int summary_read(const char *path, struct log_summary *summary);

enum summary_content {
	SUMMARY_EMPTY,	 /* an empty file, or a complete log without any event */
	SUMMARY_DAMAGED, /* no event found, but part of the log is missing or unreadable */
	SUMMARY_CONTENT, /* an API call, GPU work, an allocation, an NVTX event, a sample, or a loss */
};

/*
 * Searches the log up to the first event that counts as content. Ignores allocations and NVTX
 * events during a pause. Sets *content_out in any case. Returns 0 or -errno.
 */
int summary_find_content(const char *path, enum summary_content *content_out);
void summary_clear(struct log_summary *summary);

#endif
