/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL that gives the numbers of a summary, for the database of --sqlite.
 */
#ifndef XT_MERGE_SUMMARY_QUERIES_H
#define XT_MERGE_SUMMARY_QUERIES_H

enum query {
	QUERY_BUSY,
	QUERY_IDLE,
	QUERY_LONGEST_GAP,
	QUERY_LINES,
	QUERY_FRAMES,
	QUERY_KERNELS,
	QUERIES
};

struct summary_query {
	const char *name; /* of what it gives, as in the summary JSON */
	const char *sql;
};

const struct summary_query *summary_query(enum query query);

#endif
