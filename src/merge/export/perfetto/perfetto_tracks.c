/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks of a Perfetto trace, and the sequences that write to them.
 */
#include "merge/export/perfetto/perfetto_tracks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/base/text.h"

#include "merge/export/perfetto/perfetto_packets.h"

#define CLOCK_SEQUENCE 64 /* incremental clock of a sequence */

void perfetto_forget_sequence(struct sequence *sequence)
{
	if (!sequence->id)
		return;
	free(sequence->names.bits);
	free(sequence->frames.bits);
	free(sequence->stacks.bits);
	free(sequence->values.bits);
	*sequence = (struct sequence){0};
}

void perfetto_forget_process(struct perfetto *p)
{
	for (size_t t = 0; t < p->thread_count; t++)
		perfetto_forget_sequence(&p->threads[t]);
	for (size_t s = 0; s < p->stream_count; s++) {
		for (int l = 0; p->streams[s] && l < LANES_MAX; l++)
			perfetto_forget_sequence(&p->streams[s]->sequences[l]);
		if (p->streams[s])
			lanes_free(&p->streams[s]->lanes);
		free(p->streams[s]);
	}
	for (size_t n = 0; n < p->nest_count; n++)
		perfetto_forget_sequence(&p->nests[n].sequence);
	for (size_t pool = 0; pool < MEMORY_POOLS_MAX; pool++)
		perfetto_forget_sequence(&p->pools[pool]);
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		free(p->shapes[kind]);
		p->shapes[kind] = NULL;
		p->shape_counts[kind] = 0;
	}
	perfetto_forget_sequence(&p->samples);
	free(p->threads);
	free(p->streams);
	free(p->devices);
	free(p->nests);
	p->threads = NULL;
	p->streams = NULL;
	p->devices = NULL;
	p->nests = NULL;
	p->thread_count = p->stream_count = p->device_count = p->device_capacity = 0;
	p->nest_count = p->nest_capacity = 0;
}

static int put_track(struct sink *sink, Perfetto__Protos__TrackDescriptor *track)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;

	packet.track_descriptor = track;
	return perfetto_put(sink, &packet);
}

static uint64_t add_track(struct sink *sink, uint64_t parent, const char *name,
			  Perfetto__Protos__CounterDescriptor *counter)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	int error;

	track.has_uuid = 1;
	track.uuid = p->next_track++;
	track.has_parent_uuid = parent != 0;
	track.parent_uuid = parent;
	track.counter = counter;
	track.name = text_clean_copy(name);
	error = track.name ? put_track(sink, &track) : -ENOMEM;
	free(track.name);
	return error ? 0 : track.uuid;
}

uint64_t perfetto_add_track(struct sink *sink, uint64_t parent, const char *name)
{
	return add_track(sink, parent, name, NULL);
}

uint64_t perfetto_add_counter(struct sink *sink, uint64_t parent, const char *name)
{
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;

	counter.has_unit = 1;
	counter.unit = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
	return add_track(sink, parent, name, &counter);
}

/* Writes the defaults for all packets of the sequence. */
static int put_defaults(struct sink *sink, const struct sequence *sequence, uint64_t track)
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
	event.track_uuid = track;
	return perfetto_put(sink, &packet);
}

static int put_clock(struct sink *sink, const struct sequence *sequence, uint64_t now_ns)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock clocks[2], *list[2] = {&clocks[0], &clocks[1]};

	for (int c = 0; c < 2; c++) {
		perfetto__protos__clock_snapshot__clock__init(&clocks[c]);
		clocks[c].has_clock_id = clocks[c].has_timestamp = 1;
		clocks[c].clock_id = c ? CLOCK_SEQUENCE : PERFETTO_CLOCK_BOOT;
		clocks[c].timestamp = now_ns;
	}
	clocks[1].has_is_incremental = clocks[1].is_incremental = 1;
	snapshot.clocks = list;
	snapshot.n_clocks = 2;
	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.clock_snapshot = &snapshot;
	return perfetto_put(sink, &packet);
}

/* Writes the annotation names, and the one mapping of all frames, which readers require. */
static int put_first_interned(struct sink *sink, const struct sequence *sequence)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__InternedData data = PERFETTO__PROTOS__INTERNED_DATA__INIT;
	Perfetto__Protos__Mapping mapping = PERFETTO__PROTOS__MAPPING__INIT, *mappings = &mapping;
	Perfetto__Protos__DebugAnnotationName names[ANNOTATIONS], *list[ANNOTATIONS];

	for (int a = 0; a < ANNOTATIONS; a++) {
		perfetto__protos__debug_annotation_name__init(&names[a]);
		names[a].has_iid = 1;
		names[a].iid = (uint64_t)a + 1;
		names[a].name = (char *)perfetto_annotations[a];
		list[a] = &names[a];
	}
	mapping.has_iid = 1;
	mapping.iid = SEQUENCE_MAPPING;
	data.debug_annotation_names = list;
	data.n_debug_annotation_names = ANNOTATIONS;
	data.mappings = &mappings;
	data.n_mappings = 1;
	packet.has_trusted_packet_sequence_id = packet.has_sequence_flags = 1;
	packet.trusted_packet_sequence_id = sequence->id;
	packet.sequence_flags = SEQUENCE_GOES_ON;
	packet.interned_data = &data;
	return perfetto_put(sink, &packet);
}

int perfetto_begin_sequence(struct sink *sink, struct sequence *sequence, uint64_t track)
{
	struct perfetto *p = sink->state;
	int error;

	*sequence =
		(struct sequence){.id = p->next_sequence++, .track = track, .now_ns = p->origin_ns};
	error = put_defaults(sink, sequence, track);
	if (!error)
		error = put_clock(sink, sequence, p->origin_ns);
	return error ? error : put_first_interned(sink, sequence);
}

/*
 * Two logs may have the same pid: from two hosts, or after the pid was reused. Viewers must not
 * merge them.
 */
static int choose_pid(struct perfetto *p, const struct process *process)
{
	if (grow(&p->processes, &p->process_capacity, process->index + 1, sizeof(*p->processes)) <
	    0)
		return -ENOMEM;
	p->pid = process->log->header.pid;
	for (size_t i = 0; i < process->index; i++)
		if (p->processes[i].pid == p->pid)
			p->pid = p->next_pid++;
	p->processes[process->index].pid = p->pid;
	return 0;
}

/*
 * Returns the process title with the selected part of the run. Free it with free(). NULL if out of
 * memory.
 */
static char *process_title(const struct sink *sink, const struct process *process)
{
	char part[WANTED_BYTES], *title, *clean;

	if (!wanted_is_part(&sink->settings->wanted))
		return text_clean_copy(process->label);
	wanted_describe(&sink->settings->wanted, part, sizeof(part));
	if (asprintf(&title, "%s, only %s", process->label, part) < 0)
		return NULL;
	clean = text_clean_copy(title);
	free(title);
	return clean;
}

static int put_process(struct sink *sink, const struct process *process)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor descriptor = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	int error;

	descriptor.has_pid = 1;
	descriptor.pid = (int32_t)p->pid;
	descriptor.process_name = process_title(sink, process);
	track.has_uuid = 1;
	track.uuid = p->process_track = p->next_track++;
	p->processes[process->index].track = p->process_track;
	track.process = &descriptor;
	error = descriptor.process_name ? put_track(sink, &track) : -ENOMEM;
	free(descriptor.process_name);
	return error;
}

int perfetto_begin_process(struct sink *sink, const struct process *process)
{
	struct perfetto *p = sink->state;
	const struct model *model = process->model;
	int64_t origin_ns =
		(int64_t)((uint64_t)process->origin_ns + (uint64_t)process->log->shift_ns);

	perfetto_forget_process(p);
	p->origin_ns = origin_ns > 0 ? (uint64_t)origin_ns : 0;
	p->threads = calloc(model->threads.count, sizeof(*p->threads));
	p->streams = calloc(model->streams.count, sizeof(*p->streams));
	if (!p->threads || !p->streams)
		return -ENOMEM;
	p->thread_count = model->threads.count;
	p->stream_count = model->streams.count;
	p->shape_counts[WORK_KERNEL] = model->shapes.count;
	p->shape_counts[WORK_COPY] = model->copy_shapes.count;
	p->shape_counts[WORK_MEMSET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		p->shapes[kind] = calloc(p->shape_counts[kind], sizeof(*p->shapes[kind]));
		if (!p->shapes[kind])
			return -ENOMEM;
	}
	if (process->is_continued) {
		p->pid = p->processes[process->index].pid;
		p->process_track = p->processes[process->index].track;
		return 0;
	}
	if (choose_pid(p, process) < 0)
		return -ENOMEM;
	return put_process(sink, process);
}

static int put_thread(struct sink *sink, const struct process *process, uint32_t id, uint64_t uuid)
{
	struct perfetto *p = sink->state;
	const struct thread *thread = &process->model->threads.rows[id];
	const char *name = names_text(&process->model->names, thread->name, NULL);
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ThreadDescriptor descriptor = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	int error;

	descriptor.has_pid = descriptor.has_tid = 1;
	descriptor.pid = (int32_t)p->pid;
	descriptor.tid = (int32_t)thread->tid;
	descriptor.thread_name = text_clean_copy(name[0] ? name : "[no name]");
	track.has_uuid = track.has_parent_uuid = 1;
	track.uuid = uuid;
	track.parent_uuid = p->process_track;
	track.thread = &descriptor;
	error = descriptor.thread_name ? put_track(sink, &track) : -ENOMEM;
	free(descriptor.thread_name);
	return error;
}

uint64_t perfetto_thread_track(struct sink *sink, const struct process *process, uint32_t thread)
{
	struct perfetto *p = sink->state;
	uint32_t tid = process->model->threads.rows[thread].tid;
	struct perfetto_known_thread *known;

	for (size_t t = 0; process->cpu && t < p->known_thread_count; t++)
		if (p->known_threads[t].pid == p->pid && p->known_threads[t].tid == tid)
			return p->known_threads[t].track;
	if (grow(&p->known_threads, &p->known_thread_capacity, p->known_thread_count + 1,
		 sizeof(*p->known_threads)) < 0)
		return 0;
	known = &p->known_threads[p->known_thread_count++];
	*known = (struct perfetto_known_thread){p->pid, tid, p->next_track++};
	return put_thread(sink, process, thread, known->track) < 0 ? 0 : known->track;
}

struct sequence *perfetto_thread(struct sink *sink, const struct process *process, uint32_t thread)
{
	struct perfetto *p = sink->state;
	uint32_t id =
		thread < p->thread_count && process->model->threads.rows[thread].tid ? thread : 0;
	struct sequence *sequence = &p->threads[id];
	uint64_t track;

	if (sequence->id)
		return sequence;
	track = id ? perfetto_thread_track(sink, process, id)
		   : perfetto_add_track(sink, p->process_track, "[unknown thread]");
	return track && !perfetto_begin_sequence(sink, sequence, track) ? sequence : NULL;
}

uint64_t perfetto_device(struct sink *sink, const struct process *process, uint32_t device)
{
	struct perfetto *p = sink->state;
	bool simulated = !strcmp(model_meta(process->model, "gpu.simulated"), "1");
	const char *gpu_name;
	char key[32], *name;
	uint64_t track;

	for (size_t i = 0; i < p->device_count; i++)
		if (p->devices[i].device == device)
			return p->devices[i].track;
	snprintf(key, sizeof(key), "gpu.%u.name", device);
	gpu_name = model_meta(process->model, key);
	if (grow(&p->devices, &p->device_capacity, p->device_count + 1, sizeof(*p->devices)) < 0 ||
	    asprintf(&name, "GPU %u%s%s%s", device, gpu_name[0] ? " " : "", gpu_name,
		     simulated ? " [simulated]" : "") < 0)
		return 0;
	track = perfetto_add_track(sink, p->process_track, name);
	free(name);
	if (track)
		p->devices[p->device_count++] = (struct perfetto_device){device, track};
	return track;
}
