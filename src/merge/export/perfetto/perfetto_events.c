/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a Perfetto trace.
 *
 * An event is a packet of about 20 bytes. A generic protobuf writer spends several times longer on
 * sizing and dispatch than on writing, so this file encodes each field by hand. Events with long
 * arguments are rare and go through protobuf-c. The tests decode the result with Google's protobuf
 * library.
 *
 * Perfetto processes events of equal time in file order. On one track, an end must therefore not be
 * written after a begin of the same time (see lanes.h).
 */
#include "merge/export/perfetto/perfetto_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/base/text.h"
#include "merge/read/range_values.h"

#include "merge/export/perfetto/perfetto_packets.h"

/* Upper bound of an event. Below 128, every length takes one byte. */
#define EVENT_BYTES_MAX 128
#define ARGS_MAX	(RANGE_VALUES_MAX + 8)

#define STARTED_TRACKS (UINT64_C(1) << 62) /* above all sequentially numbered tracks */

/* Protobuf wire types. */
#define WIRE_VARINT 0
#define WIRE_64	    1
#define WIRE_BYTES  2

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

static inline uint8_t *put_varint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static inline uint8_t *put_number(uint8_t *p, uint32_t field, uint64_t value)
{
	p = put_varint(p, field << 3 | WIRE_VARINT);
	return put_varint(p, value);
}

static inline uint8_t *put_fixed(uint8_t *p, uint32_t field, const void *value)
{
	p = put_varint(p, field << 3 | WIRE_64);
	memcpy(p, value, sizeof(uint64_t));
	return p + sizeof(uint64_t);
}

/* Begins a field of at most 127 bytes. end_short() fills in its length. */
static inline uint8_t *begin_short(uint8_t *p, uint32_t field, uint8_t **length)
{
	*p++ = (uint8_t)(field << 3 | WIRE_BYTES);
	*length = p;
	return p + 1;
}

static inline void end_short(uint8_t *length, const uint8_t *end)
{
	*length = (uint8_t)(end - length - 1);
}

static inline uint8_t *put_args(uint8_t *p, const struct track_arg *args, size_t count)
{
	static const uint8_t fields[] = {
		[ARG_NUMBER] = 3, [ARG_SIGNED] = 4, [ARG_REAL] = 5, [ARG_INTERNED] = 17};

	for (size_t i = 0; i < count; i++) {
		const struct track_arg *arg = &args[i];
		uint8_t *length;

		p = begin_short(p, 4, &length);
		p = put_number(p, 1, arg->key + 1u);
		p = arg->type == ARG_REAL
			    ? put_fixed(p, fields[arg->type], &arg->real)
			    : put_number(p, fields[arg->type],
					 arg->type == ARG_INTERNED ? arg->name : arg->number);
		end_short(length, p);
	}
	return p;
}

static void put_event(struct perfetto *p, struct sequence *sequence, const struct event *event)
{
	struct output *out = &p->tracks.sink->out;
	uint8_t *at = (uint8_t *)output_room(out, EVENT_BYTES_MAX), *packet, *body;
	const struct track_span *span = event->args_of;

	at = begin_short(at, 1, &packet);
	if (event->time_ns >= sequence->now_ns) {
		at = put_number(at, 8, event->time_ns - sequence->now_ns);
		sequence->now_ns = event->time_ns;
	} else {
		at = put_number(at, 8, event->time_ns);
		at = put_number(at, 58, PERFETTO_CLOCK_BOOT);
	}
	at = put_number(at, 10, sequence->id);
	at = begin_short(at, 11, &body);
	at = put_number(at, 9, event->type);
	if (event->name)
		at = put_number(at, 10, event->name);
	if (event->track)
		at = put_number(at, 11, event->track);
	if (event->type == EVENT_COUNTER)
		at = put_number(at, 30, (uint64_t)event->counter);
	if (event->flow)
		at = put_fixed(at, event->ends_flow ? 48 : 47, &event->flow);
	if (event->stack)
		at = put_number(at, 56, event->stack);
	if (event->weight)
		at = put_number(at, 57, event->weight);
	if (span && span->label)
		at = put_args(at, span->label->args, span->label->arg_count);
	if (span)
		at = put_args(at, span->args, span->arg_count);
	end_short(body, at);
	end_short(packet, at);
	output_advance(out, (char *)at);
}

/* Arguments of any length. */
struct long_args {
	Perfetto__Protos__DebugAnnotation rows[ARGS_MAX], *list[ARGS_MAX];
	size_t count;
	char *texts; /* of pairs */
};

static Perfetto__Protos__DebugAnnotation *add_arg(struct long_args *args, const char *name)
{
	Perfetto__Protos__DebugAnnotation *row = &args->rows[args->count];

	perfetto__protos__debug_annotation__init(row);
	row->name = (char *)name;
	args->list[args->count++] = row;
	return row;
}

static void add_number(struct long_args *args, const struct track_arg *arg)
{
	Perfetto__Protos__DebugAnnotation *row = add_arg(args, track_args[arg->key]);

	row->has_uint_value = arg->type == ARG_NUMBER;
	row->uint_value = arg->number;
	row->has_int_value = arg->type == ARG_SIGNED;
	row->int_value = (int64_t)arg->number;
	row->has_double_value = arg->type == ARG_REAL;
	row->double_value = arg->real;
}

/* Returns the text, zero-terminated and valid UTF-8 as protobuf requires. Advances *p behind it. */
static char *clean_text(char **p, const struct xt_bytes *text)
{
	char *begin = *p;

	*p += text_clean(begin, text->data, text->length, 0);
	*(*p)++ = '\0';
	return begin;
}

static void add_pairs(struct long_args *args, const struct range_value *values, size_t count)
{
	size_t room = 0;
	char *p;

	for (size_t i = 0; i < count; i++)
		room += text_clean_bound(values[i].name.length + values[i].value.length) + 2;
	p = args->texts = xt_malloc(room);
	for (size_t i = 0; i < count; i++) {
		Perfetto__Protos__DebugAnnotation *row =
			add_arg(args, clean_text(&p, &values[i].name));
		char *text = clean_text(&p, &values[i].value);

		if (!values[i].is_number) {
			row->string_value = text;
		} else if (strpbrk(text, ".e")) {
			row->has_double_value = 1;
			row->double_value = strtod(text, NULL);
		} else {
			row->has_int_value = 1;
			row->int_value = strtoll(text, NULL, 10);
		}
	}
}

/* Adds the values that a range gives at its begin, or at its end. */
static void add_values(const struct perfetto *p, struct long_args *args,
		       const struct track_arg *arg, bool at_end)
{
	struct range_value values[RANGE_VALUES_MAX];
	uint32_t string = at_end ? arg->pairs.end : arg->pairs.begin;

	if (string)
		add_pairs(args, values, range_values(p->tracks.process->model, string, 0, values));
}

static void put_long_event(struct perfetto *p, const struct sequence *sequence,
			   const struct event *event, struct long_args *args)
{
	Perfetto__Protos__TrackEvent body = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	body.has_type = 1;
	body.type = (Perfetto__Protos__TrackEvent__Type)event->type;
	body.has_name_iid = event->name != 0;
	body.name_iid = event->name;
	body.has_track_uuid = event->track != 0;
	body.track_uuid = event->track;
	body.debug_annotations = args->list;
	body.n_debug_annotations = args->count;
	packet.has_timestamp = packet.has_timestamp_clock_id = 1;
	packet.timestamp = event->time_ns;
	packet.timestamp_clock_id = PERFETTO_CLOCK_BOOT;
	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.track_event = &body;
	perfetto_put(p, &packet);
}

/* Writes an event of a range that has long arguments. Returns false if it has none. */
static bool put_long(struct perfetto *p, const struct sequence *sequence, const struct event *event,
		     const struct track_span *span)
{
	bool is_end = event->type == EVENT_END, is_long = false;
	struct long_args args;
	char color[16];

	for (size_t i = 0; i < span->arg_count; i++)
		is_long |= span->args[i].key >= ARG_FIRST_LONG;
	if (!is_long)
		return false;
	args.count = 0;
	args.texts = NULL;
	for (size_t i = 0; i < span->arg_count; i++) {
		const struct track_arg *arg = &span->args[i];

		if (arg->type == ARG_PAIRS) {
			add_values(p, &args, arg, is_end);
		} else if (is_end) {
			continue;
		} else if (arg->type == ARG_NAME) {
			add_arg(&args, track_args[arg->key])->string_value = (char *)names_text(
				&p->tracks.process->paths->names, arg->name, NULL);
		} else if (arg->type == ARG_ARGB) {
			snprintf(color, sizeof(color), "#%08x", (uint32_t)arg->number);
			add_arg(&args, track_args[arg->key])->string_value = color;
		} else {
			add_number(&args, arg);
		}
	}
	/* A damaged log may lack the values. Only the end of a range needs no event here. */
	if (args.count || !is_end)
		put_long_event(p, sequence, event, &args);
	free(args.texts);
	return args.count || !is_end;
}

/* Any thread may end a started range, so compute its track from the process and the range's key. */
static uint64_t started_track(const struct tracks *t, uint64_t key)
{
	uint64_t hash =
		(key ^ perfetto_track(t->root)->uuid * 0x9e3779b97f4a7c15u) * 0xc2b2ae3d27d4eb4fu;

	return STARTED_TRACKS | hash >> 3;
}

/* Declares the track of a started range, which has its name. */
static void put_started_track(struct tracks *t, uint64_t uuid, uint32_t name)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;

	track.has_uuid = track.has_parent_uuid = 1;
	track.uuid = uuid;
	track.parent_uuid = perfetto_track(t->root)->uuid;
	track.name = (char *)names_text(&t->process->paths->names, name, NULL);
	packet.track_descriptor = &track;
	perfetto_put(perfetto_of(t), &packet);
}

/* Returns the track of an event, if it is not that of its sequence. */
static uint64_t own_track(const struct tracks *t, const struct track_span *span)
{
	const struct perfetto_track *track = perfetto_track(span->track);

	if (span->is_async)
		return started_track(t, span->key);
	return track->uuid == track->sequence.track ? 0 : track->uuid;
}

static void intern_args(struct perfetto *p, struct sequence *sequence, const struct track_arg *args,
			size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (args[i].type == ARG_INTERNED)
			perfetto_intern_text(p, sequence, args[i].name);
}

/* Writes the begin of a span, or an instant. */
static void put_begin(struct tracks *t, const struct track_span *span, enum event_type type)
{
	struct perfetto *p = perfetto_of(t);
	struct sequence *sequence = &perfetto_track(span->track)->sequence;
	struct event event = {
		.time_ns = perfetto_time(t, span->start_ns),
		.track = own_track(t, span),
		.flow = span->flow,
		.name = span->name + 1,
		.stack = tracks_node(t, span),
		.type = type,
		.ends_flow = span->ends_flow,
		.args_of = span,
	};

	/* Work weighs its stack: sums over an area of its track are GPU time. */
	if (span->launch && event.stack != PATH_ROOT)
		event.weight = span->duration_ns;
	perfetto_intern_name(p, sequence, span->name);
	if (span->label)
		intern_args(p, sequence, span->label->args, span->label->arg_count);
	intern_args(p, sequence, span->args, span->arg_count);
	perfetto_intern_path(p, sequence, event.stack);
	if (span->is_async)
		put_started_track(t, event.track, span->name);
	if (!put_long(p, sequence, &event, span))
		put_event(p, sequence, &event);
}

void perfetto_begin_span(struct tracks *t, const struct track_span *span)
{
	put_begin(t, span, EVENT_BEGIN);
}

void perfetto_put_instant(struct tracks *t, const struct track_span *span)
{
	put_begin(t, span, EVENT_INSTANT);
}

void perfetto_end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns)
{
	struct perfetto *p = perfetto_of(t);
	struct sequence *sequence = &perfetto_track(span->track)->sequence;
	struct event event = {
		.time_ns = perfetto_time(t, end_ns),
		.track = own_track(t, span),
		.type = EVENT_END,
	};

	if (end_ns != SPAN_OPEN && !put_long(p, sequence, &event, span))
		put_event(p, sequence, &event);
}

void perfetto_put_span(struct tracks *t, const struct track_span *span)
{
	struct sequence *sequence = &perfetto_track(span->track)->sequence;
	struct event end = {
		.time_ns = perfetto_time(t, span->start_ns) + span->duration_ns,
		.track = own_track(t, span),
		.type = EVENT_END,
	};

	put_begin(t, span, EVENT_BEGIN);
	put_event(perfetto_of(t), sequence, &end);
}

void perfetto_put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct event event = {
		.time_ns = perfetto_time(t, time_ns),
		.counter = (int64_t)(value & INT64_MAX),
		.type = EVENT_COUNTER,
	};

	put_event(perfetto_of(t), &perfetto_track(track)->sequence, &event);
}
