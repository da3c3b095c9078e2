/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_TRACKS_H
#define XT_MERGE_PERFETTO_TRACKS_H

#include "merge/export/perfetto/perfetto_state.h"

/* Functions of struct track_writer. */
void perfetto_put_track(struct tracks *t, struct track *track);
void perfetto_forget_track(struct track *track);

#endif
