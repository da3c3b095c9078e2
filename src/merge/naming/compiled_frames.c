/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/compiled_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/symbolize/compiled_lines.h"

#define PLACES_SHOWN_MAX 16
#define ROWS_MAX	 4096 /* of a frame; a damaged log may have more */

void compiled_frames_find(struct compiled_frames *frames, const struct model *model)
{
	*frames = (struct compiled_frames){
		.model = model,
		.first = xt_calloc(model->python_frames.count + 1, sizeof(*frames->first)),
		.file_has_lines = xt_calloc(model->strings.count + 1, 1),
	};
	for (uint32_t r = 1; r < model->compiled.count; r++) {
		const struct compiled_place *row = &model->compiled.rows[r];
		uint32_t first, file;

		if (!row->frame || row->frame >= model->python_frames.count)
			continue;
		/* Lines that were added later replace the names of the source nodes. */
		first = frames->first[row->frame];
		if (!first || (row->trace && !model->compiled.rows[first].trace))
			frames->first[row->frame] = r;
		file = model->python_frames.rows[row->frame].file;
		if (row->trace && file < model->strings.count)
			frames->file_has_lines[file] = 1;
	}
}

void compiled_frames_free(struct compiled_frames *frames)
{
	free(frames->first);
	free(frames->file_has_lines);
	*frames = (struct compiled_frames){0};
}

/* Returns the number of rows of a frame, which follow its first row. */
static uint32_t row_count(const struct compiled_frames *frames, uint32_t id)
{
	const struct model *model = frames->model;
	uint32_t first = frames->first[id], end = first;

	while (first && end < model->compiled.count && end - first < ROWS_MAX &&
	       model->compiled.rows[end].frame == id)
		end++;
	return end - first;
}

/* Returns the number of rows of the trace that begins at this row. */
static uint32_t trace_length(const struct compiled_place *rows, uint32_t count)
{
	uint32_t length = 1;

	while (length < count && rows[length].trace == rows[0].trace)
		length++;
	return length;
}

static uint32_t place_name(struct frame_names *names, const struct place *place)
{
	const struct names *texts = &names->model->names;

	return frame_line_name(names, names_text(texts, place->function, NULL),
			       names_text(texts, place->file, NULL), place->line);
}

static bool is_shown(const struct place *shown, uint32_t count, const struct place *place)
{
	for (uint32_t i = 0; i < count; i++)
		if (shown[i].file == place->file && shown[i].line == place->line)
			return true;
	return false;
}

/* Collects the distinct innermost lines of all traces. Returns their number. */
static uint32_t list_places(const struct compiled_place *rows, uint32_t count,
			    struct place places[PLACES_SHOWN_MAX])
{
	uint32_t shown = 0;

	for (uint32_t r = 0; r < count && shown < PLACES_SHOWN_MAX;) {
		const struct place *innermost;

		r += trace_length(rows + r, count - r);
		innermost = &rows[r - 1].place;
		if (!is_shown(places, shown, innermost))
			places[shown++] = *innermost;
	}
	return shown;
}

/* "forward (model.py:13) [fused: model.py:13 model.py:15]" */
static uint32_t fused_name(struct frame_names *names, const struct compiled_place *rows,
			   uint32_t count)
{
	struct place places[PLACES_SHOWN_MAX] = {0};
	uint32_t shown = list_places(rows, count, places);
	uint32_t name = place_name(names, &places[0]);
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;

	if (shown == 1)
		return name;
	out = xt_open_memstream(&text, &bytes);
	fputs("[fused:", out);
	for (uint32_t i = 0; i < shown; i++)
		fprintf(out, " %s:%u",
			frame_shown_file(names,
					 names_text(&names->model->names, places[i].file, NULL)),
			places[i].line);
	fputc(']', out);
	xt_close_memstream(out);
	name = frame_labelled_name(names, name, text);
	free(text);
	return name;
}

/* The functions of a generated file that call kernels. */
static bool is_graph(const char *function)
{
	return !strcmp(function, "Runner.call") || !strncmp(function, "partition_", 10);
}

static uint32_t unknown_name(const struct compiled_frames *frames, struct frame_names *names,
			     uint32_t id, uint32_t own)
{
	const struct model *model = frames->model;
	const struct python_frame *frame = &model->python_frames.rows[id];
	const char *file = names_text(&model->names, model_string(model, frame->file), NULL);
	const char *function = names_text(&model->names, model_string(model, frame->name), NULL);
	const char *nodes;
	char *label;

	if (!generated_code_is_file(file))
		return own;
	if (frames->first[id]) {
		nodes = names_text(&model->names,
				   model->compiled.rows[frames->first[id]].place.function, NULL);
		label = xt_asprintf("[%s]", nodes);
		own = frame_labelled_name(names, own, label);
		free(label);
	}
	if (!(frames->first[id] || is_graph(function)) ||
	    (frame->file < model->strings.count && frames->file_has_lines[frame->file]))
		return own;
	paths_mark(names->paths, own, MARK_COMPILED_UNKNOWN);
	return own;
}

/* own: the frame's own name. Returns the shown name. */
static uint32_t shown_name(const struct compiled_frames *frames, struct frame_names *names,
			   uint32_t id, uint32_t own)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];
	uint32_t name;

	if (!frames->first[id] || !rows->trace)
		return unknown_name(frames, names, id, own);
	name = fused_name(names, rows, row_count(frames, id));
	paths_mark(names->paths, name, MARK_COMPILED_LINES);
	return name;
}

/* Returns the number of the user's lines that replace a frame. 0: it is shown itself. */
static uint32_t line_count(const struct compiled_frames *frames, uint32_t id)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];

	return frames->first[id] && rows->trace ? trace_length(rows, row_count(frames, id)) : 0;
}

static uint32_t add_outer(const struct compiled_frames *frames, struct frame_names *names,
			  uint32_t node, uint32_t id)
{
	const struct compiled_place *rows = &frames->model->compiled.rows[frames->first[id]];

	for (uint32_t r = 0, count = line_count(frames, id); r + 1 < count; r++)
		node = paths_child(names->paths, node, place_name(names, &rows[r].place));
	return node;
}

uint32_t compiled_frames_add(const struct compiled_frames *frames, struct frame_names *names,
			     uint32_t node, uint32_t id)
{
	uint32_t name;

	if (id >= frames->model->python_frames.count)
		id = 0;
	if (!names->python[id]) {
		name = shown_name(frames, names, id, frame_python_name(names, id));
		names->python[id] = name + 1;
	}
	node = add_outer(frames, names, node, id);
	return paths_child(names->paths, node, names->python[id] - 1);
}

bool compiled_frames_line(const struct compiled_frames *frames, struct frame_names *names,
			  uint32_t id, uint32_t n, struct python_line *line)
{
	const struct model *model = frames->model;
	const struct python_frame *frame;
	uint32_t count;

	id = id < model->python_frames.count ? id : 0;
	count = line_count(frames, id);
	if (n >= (count ? count : 1) || !names->python[id])
		return false;
	*line = (struct python_line){.name = names->python[id] - 1};
	if (count) {
		line->place = model->compiled.rows[frames->first[id] + n].place;
		line->name = place_name(names, &line->place);
		line->is_labelled = n + 1 == count && line->name != names->python[id] - 1;
		if (line->is_labelled)
			line->name = names->python[id] - 1;
		return true;
	}
	frame = &model->python_frames.rows[id];
	line->place = (struct place){model_string(model, frame->name),
				     model_string(model, frame->file), frame->line};
	line->first_line = frame->first_line;
	line->is_labelled = frames->first[id];
	return true;
}
