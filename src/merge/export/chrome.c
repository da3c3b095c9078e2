/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chrome's trace event format, as a JSON object.
 *
 * Each traced process is a process of the trace, with a track per thread for CUDA calls and NVTX
 * ranges. Each of its devices is another process, with a track per context and stream. A flow arrow
 * connects each launch with each of its kernels.
 *
 * A trace has millions of events, so text that many events share is formatted once and cached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "base/text.h"
#include "merge/export/formats.h"
#include "merge/read/ranges.h"
#include "merge/sums/run.h"
#include "merge/tracks/tracks.h"

#define PIECE_BYTES	40
#define NUMBER_BYTES	64
#define TEXT_BYTES_MAX	2048 /* longer texts are written apart */
#define EVENT_BYTES_MAX (8 * TEXT_BYTES_MAX)
#define EVENT		",\n" /* before each event but the first, which names a process */

struct text {
	char *data;
	size_t length;
};

/* Short text that many events contain. All of it is copied: a constant size is faster. */
struct piece {
	uint32_t length;
	char text[PIECE_BYTES];
};

static inline char *put_piece(char *p, const struct piece *piece)
{
	memcpy(p, piece->text, sizeof(piece->text));
	return p + piece->length;
}

struct chrome_track {
	uint32_t pid, tid;
	struct piece place; /* `,"pid":1,"tid":2` */
	struct text args;   /* `"device":0,"context":1,"stream":7,`, or NULL */
};

struct chrome {
	struct tracks tracks;
	bool has_events;
	struct piece flow;		/* number of the next one */
	struct piece keys[ARG_KEYS];	/* `"bytes":` */
	struct piece heads[CATEGORIES]; /* of a complete event: `,\n{"ph":"X","cat":"api"` */
	struct text *names;		/* by name in paths: JSON text; NULL: not used yet */
	size_t name_capacity;
	bool *used_nodes; /* by path node: an event refers to this frame */
	size_t used_capacity;
	struct text buffer; /* for one text */
	size_t buffer_capacity;
};

static inline struct chrome_track *chrome_track(struct track *track)
{
	return (struct chrome_track *)track->data;
}

static inline struct chrome *chrome_of(struct tracks *t)
{
	return (struct chrome *)t;
}

static inline int64_t time_of(const struct tracks *t, uint64_t ns)
{
	return process_time_ns(t->process, ns);
}

/* Escapes text for the inside of a JSON string. The caller frees the result. */
static struct text json_text(const char *text, size_t length)
{
	struct text json = {.data = xt_malloc(text_json_bound(length) + 1)};

	json.length = text_json(json.data, text, length);
	json.data[json.length] = '\0';
	return json;
}

static const struct text *add_name(struct chrome *c, uint32_t name)
{
	size_t length;
	const char *text = names_text(&c->tracks.process->paths->names, name, &length);

	xt_grow(c->names, c->name_capacity, (size_t)name + 1);
	c->names[name] = json_text(text, length);
	return &c->names[name];
}

/* Returns a name of paths, escaped and cached. */
static inline const struct text *json_name(struct chrome *c, uint32_t name)
{
	return name < c->name_capacity && c->names[name].data ? &c->names[name] : add_name(c, name);
}

static void make_pieces(struct chrome *c)
{
	for (int k = 0; k < ARG_KEYS; k++)
		c->keys[k].length =
			(uint32_t)snprintf(c->keys[k].text, PIECE_BYTES, "\"%s\":", track_args[k]);
	for (int i = 0; i < CATEGORIES; i++)
		c->heads[i].length = (uint32_t)snprintf(c->heads[i].text, PIECE_BYTES,
							EVENT "{\"ph\":\"X\",\"cat\":\"%s\"",
							track_categories[i]);
}

static void chrome_append(struct chrome *c, const char *text, size_t length)
{
	xt_grow(c->buffer.data, c->buffer_capacity, c->buffer.length + length);
	if (length) /* the buffer may not exist yet */
		memcpy(c->buffer.data + c->buffer.length, text, length);
	c->buffer.length += length;
}

static void append_quoted(struct chrome *c, const char *text, size_t length)
{
	chrome_append(c, "\"", 1);
	chrome_append(c, text, length);
	chrome_append(c, "\"", 1);
}

static void append_pairs(struct chrome *c, const struct track_arg *arg)
{
	char *json = range_values_json(c->tracks.process->model, arg->pairs.begin, arg->pairs.end);

	chrome_append(c, json, strlen(json));
	free(json);
}

/* Formats an argument that is a few numbers. Returns its length. */
static int format_numbers(char *out, const struct track_arg *arg)
{
	switch ((enum track_arg_type)arg->type) {
	case ARG_NUMBER:
		return (int)(text_u64(out, arg->number) - out);
	case ARG_THOUSANDTHS:
		return (int)(text_us(out, (int64_t)(arg->number & INT64_MAX)) - out);
	case ARG_SIGNED:
		return snprintf(out, NUMBER_BYTES, "%lld", (long long)arg->number);
	case ARG_REAL:
		return __builtin_isfinite(arg->real)
			       ? snprintf(out, NUMBER_BYTES, "%.*g", arg->digits, arg->real)
			       : snprintf(out, NUMBER_BYTES, "null");
	case ARG_SIZES:
		return snprintf(out, NUMBER_BYTES, "[%u,%u,%u]", arg->sizes[0], arg->sizes[1],
				arg->sizes[2]);
	case ARG_ARGB:
		return snprintf(out, NUMBER_BYTES, "\"#%08x\"", (uint32_t)arg->number);
	default:
		return snprintf(out, NUMBER_BYTES, "%s", arg->number ? "true" : "false");
	}
}

static void append_arg(struct chrome *c, const struct track_arg *arg)
{
	char number[NUMBER_BYTES];
	const struct text *name;

	chrome_append(c, c->keys[arg->key].text, c->keys[arg->key].length);
	switch ((enum track_arg_type)arg->type) {
	case ARG_PAIRS:
		append_pairs(c, arg);
		break;
	case ARG_TEXT:
		append_quoted(c, arg->text, strlen(arg->text));
		break;
	case ARG_NAME:
		name = json_name(c, arg->name);
		append_quoted(c, name->data, name->length);
		break;
	default:
		chrome_append(c, number, (size_t)format_numbers(number, arg));
	}
	chrome_append(c, ",", 1);
}

/* Formats an argument as `"key":value,`. The text is valid until the next call. */
static const struct text *format_arg(struct chrome *c, const struct track_arg *arg)
{
	c->buffer.length = 0;
	append_arg(c, arg);
	return &c->buffer;
}

/* The same for several, behind a prefix. The caller frees the text. */
static struct text format_args(struct chrome *c, const char *prefix, const struct track_arg *args,
			       size_t count)
{
	struct text text;

	c->buffer.length = 0;
	chrome_append(c, prefix, strlen(prefix));
	for (size_t i = 0; i < count; i++)
		append_arg(c, &args[i]);
	text = (struct text){xt_malloc(c->buffer.length + 1), c->buffer.length};
	memcpy(text.data, c->buffer.data, text.length);
	return text;
}

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
	struct text json = json_text(name, strlen(name));

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
		place->args = format_args(c, "", track->args, track->arg_count);
}

static void forget_track(struct track *track)
{
	free(chrome_track(track)->args.data);
}

/* Returns the name and arguments that all spans of the label share. */
static struct text label_text(struct chrome *c, struct track_label *label)
{
	if (!label->text) {
		char *prefix =
			xt_asprintf("\"name\":\"%s\",\"args\":{", json_name(c, label->name)->data);
		struct text text = format_args(c, prefix, label->args, label->arg_count);

		label->text = text.data;
		label->text_length = text.length;
		free(prefix);
	}
	return (struct text){label->text, label->text_length};
}

static inline char *put_name(struct chrome *c, char *p, uint32_t name)
{
	p = TEXT_LITERAL(p, ",\"name\":\"");
	p = put_text(c, p, json_name(c, name));
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
			p = put_text(c, p, format_arg(c, arg));
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
	uint32_t node = span->launch ? PATH_ROOT : span->node;

	if (node == PATH_ROOT)
		return p;
	xt_grow(c->used_nodes, c->used_capacity, (size_t)node + 1);
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
	p = TEXT_LITERAL(p, EVENT "{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":");
	p = put_piece(p, &c->flow);
	p = put_piece(p, &from->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, time_of(&c->tracks, span->launch->enter_ns));
	*p++ = '}';
	p = TEXT_LITERAL(
		p,
		EVENT "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":");
	p = put_piece(p, &c->flow);
	p = put_piece(p, &to->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = put_piece(p, start);
	*p++ = '}';
	add_one(&c->flow);
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
	char *p = output_room(output_of(c), EVENT_BYTES_MAX), *begin;

	p = put_piece(p, &c->heads[span->category]);
	if (!span->label)
		p = put_name(c, p, span->name);
	p = put_piece(p, &track->place);
	p = TEXT_LITERAL(p, ",\"ts\":");
	begin = p;
	p = text_us(p, time_of(t, span->start_ns));
	start.length = (uint32_t)(p - begin);
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)(span->duration_ns & INT64_MAX));
	/* Not earlier: the processor waits for text that was just written in pieces. */
	memcpy(start.text, begin, sizeof(start.text));
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
	p = text_us(p, time_of(&c->tracks, time_ns));
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
	p = text_us(p, time_of(t, time_ns));
	p = TEXT_LITERAL(p, ",\"args\":{\"");
	p = text_copy(p, counter->unit, strlen(counter->unit));
	p = TEXT_LITERAL(p, "\":");
	p = text_u64(p, value);
	p = TEXT_LITERAL(p, "}}");
	output_advance(output_of(c), p);
}

static const struct track_writer writer = {
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

static int chrome_begin(struct sink *sink)
{
	struct chrome *c = sink->state;

	tracks_begin(sink, &writer);
	make_pieces(c);
	add_one(&c->flow);
	output_format(&sink->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	return 0;
}

/* Writes the frames that events refer to, each with its parent. */
static void put_stack_frames(struct sink *sink, const struct paths *paths)
{
	struct chrome *c = sink->state;
	const char *separator = "";

	xt_grow(c->used_nodes, c->used_capacity, paths->node_count);
	/* A parent precedes its children, so one backward pass marks all ancestors. */
	for (uint32_t n = paths->node_count; n-- > 1;)
		if (c->used_nodes[n])
			c->used_nodes[paths->nodes[n].parent] = true;
	for (uint32_t n = 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];
		struct text json;
		const char *name;
		size_t length;

		if (!c->used_nodes[n])
			continue;
		name = names_text(&paths->names, node->name, &length);
		json = json_text(name, length);
		output_format(&sink->out, "%s\n\"%u\":{\"name\":\"%s\"", separator, n, json.data);
		if (node->parent != PATH_ROOT)
			output_format(&sink->out, ",\"parent\":\"%u\"", node->parent);
		output_text(&sink->out, "}", 1);
		separator = ",";
		free(json.data);
	}
}

/* Writes the options that selected a part of the run. */
static void put_selection(struct sink *sink, const struct run *run)
{
	char part[WANTED_BYTES];
	struct text text;

	wanted_describe(&run->settings->wanted, part, sizeof(part));
	text = json_text(part, strlen(part));
	output_format(&sink->out, ",\"otherData\":{\"selection\":\"%s\"}", text.data);
	free(text.data);
}

static void chrome_end(struct sink *sink, const struct run *run)
{
	output_format(&sink->out, "\n],\"stackFrames\":{");
	put_stack_frames(sink, &run->paths);
	output_format(&sink->out, "\n}");
	if (run->selection)
		put_selection(sink, run);
	output_format(&sink->out, "}\n");
}

static void chrome_free_state(struct sink *sink)
{
	struct chrome *c = sink->state;

	for (size_t i = 0; i < c->name_capacity; i++)
		free(c->names[i].data);
	free_all(c->names, c->used_nodes, c->buffer.data);
	tracks_free(sink);
}

const struct exporter exporter_chrome = {
	.name = "chrome",
	.what = "Write Chrome trace events (JSON) for Perfetto and chrome://tracing",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	TRACKS_EVENTS,
	.state_bytes = sizeof(struct chrome),
	.begin = chrome_begin,
	.end = chrome_end,
	.free = chrome_free_state,
};
