/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a Perfetto trace.
 *
 * An event is a packet of about 20 bytes. A generic protobuf writer spends several times longer on
 * sizing and dispatch than on writing, so this file encodes each field by hand. The tests decode
 * the result with Google's protobuf library.
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

#define EVENT_BYTES_MAX 128 /* without long arguments. Below 128, every length takes one byte */
#define LONG_BYTES	4   /* of lengths in other events, whatever their value */
#define VALUE_BYTES_MAX 32  /* of a value by name, without its texts */
#define NUMBER_BYTES	64

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

static inline uint8_t *put_text(uint8_t *p, uint32_t field, const char *text, size_t length)
{
	p = put_varint(p, field << 3 | WIRE_BYTES);
	p = put_varint(p, length);
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
		p = put_number(p, 58, PERFETTO_CLOCK_BOOT);
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
	xt_grow(&p->packed, &p->packed_capacity, room, 1);
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
	struct event event = {
		.time_ns = perfetto_time(t, end_ns),
		.track = own_track(t, span),
		.type = EVENT_END,
	};

	for (size_t i = 0; i < span->arg_count; i++)
		if (span->args[i].type == ARG_PAIRS && span->args[i].pairs.end)
			event.args_of = span;
	if (end_ns != SPAN_OPEN)
		put_event(perfetto_of(t), &perfetto_track(span->track)->sequence, &event);
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
	put_short(perfetto_of(t), sequence, &end);
}

void perfetto_put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct event event = {
		.time_ns = perfetto_time(t, time_ns),
		.counter = (int64_t)(value & INT64_MAX),
		.type = EVENT_COUNTER,
	};

	put_short(perfetto_of(t), &perfetto_track(track)->sequence, &event);
}
