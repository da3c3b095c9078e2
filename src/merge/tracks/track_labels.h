/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What work of the same shape shares: its name and most of its arguments.
 */
#ifndef XT_MERGE_TRACK_LABELS_H
#define XT_MERGE_TRACK_LABELS_H

#include "merge/tracks/track_state.h"

void track_labels_begin(struct tracks *t);
void track_labels_end(struct tracks *t);

/* Returns the label of the work's shape, made on first use. */
struct track_label *track_label(struct tracks *t, const struct work *work);

#endif
