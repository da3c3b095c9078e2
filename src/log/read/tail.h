/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the reader that the writer uses to append to a log.
 */
#ifndef XT_LOG_TAIL_H
#define XT_LOG_TAIL_H

#include "xtrace/reader.h"

struct xt_log_tail {
	uint64_t end_offset; /* end of the last intact chunk, or of the header */
	uint32_t sequence;   /* number of the next chunk; leaves a gap if a torn tail is cut off */
	uint32_t intact_sequence; /* the same without a gap */
};

/* Like xt_reader_open(), but the caller keeps owning fd. */
enum xt_open_error xt_reader_open_fd(int fd, struct xt_reader **reader_out);

/* Where to append. Read to the end with wanted_kinds 0 first. */
struct xt_log_tail xt_reader_tail(const struct xt_reader *reader);

#endif
