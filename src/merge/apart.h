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
#include "merge/exporter.h"
#include "merge/symbolize/debug_files.h"

/*
 * Returns whether logs can be read apart from the run. They cannot for a selection, and for
 * exporters that need each event, such as timelines.
 */
bool apart_is_possible(const struct run *run, const struct sink *sinks, size_t sink_count);

/*
 * Reads a log and begins a pack with the result: the number of the log, whether it could be opened,
 * an error, then pack_reading() and the sinks. It counts as not opened if another log has its path
 * here, or if an exporter cannot keep all. sinks: need not be open.
 */
void apart_read(struct pack *pack, const struct run *run, const struct sink *sinks,
		size_t sink_count, struct debug_search *search, uint32_t index);

/* Reads the beginning of such a pack, up to pack_reading(). */
void apart_unpack(struct pack *pack, uint32_t *index, bool *is_opened, int *error);

#endif
