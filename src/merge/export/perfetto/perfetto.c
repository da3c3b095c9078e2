/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's native format: API calls on thread tracks, GPU work on stream tracks with flows
 * from the calls, NVTX ranges and samples below their threads, and counters of allocated memory.
 *
 * Rare packets (tracks, interned strings) go through protobuf-c. Events are encoded by hand for
 * speed (perfetto_events.c).
 */
#include <stdlib.h>

#include "merge/base/text.h"

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_packets.h"

#define SEQUENCE_BEGINS	 1 /* values of sequence_flags */
#define SEQUENCE_GOES_ON 2
#define CLOCK_SEQUENCE	 64 /* incremental clock of a sequence */

static void forget_track(struct track *track)
{
	struct sequence *sequence = &perfetto_track(track)->sequence;

	free(sequence->names.bits);
	free(sequence->frames.bits);
	free(sequence->stacks.bits);
	free(sequence->texts.bits);
}

/* Writes the defaults for all packets of the sequence. */
static void put_defaults(struct perfetto *p, const struct sequence *sequence)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TracePacketDefaults defaults =
		PERFETTO__PROTOS__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__Protos__TrackEventDefaults event = PERFETTO__PROTOS__TRACK_EVENT_DEFAULTS__INIT;

	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_BEGINS;
	packet.trace_packet_defaults = &defaults;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_SEQUENCE;
	defaults.track_event_defaults = &event;
	event.has_track_uuid = 1;
	event.track_uuid = sequence->track;
	perfetto_put(p, &packet);
}

static void put_clock(struct perfetto *p, const struct sequence *sequence)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock clocks[2], *list[2] = {&clocks[0], &clocks[1]};

	for (int c = 0; c < 2; c++) {
		perfetto__protos__clock_snapshot__clock__init(&clocks[c]);
		clocks[c].has_clock_id = clocks[c].has_timestamp = 1;
		clocks[c].clock_id = c ? CLOCK_SEQUENCE : PERFETTO_CLOCK_BOOT;
		clocks[c].timestamp = sequence->now_ns;
	}
	clocks[1].has_is_incremental = clocks[1].is_incremental = 1;
	snapshot.clocks = list;
	snapshot.n_clocks = 2;
	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.clock_snapshot = &snapshot;
	perfetto_put(p, &packet);
}

/* Writes names of arguments, and the one mapping of all frames, which readers require. */
static void put_first_interned(struct perfetto *p, const struct sequence *sequence)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__Mapping mapping = PERFETTO__PROTOS__MAPPING__INIT, *mappings = &mapping;
	Perfetto__Protos__DebugAnnotationName names[ARG_FIRST_LONG], *list[ARG_FIRST_LONG];

	for (int a = 0; a < ARG_FIRST_LONG; a++) {
		perfetto__protos__debug_annotation_name__init(&names[a]);
		names[a].has_iid = 1;
		names[a].iid = (uint64_t)a + 1;
		names[a].name = (char *)track_args[a];
		list[a] = &names[a];
	}
	mapping.has_iid = 1;
	mapping.iid = SEQUENCE_MAPPING;
	data.debug_annotation_names = list;
	data.n_debug_annotation_names = ARG_FIRST_LONG;
	data.mappings = &mappings;
	data.n_mappings = 1;
	perfetto_put_interned(p, sequence, &data);
}

/* Begins a sequence that writes to the track. */
static void begin_sequence(struct perfetto *p, struct perfetto_track *track)
{
	const struct process *process = p->tracks.process;
	int64_t origin_ns = (int64_t)perfetto_time(&p->tracks, (uint64_t)process->origin_ns);

	track->sequence = (struct sequence){
		.id = p->next_sequence++,
		.track = track->uuid,
		.now_ns = origin_ns > 0 ? (uint64_t)origin_ns : 0,
	};
	put_defaults(p, &track->sequence);
	put_clock(p, &track->sequence);
	put_first_interned(p, &track->sequence);
}

/* Returns the title of a process with the selected part of the run. The caller frees it. */
static char *process_title(const struct tracks *t, const char *label)
{
	char part[WANTED_BYTES];

	if (!wanted_is_part(&t->sink->settings->wanted))
		return xt_strdup(label);
	wanted_describe(&t->sink->settings->wanted, part, sizeof(part));
	return xt_asprintf("%s, only %s", label, part);
}

/* Processes and devices have no events, nor have threads in CPU logs. */
static bool has_events(const struct tracks *t, const struct track *track)
{
	return track->kind != TRACK_PROCESS && track->kind != TRACK_DEVICE &&
	       !(track->kind == TRACK_THREAD && t->process->cpu);
}

static void put_track(struct tracks *t, struct track *track)
{
	struct perfetto *p = perfetto_of(t);
	struct perfetto_track *own = perfetto_track(track);
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor descriptor = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor process = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	Perfetto__Protos__ThreadDescriptor thread = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	char *title = track->kind == TRACK_PROCESS ? process_title(t, track->name)
						   : xt_strdup(track->name);
	char *name = text_clean_copy(title);

	own->uuid = p->next_track++;
	descriptor.has_uuid = 1;
	descriptor.uuid = own->uuid;
	if (track->kind == TRACK_PROCESS) {
		process.has_pid = 1;
		process.pid = (int32_t)track->number;
		process.process_name = name;
		descriptor.process = &process;
	} else if (track->kind == TRACK_THREAD && track->number) {
		thread.has_pid = thread.has_tid = 1;
		thread.pid = (int32_t)t->root->number;
		thread.tid = (int32_t)track->number;
		thread.thread_name = name;
		descriptor.thread = &thread;
	} else {
		descriptor.name = name;
	}
	if (track->parent) {
		descriptor.has_parent_uuid = 1;
		descriptor.parent_uuid = perfetto_track(track->parent)->uuid;
	}
	if (track->kind == TRACK_COUNTER && !strcmp(track->counter->unit, "bytes")) {
		counter.has_unit = 1;
		counter.unit = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
	} else if (track->kind == TRACK_COUNTER) {
		counter.unit_name = (char *)track->counter->unit;
	}
	descriptor.counter = track->kind == TRACK_COUNTER ? &counter : NULL;
	packet.track_descriptor = &descriptor;
	perfetto_put(p, &packet);
	if (has_events(t, track) && !own->sequence.id)
		begin_sequence(p, own);
	free(title);
	free(name);
}

static int begin(struct sink *sink)
{
	static const struct track_writer writer = {
		.track_bytes = sizeof(struct perfetto_track),
		.is_compact = true,
		.has_ends = true,
		.track = put_track,
		.forget = forget_track,
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
	.free = free_state,
};
