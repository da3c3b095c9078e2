/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/perfetto/perfetto_packets.h"

#include <stdlib.h>

#define SEQUENCE_GOES_ON 2 /* value of sequence_flags */

void perfetto_put(struct perfetto *p, const Perfetto__Protos__TracePacket *packet)
{
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	Perfetto__Protos__TracePacket *list = (Perfetto__Protos__TracePacket *)packet;
	size_t length;

	trace.packet = &list;
	trace.n_packet = 1;
	length = perfetto__protos__trace__get_packed_size(&trace);
	xt_grow(&p->packed, &p->packed_capacity, length, 1);
	perfetto__protos__trace__pack(&trace, p->packed);
	output_text(&p->tracks.sink->out, (const char *)p->packed, length);
}

void perfetto_mark(struct seen *seen, uint32_t id)
{
	xt_grow(&seen->bits, &seen->capacity, id / 8 + 1, 1);
	seen->bits[id / 8] |= (uint8_t)(1u << id % 8);
}

void perfetto_put_interned(struct perfetto *p, const struct sequence *sequence,
			   Perfetto__Protos__InternedData *data)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.interned_data = data;
	perfetto_put(p, &packet);
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

void perfetto_put_name(struct perfetto *p, struct sequence *sequence, uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__EventName event = PERFETTO__PROTOS__EVENT_NAME__INIT, *list = &event;

	event.has_iid = 1;
	event.iid = (uint64_t)name + 1;
	event.name = (char *)names_text(&p->tracks.process->paths->names, name, NULL);
	data.event_names = &list;
	data.n_event_names = 1;
	perfetto_put_interned(p, sequence, &data);
}

void perfetto_put_text(struct perfetto *p, struct sequence *sequence, uint32_t text)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string = interned_string(&p->tracks.texts, text, text);
	Perfetto__Protos__InternedString *list = &string;

	data.debug_annotation_string_values = &list;
	data.n_debug_annotation_string_values = 1;
	perfetto_put_interned(p, sequence, &data);
}

/* A frame is a function. All of its addresses share it. */
static void intern_frame(struct perfetto *p, struct sequence *sequence, uint32_t name)
{
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__InternedString string, *strings = &string;
	Perfetto__Protos__Frame frame = PERFETTO__PROTOS__FRAME__INIT, *frames = &frame;

	if (!perfetto_is_new(&sequence->frames, name))
		return;
	string = interned_string(&p->tracks.process->paths->names, name, (uint64_t)name + 1);
	frame.has_iid = frame.has_function_name_id = frame.has_mapping_id = frame.has_rel_pc = 1;
	frame.iid = frame.function_name_id = frame.rel_pc = (uint64_t)name + 1;
	frame.mapping_id = SEQUENCE_MAPPING;
	data.function_names = &strings;
	data.frames = &frames;
	data.n_function_names = data.n_frames = 1;
	perfetto_put_interned(p, sequence, &data);
}

void perfetto_put_path(struct perfetto *p, struct sequence *sequence, uint32_t node)
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
	perfetto_put_interned(p, sequence, &data);
	free(stack.frame_ids);
}
