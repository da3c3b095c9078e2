/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out the text summary: columns, wrapped text, and call paths that fit in a line.
 */
#include "merge/export/summary/summary_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "base/text.h"
#include "merge/sums/build_tree.h"
#include "base/output.h"
#include "merge/sums/settings.h"

#define LINE_DEFAULT	 200 /* without a terminal */
#define PATH_COLUMNS	 150 /* of a call path, without a terminal */
#define TEXT_TOP_DEFAULT 10
#define NARROW_FIGURE	 10 /* narrower columns keep their width */
#define NARROW_COLUMNS	 60 /* narrower terminals get closer columns */
#define CLOSE_COLUMNS	 80 /* in lines of at most this width, columns of figures are closer */
#define FACT_COLUMNS	 52 /* of a label in the overview */
#define FIGURE_COLUMNS	 16
#define FIGURE_NARROW	 12
#define CELL_LINES	 3  /* of a text that is too wide for its row */
#define CUT_SLACK	 8  /* columns at the end of a line */
#define TOP_BYTES	 64 /* "(top 10 of 43)" */

size_t column_of(const struct output *out)
{
	const char *line = memrchr(out->buffer, '\n', out->used);
	size_t column = 0;

	line = line ? line + 1 : out->buffer;
	for (const char *p = line; p < out->buffer + out->used; p++) {
		if (*p == '\033') {
			while (p + 1 < out->buffer + out->used && *p != 'm')
				p++;
			continue;
		}
		column += ((uint8_t)*p & 0xc0) != 0x80;
	}
	return column;
}

/* Writes a word, broken if it is wider than the line. Returns the column after it. */
static size_t put_word(struct output *out, const char *word, size_t length, size_t column,
		       size_t indent, size_t columns)
{
	for (size_t i = 0, bytes; i < length; i += bytes) {
		for (bytes = 1; i + bytes < length && ((uint8_t)word[i + bytes] & 0xc0) == 0x80;)
			bytes++;
		/* Names in files are searched for, so they stay whole. */
		if (out->columns && column >= columns && column > indent) {
			output_format(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		output_text(out, word + i, bytes);
		column++;
	}
	return column;
}

void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns)
{
	const char *start = text;
	size_t column = column_of(out) + first;

	output_format(out, "%*s", (int)first, "");
	while (*text) {
		size_t length = strcspn(text, " "), width;

		if (!strncmp(text + length, " %", 2)) /* keep it with its number */
			length += 1 + strcspn(text + length + 1, " ");
		width = text_columns(text, length);
		if (text > start && column + 1 + width > columns) {
			output_format(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (text > start) {
			output_text(out, " ", 1);
			column++;
		}
		column = put_word(out, text, length, column, indent, columns);
		text += length + (text[length] == ' ');
	}
}

void put_words_cut(struct output *out, const char *text, size_t first, size_t indent, size_t lines)
{
	size_t columns = columns_of_line(out), room = lines * (columns - indent);
	struct output cut;
	struct output_bytes bytes;

	output_open_memory(&cut);
	/* Words rarely end where the line does. */
	put_elided(&cut, text, strlen(text), room - lines * CUT_SLACK);
	output_char(&cut, '\0');
	bytes = output_bytes(&cut);
	put_words(out, bytes.data, first, indent, columns);
	output_discard(&cut);
}

void format_weight(char *out, enum weight weight, uint64_t value, bool is_short)
{
	if (weight_specs[weight].is_time)
		(is_short ? format_time_short : format_time)(out, value);
	else if (!strcmp(weight_unit(weight), "count"))
		format_count(out, value);
	else
		(is_short ? format_bytes_short : format_bytes)(out, value);
}

void put_style(struct output *out, enum style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m", [STYLE_TITLE] = "\033[1m",  [STYLE_HEAD] = "\033[2m",
		[STYLE_BAR] = "\033[34m",  [STYLE_ALARM] = "\033[33m",
	};

	if (out->has_colours)
		output_text(out, codes[style], strlen(codes[style]));
}

size_t columns_of_line(const struct output *out)
{
	return out->columns ? out->columns : LINE_DEFAULT;
}

size_t put_room(const struct output *out)
{
	size_t column = column_of(out);

	if (!out->columns)
		return PATH_COLUMNS;
	return column + PATH_COLUMNS_MIN < out->columns ? out->columns - column : PATH_COLUMNS_MIN;
}

size_t put_elided(struct output *out, const char *text, size_t length, size_t columns)
{
	size_t whole = text_columns(text, length), head, tail, i, seen = 0;

	if (whole <= columns) {
		output_text(out, text, length);
		return whole;
	}
	head = (columns - 1) / 2;
	tail = columns - 1 - head;
	for (i = 0; i < length && (seen < head || ((uint8_t)text[i] & 0xc0) == 0x80); i++)
		seen += ((uint8_t)text[i] & 0xc0) != 0x80;
	output_text(out, text, i);
	output_text(out, ELLIPSIS, strlen(ELLIPSIS));
	for (seen = whole, i = 0; seen > tail || ((uint8_t)text[i] & 0xc0) == 0x80; i++)
		seen -= ((uint8_t)text[i + 1] & 0xc0) != 0x80;
	output_text(out, text + i, length - i);
	return columns;
}

void put_cell(struct output *out, const char *text, size_t length)
{
	size_t room = out->columns > ROW_INDENT ? out->columns - ROW_INDENT : 1, end = 0, next = 0;
	char *shown = NULL;

	if (!out->columns || column_of(out) + text_columns(text, length) <= out->columns) {
		output_text(out, text, length);
		return;
	}
	/* Wrapping leaves up to a word of each line empty. */
	while (next < length && (!end || text_columns(text, next) <= (CELL_LINES - 1) * room)) {
		end = next;
		next += 1 + strcspn(text + next, " ");
		next = next < length ? next : length;
	}
	end = next < length ? end : length;
	if (asprintf(&shown, "%.*s%s", (int)end, text, end < length ? ELLIPSIS : "") < 0) {
		put_elided(out, text, length, put_room(out));
		return;
	}
	while (out->used && out->buffer[out->used - 1] == ' ')
		out->used--;
	output_format(out, "\n%*s", ROW_INDENT, "");
	put_words(out, shown, 0, ROW_INDENT, out->columns);
	free(shown);
}

static bool has_column(const struct output *out, const struct column *column)
{
	return !out->columns || out->columns >= column->from;
}

static int column_width(const struct output *out, const struct column *column)
{
	size_t head = strlen(column->head);

	if (!out->columns || out->columns >= NARROW_COLUMNS || column->columns < NARROW_FIGURE)
		return column->columns;
	return (int)(head + 2 > column->columns ? head : column->columns - 2u);
}

/* The space behind a column. The last column gets two. */
static int gap_columns(const struct output *out)
{
	return out->columns && out->columns <= CLOSE_COLUMNS ? 1 : 2;
}

void put_heads(struct output *out, const struct column *columns, size_t count, const char *last)
{
	for (size_t c = 0; c < count; c++) {
		const char *head = columns[c].head;
		size_t bytes = strlen(head);
		int width =
			column_width(out, &columns[c]) + (int)(bytes - text_columns(head, bytes));

		if (has_column(out, &columns[c]))
			output_format(out, "%*s%*s", columns[c].is_left ? -width : width, head,
				      gap_columns(out), "");
	}
	output_format(out, "%*s", 2 - gap_columns(out), "");
	if (!out->columns || column_of(out) + strlen(last) <= out->columns)
		output_text(out, last, strlen(last));
	output_text(out, "\n", 1);
}

void put_figures(struct output *out, const struct column *columns, size_t count,
		 const char *const *figures)
{
	for (size_t c = 0; c < count; c++) {
		int width = column_width(out, &columns[c]);

		if (has_column(out, &columns[c]))
			output_format(out, "%*s%*s", columns[c].is_left ? -width : width,
				      figures[c], gap_columns(out), "");
	}
	output_format(out, "%*s", 2 - gap_columns(out), "");
}

void put_fact(struct output *out, const char *what, const char *figure)
{
	size_t indent = strspn(what, " ") + 2, width = FIGURE_COLUMNS, columns = 2 + FACT_COLUMNS;
	int pad;

	if (out->columns && out->columns <= columns + width) {
		width = FIGURE_NARROW;
		columns = out->columns - width - 1;
	}
	put_words(out, what + indent - 2, indent, indent + 2, out->columns ? columns : SIZE_MAX);
	pad = (int)(columns + 1 + width) -
	      (int)(column_of(out) + text_columns(figure, strlen(figure)));
	if (pad < 2 && out->columns) {
		output_text(out, "\n", 1);
		put_words(out, figure, indent + 2, indent + 2, out->columns);
	} else {
		output_format(out, "%*s%s", pad < 2 ? 2 : pad, "", figure);
	}
	output_text(out, "\n", 1);
}

void put_count(struct output *out, const char *what, uint64_t value)
{
	char count[COUNT_BYTES];

	format_count(count, value);
	put_fact(out, what, count);
}

void put_note(struct output *out, const char *text)
{
	put_words(out, text, 2, 4, columns_of_line(out));
	output_text(out, "\n", 1);
}

void put_title(struct output *out, const char *title, const char *more)
{
	size_t columns = columns_of_line(out);

	output_text(out, "\n", 1);
	put_style(out, STYLE_TITLE);
	put_words(out, title, 0, 2, columns);
	put_style(out, STYLE_PLAIN);
	if (more[0] && column_of(out) + 1 + text_columns(more, strlen(more)) > columns) {
		output_text(out, "\n", 1);
		put_words(out, more, 2, 4, columns);
	} else if (more[0]) {
		output_format(out, " %s", more);
	}
	output_text(out, "\n", 1);
}

void put_top_title(struct output *out, const char *title, size_t shown, size_t all)
{
	char more[TOP_BYTES] = "";

	if (shown < all)
		snprintf(more, sizeof(more), "(top %zu of %zu)", shown, all);
	put_title(out, title, more);
}

size_t rows_to_show(size_t count, const struct settings *settings)
{
	size_t top = settings->tables.top_count ? settings->tables.top_count : TEXT_TOP_DEFAULT;

	return count < top ? count : top;
}

/*
 * Shortens call paths to the room in a table of the summary.
 *
 * Frames are chosen in this order:
 * 1. the innermost frame of the user's code, the GPU work and its API function
 * 2. the innermost range: an NVTX range or a PyTorch module
 * 3. the innermost Python library frame, more user frames
 * 4. the other frames, from the innermost outwards
 *
 * Ranges and Python's "<module>" at the start of a path enclose most of the others, so they come
 * last if user code follows. A row of the call tree shows only a part of a path. There, a range at
 * the start tells the row from its siblings, so it comes right after the user's frame.
 *
 * Names are cut at the end, except those of kernels and ranges, which differ there. A terminal
 * shows kernels without their mark. Consecutive frames without symbols in one module are shown as
 * one.
 */
#define NAME_COLUMNS	  48 /* of a frame */
#define NAME_COLUMNS_MIN  16
#define NAME_COLUMNS_LEFT 4   /* of a name whose line number is shown */
#define LEAF_SHARE	  2   /* the leaf gets half of the room, unless it is alone */
#define RANGE_SHARE	  2   /* a range at the start gets up to half beside a user frame */
#define OWN_KEPT	  3   /* user frames, and Python library frames */
#define FIRST_KEPT	  11  /* frames with priority */
#define ROW_COLUMNS	  140 /* on narrower terminals a path gets its own line */

enum part_kind { PART_OTHER, PART_OWN, PART_LIBRARY, PART_RANGE };

struct part {
	const char *name;
	size_t length;
	size_t columns;	     /* full width */
	size_t shown;	     /* assigned width; 0: omitted */
	size_t tail;	     /* width of " (file.c:12)", which is kept */
	bool is_run;	     /* several frames without symbols, shown as "module+" */
	enum part_kind kind; /* of the user, of a Python library, NVTX range or PyTorch module */
	bool is_leaf;	     /* GPU work */
};

/* Returns the length of "module+" in "module+0x12ab", or 0 for other names. */
static size_t nameless_prefix(const char *name, size_t length)
{
	size_t at = length;

	while (at && isxdigit((unsigned char)name[at - 1]))
		at--;
	return at > 3 && at < length && !memcmp(name + at - 3, "+0x", 3) ? at - 2 : 0;
}

/* Returns the offset of " (file.c:12)" at the end of a name, or length if there is none. */
static size_t line_at(const char *name, size_t length)
{
	const char *open;
	size_t at = length;

	if (!at || name[--at] != ')')
		return length;
	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	if (at < 2 || name[at - 1] != ':' || name[at] == ')')
		return length;
	open = memrchr(name, '(', at);
	return open && open > name && open[-1] == ' ' ? (size_t)(open - name) - 1 : length;
}

static size_t line_columns(const char *name, size_t length)
{
	size_t line = line_at(name, length);

	return text_columns(name + line, length - line);
}

/* Matches "f (file.py:12)" and "f (<string>:1)". */
static bool is_python(const char *name, size_t length)
{
	const char *colon = memrchr(name, ':', length);

	if (!colon || line_at(name, length) == length)
		return false;
	return colon[-1] == '>' || (colon - name > 4 && !memcmp(colon - 3, ".py", 3));
}

static enum part_kind kind_of(const struct paths *paths, uint32_t id, const char *name,
			      size_t length)
{
	if (paths_is_user_code(paths, id))
		return PART_OWN;
	if (begins_with(name, "[NVTX ") || begins_with(name, "[module] "))
		return PART_RANGE;
	return is_python(name, length) ? PART_LIBRARY : PART_OTHER;
}

static bool is_wrapper(const struct part *part)
{
	return part->kind == PART_RANGE || begins_with(part->name, "<module> (");
}

/*
 * Takes the priority from ranges and modules if user code follows. They are at the start of a path,
 * and of the path that created a graph's node. is_start: the first part begins a path.
 */
static void fold_wrappers(struct part *parts, size_t count, bool is_start)
{
	size_t last_own = count;

	while (last_own &&
	       (parts[last_own - 1].kind != PART_OWN || is_wrapper(&parts[last_own - 1])))
		last_own--;
	for (size_t i = 0; i < last_own; i++) {
		is_start = !strcmp(parts[i].name, PATH_GRAPH_MARK) ||
			   (is_start && is_wrapper(&parts[i]));
		if (is_start)
			parts[i].kind = PART_OTHER;
	}
}

/* Splits the path into parts, with runs of frames without symbols as one. Returns their number. */
static size_t split(const struct output *out, const struct paths *paths, const uint32_t *chain,
		    size_t depth, struct part *parts)
{
	size_t count = 0, prefix_before = 0;

	for (size_t d = 0; d < depth; d++) {
		struct part *last = count ? &parts[count - 1] : NULL;
		size_t length, prefix;
		const char *name = names_text(&paths->names, paths->nodes[chain[d]].name, &length);
		bool is_leaf = begins_with(name, LEAF_KERNEL_MARK) ||
			       begins_with(name, "[GPU_Mem") || begins_with(name, "[Memory ");

		if (is_leaf && out->columns)
			name = leaf_name(paths, paths->nodes[chain[d]].name, &length);
		prefix = nameless_prefix(name, length);
		if (prefix && prefix == prefix_before && !memcmp(last->name, name, prefix)) {
			last->is_run = true;
			last->length = prefix;
			last->columns = text_columns(name, prefix) + 1;
			continue;
		}
		prefix_before = prefix;
		parts[count++] = (struct part){
			.name = name,
			.length = length,
			.columns = text_columns(name, length),
			.tail = line_columns(name, length),
			.kind = kind_of(paths, paths->nodes[chain[d]].name, name, length),
			.is_leaf = is_leaf,
		};
	}
	fold_wrappers(parts, count, paths->nodes[chain[0]].parent == PATH_ROOT);
	return count;
}

/* Returns the width of all shown parts, with an ellipsis for each gap. */
static size_t width_of(const struct part *parts, size_t count)
{
	size_t width = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i].shown)
			width += parts[i].shown + (i > 0);
		else if (!i || parts[i - 1].shown)
			width += 1 + (i > 0);
	}
	return width;
}

/* Shows a part if it fits, cut to no fewer than least columns. */
static bool keep(struct part *parts, size_t count, size_t p, size_t limit, size_t least,
		 size_t room)
{
	struct part *part = &parts[p];
	size_t width;

	if (part->shown)
		return true;
	part->shown = part->columns < limit ? part->columns : limit;
	width = width_of(parts, count);
	if (width > room && width - room < part->shown && part->shown - (width - room) >= least)
		part->shown -= width - room;
	else if (width > room)
		part->shown = 0;
	return part->shown;
}

/* Finds the innermost parts of a kind. Returns their number. */
static size_t find(const struct part *parts, size_t count, enum part_kind kind,
		   size_t found[OWN_KEPT])
{
	size_t n = 0;

	for (size_t i = count; i-- > 0 && n < OWN_KEPT;)
		if (parts[i].kind == kind)
			found[n++] = i;
	return n;
}

/* Lists the parts with priority, most important first. Returns their number. */
static size_t order_first(const struct part *parts, size_t count, size_t order[FIRST_KEPT])
{
	size_t own[OWN_KEPT], library[OWN_KEPT], ranges[OWN_KEPT], n = 0;
	size_t own_count = find(parts, count, PART_OWN, own);
	size_t library_count = find(parts, count, PART_LIBRARY, library);
	size_t range_count = find(parts, count, PART_RANGE, ranges);

	if (own_count)
		order[n++] = own[0];
	if (parts[0].kind == PART_RANGE)
		order[n++] = 0;
	if (own_count || parts[count - 1].is_leaf)
		order[n++] = count - 1;
	if (parts[count - 1].is_leaf && count > 1)
		order[n++] = count - 2;
	if (range_count)
		order[n++] = ranges[0];
	order[n++] = count - 1;
	if (library_count)
		order[n++] = library[0];
	for (size_t i = 1; i < own_count; i++)
		order[n++] = own[i];
	for (size_t i = 1; i < library_count; i++)
		order[n++] = library[i];
	return n;
}

/* Gives unused room to a part that was cut. */
static void widen(const struct part *parts, size_t count, struct part *part, size_t room)
{
	size_t width = width_of(parts, count), more = part->columns - part->shown;

	if (part->shown && width < room)
		part->shown += more < room - width ? more : room - width;
}

/* Chooses which parts to show in room columns. */
static void choose(struct part *parts, size_t count, size_t room)
{
	size_t order[FIRST_KEPT], n = order_first(parts, count, order), limit = NAME_COLUMNS;
	const struct part *last = &parts[count - 1];
	size_t least = room / 2 < NAME_COLUMNS_MIN + 2 ? room / 2 - 2 : NAME_COLUMNS_MIN;
	bool is_whole;

	limit = smaller(limit, room);
	for (size_t i = 0; i < count; i++)
		parts[i].shown = parts[i].columns < limit ? parts[i].columns : limit;
	is_whole = width_of(parts, count) <= room;
	for (size_t i = 0; i < count && !is_whole; i++)
		parts[i].shown = 0;
	if (last->is_leaf && limit > room / LEAF_SHARE && room >= LEAF_SHARE * NAME_COLUMNS_MIN)
		keep(parts, count, count - 1, room / LEAF_SHARE, least, room);
	for (size_t i = 0; i < n; i++) {
		size_t with_line = parts[order[i]].tail + NAME_COLUMNS_LEFT;
		size_t most = limit;

		if (!i && parts[0].kind == PART_RANGE && order[0]) /* leave room for the range */
			most = with_line > room / RANGE_SHARE ? with_line : room / RANGE_SHARE;
		keep(parts, count, order[i], most, i && with_line > least ? with_line : least,
		     room);
	}
	for (size_t i = count; i-- > 0 && keep(parts, count, i, limit, limit, room);)
		;
	for (size_t i = 0; i < n; i++)
		widen(parts, count, &parts[order[i]], room);
}

/* Writes the first columns of a text. */
static void put_head(struct output *out, const char *text, size_t columns)
{
	size_t bytes = 0;

	while (columns && text[bytes]) {
		columns--;
		do
			bytes++;
		while (((uint8_t)text[bytes] & 0xc0) == 0x80);
	}
	output_text(out, text, bytes);
}

/* Writes a function name, cut at its end, with its line number. */
static void put_cut(struct output *out, const char *name, size_t length, size_t columns)
{
	size_t line = line_at(name, length), tail = line_columns(name, length);

	if (tail + NAME_COLUMNS_LEFT > columns) {
		line = length;
		tail = 0;
	}
	put_head(out, name, columns - tail - 1);
	output_text(out, ELLIPSIS, strlen(ELLIPSIS));
	output_text(out, name + line, length - line);
}

static void put_part(struct output *out, const struct part *part)
{
	size_t columns = part->shown - part->is_run;

	if (columns >= part->columns - part->is_run)
		output_text(out, part->name, part->length);
	else if (part->is_leaf || part->kind == PART_RANGE)
		put_elided(out, part->name, part->length, columns);
	else
		put_cut(out, part->name, part->length, columns);
	if (part->is_run)
		output_text(out, ELLIPSIS, strlen(ELLIPSIS));
}

static void put_parts(struct output *out, const struct part *parts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!parts[i].shown && i && !parts[i - 1].shown)
			continue;
		if (i)
			output_text(out, ";", 1);
		if (parts[i].shown)
			put_part(out, &parts[i]);
		else
			output_text(out, ELLIPSIS, strlen(ELLIPSIS));
	}
}

void put_chain(struct output *out, const struct paths *paths, const uint32_t *chain, size_t count,
	       size_t room)
{
	struct part *parts;

	if (!count)
		return;
	parts = xt_calloc(count, sizeof(*parts));
	count = split(out, paths, chain, count, parts);
	choose(parts, count, room);
	put_parts(out, parts, count);
	free(parts);
}

void put_path(struct output *out, const struct paths *paths, uint32_t node, size_t reserved)
{
	size_t room = put_room(out), capacity = 0;
	uint32_t *chain = NULL;
	int depth = paths_chain(paths, node, &chain, &capacity);

	if (out->columns)
		room = room > reserved + PATH_COLUMNS_MIN ? room - reserved : PATH_COLUMNS_MIN;
	if (depth > 0)
		put_chain(out, paths, chain, (size_t)depth, room);
	free(chain);
}

static size_t chain_columns(const struct paths *paths, const uint32_t *chain, size_t count)
{
	size_t columns = count - 1;

	for (size_t i = 0; i < count; i++) {
		size_t length;
		const char *name = names_text(&paths->names, paths->nodes[chain[i]].name, &length);

		columns += text_columns(name, length);
	}
	return columns;
}

/* Writes the last frame in this line and its callers in the next. */
static void put_two_lines(struct output *out, const struct paths *paths, const uint32_t *chain,
			  size_t count)
{
	size_t length;
	const char *name = leaf_name(paths, paths->nodes[chain[count - 1]].name, &length);

	put_cell(out, name, length);
	if (count == 1)
		return;
	output_format(out, "\n%*s", ROW_INDENT, "");
	put_chain(out, paths, chain, count - 1, put_room(out));
}

void put_path_row(struct output *out, const struct paths *paths, uint32_t node)
{
	size_t capacity = 0;
	uint32_t *chain = NULL;
	int count = paths_chain(paths, node, &chain, &capacity);

	if (count > 0 && out->columns && out->columns < ROW_COLUMNS &&
	    chain_columns(paths, chain, (size_t)count) > put_room(out))
		put_two_lines(out, paths, chain, (size_t)count);
	else if (count > 0)
		put_chain(out, paths, chain, (size_t)count, put_room(out));
	output_text(out, "\n", 1);
	free(chain);
}
