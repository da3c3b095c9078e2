/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a Perfetto trace, and the interned strings and stacks they refer to.
 *
 * An event is a packet of about 20 bytes. A generic protobuf writer spends several times longer on
 * sizing and dispatch than on writing, so this file encodes each field by hand. The tests decode
 * the result with Google's protobuf library.
 */
#include "merge/export/perfetto/perfetto_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/naming/joined_paths.h"

#include "merge/export/perfetto/perfetto_packets.h"

/* Upper bound of an event. Below 128, every length takes one byte. */
#define EVENT_BYTES_MAX 128

/* Protobuf wire types. */
#define WIRE_VARINT 0
#define WIRE_64	    1
#define WIRE_BYTES  2

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

static inline uint8_t *put_fixed(uint8_t *p, uint32_t field, uint64_t value)
{
	p = put_varint(p, field << 3 | WIRE_64);
	memcpy(p, &value, sizeof(value));
	return p + sizeof(value);
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

static inline uint8_t *begin_annotation(uint8_t *p, uint8_t is, uint8_t **length)
{
	p = begin_short(p, 4, length);
	return put_number(p, 1, is + 1u);
}

static uint8_t *put_annotations(uint8_t *p, const struct perfetto_event *event)
{
	uint8_t *length;

	if (event->text) {
		p = begin_annotation(p, event->text_is, &length);
		p = put_number(p, 17, event->text);
		end_short(length, p);
	}
	if (event->number || event->has_number) {
		p = begin_annotation(p, event->number_is, &length);
		p = put_number(p, event->is_signed ? 4 : 3, event->number);
		end_short(length, p);
	}
	if (event->has_real) {
		uint64_t bits;

		memcpy(&bits, &event->real, sizeof(bits));
		p = begin_annotation(p, event->number_is, &length);
		p = put_fixed(p, 5, bits);
		end_short(length, p);
	}
	return p;
}

void perfetto_put_event(struct sink *sink, struct sequence *sequence,
			const struct perfetto_event *event)
{
	uint8_t *p = (uint8_t *)output_room(&sink->out, EVENT_BYTES_MAX), *packet, *body;

	p = begin_short(p, 1, &packet);
	if (event->time_ns >= sequence->now_ns) {
		p = put_number(p, 8, event->time_ns - sequence->now_ns);
		sequence->now_ns = event->time_ns;
	} else {
		p = put_number(p, 8, event->time_ns);
		p = put_number(p, 58, PERFETTO_CLOCK_BOOT);
	}
	p = put_number(p, 10, sequence->id);
	p = begin_short(p, 11, &body);
	p = put_number(p, 9, event->type);
	if (event->name)
		p = put_number(p, 10, event->name);
	if (event->track)
		p = put_number(p, 11, event->track);
	if (event->type == PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER)
		p = put_number(p, 30, (uint64_t)event->counter);
	if (event->flow)
		p = put_fixed(p, event->ends_flow ? 48 : 47, event->flow);
	if (event->stack)
		p = put_number(p, 56, event->stack);
	if (event->weight)
		p = put_number(p, 57, event->weight);
	p = put_annotations(p, event);
	end_short(body, p);
	end_short(packet, p);
	output_advance(&sink->out, (char *)p);
}

/* Marks id as written. Returns 1 if it is new, 0 if not, or -ENOMEM. */
static inline int see(struct seen *seen, uint32_t id)
{
	uint8_t bit = (uint8_t)(1u << id % 8);

	if (id / 8 < seen->capacity && seen->bits[id / 8] & bit)
		return 0;
	if (grow(&seen->bits, &seen->capacity, id / 8 + 1, 1) < 0)
		return -ENOMEM;
	seen->bits[id / 8] |= bit;
	return 1;
}

static int put_interned(struct sink *sink, const struct sequence *sequence,
			Perfetto__Protos__InternedData *data)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.has_sequence_flags = 1;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.interned_data = data;
	return perfetto_put(sink, &packet);
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

int perfetto_intern_name(struct sink *sink, struct sequence *sequence, const struct names *names,
			 uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__EventName event = PERFETTO__PROTOS__EVENT_NAME__INIT, *list = &event;
	int is_new = see(&sequence->names, name);

	if (is_new <= 0)
		return is_new;
	event.has_iid = 1;
	event.iid = (uint64_t)name + 1;
	event.name = (char *)names_text(names, name, NULL);
	data.event_names = &list;
	data.n_event_names = 1;
	return put_interned(sink, sequence, &data);
}

int perfetto_intern_value(struct sink *sink, struct sequence *sequence, uint32_t value)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string, *list = &string;
	int is_new = see(&sequence->values, value);

	if (is_new <= 0)
		return is_new;
	string = interned_string(&p->values, value, value);
	data.debug_annotation_string_values = &list;
	data.n_debug_annotation_string_values = 1;
	return put_interned(sink, sequence, &data);
}

/* A frame is a function. All of its addresses share it. */
static int intern_frame(struct sink *sink, struct sequence *sequence, const struct names *names,
			uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string, *strings = &string;
	Perfetto__Protos__Frame frame = PERFETTO__PROTOS__FRAME__INIT, *frames = &frame;
	int is_new = see(&sequence->frames, name);

	if (is_new <= 0)
		return is_new;
	string = interned_string(names, name, (uint64_t)name + 1);
	frame.has_iid = frame.has_function_name_id = frame.has_mapping_id = frame.has_rel_pc = 1;
	frame.iid = frame.function_name_id = frame.rel_pc = (uint64_t)name + 1;
	frame.mapping_id = SEQUENCE_MAPPING;
	data.function_names = &strings;
	data.frames = &frames;
	data.n_function_names = data.n_frames = 1;
	return put_interned(sink, sequence, &data);
}

int perfetto_intern_path(struct sink *sink, struct sequence *sequence, const struct paths *paths,
			 uint32_t node)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__Callstack stack = PERFETTO__PROTOS__CALLSTACK__INIT, *list = &stack;
	int is_new = node == PATH_ROOT ? 0 : see(&sequence->stacks, node), depth, error = 0;

	if (is_new <= 0)
		return is_new;
	depth = paths_chain(paths, node, &p->chain, &p->chain_capacity);
	stack.frame_ids = depth < 0 ? NULL : calloc((size_t)depth, sizeof(*stack.frame_ids));
	if (!stack.frame_ids)
		return -ENOMEM;
	for (int d = 0; d < depth && !error; d++) {
		uint32_t name = paths->nodes[p->chain[d]].name;

		stack.frame_ids[stack.n_frame_ids++] = (uint64_t)name + 1;
		error = intern_frame(sink, sequence, &paths->names, name);
	}
	stack.has_iid = 1;
	stack.iid = node;
	data.callstacks = &list;
	data.n_callstacks = 1;
	if (!error)
		error = put_interned(sink, sequence, &data);
	free(stack.frame_ids);
	return error;
}

int perfetto_intern_stack(struct sink *sink, struct sequence *sequence,
			  const struct process *process, uint32_t stack, uint32_t *node_out)
{
	uint32_t node = PATH_ROOT;

	if (frames_has_stack(process->frames, stack))
		node = joined_paths_node(process->frames, stack);
	*node_out = node;
	return node == PATH_FAILED ? -ENOMEM
				   : perfetto_intern_path(sink, sequence, process->paths, node);
}
