/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the tables of lines of own code and of their parts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/naming/joined_paths.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"
#include "merge/lines/lines.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define NO_OWN_CODE "(no own code)"
#define DIVIDE	    4 /* paths divide where no line has all but this share */

static const struct column_def line_columns[] = {
	COLUMN("id", CODE, FROM(line_part, id), "number, which `line_parts` refers to"),
	COLUMN("file", TEXT, OTHER, "absolute path", OPTIONAL),
	COLUMN("line", CODE, OTHER, "line in the file", OPTIONAL),
	COLUMN("function", TEXT, OTHER,
	       "function; `" NO_OWN_CODE "` has the work without a frame of own code"),
	COLUMN("via", TEXT, OTHER, "wrappers that pass on most of its work, outermost first",
	       OPTIONAL),
	COLUMN("caller", TEXT, OTHER, "the only line of own code that calls it", OPTIONAL),
	COLUMN("gpu_time_ns", NS, FROM(line_part, gpu_ns), "time on the GPU", HEAD("GPU time", 10)),
	COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7), TEXT_ONLY),
	COLUMN("forward_ns", NS, OTHER, "the rest of it, if PyTorch has a backward pass", OPTIONAL),
	COLUMN("backward_ns", NS, OTHER, "part of it in PyTorch's backward pass", OPTIONAL),
	COLUMN("recompute_ns", NS, OTHER, "part of it that a checkpoint ran again", OPTIONAL),
	COLUMN("optimizer_ns", NS, OTHER, "part of it in `torch.optim`", OPTIONAL),
	COLUMN("backward_share", SHARE, OTHER, "backward pass and recomputing", HEAD("backw.", 7),
	       TEXT_ONLY),
	COLUMN("gpu_idle_ns", NS, FROM(line_part, idle_ns), "idle time of the GPU that it caused",
	       HEAD("idle", 10)),
	COLUMN("count", COUNT, FROM(line_part, count), "kernels, copies and memsets",
	       WIDE("count", 9, 100)),
	COLUMN("step_gpu_ns", NS, OTHER, "GPU time in a step after the warm-up, as mean", OPTIONAL),
	COLUMN("step_idle_ns", NS, OTHER, "idle time in such a step", OPTIONAL),
	COLUMN("step_count", COUNT, OTHER, "kernels, copies and memsets in such a step, rounded",
	       OPTIONAL),
	COLUMN("alloc_bytes", BYTES, FROM(line_part, alloc_bytes),
	       "bytes that it allocated itself"),
	COLUMN("peak_bytes", BYTES, FROM(line_part, peak_bytes), "of these, held at the peak"),
	COLUMN("pool_growth_bytes", BYTES, FROM(line_part, pool_bytes),
	       "bytes that libraries allocated, most into pools that they keep"),
	COLUMN("source", TEXTS, OTHER, "text of the line, with three lines before and behind it",
	       OPTIONAL, IN_JSON),
	COLUMN("source_from", CODE, OTHER, "line of the first one", OPTIONAL, IN_JSON),
	COLUMN("source_changed", FLAG, OTHER, "the file is newer than the recording", OPTIONAL,
	       IN_JSON),
	COLUMN("where", TEXT, OTHER, "line, and where its work comes from or goes to",
	       LAST("line of own code"), TEXT_ONLY),
};

static const struct lines *lines_of(const struct run *run)
{
	static const struct lines none;
	const struct lines *lines = run_analysis(run, &analysis_lines);

	return lines ? lines : &none;
}

static void open_parts(struct table_rows *rows, bool are_lines)
{
	const struct lines *lines = lines_of(rows->run);

	table_records(rows, lines->parts, 0);
	for (size_t i = 0; i < lines->order_count; i++)
		if ((lines->parts[lines->order[i]].kind == PART_OWN) == are_lines)
			table_add(rows, lines->order[i]);
}

static void open_lines(struct table_rows *rows)
{
	open_parts(rows, true);
}

/* Without those that only allocate, which come last. */
static void open_busy_lines(struct table_rows *rows)
{
	const struct line_part *parts = lines_of(rows->run)->parts;

	open_parts(rows, true);
	while (rows->count && !parts[rows->chosen[rows->count - 1]].gpu_ns &&
	       !parts[rows->chosen[rows->count - 1]].idle_ns)
		rows->count--;
}

/* "matmul (llm.c:159)". The caller frees it. */
static char *key_text(const struct lines *lines, uint32_t key_id)
{
	const struct line_key *key = lines_key(lines, key_id);
	const char *function = names_text(&lines->texts, key->function, NULL);

	if (key->file == NAME_EMPTY)
		return xt_strdup(function);
	return xt_asprintf("%s (%s:%u)", function,
			   base_name(names_text(&lines->texts, key->file, NULL)), key->line);
}

/* "matmul (llm.c:159) > launch (llm.c:128)", or only the functions. The caller frees it. */
static char *via_text(const struct lines *lines, const struct line_part *row, bool has_lines)
{
	const struct path_node *places = lines->places.nodes;
	char *text = NULL;

	for (uint32_t place = row->inner; place != row->place; place = places[place].parent) {
		char *line = key_text(lines, places[place].name), *rest = text;

		if (!has_lines)
			strcpy(line,
			       names_text(&lines->texts,
					  lines_key(lines, places[place].name)->function, NULL));
		text = rest ? xt_asprintf("%s > %s", line, rest) : xt_strdup(line);
		free_all(line, rest);
	}
	return text;
}

static char *caller_text(const struct lines *lines, const struct line_part *row)
{
	return row->caller && row->caller != LINE_SEVERAL ? key_text(lines, row->caller) : NULL;
}

/* The line of a library where the paths of a row divide. NULL: they do before. */
static const char *part_text(const struct lines *lines, const struct paths *paths,
			     const struct line_part *row)
{
	const struct line_part *parts = lines->parts;
	uint32_t divided = 0;

	for (uint32_t n = row->first_child; n && parts[n].kind == PART_LINE && row->gpu_ns &&
					    parts[n].gpu_ns >= row->gpu_ns - row->gpu_ns / DIVIDE;
	     n = parts[n].first_child)
		divided = n;
	return divided ? names_text(&paths->names, lines->tree.nodes[divided].name, NULL) : NULL;
}

/* Appends "train.py:12" of "step (train.py:12)", or the whole text if it has no line. */
static void put_place(FILE *text, const char *before, const char *line)
{
	const char *place = strrchr(line, '(');

	place = place ? place + 1 : line;
	fprintf(text, "%s%.*s", before, (int)strcspn(place, ")"), place);
}

/* "train.py:12 step > adam.py:971". The caller frees it. */
static char *where_text(const struct table_rows *rows, const struct line_part *row,
			const char *file, uint32_t line, const char *function)
{
	static const char scope[] = "<locals>.";
	const struct lines *lines = lines_of(rows->run);
	char *via = via_text(lines, row, false), *caller = caller_text(lines, row), *text;
	const char *part = part_text(lines, &rows->run->paths, row), *inner;
	size_t length;
	FILE *stream = xt_open_memstream(&text, &length);

	while ((inner = strstr(function, scope)) && inner[strlen(scope)] != '<')
		function = inner + strlen(scope);
	if (file[0])
		fprintf(stream, "%s:%u ", base_name(file), line);
	fputs(function, stream);
	if (via)
		fprintf(stream, " via %s", via);
	else if (part)
		put_place(stream, " > ", part);
	else if (caller)
		put_place(stream, " from ", caller);
	xt_close_memstream(stream);
	free_all(via, caller);
	return text;
}

static bool has_backward(const struct run *run)
{
	for (int result = JOIN_NO_BACKWARD + 1; result < JOIN_RESULTS; result++)
		if (run->sums->code.backward_gpu_ns[result])
			return true;
	return false;
}

static void put_steps(struct cells *cells, const struct run *run, const struct line_part *row)
{
	const struct steps *steps = steps_of(run);
	uint64_t count = steps ? steps->steady_count : 0;

	cells_put(cells, cell_known(count, row->steps.gpu_ns / larger(count, 1u)));
	cells_put(cells, cell_known(count, row->steps.idle_ns / larger(count, 1u)));
	cells_put(cells, cell_known(count, (row->steps.count + count / 2) / larger(count, 1u)));
}

static void put_line(struct table_rows *rows, struct cells *cells)
{
	const struct line_part *row = rows->record;
	const struct lines *lines = lines_of(rows->run);
	bool is_torch = has_backward(rows->run);
	uint64_t back_ns = row->pass_ns[PASS_BACKWARD] + row->pass_ns[PASS_RECOMPUTE];
	const struct line_source *source = &row->source;
	bool has_source = source->texts.length;
	struct line_key key = {0};
	const char *file, *function = NO_OWN_CODE;

	if (row->place != PATH_ROOT) {
		key = *lines_key(lines, lines->places.nodes[row->place].name);
		function = names_text(&lines->texts, key.function, NULL);
	}
	file = names_text(&lines->texts, key.file, NULL);
	cells_put(cells, cell_text(file[0] ? file : NULL));
	cells_put(cells, cell_known(file[0], key.line));
	cells_put(cells, cell_text(function));
	cells_put(cells, cell_owned(rows, via_text(lines, row, true)));
	cells_put(cells, cell_owned(rows, caller_text(lines, row)));
	cells_put(cells, cell_share(row->gpu_ns, rows->run->sums->events.work.gpu_ns));
	for (int pass = 0; pass < PASSES; pass++)
		cells_put(cells, cell_known(is_torch, row->pass_ns[pass]));
	cells_put(cells, is_torch && row->gpu_ns ? cell_share(back_ns, row->gpu_ns) : CELL_ABSENT);
	put_steps(cells, rows->run, row);
	cells_put(cells, has_source ? (struct cell){.text = source->texts.texts,
						    .length = source->texts.length}
				    : CELL_ABSENT);
	cells_put(cells, cell_known(has_source, source->from));
	cells_put(cells, cell_known(source->is_changed, 1));
	cells_put(cells, cell_owned(rows, where_text(rows, row, file, key.line, function)));
}

#define LINES_TABLE(open_rows)                                                                     \
	{                                                                                          \
		.name = "lines", .title = "GPU time by line of own code",                          \
		.what = "GPU time by innermost line of own code, longest time first.",             \
		HAS_COLUMNS(line_columns),                                                         \
		.shows = "gpu_time_ns share backward_share gpu_idle_ns count where",               \
		.open = open_rows, .row = put_line                                                 \
	}

const struct table_def table_lines = LINES_TABLE(open_lines);
const struct table_def text_lines = LINES_TABLE(open_busy_lines);

static const struct column_def part_columns[] = {
	COLUMN("line_id", CODE, FROM(line_part, line_id), "`id` of the line in `lines`"),
	COLUMN("id", CODE, FROM(line_part, id), "number of the part"),
	COLUMN("parent", CODE, FROM(line_part, parent), "the part or the line that it is of"),
	COLUMN("kind", WORD, OTHER,
	       "line, module, operator, node (of PyTorch's backward pass) or work"),
	COLUMN("name", TEXT, OTHER, "its name"),
	COLUMN("gpu_time_ns", NS, FROM(line_part, gpu_ns), "time on the GPU"),
	COLUMN("backward_ns", NS, OTHER, "part of it in PyTorch's backward pass, with recomputing"),
	COLUMN("gpu_idle_ns", NS, FROM(line_part, idle_ns), "idle time of the GPU that it caused"),
	COLUMN("count", COUNT, FROM(line_part, count), "kernels, copies and memsets"),
};

static void open_line_parts(struct table_rows *rows)
{
	open_parts(rows, false);
}

static void put_part(struct table_rows *rows, struct cells *cells)
{
	static const char *const kinds[] = {[PART_LINE] = "line",
					    [PART_MODULE] = "module",
					    [PART_OPERATOR] = "operator",
					    [PART_NODE] = "node",
					    [PART_WORK] = "work"};
	const struct line_part *part = rows->record;
	const struct paths *paths = &rows->run->paths;
	struct cell name = {0};

	name.text =
		leaf_name(paths, lines_of(rows->run)->tree.nodes[rows->index].name, &name.length);
	cells_put(cells, cell_text(kinds[part->kind]));
	cells_put(cells, name);
	cells_put(cells, cell_number(part->pass_ns[PASS_BACKWARD] + part->pass_ns[PASS_RECOMPUTE]));
}

const struct table_def table_line_parts = {
	.name = "line_parts",
	.title = "Parts of lines of own code",
	.what = "Lines of libraries, modules, operators and work below each line of own code, "
		"from 1/1000 of the run.",
	HAS_COLUMNS(part_columns),
	.open = open_line_parts,
	.row = put_part,
};
