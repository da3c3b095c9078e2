/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the tables, and matches their rows.
 *
 * Rows are sorted by their loose name, in which numbers do not count. Rows of one loose name are a
 * group. Within it, rows keep their order, and the alignment with the largest sum of scores wins:
 * equal names and similar values have high scores. So a line below an inserted one is found again.
 */
#include "diff/pair/pair_match.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "diff/load/run_profile.h"
#include "log/base/compare.h"

/* clang-format off */
const struct pair_def pair_defs[] = {
	{"Runs", PAIR_TEXTS, .values = {
		{"headline.command", "program"}, {"headline.host", "host"},
		{"headline.gpus.0", "GPU"}, {"selection", "selection"}, {"trust.word", "trust"},
		{"headline.steps.text", "steps"}, {"collectives.verdict.text", "late rank"}}},
	{"Headline", PAIR_NUMBERS, .values = {
		{"headline.steps.median_ns", "median step"},
		{"headline.steps.slowest_ns", "slowest step"},
		{"headline.steps.step_count", "steps, of all GPUs"},
		{"headline.wall_ns", "wall time"}, {"totals.gpu_time_ns", "GPU time"},
		{"headline.gpu_busy_ns", "GPU busy"}, {"headline.gpu_idle_ns", "GPU idle"},
		{"headline.launch_count", "launches"},
		{"collectives.exposed_wait_ns", "waits for late ranks"}}},
	{"Budget of a step after the warm-up", PAIR_ROWS, "budget", "%s", {"part"},
		.values = {{"step_ns", "mean"}, {"median_ns", "median step"},
			   {"slowest_ns", "slowest step"}}},
	{"Lines of your own code, by GPU time and idle time caused, in a step after the warm-up",
		PAIR_ROWS, "lines", "%s (%s:%s)", {"function", "file", "line"},
		.values = {{"step_gpu_ns+step_idle_ns", "both"}, {"step_gpu_ns", "GPU time"},
			   {"step_idle_ns", "idle time"}, {"step_count", "count"},
			   {"gpu_time_ns", "GPU time of the run"}}, .steps = 1},
	{"Lines of your own code, by GPU time and idle time caused", PAIR_ROWS, "lines",
		"%s (%s:%s)", {"function", "file", "line"},
		.values = {{"gpu_time_ns+gpu_idle_ns", "both"}, {"gpu_time_ns", "GPU time"},
			   {"gpu_idle_ns", "idle time"}, {"count", "count"}}, .steps = -1},
	{"Modules, by their own GPU time in a step after the warm-up", PAIR_ROWS, "modules",
		"%s  %s", {"model", "module"},
		.values = {{"own_step_ns", "time"}, {"own_gpu_time_ns", "whole run"}}, .steps = 1},
	{"Modules, by their own GPU time", PAIR_ROWS, "modules", "%s  %s", {"model", "module"},
		.values = {{"own_gpu_time_ns", "time"}, {"own_forward_ns", "forward"},
			   {"own_backward_ns", "backward"}, {"own_count", "count"}}, .steps = -1},
	{"Findings, by cost in a step, or in the whole run", PAIR_ROWS, "findings",
		"%s", {"id"}, .values = {{"step_ns", "cost"}, {"cost_ns", "whole run"}}, .steps = 1},
	{"Findings, by cost", PAIR_ROWS, "findings", "%s", {"id"},
		.values = {{"cost_ns", "cost"}}, .steps = -1},
	{"GPU idle time by cause", PAIR_MAP, "gpu_idle_by_class_ns", .values = {
		{"gpu_idle_ns", "idle"}}},
	{"Ranks, by what they cost the others", PAIR_ROWS, "collectives.ranks", "%s", {"process"},
		.values = {{"cost_ns", "cost"}, {"late_count", "late"},
			   {"exposed_wait_ns", "waits"}}},
	{"Causes of waits, by what they cost other ranks", PAIR_ROWS, "collectives.causes",
		"%s  %s  %s", {"process", "kind", "where"},
		.values = {{"cost_ns", "cost"}, {"wait_ns", "waits"}}},
	{"GPU time by kernel, copy and memset", PAIR_ROWS, "kernels", "%s", {"name"},
		.values = {{"gpu_time_ns", "time"}, {"count", "count"}, {"p50_ns", "median"},
			   {"max_ns", "longest"}}},
	{"Calls, sum over threads", PAIR_ROWS, "api_calls", "%s", {"name"},
		.values = {{"total_ns", "time"}, {"count", "count"}, {"max_ns", "longest"}}},
	{"Peak memory", PAIR_ROWS, "memory", "%s", {"name"},
		.values = {{"peak_bytes", "peak"}, {"alloc_count", "allocations"},
			   {"leaked_bytes", "never freed"}}},
	{0},
};
/* clang-format on */

static const cJSON *member_at(const cJSON *document, const char *at)
{
	char *names = xt_strdup(at), *rest = names, *name;

	while (document && (name = strsep(&rest, ".")))
		document = cJSON_IsArray(document) ? cJSON_GetArrayItem(document, atoi(name))
						   : json_member(document, name);
	free(names);
	return document;
}

static double number_of(const cJSON *cell)
{
	return cJSON_IsNumber(cell) ? cell->valuedouble : 0.0;
}

#define NUMBER_BYTES 32

static const char *clean(struct arena *memory, const char *text)
{
	char *copy = arena_alloc(memory, text_clean_bound(strlen(text)) + 1);

	copy[text_clean(copy, text, strlen(text), '\0')] = '\0';
	return copy;
}

const char *pair_text(const cJSON *document, const char *at, struct arena *memory)
{
	const cJSON *cell = member_at(document, at);
	char number[NUMBER_BYTES];

	snprintf(number, sizeof(number), "%.15g", number_of(cell));
	return clean(memory, cJSON_IsNumber(cell) ? number : cJSON_GetStringValue(cell) ?: "");
}

static const char *name_of(const struct pair_def *def, const cJSON *row, struct arena *memory)
{
	static const char no_place[] = " (:)";
	const char *texts[PAIR_KEYS] = {"", "", ""};
	size_t length = strlen(def->name);
	char *name;

	for (int k = 0; k < PAIR_KEYS && def->keys[k]; k++) {
		texts[k] = pair_text(row, def->keys[k], memory);
		texts[k] = strcmp(def->keys[k], "file") ? texts[k] : base_name(texts[k]);
		length += strlen(texts[k]);
	}
	name = arena_alloc(memory, length + 1);
	length = (size_t)sprintf(name, def->name, texts[0], texts[1], texts[2]);
	length -= has_ending(name, no_place) ? strlen(no_place) : 0;
	while (length && name[length - 1] == ' ')
		length--;
	name[length] = '\0';
	return name;
}

#define HASH_DIGITS 8 /* at least so many hexadecimal digits are one number */

/* Replaces each number but ranks by '#'. */
static const char *loose_name(const char *name, struct arena *memory)
{
	static const char rank[] = "rank ";
	char *loose = arena_alloc(memory, strlen(name) + 1), *out = loose;

	while (*name) {
		size_t hex = strspn(name, "0123456789abcdef");
		size_t digits = hex >= HASH_DIGITS ? hex : strspn(name, "0123456789");

		*out++ = digits ? '#' : *name;
		if (begins_with(name, rank) && isdigit((unsigned char)name[strlen(rank)])) {
			digits = strlen(rank) + strspn(name + strlen(rank), "0123456789");
			out = (char *)memcpy(out - 1, name, digits) + digits;
		}
		name += digits ? digits : 1;
	}
	return loose;
}

static struct pair_item *add_item(struct pair_items *items, const char *name, const cJSON *value,
				  struct arena *memory)
{
	list_append(*items, (struct pair_item){.name = name,
					       .loose = loose_name(name, memory),
					       .values = {number_of(value)}});
	return &items->list[items->count - 1];
}

/* Sets the sum of the columns "a+b". Returns whether the row has them. */
static bool read_sum(const cJSON *row, const char *columns, double *sum)
{
	bool has_all = true;

	*sum = 0;
	for (const char *end; *columns; columns = *end ? end + 1 : end) {
		const cJSON *number;
		char *column;

		end = strchrnul(columns, '+');
		column = xt_strndup(columns, (size_t)(end - columns));
		number = json_member(row, column);
		free(column);
		has_all &= number != NULL;
		*sum += number_of(number);
	}
	return has_all;
}

static void read_rows(struct pair_items *items, const struct pair_def *def, const cJSON *table,
		      struct arena *memory)
{
	const cJSON *rows = cJSON_IsArray(table) ? table : json_member(table, "rows");

	for (const cJSON *row = rows ? rows->child : NULL; row; row = row->next) {
		struct pair_item *item = add_item(items, name_of(def, row, memory), NULL, memory);

		item->line = number_of(json_member(row, "line"));
		/* Rows outside the steps have only a value of the whole run. */
		for (size_t v = 0; def->values[v].column; v++)
			item->is_of_run |=
				!read_sum(row, def->values[v].column, &item->values[v]) && !v &&
				def->steps > 0;
		if (item->is_of_run)
			item->values[0] = item->values[1];
	}
}

COMPARE_BY(compare_items, struct pair_item, UP_TEXT(loose) UP(line) UP_TEXT(name))

/* Sorts the rows, and adds up those of one name, such as of several call paths. */
static void join_items(struct pair_items *items)
{
	size_t kept = 0;

	SORT(items->list, items->count, compare_items);
	for (size_t i = 0; i < items->count; i++) {
		struct pair_item *item = &items->list[i];

		if (!kept || compare_items(&items->list[kept - 1], item))
			items->list[kept++] = *item;
		else
			for (size_t v = 0; v < PAIR_VALUES; v++)
				items->list[kept - 1].values[v] += item->values[v];
	}
	items->count = kept;
}

static struct pair_items read_items(const struct pair_def *def, const cJSON *document,
				    struct arena *memory)
{
	const cJSON *table = def->at ? member_at(document, def->at) : NULL, *cell;
	struct pair_items items = {0};

	if (def->form == PAIR_ROWS)
		read_rows(&items, def, table, memory);
	for (cell = def->form == PAIR_MAP && table ? table->child : NULL; cell; cell = cell->next)
		if (number_of(cell) != 0.0)
			add_item(&items, clean(memory, cell->string ?: ""), cell, memory);
	for (size_t v = 0; def->form == PAIR_NUMBERS && def->values[v].column; v++) {
		cell = member_at(document, def->values[v].column);
		if (cJSON_IsNumber(cell))
			add_item(&items, def->values[v].name, cell, memory)->place = v + 1;
	}
	join_items(&items);
	return items;
}

#define CELLS_MAX (4u << 20) /* of an alignment */

/*
 * How well two rows of a group match, more than 0. A line number says less than a name: if a line
 * was inserted above, another line has the number.
 */
static double score_of(const struct pair_item *a, const struct pair_item *b)
{
	double score = 1.0;

	for (size_t v = 0; v < PAIR_VALUES; v++) {
		double x = a->values[v], y = b->values[v];

		score += x == y ? 1.0 : fmin(x, y) / fmax(x, y);
	}
	return score + (strcmp(a->name, b->name) ? 0.0 : a->line > 0.0 ? 0.5 : PAIR_VALUES + 2.0);
}

/* A row of steps and one that is not are compared by their values in the whole run. */
static void use_one_base(struct pair_item *a, struct pair_item *b)
{
	if (a->is_of_run == b->is_of_run)
		return;
	a->values[0] = a->values[1];
	b->values[0] = b->values[1];
}

/* Aligns two groups: best[i][j] is the best sum of scores of the rows from i and from j on. */
static void align(struct pair_table *table, struct pair_item *a, size_t a_count,
		  struct pair_item *b, size_t b_count)
{
	bool is_small = (a_count + 1) * (b_count + 1) <= CELLS_MAX;
	size_t width = b_count + 1, i = 0, j = 0;
	double *best = xt_calloc(is_small ? (a_count + 1) * width : 1, sizeof(*best));

	for (size_t x = is_small ? a_count : 0; x-- > 0;)
		for (size_t y = b_count; y-- > 0;) {
			double *at = &best[x * width + y];

			*at = fmax(score_of(&a[x], &b[y]) + at[width + 1], fmax(at[width], at[1]));
		}
	while (i < a_count || j < b_count) {
		const double *at = is_small ? &best[i * width + j] : NULL;
		bool is_gone = j == b_count || (i < a_count && at && *at == at[width]);
		bool is_new = i == a_count || (at && !is_gone && *at == at[1]);

		xt_append(table->rows, table->count, table->capacity,
			  (struct pair_row){{is_new ? NULL : &a[i], is_gone ? NULL : &b[j]}});
		if (!is_new && !is_gone)
			use_one_base(&a[i], &b[j]);
		i += !is_new;
		j += !is_gone;
	}
	free(best);
}

/* The number of rows from `from` on that have this loose name. */
static size_t group_size(const struct pair_items *items, size_t from, const char *loose)
{
	size_t end = from;

	while (end < items->count && !strcmp(items->list[end].loose, loose))
		end++;
	return end - from;
}

static double change_of(const struct pair_row *row)
{
	return fabs(pair_value(row, PAIR_B, 0) - pair_value(row, PAIR_A, 0));
}

static int compare_rows(const void *a, const void *b)
{
	const struct pair_item *x = pair_shown(a), *y = pair_shown(b);

	return ORDER(x->place, y->place) ?: ORDER(x->is_of_run, y->is_of_run)
		?: ORDER(change_of(b), change_of(a))
		?: strcmp(x->name, y->name);
}

struct pair_table pair_match(const struct pair_def *def, const cJSON *const sides[PAIR_SIDES],
			     struct arena *memory)
{
	struct pair_table table = {.items = {read_items(def, sides[PAIR_A], memory),
					     read_items(def, sides[PAIR_B], memory)}};
	const struct pair_items *a = &table.items[PAIR_A], *b = &table.items[PAIR_B];
	size_t i = 0, j = 0;

	while (i < a->count || j < b->count) {
		const char *x = i < a->count ? a->list[i].loose : NULL;
		const char *y = j < b->count ? b->list[j].loose : NULL;
		const char *loose = x && (!y || strcmp(x, y) < 0) ? x : y;
		size_t a_count = group_size(a, i, loose), b_count = group_size(b, j, loose);

		align(&table, a->list + i, a_count, b->list + j, b_count);
		i += a_count;
		j += b_count;
	}
	SORT(table.rows, table.count, compare_rows);
	return table;
}

void pair_free(struct pair_table *table)
{
	free_all(table->rows, table->items[PAIR_A].list, table->items[PAIR_B].list);
}
