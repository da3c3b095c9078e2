/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_EVENTS_H
#define XT_MERGE_PERFETTO_EVENTS_H

#include "merge/export/perfetto/perfetto_state.h"

/* Functions of struct track_writer. */
void perfetto_put_span(struct tracks *t, const struct track_span *span);
void perfetto_begin_span(struct tracks *t, const struct track_span *span);
void perfetto_end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns);
void perfetto_put_instant(struct tracks *t, const struct track_span *span);
void perfetto_put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value);

#endif
