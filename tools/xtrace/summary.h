/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a log holds, in a few numbers: read with the reader library, after the run.
 */
#ifndef XTRACE_SUMMARY_H
#define XTRACE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

struct log_summary {
	const char *name; /* of the file; belongs to the caller */
	char *exe;	  /* owned; NULL if the log does not say */
	uint32_t pid;
	uint64_t launch_count; /* calls that launch kernels or graphs */
	uint64_t kernel_count;
	uint64_t lost_count; /* of all losses in the log's account; see xtrace/account.h */
	uint64_t log_bytes;
	bool simulated;	 /* recorded on the simulated GPU */
	bool closed;	 /* the process ended the log in order */
	bool incomplete; /* the log does not account for all of its rows: more may be lost */
	bool running;	 /* the process still writes to it */
	bool readable;	 /* else nothing but the name is known */
	bool empty;	 /* not readable because the process ended before it wrote the header */
};

/*
 * Whether the process still writes to the log, and whether the log was closed in order. To be
 * asked before anything is appended to it.
 */
void summary_probe(const char *path, struct log_summary *summary);

/*
 * Fills in the numbers: launches and kernels by counting, losses by the log's own account. 0, or
 * -errno; summary_clear() in both cases.
 */
int summary_read(const char *path, struct log_summary *summary);

enum summary_content {
	SUMMARY_EMPTY,	 /* an empty file, or a complete log without any event */
	SUMMARY_DAMAGED, /* no event was found, but a part of the log is missing or unreadable */
	SUMMARY_CONTENT, /* an API call, GPU work, an allocation, an NVTX event, or a loss */
};

/*
 * Searches the log for content and stops at the first. Ignores allocations and NVTX events that
 * occurred while recording was paused. *content_out is set in any case. 0 or -errno.
 */
int summary_find_content(const char *path, enum summary_content *content_out);
void summary_clear(struct log_summary *summary);

#endif
