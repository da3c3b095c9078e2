/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/compiled_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
#include "log/read/rows.h"
#include "merge/symbolize/generated_code.h"
#include "merge/symbolize/source_text.h"
#include "merge/symbolize/torch_trace.h"

#define CHUNK_ROWS	 4096
#define CHUNK_TEXT_BYTES (1u << 20)
#define TEXT_BYTES_MAX	 4096
#define PLACES_MAX	 64 /* of a trace */

/* A line of generated code in a stack. */
struct wanted {
	const char *file;
	uint32_t line;
	uint32_t frame;
	bool has_nodes, has_traces;
	bool is_ambiguous;    /* two compilations made this line, from different lines */
	uint32_t traces_hash; /* of the first traces found */
};

struct search {
	struct compiled_lines *lines;
	struct wanted *wanted; /* sorted by file and line */
	size_t count, capacity;
	struct source_texts sources;
};

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	int difference = strcmp(x->file, y->file);

	if (difference)
		return difference;
	return x->line < y->line ? -1 : x->line > y->line;
}

COMPARE_BY(compare_lines, struct compiled_line, UP(frame) UP(trace) UP(order))

/* The part of a frame's source lines that the log has already. */
enum known { KNOWN_NOTHING, KNOWN_NODES, KNOWN_TRACES };

/* Returns an enum known for each frame, owned by the caller. NULL: no memory. */
static uint8_t *list_known(const struct model *model)
{
	uint8_t *known = xt_calloc(model->python_frames.count + 1, 1);

	for (uint32_t r = 1; r < model->compiled.count; r++) {
		const struct compiled_place *row = &model->compiled.rows[r];

		if (row->frame < model->python_frames.count && known[row->frame] != KNOWN_TRACES)
			known[row->frame] = row->trace ? KNOWN_TRACES : KNOWN_NODES;
	}
	return known;
}

static void list_frames(struct search *search, const struct model *model, const uint8_t *known)
{
	for (uint32_t id = 1; id < model->python_frames.count; id++) {
		const struct python_frame *frame = &model->python_frames.rows[id];
		const char *file =
			names_text(&model->names, model_string(model, frame->file), NULL);

		if (!frame->line || !generated_code_is_file(file))
			continue;
		xt_append(search->wanted, search->count, search->capacity,
			  (struct wanted){.file = file,
					  .line = frame->line,
					  .frame = id,
					  .has_nodes = known[id] != KNOWN_NOTHING,
					  .has_traces = known[id] == KNOWN_TRACES});
	}
	if (search->count)
		qsort(search->wanted, search->count, sizeof(*search->wanted), compare_wanted);
}

static void list_wanted(struct search *search, const struct model *model)
{
	uint8_t *known = list_known(model);

	list_frames(search, model, known);
	free(known);
}

/* Returns the index of the first wanted line that is not before this one. */
static size_t find_wanted(const struct search *search, const char *file, uint32_t line)
{
	const struct wanted key = {.file = file, .line = line};

	return FIRST_NOT(i, 0, search->count, compare_wanted(&search->wanted[i], &key) < 0);
}

static bool wants(void *context, const char *file)
{
	const struct search *search = context;
	size_t at = find_wanted(search, file, 0);

	return at < search->count && !strcmp(search->wanted[at].file, file);
}

static void add_line(struct compiled_lines *lines, struct compiled_line line)
{
	xt_append(lines->list, lines->count, lines->capacity, line);
}

/*
 * Whether a file changed since the code was compiled. A cache keeps the lines of that time, and
 * does not notice that lines moved.
 */
static bool is_stale(struct search *search, const char *text)
{
	struct torch_place place;
	bool differs = false;

	while (!differs && torch_trace_next_place(&text, &place)) {
		char *path = place.source ? xt_strndup(place.file, place.file_length) : NULL;

		differs = path && source_text_differs(&search->sources, path, place.line,
						      place.source, place.source_length);
		free(path);
	}
	return differs;
}

/* Returns whether the trace has a place. */
static bool add_trace(struct search *search, uint32_t frame, uint32_t number, const char *text)
{
	struct torch_place place;
	int count = 0;

	if (is_stale(search, text))
		return false;
	while (count < PLACES_MAX && torch_trace_next_place(&text, &place)) {
		if (place.file_length > TEXT_BYTES_MAX || place.function_length > TEXT_BYTES_MAX)
			continue;
		add_line(search->lines,
			 (struct compiled_line){
				 .frame = frame,
				 .trace = number,
				 .line = place.line,
				 .function = xt_strndup(place.function, place.function_length),
				 .file = xt_strndup(place.file, place.file_length)});
		count++;
	}
	return count > 0;
}

static uint32_t hash_of(const struct torch_call *call)
{
	uint32_t hash = 0;

	for (uint32_t t = 0; t < call->trace_count; t++)
		hash = hash * 31 + xt_hash_bytes(call->traces[t], strlen(call->traces[t]));
	return hash | 1; /* 0: none */
}

/* Functions with equal code share a generated file, so its lines would be those of one of them. */
static void note_ambiguity(struct compiled_lines *lines, struct wanted *wanted, uint32_t hash)
{
	size_t kept = 0;

	if (!wanted->traces_hash || wanted->traces_hash == hash)
		return;
	wanted->is_ambiguous = true;
	wanted->has_traces = false;
	for (size_t i = 0; i < lines->count; i++) {
		struct compiled_line *line = &lines->list[i];

		if (line->frame == wanted->frame && line->trace) {
			free(line->function);
			free(line->file);
			continue;
		}
		lines->list[kept++] = *line;
	}
	lines->count = kept;
}

static void add_to(struct search *search, struct wanted *wanted, const struct torch_call *call)
{
	uint32_t number = 0, hash = hash_of(call);

	if (call->trace_count && !wanted->is_ambiguous)
		note_ambiguity(search->lines, wanted, hash);
	for (uint32_t t = 0; t < call->trace_count && !wanted->has_traces && !wanted->is_ambiguous;
	     t++)
		number += add_trace(search, wanted->frame, number + 1, call->traces[t]);
	if (number)
		wanted->traces_hash = hash;
	wanted->has_traces |= number > 0;
	if (wanted->has_traces || wanted->has_nodes || !call->nodes[0])
		return;
	wanted->has_nodes = true;
	add_line(search->lines, (struct compiled_line){.frame = wanted->frame,
						       .function = xt_strdup(call->nodes),
						       .file = xt_strdup("")});
}

static int add(void *context, const struct torch_call *call)
{
	struct search *search = context;

	for (size_t w = find_wanted(search, call->file, call->line); w < search->count; w++) {
		struct wanted *wanted = &search->wanted[w];

		if (wanted->line != call->line || strcmp(wanted->file, call->file))
			break;
		add_to(search, wanted, call);
	}
	return 0;
}

/* Reads generated files that PyTorch's records do not have. */
static int read_files(struct search *search, const struct torch_trace_sink *sink)
{
	int error = 0;

	for (size_t first = 0, end; first < search->count && !error; first = end) {
		const char *file = search->wanted[first].file;
		bool is_known = false;

		for (end = first; end < search->count && !strcmp(search->wanted[end].file, file);
		     end++)
			is_known |= search->wanted[end].has_traces || search->wanted[end].has_nodes;
		if (!is_known)
			error = torch_trace_read_code(file, sink);
	}
	return error;
}

/* Removes the nodes of frames whose lines became known later. */
static void remove_nodes(struct compiled_lines *lines)
{
	size_t kept = 0;

	for (size_t i = 0; i < lines->count; i++) {
		struct compiled_line *line = &lines->list[i];

		if (!line->trace && i + 1 < lines->count && line[1].frame == line->frame) {
			free(line->function);
			free(line->file);
			continue;
		}
		lines->list[kept++] = *line;
	}
	lines->count = kept;
}

int compiled_lines_find(struct compiled_lines *lines, const struct model *model, const char *folder)
{
	struct search search = {.lines = lines};
	const struct torch_trace_sink sink = {.context = &search, .wants = wants, .add = add};
	int error = 0;

	*lines = (struct compiled_lines){0};
	list_wanted(&search, model);
	if (search.count)
		error = torch_trace_read(folder, model->pid, &sink);
	if (!error)
		error = read_files(&search, &sink);
	free(search.wanted);
	source_texts_free(&search.sources);
	for (size_t i = 0; i < lines->count; i++)
		lines->list[i].order = i;
	if (lines->count)
		qsort(lines->list, lines->count, sizeof(*lines->list), compare_lines);
	remove_nodes(lines);
	return error;
}

void compiled_lines_free(struct compiled_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->list[i].function);
		free(lines->list[i].file);
	}
	free(lines->list);
	*lines = (struct compiled_lines){0};
}

int compiled_lines_write(const struct compiled_lines *lines, struct xt_writer *writer)
{
	struct xt_table table;
	int error;

	if (!lines->count)
		return 0;
	error = xt_table_init(&table, XT_KIND_COMPILED, CHUNK_ROWS, CHUNK_TEXT_BYTES);
	for (size_t i = 0; i < lines->count && !error; i++) {
		const struct compiled_line *line = &lines->list[i];
		size_t function = strlen(line->function), file = strlen(line->file);

		if (!xt_table_has_room(&table, function > file ? function : file))
			error = xt_writer_add(writer, &table);
		if (error)
			break;
		xt_write_compiled(&table, &(struct xt_row_compiled){
						  .frame = line->frame,
						  .trace = line->trace,
						  .function = {line->function, function},
						  .file = {line->file, file},
						  .line = line->line,
					  });
	}
	if (!error)
		error = xt_writer_add(writer, &table);
	xt_table_free(&table);
	return error;
}
