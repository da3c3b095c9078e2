/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CHROME_EVENTS_H
#define XT_MERGE_CHROME_EVENTS_H

#include "merge/export/chrome/chrome_state.h"

/* Writes tracks and events. */
extern const struct track_writer chrome_writer;

#endif
