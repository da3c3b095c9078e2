/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer needs of the reader to append to a log. */
#ifndef XT_LOG_TAIL_H
#define XT_LOG_TAIL_H

#include "xtrace/reader.h"

struct xt_log_tail {
	uint64_t end_offset;	  /* behind the last intact chunk, or behind the header */
	uint32_t sequence;	  /* for the next chunk; leaves a gap where something is cut off */
	uint32_t intact_sequence; /* the same without a gap */
};

/* As xt_reader_open(), over a descriptor that stays the caller's. */
enum xt_open_error xt_reader_open_fd(int fd, struct xt_reader **reader_out);

/* Where the log could go on. For a reader that has come to the end with wanted_kinds 0. */
struct xt_log_tail xt_reader_tail(const struct xt_reader *reader);

#endif
