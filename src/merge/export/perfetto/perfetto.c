/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's native format: API calls on thread tracks, GPU work on stream tracks with flows
 * from the calls, NVTX ranges and samples below their threads, and counters of allocated memory.
 *
 * Rare packets (tracks, interned strings) go through protobuf-c. Events are encoded by hand for
 * speed (perfetto_events.c).
 */
#include <stdlib.h>

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_tracks.h"

static int begin(struct sink *sink)
{
	static const struct track_writer writer = {
		.track_bytes = sizeof(struct perfetto_track),
		.is_compact = true,
		.has_ends = true,
		.track = perfetto_put_track,
		.forget = perfetto_forget_track,
		.span = perfetto_put_span,
		.begin = perfetto_begin_span,
		.end = perfetto_end_span,
		.instant = perfetto_put_instant,
		.counter = perfetto_put_counter,
	};
	struct perfetto *p = tracks_begin(sink, &writer, sizeof(*p));

	p->next_track = 1;
	p->next_sequence = 1;
	return 0;
}

static int end(struct sink *sink, const struct run *run)
{
	(void)sink;
	(void)run;
	return 0;
}

static void free_state(struct sink *sink)
{
	struct perfetto *p = sink->state;

	if (p) {
		free(p->packed);
		free(p->chain);
	}
	tracks_free(sink);
}

const struct exporter exporter_perfetto = {
	.name = "perfetto",
	.what = "Write a timeline in Perfetto's native format, smaller and faster than --chrome",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	TRACKS_EVENTS,
	.begin = begin,
	.end = end,
	.free = free_state,
};
