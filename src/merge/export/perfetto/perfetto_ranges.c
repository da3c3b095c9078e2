/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX in a Perfetto trace. Pushed ranges and marks go to a track per thread and domain, where they
 * always nest. Each started range has its own track.
 */
#include "merge/export/perfetto/perfetto_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/base/text.h"
#include "merge/read/range_values.h"
#include "merge/reading.h"

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_packets.h"
#include "merge/export/perfetto/perfetto_tracks.h"
#include "merge/sums/build_tree_ranges.h"

#define STARTED_TRACKS (UINT64_C(1) << 62) /* above all sequentially numbered tracks */

/* Returns the nest of a thread and domain, created on first use. NULL if out of memory. */
static struct perfetto_nest *nest_of(struct sink *sink, const struct process *process,
				     uint32_t thread, uint32_t domain)
{
	struct perfetto *p = sink->state;
	struct names *names = process->names->shown;
	struct perfetto_nest *nest;
	uint64_t track;
	uint32_t name;

	if (thread >= p->thread_count)
		thread = 0;
	for (size_t n = 0; n < p->nest_count; n++)
		if (p->nests[n].thread == thread && p->nests[n].domain == domain)
			return &p->nests[n];
	name = domain ? range_label(names, process->model, 0, domain, "NVTX ", "")
		      : names_intern(names, "NVTX", strlen("NVTX"));
	if (name == NAME_FAILED || !perfetto_thread(sink, process, thread) ||
	    grow(&p->nests, &p->nest_capacity, p->nest_count + 1, sizeof(*p->nests)) < 0)
		return NULL;
	nest = &p->nests[p->nest_count];
	*nest = (struct perfetto_nest){.thread = thread, .domain = domain};
	track = perfetto_add_track(sink, p->threads[thread].track, names_text(names, name, NULL));
	if (!track || perfetto_begin_sequence(sink, &nest->sequence, track) < 0)
		return NULL;
	p->nest_count++;
	return nest;
}

/* NVTX payload types: how to read the 64 bits. */
static void set_payload(struct perfetto_event *event, uint64_t type, uint64_t bits)
{
	enum { U64 = 1, S64, DOUBLE, U32, S32, FLOAT };
	union {
		uint64_t bits;
		double real;
		int32_t s32;
		float small_real;
	} value = {.bits = bits};

	event->number_is = ANNOTATION_PAYLOAD;
	event->has_number = type == U64 || type == S64 || type == U32 || type == S32;
	event->has_real = type == DOUBLE || type == FLOAT;
	event->is_signed = type == S64 || type == S32;
	if (event->has_real)
		event->real = type == DOUBLE ? value.real : (double)value.small_real;
	else if (event->has_number)
		event->number = type == U32   ? (uint32_t)bits
				: type == S32 ? (uint64_t)(int64_t)value.s32
					      : bits;
}

/* Any thread may end a started range, so compute the track from the process and the range's key. */
static uint64_t started_track(const struct perfetto *p, uint64_t key)
{
	uint64_t hash = (key ^ p->process_track * 0x9e3779b97f4a7c15u) * 0xc2b2ae3d27d4eb4fu;

	return STARTED_TRACKS | hash >> 3;
}

/* Names the track of a started range. */
static int put_started_track(struct sink *sink, uint64_t uuid, const char *name)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;

	track.has_uuid = track.has_parent_uuid = 1;
	track.uuid = uuid;
	track.parent_uuid = p->process_track;
	track.name = (char *)name;
	packet.track_descriptor = &track;
	return perfetto_put(sink, &packet);
}

/* Returns the text, zero-terminated and valid UTF-8 as protobuf requires. Advances *p behind it. */
static char *clean_text(char **p, const struct xt_bytes *text)
{
	char *begin = *p;

	*p += text_clean(begin, text->data, text->length, 0);
	*(*p)++ = '\0';
	return begin;
}

static int put_annotated(struct sink *sink, struct sequence *sequence,
			 const struct perfetto_event *event, const struct range_value *values,
			 size_t count)
{
	Perfetto__Protos__DebugAnnotation annotations[RANGE_VALUES_MAX], *list[RANGE_VALUES_MAX];
	Perfetto__Protos__TrackEvent body = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	size_t room = 0;
	char *texts, *p;
	int error;

	for (size_t i = 0; i < count; i++)
		room += text_clean_bound(values[i].name.length + values[i].value.length) + 2;
	p = texts = malloc(room);
	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		perfetto__protos__debug_annotation__init(&annotations[i]);
		annotations[i].name = clean_text(&p, &values[i].name);
		annotations[i].string_value = clean_text(&p, &values[i].value);
		if (values[i].is_number && !strpbrk(annotations[i].string_value, ".e")) {
			annotations[i].has_int_value = 1;
			annotations[i].int_value = strtoll(annotations[i].string_value, NULL, 10);
			annotations[i].string_value = NULL;
		} else if (values[i].is_number) {
			annotations[i].has_double_value = 1;
			annotations[i].double_value = strtod(annotations[i].string_value, NULL);
			annotations[i].string_value = NULL;
		}
		list[i] = &annotations[i];
	}
	body.has_type = 1;
	body.type = (Perfetto__Protos__TrackEvent__Type)event->type;
	body.has_name_iid = event->name != 0;
	body.name_iid = event->name;
	body.has_track_uuid = event->track != 0;
	body.track_uuid = event->track;
	body.debug_annotations = list;
	body.n_debug_annotations = count;
	packet.has_timestamp = packet.has_timestamp_clock_id = 1;
	packet.timestamp = event->time_ns;
	packet.timestamp_clock_id = PERFETTO_CLOCK_BOOT;
	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.track_event = &body;
	error = perfetto_put(sink, &packet);
	free(texts);
	return error;
}

/* Writes an event with its payload values (XT_STRING_ID). Returns 0 or -ENOMEM. */
static int put_event(struct sink *sink, const struct process *process, struct sequence *sequence,
		     const struct perfetto_event *event, uint32_t string)
{
	struct range_value values[RANGE_VALUES_MAX];
	size_t count = string ? range_values(process->model, string, 0, values) : 0;

	if (count)
		return put_annotated(sink, sequence, event, values, count);
	perfetto_put_event(sink, sequence, event);
	return 0;
}

int perfetto_put_range(struct sink *sink, const struct process *process,
		       const struct xt_chunk *chunk, uint32_t row)
{
	uint32_t thread = id_or_none(xt_chunk_u64(chunk, XT_RANGE_THREAD)[row]);
	uint32_t domain = id_or_none(xt_chunk_u64(chunk, XT_RANGE_DOMAIN)[row]);
	uint32_t text = id_or_none(xt_chunk_u64(chunk, XT_RANGE_TEXT)[row]);
	uint32_t values = id_or_none(xt_chunk_u64(chunk, XT_RANGE_VALUES)[row]);
	uint64_t operation = xt_chunk_u64(chunk, XT_RANGE_OPERATION)[row];
	struct names *names = process->names->shown;
	struct perfetto_event event = {
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END,
		.time_ns = perfetto_time(process, xt_chunk_u64(chunk, XT_RANGE_TIME_NS)[row]),
	};
	bool is_async = operation == XT_RANGE_START || operation == XT_RANGE_END;
	struct perfetto_nest *nest;
	uint32_t name;

	if (operation != XT_RANGE_PUSH && operation != XT_RANGE_POP && operation != XT_RANGE_MARK &&
	    !is_async)
		return 0;
	nest = nest_of(sink, process, thread, domain);
	if (!nest)
		return -ENOMEM;
	if (is_async)
		event.track = started_track(sink->state, xt_chunk_u64(chunk, XT_RANGE_KEY)[row]);
	if (operation == XT_RANGE_POP && !nest->depth)
		return 0;
	nest->depth += operation == XT_RANGE_PUSH;
	nest->depth -= operation == XT_RANGE_POP;
	if (operation == XT_RANGE_POP || operation == XT_RANGE_END)
		return put_event(sink, process, &nest->sequence, &event, values);
	name = range_label(names, process->model, domain, text, "", "");
	if (name == NAME_FAILED || perfetto_intern_name(sink, &nest->sequence, names, name) < 0 ||
	    (is_async && put_started_track(sink, event.track, names_text(names, name, NULL)) < 0))
		return -ENOMEM;
	event.type = operation == XT_RANGE_MARK
			     ? PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT
			     : PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	event.name = name + 1;
	set_payload(&event, xt_chunk_u64(chunk, XT_RANGE_PAYLOAD_TYPE)[row],
		    xt_chunk_u64(chunk, XT_RANGE_PAYLOAD)[row]);
	return put_event(sink, process, &nest->sequence, &event, values);
}
