/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a Chrome trace.
 */
#include "merge/export/chrome/chrome_events.h"

#include <stdlib.h>

#include "merge/export/chrome/chrome_text.h"

#define TEXT_BYTES_MAX	2048 /* longer texts are written apart */
#define EVENT_BYTES_MAX (8 * TEXT_BYTES_MAX)

static struct output *output_of(struct chrome *c)
{
	return &c->tracks.sink->out;
}

/* Writes text of any length. Returns room for the rest of the event. */
static inline char *put_text(struct chrome *c, char *p, const struct text *text)
{
	if (text->length <= TEXT_BYTES_MAX)
		return text_copy(p, text->data, text->length);
	output_advance(output_of(c), p);
	/* The last byte may be a comma that put_args() takes back. */
	output_text(output_of(c), text->data, text->length - 1);
	p = output_room(output_of(c), EVENT_BYTES_MAX);
	*p++ = text->data[text->length - 1];
	return p;
}

static void put_metadata(struct chrome *c, const char *kind, const struct chrome_track *track,
			 const char *name)
{
	struct text json = chrome_json(name, strlen(name));

	output_format(output_of(c),
		      "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		      "\"args\":{\"name\":\"%s\"}}",
		      c->has_events ? "," : "", kind, track->pid, track->tid, json.data);
	c->has_events = true;
	free(json.data);
}

static void put_order(struct chrome *c, const char *kind, const struct chrome_track *track,
		      uint64_t order)
{
	output_format(output_of(c),
		      "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		      "\"args\":{\"sort_index\":%llu}}",
		      c->has_events ? "," : "", kind, track->pid, track->tid,
		      (unsigned long long)order);
	c->has_events = true;
}

/* Devices are processes, whose titles must tell which process of the run they belong to. */
static void put_process(struct chrome *c, const struct track *track,
			const struct chrome_track *place)
{
	const struct process *process = c->tracks.process;
	bool is_one_of_several = track->parent && process->process_count > 1;
	char *name = xt_asprintf("%s%s%s", track->name, is_one_of_several ? " of " : "",
				 is_one_of_several ? process->label : "");

	put_metadata(c, "process_name", place, name);
	put_order(c, "process_sort_index", place, track->order);
	free(name);
}

static void put_track(struct tracks *t, struct track *track)
{
	struct chrome *c = chrome_of(t);
	struct chrome_track *place = chrome_track(track);
	char *end;

	place->pid = track->parent ? chrome_track(track->parent)->pid : track->number;
	switch (track->kind) {
	case TRACK_DEVICE:
		place->pid = t->next_number++;
		put_process(c, track, place);
		break;
	case TRACK_PROCESS:
		put_process(c, track, place);
		break;
	case TRACK_COUNTER:
		break;
	case TRACK_THREAD:
		place->tid = track->number;
		put_metadata(c, "thread_name", place, track->name);
		break;
	default:
		place->tid = t->next_number++;
		if (track->kind == TRACK_STREAM)
			put_order(c, "thread_sort_index", place, track->order);
		put_metadata(c, "thread_name", place, track->name);
	}
	end = TEXT_LITERAL(place->place.text, ",\"pid\":");
	end = text_u64(end, place->pid);
	end = TEXT_LITERAL(end, ",\"tid\":");
	end = text_u64(end, place->tid);
	place->place.length = (uint32_t)(end - place->place.text);
	if (track->arg_count)
		place->args = chrome_args(c, "", track->args, track->arg_count);
}

static void forget_track(struct track *track)
{
	free(chrome_track(track)->args.data);
}

/* Returns the name and arguments that all spans of the label share. */
static struct text label_text(struct chrome *c, struct track_label *label)
{
	if (!label->text) {
		char *prefix = xt_asprintf("\"name\":\"%s\",\"args\":{",
					   chrome_name(c, label->name)->data);
		struct text text = chrome_args(c, prefix, label->args, label->arg_count);

		label->text = text.data;
		label->text_length = text.length;
		free(prefix);
	}
	return (struct text){label->text, label->text_length};
}

static inline char *put_name(struct chrome *c, char *p, uint32_t name)
{
	p = TEXT_LITERAL(p, ",\"name\":\"");
	p = put_text(c, p, chrome_name(c, name));
	*p++ = '"';
	return p;
}

/* Writes the arguments of a span, and ends the object. p is behind its brace or its last comma. */
static inline __attribute__((always_inline)) char *put_args(struct chrome *c, char *p,
							    const struct track_span *span)
{
	const struct chrome_track *track = chrome_track(span->track);

	if (track->args.data)
		p = put_text(c, p, &track->args);
	for (size_t i = 0; i < span->arg_count; i++) {
		const struct track_arg *arg = &span->args[i];

		if (arg->type != ARG_NUMBER) {
			p = put_text(c, p, chrome_arg(c, arg));
			continue;
		}
		p = put_piece(p, &c->keys[arg->key]);
		p = text_u64(p, arg->number);
		*p++ = ',';
	}
	if (p[-1] == ',')
		p--;
	*p++ = '}';
	return p;
}

/* Refers to the stack of a span, for viewers that show stacks. That of work is that of its call. */
static inline char *put_stack(struct chrome *c, char *p, const struct track_span *span)
{
	uint32_t node = span->launch ? PATH_ROOT : tracks_node(&c->tracks, span);

	if (node == PATH_ROOT)
		return p;
	xt_grow(&c->used_nodes, &c->used_capacity, (size_t)node + 1, sizeof(*c->used_nodes));
	c->used_nodes[node] = true;
	p = TEXT_LITERAL(p, ",\"sf\":");
	return text_u64(p, node);
}

/* Counts up. Cheaper than formatting each number. */
static inline void add_one(struct piece *number)
{
	uint32_t at = number->length;

	while (at && number->text[at - 1] == '9')
		number->text[--at] = '0';
	if (at) {
		number->text[at - 1]++;
		return;
	}
	memmove(number->text + 1, number->text, number->length++);
	number->text[0] = '1';
}

/* Writes the flow arrow from a call to its work. */
static char *put_flow(struct chrome *c, char *p, const struct track_span *span,
		      const struct chrome_track *from, const struct piece *start)
{
	const struct chrome_track *to = chrome_track(span->track);

	add_one(&c->flow);
	p = TEXT_LITERAL(p, EVENT "{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":");
	p = put_piece(p, &c->flow);
	p = put_piece(p, &from->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(&c->tracks, span->launch->enter_ns));
	*p++ = '}';
	p = TEXT_LITERAL(
		p,
		EVENT "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":");
	p = put_piece(p, &c->flow);
	p = put_piece(p, &to->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = put_piece(p, start);
	*p++ = '}';
	return p;
}

static void put_span(struct tracks *t, const struct track_span *span)
{
	struct chrome *c = chrome_of(t);
	const struct chrome_track *track = chrome_track(span->track);
	const struct chrome_track *from =
		span->launch ? chrome_track(tracks_thread(t, span->launch->thread)) : NULL;
	struct text label;
	struct piece start;
	char *p;

	start.length = (uint32_t)(text_us(start.text, chrome_time(t, span->start_ns)) - start.text);
	p = output_room(output_of(c), EVENT_BYTES_MAX);
	p = put_piece(p, &c->heads[span->category]);
	if (!span->label)
		p = put_name(c, p, span->name);
	p = put_piece(p, &track->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = put_piece(p, &start);
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)(span->duration_ns & INT64_MAX));
	p = put_stack(c, p, span);
	if (span->label) {
		*p++ = ',';
		label = label_text(c, span->label);
		p = put_text(c, p, &label);
		p = put_args(c, p, span);
	} else if (span->args) {
		p = TEXT_LITERAL(p, ",\"args\":{");
		p = put_args(c, p, span);
	}
	*p++ = '}';
	if (from)
		p = put_flow(c, p, span, from, &start);
	output_advance(output_of(c), p);
}

/* Writes an event of a range up to its arguments. Returns the place for the rest. */
static char *put_range(struct chrome *c, const char *phase, const struct track_span *span,
		       uint64_t time_ns)
{
	const struct chrome_track *track = chrome_track(span->track);
	char *p = output_room(output_of(c), EVENT_BYTES_MAX);

	p = TEXT_LITERAL(p, EVENT "{\"ph\":\"");
	p = text_copy(p, phase, strlen(phase));
	p = TEXT_LITERAL(p, "\",\"cat\":\"nvtx\"");
	p = put_name(c, p, span->name);
	p = put_piece(p, &track->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(&c->tracks, time_ns));
	p = TEXT_LITERAL(p, ",\"args\":{");
	return put_args(c, p, span);
}

static void put_async(struct chrome *c, const char *phase, const struct track_span *span,
		      uint64_t time_ns)
{
	char *p = put_range(c, phase, span, time_ns);

	/* Viewers match ids across all processes, so make them unique: "4321.7". */
	p = TEXT_LITERAL(p, ",\"id\":\"");
	p = text_u64(p, c->tracks.root->number);
	*p++ = '.';
	p = text_u64(p, span->key);
	p = TEXT_LITERAL(p, "\"}");
	output_advance(output_of(c), p);
}

static void begin_span(struct tracks *t, const struct track_span *span)
{
	if (span->is_async)
		put_async(chrome_of(t), "b", span, span->start_ns);
}

static void end_pushed(struct chrome *c, const struct track_span *span, uint64_t end_ns)
{
	bool is_open = end_ns == SPAN_OPEN;
	char *p = put_range(c, is_open ? "B" : "X", span, span->start_ns);

	if (!is_open) {
		p = TEXT_LITERAL(p, ",\"dur\":");
		p = text_us(p, end_ns > span->start_ns
				       ? (int64_t)((end_ns - span->start_ns) & INT64_MAX)
				       : 0);
	}
	*p++ = '}';
	output_advance(output_of(c), p);
}

static void end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns)
{
	struct track_span whole = *span;

	if (span->category == CATEGORY_CPU) {
		whole.duration_ns = end_ns - span->start_ns;
		put_span(t, &whole);
	} else if (!span->is_async) {
		end_pushed(chrome_of(t), span, end_ns);
	} else if (end_ns != SPAN_OPEN) {
		put_async(chrome_of(t), "e", span, end_ns);
	}
}

static void put_instant(struct tracks *t, const struct track_span *span)
{
	struct chrome *c = chrome_of(t);
	char *p = put_range(c, "i\",\"s\":\"t", span, span->start_ns);

	*p++ = '}';
	output_advance(output_of(c), p);
}

static void put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	struct chrome *c = chrome_of(t);
	const struct chrome_track *place = chrome_track(track);
	const struct track_counter *counter = track->counter;
	char *p = output_room(output_of(c), EVENT_BYTES_MAX);

	p = TEXT_LITERAL(p, EVENT "{\"ph\":\"C\",\"cat\":\"");
	p = text_copy(p, counter->category, strlen(counter->category));
	p = TEXT_LITERAL(p, "\",\"name\":\"");
	p = text_copy(p, counter->name, strlen(counter->name));
	p = TEXT_LITERAL(p, "\",\"pid\":");
	p = text_u64(p, place->pid);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(t, time_ns));
	p = TEXT_LITERAL(p, ",\"args\":{\"");
	p = text_copy(p, counter->unit, strlen(counter->unit));
	p = TEXT_LITERAL(p, "\":");
	p = text_u64(p, value);
	p = TEXT_LITERAL(p, "}}");
	output_advance(output_of(c), p);
}

const struct track_writer chrome_writer = {
	.track_bytes = sizeof(struct chrome_track),
	.is_flat = true,
	.track = put_track,
	.forget = forget_track,
	.span = put_span,
	.begin = begin_span,
	.end = end_span,
	.instant = put_instant,
	.counter = put_counter,
};
