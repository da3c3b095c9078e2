/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log apart from the run, into a message.
 *
 * Exporters of single events collect what their pack() writes, in sinks of the log's own. Names are
 * found twice then: here, because these exporters tell functions of the API apart, and when the log
 * is added to the run, because names depend on all logs.
 */
#ifndef XT_MERGE_APART_H
#define XT_MERGE_APART_H

#include "merge/base/pack.h"
#include "merge/symbolize/debug_files.h"

struct input;
struct run;
struct sink;

/*
 * Returns whether logs can be read apart from the run. They cannot for a selection, and for
 * exporters that need each event, such as timelines.
 */
bool apart_is_possible(const struct run *run, const struct sink *sinks, size_t sink_count);

/* The beginning of a result. */
struct apart_head {
	uint32_t index;	     /* of the log */
	bool is_opened;	     /* false: the coordinator must read it */
	int error;	     /* 0 or an error of the reading */
	uint64_t file_bytes; /* of the log, when its reading began */
};

/*
 * Reads a log and begins a pack with the result: a head, pack_reading(), and the sinks. It counts
 * as not opened if another log has its path here, or if an exporter cannot keep all. sinks: need
 * not be open.
 */
void apart_read(struct pack *pack, struct run *run, const struct sink *sinks, size_t sink_count,
		struct debug_search *search, uint32_t index);

void apart_pack_head(struct pack *pack, struct apart_head *head);

/* The present size of a log, 0 if unknown. */
uint64_t apart_file_bytes(const struct input *log);

#endif
