/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's native format: API calls on thread tracks, GPU work on stream tracks with flows
 * from the calls, NVTX ranges and samples below their threads, and counters of allocated memory.
 *
 * Packets belong to sequences. A sequence has its own incremental clock, default track and interned
 * strings. Each track with events has one, which keeps its packets short.
 *
 * Rare packets (tracks, interned strings) go through protobuf-c. An event is a packet of about 20
 * bytes. A generic protobuf writer spends several times longer on sizing and dispatch than on
 * writing, so events are encoded by hand. The tests decode the result with Google's protobuf
 * library.
 *
 * Perfetto processes events of equal time in file order. On one track, an end must therefore not be
 * written after a begin of the same time (see lanes_place()).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/base/varint.h"
#include "merge/export/formats.h"
#include "base/text.h"
#include "merge/read/ranges.h"
#include "merge/tracks/tracks.h"
#include "perfetto_trace.pb-c.h"

#define SEQUENCE_BEGINS	 1 /* values of sequence_flags */
#define SEQUENCE_GOES_ON 2
#define CLOCK_BOOT	 6  /* the trace clock: absolute times */
#define CLOCK_SEQUENCE	 64 /* incremental clock of a sequence */
#define FRAMES_MAPPING	 1  /* id of the mapping that all frames share */

#define EVENT_BYTES_MAX 128 /* without long arguments. Below 128, every length takes one byte */
#define LONG_BYTES	4   /* of lengths in other events, whatever their value */
#define VALUE_BYTES_MAX 32  /* of a value by name, without its texts */
#define NUMBER_BYTES	64

#define STARTED_TRACKS (UINT64_C(1) << 62) /* above all sequentially numbered tracks */

/* Protobuf wire types. */
#define WIRE_VARINT 0
#define WIRE_64	    1
#define WIRE_BYTES  2

/* A bit set: which ids were written. */
struct seen {
	uint8_t *bits;
	size_t capacity;
};

struct sequence {
	uint32_t id; /* 0: not begun */
	uint64_t track;
	uint64_t now_ns;
	struct seen names;  /* names of events: name in paths */
	struct seen frames; /* names of frames: name in paths */
	struct seen stacks; /* path node */
	struct seen texts;  /* name in tracks.texts */
};

struct perfetto_track {
	uint64_t uuid;
	struct sequence sequence;
};

struct perfetto {
	struct tracks tracks;
	uint8_t *packed; /* buffer for one packet */
	size_t packed_capacity;
	uint64_t next_track;
	uint32_t next_sequence;
	uint32_t *chain; /* buffer for paths_chain() */
	size_t chain_capacity;
};

static inline struct perfetto *perfetto_of(struct tracks *t)
{
	return (struct perfetto *)t;
}

static inline struct perfetto_track *own_of(struct track *track)
{
	return (struct perfetto_track *)track->data;
}

/* Converts a time of the log to the common clock. */
static inline uint64_t time_of(const struct tracks *t, uint64_t ns)
{
	return ns + (uint64_t)t->process->log->shift_ns;
}

static void put_packet(struct perfetto *p, const Perfetto__Protos__TracePacket *packet)
{
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	Perfetto__Protos__TracePacket *list = (Perfetto__Protos__TracePacket *)packet;
	size_t length;

	trace.packet = &list;
	trace.n_packet = 1;
	length = perfetto__protos__trace__get_packed_size(&trace);
	xt_grow(p->packed, p->packed_capacity, length);
	perfetto__protos__trace__pack(&trace, p->packed);
	output_text(&p->tracks.sink->out, (const char *)p->packed, length);
}

static void mark_seen(struct seen *seen, uint32_t id)
{
	xt_grow(seen->bits, seen->capacity, id / 8 + 1);
	seen->bits[id / 8] |= (uint8_t)(1u << id % 8);
}

static inline bool is_new(struct seen *seen, uint32_t id)
{
	if (id / 8 < seen->capacity && seen->bits[id / 8] >> id % 8 & 1)
		return false;
	mark_seen(seen, id);
	return true;
}

/* Writes a packet of a sequence with interned data. */
static void put_interned(struct perfetto *p, const struct sequence *sequence,
			 Perfetto__Protos__InternedData *data)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.interned_data = data;
	put_packet(p, &packet);
}

static Perfetto__Protos__InternedString interned_string(const struct names *names, uint32_t name,
							uint64_t iid)
{
	Perfetto__Protos__InternedString string = PERFETTO__PROTOS__INTERNED_STRING__INIT;

	string.has_iid = string.has_str = 1;
	string.iid = iid;
	string.str.data = (uint8_t *)names_text(names, name, &string.str.len);
	return string;
}

static void put_event_name(struct perfetto *p, struct sequence *sequence, uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__EventName event = PERFETTO__PROTOS__EVENT_NAME__INIT, *list = &event;

	event.has_iid = 1;
	event.iid = (uint64_t)name + 1;
	event.name = (char *)names_text(&p->tracks.process->paths->names, name, NULL);
	data.event_names = &list;
	data.n_event_names = 1;
	put_interned(p, sequence, &data);
}

static void put_interned_text(struct perfetto *p, struct sequence *sequence, uint32_t text)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string = interned_string(&p->tracks.texts, text, text);
	Perfetto__Protos__InternedString *list = &string;

	data.debug_annotation_string_values = &list;
	data.n_debug_annotation_string_values = 1;
	put_interned(p, sequence, &data);
}

/* A frame is a function. All of its addresses share it. */
static void intern_frame(struct perfetto *p, struct sequence *sequence, uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string, *strings = &string;
	Perfetto__Protos__Frame frame = PERFETTO__PROTOS__FRAME__INIT, *frames = &frame;

	if (!is_new(&sequence->frames, name))
		return;
	string = interned_string(&p->tracks.process->paths->names, name, (uint64_t)name + 1);
	frame.has_iid = frame.has_function_name_id = frame.has_mapping_id = frame.has_rel_pc = 1;
	frame.iid = frame.function_name_id = frame.rel_pc = (uint64_t)name + 1;
	frame.mapping_id = FRAMES_MAPPING;
	data.function_names = &strings;
	data.frames = &frames;
	data.n_function_names = data.n_frames = 1;
	put_interned(p, sequence, &data);
}

static void put_path(struct perfetto *p, struct sequence *sequence, uint32_t node)
{
	const struct paths *paths = p->tracks.process->paths;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__Callstack stack = PERFETTO__PROTOS__CALLSTACK__INIT, *list = &stack;
	int depth = paths_chain(paths, node, &p->chain, &p->chain_capacity);

	stack.frame_ids = xt_calloc((size_t)depth, sizeof(*stack.frame_ids));
	for (int d = 0; d < depth; d++) {
		uint32_t name = paths->nodes[p->chain[d]].name;

		stack.frame_ids[stack.n_frame_ids++] = (uint64_t)name + 1;
		intern_frame(p, sequence, name);
	}
	stack.has_iid = 1;
	stack.iid = node;
	data.callstacks = &list;
	data.n_callstacks = 1;
	put_interned(p, sequence, &data);
	free(stack.frame_ids);
}

/* Intern a name of paths (id: the name + 1), a text of tracks, and a path, if any (its node). */
static inline void intern_name(struct perfetto *p, struct sequence *sequence, uint32_t name)
{
	if (is_new(&sequence->names, name))
		put_event_name(p, sequence, name);
}
static inline void intern_text(struct perfetto *p, struct sequence *sequence, uint32_t text)
{
	if (is_new(&sequence->texts, text))
		put_interned_text(p, sequence, text);
}
static inline void intern_path(struct perfetto *p, struct sequence *sequence, uint32_t node)
{
	if (node != PATH_ROOT && is_new(&sequence->stacks, node))
		put_path(p, sequence, node);
}

static void forget_track(struct track *track)
{
	struct sequence *sequence = &own_of(track)->sequence;

	free_all(sequence->names.bits, sequence->frames.bits, sequence->stacks.bits,
		 sequence->texts.bits);
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
	put_packet(p, &packet);
}

static void put_clock(struct perfetto *p, const struct sequence *sequence)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock clocks[2], *list[2] = {&clocks[0], &clocks[1]};

	for (int c = 0; c < 2; c++) {
		perfetto__protos__clock_snapshot__clock__init(&clocks[c]);
		clocks[c].has_clock_id = clocks[c].has_timestamp = 1;
		clocks[c].clock_id = c ? CLOCK_SEQUENCE : CLOCK_BOOT;
		clocks[c].timestamp = sequence->now_ns;
	}
	clocks[1].has_is_incremental = clocks[1].is_incremental = 1;
	snapshot.clocks = list;
	snapshot.n_clocks = 2;
	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.clock_snapshot = &snapshot;
	put_packet(p, &packet);
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
	mapping.iid = FRAMES_MAPPING;
	data.debug_annotation_names = list;
	data.n_debug_annotation_names = ARG_FIRST_LONG;
	data.mappings = &mappings;
	data.n_mappings = 1;
	put_interned(p, sequence, &data);
}

/* Begins a sequence that writes to the track. */
static void begin_sequence(struct perfetto *p, struct perfetto_track *track)
{
	const struct process *process = p->tracks.process;
	int64_t origin_ns = (int64_t)time_of(&p->tracks, (uint64_t)process->origin_ns);

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
	struct perfetto_track *own = own_of(track);
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
		descriptor.parent_uuid = own_of(track->parent)->uuid;
	}
	if (track->kind == TRACK_COUNTER && !strcmp(track->counter->unit, "bytes")) {
		counter.has_unit = 1;
		counter.unit = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
	} else if (track->kind == TRACK_COUNTER) {
		counter.unit_name = (char *)track->counter->unit;
	}
	descriptor.counter = track->kind == TRACK_COUNTER ? &counter : NULL;
	packet.track_descriptor = &descriptor;
	put_packet(p, &packet);
	if (has_events(t, track) && !own->sequence.id)
		begin_sequence(p, own);
	free_all(title, name);
}

enum event_type {
	EVENT_BEGIN = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
	EVENT_END = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END,
	EVENT_INSTANT = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT,
	EVENT_COUNTER = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER,
};

/* An event. Only members that are not 0 are written. */
struct event {
	uint64_t time_ns; /* on the common clock */
	uint64_t track;	  /* if it differs from the sequence's track */
	uint64_t weight;  /* of the stack, in sums over events */
	uint64_t flow;	  /* flow that starts, continues or ends here */
	int64_t counter;  /* EVENT_COUNTER: always written */
	uint32_t name;	  /* interned name + 1 */
	uint32_t stack;	  /* interned node */
	enum event_type type;
	bool ends_flow;
	const struct track_span *args_of; /* NULL: no arguments */
};

static inline uint8_t *put_number(uint8_t *p, uint32_t field, uint64_t value)
{
	p = xt_uvar_put(p, field << 3 | WIRE_VARINT);
	return xt_uvar_put(p, value);
}

static inline uint8_t *put_fixed(uint8_t *p, uint32_t field, const void *value)
{
	p = xt_uvar_put(p, field << 3 | WIRE_64);
	memcpy(p, value, sizeof(uint64_t));
	return p + sizeof(uint64_t);
}

static inline uint8_t *put_text(uint8_t *p, uint32_t field, const char *text, size_t length)
{
	p = xt_uvar_put(p, field << 3 | WIRE_BYTES);
	p = xt_uvar_put(p, length);
	memcpy(p, text, length);
	return p + length;
}

/* Begins a field whose length end_field() fills in. */
static inline uint8_t *begin_field(uint8_t *p, uint32_t field, uint8_t **length, bool is_long)
{
	*p++ = (uint8_t)(field << 3 | WIRE_BYTES);
	*length = p;
	return p + (is_long ? LONG_BYTES : 1);
}

static inline void end_field(uint8_t *length, const uint8_t *end, bool is_long)
{
	size_t bytes = (size_t)(end - length) - (is_long ? LONG_BYTES : 1);

	for (int i = 0; is_long && i < LONG_BYTES - 1; i++, bytes >>= 7)
		*length++ = (uint8_t)(bytes | 0x80);
	*length = (uint8_t)bytes;
}

/* Writes text as valid UTF-8, as protobuf requires. */
static uint8_t *put_clean(uint8_t *p, uint32_t field, const struct xt_bytes *text)
{
	uint8_t *length;

	p = begin_field(p, field, &length, true);
	p += text_clean((char *)p, text->data, text->length, 0);
	end_field(length, p, true);
	return p;
}

/* Writes a value that a range has by name. */
static uint8_t *put_value(uint8_t *p, const struct range_value *value)
{
	char number[NUMBER_BYTES];
	uint8_t *length;
	double real;

	p = begin_field(p, 4, &length, true);
	p = put_clean(p, 10, &value->name);
	/* A number that is too long to be parsed here stays text. */
	if (value->is_number && value->value.length < sizeof(number))
		snprintf(number, sizeof(number), "%.*s", (int)value->value.length,
			 value->value.data);
	else
		number[0] = '\0';
	if (!number[0]) {
		p = put_clean(p, 6, &value->value);
	} else if (strpbrk(number, ".e")) {
		real = strtod(number, NULL);
		p = put_fixed(p, 5, &real);
	} else {
		p = put_number(p, 4, (uint64_t)strtoll(number, NULL, 10));
	}
	end_field(length, p, true);
	return p;
}

static inline uint8_t *put_arg(uint8_t *p, const struct perfetto *perfetto,
			       const struct track_arg *arg, bool is_long)
{
	static const uint8_t fields[] = {[ARG_NUMBER] = 3, [ARG_SIGNED] = 4, [ARG_INTERNED] = 17};
	const char *key = track_args[arg->key], *text;
	char color[16];
	size_t text_length;
	uint8_t *length;

	p = begin_field(p, 4, &length, is_long);
	p = is_long ? put_text(p, 10, key, strlen(key)) : put_number(p, 1, arg->key + 1u);
	if (arg->type == ARG_REAL) {
		p = put_fixed(p, 5, &arg->real);
	} else if (is_long && arg->type == ARG_NAME) {
		text = names_text(&perfetto->tracks.process->paths->names, arg->name, &text_length);
		p = put_text(p, 6, text, text_length);
	} else if (is_long && arg->type == ARG_ARGB) {
		snprintf(color, sizeof(color), "#%08x", (uint32_t)arg->number);
		p = put_text(p, 6, color, strlen(color));
	} else {
		p = put_number(p, fields[arg->type],
			       arg->type == ARG_INTERNED ? arg->name : arg->number);
	}
	end_field(length, p, is_long);
	return p;
}

/* The values by name of a range at its begin, or at its end. */
struct values {
	struct range_value rows[RANGE_VALUES_MAX];
	size_t count;
};

/* Encodes an event. values: if it is long. */
static inline __attribute__((always_inline)) uint8_t *
encode(uint8_t *p, const struct perfetto *perfetto, struct sequence *sequence,
       const struct event *event, const struct values *values)
{
	const struct track_span *span = event->args_of;
	const struct track_label *label = span ? span->label : NULL;
	bool is_long = values;
	uint8_t *packet, *body;

	p = begin_field(p, 1, &packet, is_long);
	if (event->time_ns >= sequence->now_ns) {
		p = put_number(p, 8, event->time_ns - sequence->now_ns);
		sequence->now_ns = event->time_ns;
	} else {
		p = put_number(p, 8, event->time_ns);
		p = put_number(p, 58, CLOCK_BOOT);
	}
	p = put_number(p, 10, sequence->id);
	p = begin_field(p, 11, &body, is_long);
	p = put_number(p, 9, event->type);
	if (event->name)
		p = put_number(p, 10, event->name);
	if (event->track)
		p = put_number(p, 11, event->track);
	if (event->type == EVENT_COUNTER)
		p = put_number(p, 30, (uint64_t)event->counter);
	if (event->flow)
		p = put_fixed(p, event->ends_flow ? 48 : 47, &event->flow);
	if (event->stack)
		p = put_number(p, 56, event->stack);
	if (event->weight)
		p = put_number(p, 57, event->weight);
	for (size_t i = 0; label && i < label->arg_count; i++)
		p = put_arg(p, perfetto, &label->args[i], is_long);
	for (size_t i = 0; span && i < span->arg_count; i++)
		if (!is_long || (span->args[i].type != ARG_PAIRS && event->type != EVENT_END))
			p = put_arg(p, perfetto, &span->args[i], is_long);
	for (size_t i = 0; is_long && i < values->count; i++)
		p = put_value(p, &values->rows[i]);
	end_field(body, p, is_long);
	end_field(packet, p, is_long);
	return p;
}

static void put_short(struct perfetto *p, struct sequence *sequence, const struct event *event)
{
	struct output *out = &p->tracks.sink->out;
	uint8_t *at = (uint8_t *)output_room(out, EVENT_BYTES_MAX);

	output_advance(out, (char *)encode(at, p, sequence, event, NULL));
}

static __attribute__((noinline)) void put_long(struct perfetto *p, struct sequence *sequence,
					       const struct event *event)
{
	const struct track_span *span = event->args_of;
	struct values values;
	size_t room = 2 * EVENT_BYTES_MAX, length;
	uint8_t *end;

	values.count = 0;
	for (size_t i = 0; i < span->arg_count; i++) {
		const struct track_arg *arg = &span->args[i];

		if (arg->type == ARG_PAIRS)
			values.count = range_values(p->tracks.process->model,
						    event->type == EVENT_END ? 0 : arg->pairs.begin,
						    event->type == EVENT_END ? arg->pairs.end : 0,
						    values.rows);
		if (arg->type == ARG_NAME) {
			names_text(&p->tracks.process->paths->names, arg->name, &length);
			room += length;
		}
	}
	for (size_t i = 0; i < values.count; i++)
		room += VALUE_BYTES_MAX +
			text_clean_bound(values.rows[i].name.length + values.rows[i].value.length);
	xt_grow(p->packed, p->packed_capacity, room);
	end = encode(p->packed, p, sequence, event, &values);
	output_text(&p->tracks.sink->out, (const char *)p->packed, (size_t)(end - p->packed));
}

static void put_event(struct perfetto *p, struct sequence *sequence, const struct event *event)
{
	const struct track_span *span = event->args_of;
	bool is_long = false;

	for (size_t i = 0; span && i < span->arg_count; i++)
		is_long |= span->args[i].key >= ARG_FIRST_LONG;
	if (is_long)
		put_long(p, sequence, event);
	else
		put_short(p, sequence, event);
}

/* Any thread may end a started range, so compute its track from the process and the range's key. */
static uint64_t started_track(const struct tracks *t, uint64_t key)
{
	uint64_t hash = (key ^ own_of(t->root)->uuid * 0x9e3779b97f4a7c15u) * 0xc2b2ae3d27d4eb4fu;

	return STARTED_TRACKS | hash >> 3;
}

/* Declares the track of a started range, which has its name. */
static void put_started_track(struct tracks *t, uint64_t uuid, uint32_t name)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;

	track.has_uuid = track.has_parent_uuid = 1;
	track.uuid = uuid;
	track.parent_uuid = own_of(t->root)->uuid;
	track.name = (char *)names_text(&t->process->paths->names, name, NULL);
	packet.track_descriptor = &track;
	put_packet(perfetto_of(t), &packet);
}

/* Returns the track of an event, if it is not that of its sequence. */
static uint64_t own_track(const struct tracks *t, const struct track_span *span)
{
	const struct perfetto_track *track = own_of(span->track);

	if (span->is_async)
		return started_track(t, span->key);
	return track->uuid == track->sequence.track ? 0 : track->uuid;
}

static void intern_args(struct perfetto *p, struct sequence *sequence, const struct track_arg *args,
			size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (args[i].type == ARG_INTERNED)
			intern_text(p, sequence, args[i].name);
}

/* Writes the begin of a span, or an instant. The flow of a graph visits all of its work. */
static void put_begin(struct tracks *t, const struct track_span *span, enum event_type type)
{
	struct perfetto *p = perfetto_of(t);
	struct sequence *sequence = &own_of(span->track)->sequence;
	struct event event = {
		.time_ns = time_of(t, span->start_ns),
		.track = own_track(t, span),
		.flow = span->flow,
		.name = span->name + 1,
		.stack = span->node,
		.type = type,
		.ends_flow = span->launch && !(span->launch->flags & LAUNCH_GRAPH),
		.args_of = span,
	};

	/* Work weighs its stack: sums over an area of its track are GPU time. */
	if (span->launch && event.stack != PATH_ROOT)
		event.weight = span->duration_ns;
	intern_name(p, sequence, span->name);
	if (span->label)
		intern_args(p, sequence, span->label->args, span->label->arg_count);
	intern_args(p, sequence, span->args, span->arg_count);
	intern_path(p, sequence, event.stack);
	if (span->is_async)
		put_started_track(t, event.track, span->name);
	put_event(p, sequence, &event);
}

static void begin_span(struct tracks *t, const struct track_span *span)
{
	put_begin(t, span, EVENT_BEGIN);
}

static void put_instant(struct tracks *t, const struct track_span *span)
{
	put_begin(t, span, EVENT_INSTANT);
}

static void end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns)
{
	struct event event = {
		.time_ns = time_of(t, end_ns),
		.track = own_track(t, span),
		.type = EVENT_END,
	};

	for (size_t i = 0; i < span->arg_count; i++)
		if (span->args[i].type == ARG_PAIRS && span->args[i].pairs.end)
			event.args_of = span;
	if (end_ns != SPAN_OPEN)
		put_event(perfetto_of(t), &own_of(span->track)->sequence, &event);
}

static void put_span(struct tracks *t, const struct track_span *span)
{
	struct sequence *sequence = &own_of(span->track)->sequence;
	struct event end = {
		.time_ns = time_of(t, span->start_ns) + span->duration_ns,
		.track = own_track(t, span),
		.type = EVENT_END,
	};

	put_begin(t, span, EVENT_BEGIN);
	put_short(perfetto_of(t), sequence, &end);
}

static void put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct event event = {
		.time_ns = time_of(t, time_ns),
		.counter = (int64_t)(value & INT64_MAX),
		.type = EVENT_COUNTER,
	};

	put_short(perfetto_of(t), &own_of(track)->sequence, &event);
}

static int perfetto_begin(struct sink *sink)
{
	static const struct track_writer writer = {
		.track_bytes = sizeof(struct perfetto_track),
		.is_compact = true,
		.has_ends = true,
		.track = put_track,
		.forget = forget_track,
		.span = put_span,
		.begin = begin_span,
		.end = end_span,
		.instant = put_instant,
		.counter = put_counter,
	};
	struct perfetto *p = sink->state;

	tracks_begin(sink, &writer);
	p->next_track = 1;
	p->next_sequence = 1;
	return 0;
}

static void perfetto_free_state(struct sink *sink)
{
	struct perfetto *p = sink->state;

	free_all(p->packed, p->chain);
	tracks_free(sink);
}

const struct exporter exporter_perfetto = {
	.name = "perfetto",
	.what = "Write a timeline in Perfetto's native format, smaller and faster than --chrome",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	TRACKS_EVENTS,
	.state_bytes = sizeof(struct perfetto),
	.begin = perfetto_begin,
	.free = perfetto_free_state,
};
