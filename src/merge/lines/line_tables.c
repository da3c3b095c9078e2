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
#include "merge/lines/modules.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define NO_OWN_CODE "(no own code)"
#define DIVIDE	    4 /* paths divide where no line has all but this share */
#define BIG_LINE    3 /* lines with this share show where the paths divide */
#define PARTS_SHOWN 4
#define SMALL_PART  20 /* of the line */

static const struct column_def line_columns[] = {
	COLUMN("id", CODE, FROM(line_part, id), "number, which `line_parts` refers to"),
	COLUMN("file", TEXT, OTHER, "absolute path", OPTIONAL),
	COLUMN("line", CODE, OTHER, "line in the file", OPTIONAL),
	COLUMN("function", TEXT, OTHER,
	       "function; `" NO_OWN_CODE "` has the work without a frame of own code"),
	COLUMN("via", TEXT, OTHER, "wrappers that pass on most of its work, outermost first",
	       OPTIONAL),
	COLUMN("caller", TEXT, OTHER, "the only line of own code that calls it", OPTIONAL),
	COLUMN("divides", TEXT, OTHER, "line of a library where the paths of its work divide",
	       OPTIONAL),
	COLUMN("gpu_time_ns", NS, FROM(line_part, gpu_ns), "time on the GPU", HEAD("GPU time", 10)),
	COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7), TEXT_ONLY),
	COLUMN("forward_ns", NS, OTHER, "the rest of it, if PyTorch has a backward pass", OPTIONAL),
	COLUMN("backward_ns", NS, OTHER, "part of it in PyTorch's backward pass", OPTIONAL),
	COLUMN("recompute_ns", NS, OTHER, "part of it that a checkpoint ran again", OPTIONAL),
	COLUMN("optimizer_ns", NS, OTHER, "part of it in `torch.optim`", OPTIONAL),
	COLUMN("backward_share", SHARE, OTHER, "backward pass and recomputing", HEAD("backw.", 7),
	       OPTIONAL, TEXT_ONLY),
	COLUMN("gpu_idle_ns", NS, FROM(line_part, idle_ns),
	       "idle time of the GPU: with CPU samples, while it ran, else before work that it "
	       "launched",
	       HEAD("idle", 10)),
	COLUMN("count", COUNT, FROM(line_part, count), "kernels, copies and memsets",
	       WIDE("count", 9, 100)),
	COLUMN("step_gpu_ns", NS, OTHER, "GPU time in a step after the warm-up, as mean", OPTIONAL,
	       HEAD("per step", 10)),
	COLUMN("step_share", SHARE, OTHER, "part of all GPU time in steps", HEAD("share", 7),
	       TEXT_ONLY),
	COLUMN("step_backward_share", SHARE, OTHER, "backward pass and recomputing",
	       HEAD("backw.", 7), OPTIONAL, TEXT_ONLY),
	COLUMN("step_backward_ns", NS, OTHER, "of this: backward pass and recomputing", OPTIONAL,
	       IN_JSON),
	COLUMN("step_idle_ns", NS, OTHER, "idle time in such a step", OPTIONAL, HEAD("idle", 10)),
	COLUMN("step_count", COUNT, OTHER, "kernels, copies and memsets in such a step, rounded",
	       OPTIONAL, WIDE("count", 9, 100)),
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

/* Whether a table of text is of the steps after the warm-up. */
static bool is_of_steps(const struct table_def *def)
{
	return def == &text_step_lines || def == text_step_lines.inner;
}

static uint64_t gpu_ns_of(const struct table_rows *rows, const struct line_part *part)
{
	return is_of_steps(rows->def) ? part->steps.gpu_ns : part->gpu_ns;
}

static void open_parts(struct table_rows *rows, bool are_lines)
{
	const struct lines *lines = lines_of(rows->run);

	table_records(rows, lines->parts, 0);
	for (size_t i = 0; i < lines->order_count; i++)
		if ((lines->parts[lines->order[i]].kind == PART_OWN) == are_lines)
			table_add(rows, lines->order[i]);
	for (size_t r = 0; are_lines && r < rows->count; r++)
		saturating_add(&rows->whole, gpu_ns_of(rows, &lines->parts[rows->chosen.list[r]]));
}

static void open_lines(struct table_rows *rows)
{
	open_parts(rows, true);
}

static int compare_in_steps(const void *a, const void *b, void *context)
{
	const struct line_part *x = (const struct line_part *)context + *(const size_t *)a;
	const struct line_part *y = (const struct line_part *)context + *(const size_t *)b;

	return ORDER(y->steps.gpu_ns, x->steps.gpu_ns)
		       ?: ORDER(y->steps.idle_ns, x->steps.idle_ns) ?: ORDER(x->id, y->id);
}

/* Without lines that only allocate or have no part in the steps, which come last. */
static void open_busy_lines(struct table_rows *rows)
{
	struct line_part *parts = lines_of(rows->run)->parts;
	bool in_steps = is_of_steps(rows->def);
	const struct line_part *last;

	if (in_steps && !steps_of(rows->run))
		return;
	open_parts(rows, true);
	if (in_steps)
		SORT_BY(rows->chosen.list, rows->count, compare_in_steps, parts);
	for (; rows->count; rows->count--) {
		last = &parts[rows->chosen.list[rows->count - 1]];
		if (gpu_ns_of(rows, last) || (in_steps ? last->steps.idle_ns : last->idle_ns))
			break;
	}
}

/* Follows lines of libraries that have nearly all of a row. Returns where its paths divide. */
static uint32_t dividing_part(const struct line_part *parts, const struct line_part *row)
{
	uint32_t divided = 0;

	for (uint32_t n = row->first_child; n && parts[n].kind == PART_LINE && row->gpu_ns &&
					    parts[n].gpu_ns >= row->gpu_ns - row->gpu_ns / DIVIDE;
	     n = parts[n].first_child)
		divided = n;
	return divided;
}

/* Lists the lines of libraries where the paths of a line divide, if it has much of the time. */
static size_t list_shown(const struct table_rows *rows, const struct line_part *row,
			 uint64_t whole_ns, uint32_t shown[PARTS_SHOWN])
{
	const struct line_part *parts = lines_of(rows->run)->parts;
	uint32_t divided = dividing_part(parts, row);
	uint64_t ns = gpu_ns_of(rows, row);
	size_t count = 0;

	if (row->kind != PART_OWN || ns < whole_ns / BIG_LINE)
		return 0;
	for (uint32_t n = divided ? parts[divided].first_child : row->first_child;
	     n && count < PARTS_SHOWN; n = parts[n].next)
		if (parts[n].kind == PART_LINE && gpu_ns_of(rows, &parts[n]) > ns / SMALL_PART)
			shown[count++] = n;
	return count;
}

static void open_shown(struct table_rows *rows)
{
	const struct line_part *row = rows->outer;
	struct table_rows all = {.def = rows->def, .run = rows->run};
	uint32_t shown[PARTS_SHOWN];
	size_t count;

	open_parts(&all, true);
	rows->whole = all.whole;
	table_close(&all);
	count = list_shown(rows, row, rows->whole, shown);
	table_records(rows, lines_of(rows->run)->parts, 0);
	for (size_t i = 0; i < count; i++)
		table_add(rows, shown[i]);
}

char *lines_key_text(const struct lines *lines, uint32_t key_id)
{
	const struct line_key *key = lines_key(lines, key_id);
	const char *function = names_text(&lines->texts, key->function, NULL);

	if (key->file == NAME_EMPTY)
		return xt_strdup(function);
	return xt_asprintf("%s (%s:%u)", function,
			   base_name(names_text(&lines->texts, key->file, NULL)), key->line);
}

char *lines_charged_text(const struct run *run, uint32_t node)
{
	const struct lines *lines = lines_of(run);

	return node < lines->charged_capacity && lines->charged[node]
		       ? lines_key_text(lines, lines->charged[node])
		       : NULL;
}

/* "matmul (llm.c:159) > launch (llm.c:128)", or only the functions. The caller frees it. */
static char *via_text(const struct lines *lines, const struct line_part *row, bool has_lines)
{
	const struct path_node *places = lines->places.nodes;
	char *text = NULL;

	for (uint32_t place = row->inner; place != row->place; place = places[place].parent) {
		char *line = lines_key_text(lines, places[place].name), *rest = text;

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
	return row->caller && row->caller != LINE_SEVERAL ? lines_key_text(lines, row->caller)
							  : NULL;
}

/* The row of a part of a line is indented: "  modeling.py:12 Block.forward". */
static struct cell cell_part(struct table_rows *rows, const struct line_part *part)
{
	const struct lines *lines = lines_of(rows->run);
	uint32_t name = lines->tree.nodes[part - lines->parts].name;
	char *place = paths_place_first(names_text(&rows->run->paths.names, name, NULL));
	struct cell cell = cell_owned(rows, xt_asprintf("  %s", place));

	free(place);
	return cell;
}

/* Returns "train.py:12" of "step (train.py:12)". The caller frees it. */
static char *place_alone(const char *line)
{
	const char *place = strrchr(line, '(');

	place = place ? place + 1 : line;
	return xt_strndup(place, strcspn(place, ")"));
}

/* "adam.py:971", where the paths of a line divide. NULL: nowhere. The caller frees it. */
static char *divided_text(const struct run *run, const struct line_part *row)
{
	const struct lines *lines = lines_of(run);
	uint32_t divided = dividing_part(lines->parts, row);

	return divided ? place_alone(names_text(&run->paths.names, lines->tree.nodes[divided].name,
						NULL))
		       : NULL;
}

/* "train.py:12 step > adam.py:971": the line, and where its paths divide or come from. */
static struct cell cell_where(struct table_rows *rows, const struct line_part *row, const char *own)
{
	const struct lines *lines = lines_of(rows->run);
	char *via = via_text(lines, row, false), *caller = caller_text(lines, row);
	char *line = paths_place_first(own), *divided = divided_text(rows->run, row);
	char *from = caller ? place_alone(caller) : NULL;
	const char *word = "", *more = "";
	uint32_t shown[PARTS_SHOWN];
	struct cell cell;

	if (via)
		word = " via ", more = via;
	else if (divided && !list_shown(rows, row, rows->whole, shown))
		word = " > ", more = divided;
	else if (!divided && from)
		word = " from ", more = from;
	cell = cell_owned(rows, xt_asprintf("%s%s%s", line, word, more));
	cell.short_length = strlen(line);
	free_all(via, caller, line, divided, from);
	return cell;
}

static bool has_backward(const struct run *run)
{
	for (int result = JOIN_NO_BACKWARD + 1; result < JOIN_RESULTS; result++)
		if (run->sums->code.backward_gpu_ns[result])
			return true;
	return false;
}

/* A share that only text shows. Its whole is 0 in other tables. */
static struct cell cell_text_share(bool is_known, uint64_t part, uint64_t whole)
{
	return is_known && whole ? cell_share(part, whole) : CELL_ABSENT;
}

/* A mean of the steps after the warm-up. */
static struct cell cell_of_steps(const struct run *run, uint64_t sum)
{
	const struct steps *steps = steps_of(run);

	return steps ? cell_number((sum + steps->steady.count / 2) / steps->steady.count)
		     : CELL_ABSENT;
}

static void put_steps(struct table_rows *rows, struct cells *cells, bool is_torch)
{
	const struct line_part *row = rows->record;

	cells_put(cells, cell_of_steps(rows->run, row->steps.gpu_ns));
	cells_put(cells, cell_text_share(true, row->steps.gpu_ns, rows->whole));
	cells_put(cells, cell_text_share(is_torch, row->step_backward_ns, row->steps.gpu_ns));
	cells_put(cells, is_torch ? cell_of_steps(rows->run, row->step_backward_ns) : CELL_ABSENT);
	cells_put(cells, cell_of_steps(rows->run, row->steps.idle_ns));
	cells_put(cells, cell_of_steps(rows->run, row->steps.count));
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
	char *own = NULL;

	if (row->place != PATH_ROOT) {
		key = *lines_key(lines, lines->places.nodes[row->place].name);
		function = names_text(&lines->texts, key.function, NULL);
		own = lines_key_text(lines, lines->places.nodes[row->place].name);
	}
	file = names_text(&lines->texts, key.file, NULL);
	cells_put(cells, cell_text(file[0] ? file : NULL));
	cells_put(cells, cell_known(file[0], key.line));
	cells_put(cells, cell_text(function));
	cells_put(cells, cell_owned(rows, via_text(lines, row, true)));
	cells_put(cells, cell_owned(rows, caller_text(lines, row)));
	cells_put(cells, cell_owned(rows, divided_text(rows->run, row)));
	cells_put(cells, cell_text_share(true, row->gpu_ns, rows->whole));
	for (int pass = 0; pass < PASSES; pass++)
		cells_put(cells, cell_known(is_torch, row->pass_ns[pass]));
	cells_put(cells, cell_text_share(is_torch, back_ns, row->gpu_ns));
	put_steps(rows, cells, is_torch);
	cells_put(cells, has_source ? (struct cell){.text = source->texts.texts,
						    .length = source->texts.length}
				    : CELL_ABSENT);
	cells_put(cells, cell_known(has_source, source->from));
	cells_put(cells, cell_known(source->is_changed, 1));
	cells_put(cells, row->kind == PART_OWN ? cell_where(rows, row, own ?: NO_OWN_CODE)
					       : cell_part(rows, row));
	free(own);
}

#define LINES_TABLE(its_title, shown, open_rows, parts)                                            \
	{                                                                                          \
		.name = "lines", .title = its_title,                                               \
		.what = "GPU time by innermost line of own code, longest first. Work that "        \
			"overlaps counts in full.",                                                \
		HAS_COLUMNS(line_columns), .shows = shown, .open = open_rows, .inner = parts,      \
		.row = put_line                                                                    \
	}
#define TITLE	       "GPU time by line of own code"
#define SHOWN	       "gpu_time_ns share backward_share gpu_idle_ns count where"
#define SHOWN_OF_STEPS "step_gpu_ns step_share step_backward_share step_idle_ns step_count where"

static const struct table_def shown_parts = LINES_TABLE(NULL, SHOWN, open_shown, NULL);
static const struct table_def shown_step_parts =
	LINES_TABLE(NULL, SHOWN_OF_STEPS, open_shown, NULL);

const struct table_def table_lines = LINES_TABLE(TITLE, SHOWN, open_lines, NULL);
const struct table_def text_lines = LINES_TABLE(TITLE, SHOWN, open_busy_lines, &shown_parts);
const struct table_def text_step_lines =
	LINES_TABLE(TITLE ", in a step", SHOWN_OF_STEPS, open_busy_lines, &shown_step_parts);

static const struct column_def part_columns[] = {
	COLUMN("line_id", CODE, FROM(line_part, line_id), "`id` of the line in `lines`"),
	COLUMN("id", CODE, FROM(line_part, id), "number of the part"),
	COLUMN("parent", CODE, FROM(line_part, parent), "the part or the line that it is of"),
	COLUMN("kind", WORD, OTHER,
	       "line, module, operator, node (of PyTorch's backward pass) or work"),
	COLUMN("name", TEXT, OTHER, "its name; layers of modules are folded as in `modules`"),
	COLUMN("gpu_time_ns", NS, FROM(line_part, gpu_ns), "time on the GPU"),
	COLUMN("backward_ns", NS, OTHER, "part of it in PyTorch's backward pass, with recomputing"),
	COLUMN("gpu_idle_ns", NS, FROM(line_part, idle_ns), "idle time of the GPU that it caused"),
	COLUMN("count", COUNT, FROM(line_part, count), "kernels, copies and memsets"),
	COLUMN("step_gpu_ns", NS, OTHER, "GPU time in a step after the warm-up, as mean", OPTIONAL),
	COLUMN("step_backward_ns", NS, OTHER, "of this: backward pass and recomputing", OPTIONAL),
	COLUMN("step_idle_ns", NS, OTHER, "idle time in such a step", OPTIONAL),
	COLUMN("step_count", COUNT, OTHER, "kernels, copies and memsets in such a step", OPTIONAL),
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
	const struct lines *lines = lines_of(rows->run);
	uint32_t id = lines->tree.nodes[rows->index].name;
	struct cell name = {0};

	if (part->kind == PART_MODULE)
		name = cell_owned(rows,
				  xt_asprintf(MODULE_MARK "%s",
					      names_text(&lines->texts, lines->modules[id], NULL)));
	else
		name.text = leaf_name(paths, id, &name.length);
	cells_put(cells, cell_text(kinds[part->kind]));
	cells_put(cells, name);
	cells_put(cells, cell_number(part->pass_ns[PASS_BACKWARD] + part->pass_ns[PASS_RECOMPUTE]));
	cells_put(cells, cell_of_steps(rows->run, part->steps.gpu_ns));
	cells_put(cells, cell_of_steps(rows->run, part->step_backward_ns));
	cells_put(cells, cell_of_steps(rows->run, part->steps.idle_ns));
	cells_put(cells, cell_of_steps(rows->run, part->steps.count));
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
