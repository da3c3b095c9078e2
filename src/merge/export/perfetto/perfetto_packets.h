/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_PACKETS_H
#define XT_MERGE_PERFETTO_PACKETS_H

#include "merge/export/perfetto/perfetto_state.h"

extern const char *const perfetto_annotations[ANNOTATIONS];

/* Writes a packet. Returns 0 or -ENOMEM. */
int perfetto_put(struct sink *sink, const Perfetto__Protos__TracePacket *packet);

#endif
