/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the summaries of two recordings, each in a process of xtrace merge, and writes their
 * comparison as text, as the same in Markdown, or puts the summary of one into the page of the
 * other, which compares them.
 */
#include "diff/pair/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "diff/base/level.h"
#include "diff/base/text.h"
#include "diff/load/run_profile.h"
#include "log/base/compare.h"

#define COLUMNS_DEFAULT 80
#define ARGUMENTS_MAX	512
#define NUMBERS_COLUMNS 47 /* of a row, before its name */
#define TEXT_INDENT	15 /* of texts of the runs */
#define NAME_INDENT	4

struct printer {
	struct output *out;
	const struct pair_options *options;
	size_t columns;
};

static const char *const side_words[PAIR_SIDES] = {"base", "new"};

/* Writes what a text is of, and the text in lines of its own column. */
static void pair_put_text(const struct printer *p, const char *name, const char *side,
			  const char *text)
{
	size_t used = TEXT_INDENT, length;

	output_format(p->out, "%-9s %-4s ", name, side);
	for (; *text; text += length + strspn(text + length, " ")) {
		length = strcspn(text, " ");
		if (used > TEXT_INDENT && used + length >= p->columns) {
			output_format(p->out, "\n%*s", TEXT_INDENT, "");
			used = TEXT_INDENT;
		}
		output_format(p->out, "%s%.*s", used > TEXT_INDENT ? " " : "", (int)length, text);
		used += length + 1;
	}
	output_char(p->out, '\n');
}

/* Both sides in one line if they agree. Texts that neither has are left out. */
static void put_texts(const struct printer *p, const struct pair_def *def,
		      const cJSON *const sides[PAIR_SIDES], struct arena *memory)
{
	for (const struct pair_value *value = def->values; value->column; value++) {
		const char *a = pair_text(sides[PAIR_A], value->column, memory);
		const char *b = pair_text(sides[PAIR_B], value->column, memory);

		if (strcmp(a, b)) {
			pair_put_text(p, value->name, side_words[PAIR_A], *a ? a : "none");
			pair_put_text(p, value->name, side_words[PAIR_B], *b ? b : "none");
		} else if (*a) {
			pair_put_text(p, value->name, "both", a);
		}
	}
}

static const char *amount_of(const struct pair_value *value, double amount)
{
	return format_amount(has_ending(value->column, "_ns")	   ? UNIT_NS
			     : has_ending(value->column, "_bytes") ? UNIT_BYTES
								   : UNIT_COUNT,
			     amount);
}

/* "count 357 -> 400": the other values that changed, and the former name. */
static void put_causes(const struct printer *p, const struct pair_def *def,
		       const struct pair_row *row)
{
	const struct pair_item *a = row->sides[PAIR_A], *b = row->sides[PAIR_B];
	const char *line = "\n    ", *before = line;

	if (!a || !b || a->place)
		return;
	for (size_t v = 1; def->values[v].column; v++) {
		if (a->values[v] == b->values[v])
			continue;
		output_format(p->out, "%s%s %s -> %s", before, def->values[v].name,
			      amount_of(&def->values[v], a->values[v]),
			      amount_of(&def->values[v], b->values[v]));
		before = ", ";
	}
	if (strcmp(a->name, b->name) != 0)
		output_format(
			p->out, "%swas %s", line,
			text_without_middle(a->name, p->columns - NAME_INDENT - strlen("was ")));
}

static void pair_put_row(const struct printer *p, const struct pair_def *def,
			 const struct pair_row *row)
{
	const char *name = pair_shown(row)->name;
	size_t place = pair_shown(row)->place;
	const struct pair_value *value = &def->values[place ? place - 1 : 0];
	double base = pair_value(row, PAIR_A, 0), new = pair_value(row, PAIR_B, 0);
	bool is_beside = NUMBERS_COLUMNS + text_columns(name, strlen(name)) <= p->columns;

	output_format(p->out, "%11s %11s %11s %9s",
		      row->sides[PAIR_A] ? amount_of(value, base) : "-",
		      row->sides[PAIR_B] ? amount_of(value, new) : "-",
		      text_print("%s%s", new > base ? "+" : "", amount_of(value, new - base)),
		      !row->sides[PAIR_A]   ? "new"
		      : !row->sides[PAIR_B] ? "gone"
		      : base == 0.0	    ? "-"
					    : format_ratio((new - base) / base));
	output_format(p->out, "%s%s", is_beside ? "  " : "\n    ",
		      text_without_middle(name, p->columns - NAME_INDENT));
	put_causes(p, def, row);
	output_char(p->out, '\n');
}

static void pair_put_table(const struct printer *p, const struct pair_def *def,
			   const struct pair_table *table)
{
	const char *bold = p->out->has_colours ? "\033[1m" : "";
	size_t top = p->options->top_count, shown = table->count;

	if (top && shown > top && !pair_shown(table->rows)->place)
		shown = top;
	output_format(p->out, "\n%s%s%s\n%11s %11s %11s %9s\n", bold, def->title,
		      *bold ? "\033[0m" : "", "base", "new", "change", "change %");
	for (size_t r = 0; r < shown; r++)
		pair_put_row(p, def, &table->rows[r]);
	if (shown < table->count)
		output_format(p->out, "  %zu more; use %s\n", table->count - shown,
			      p->options->all_option);
}

/* Texts around the comparison. Every format marks them. */
#define WARNING "One run each: noise unknown."
static const struct {
	const char *begin, *end;
} frames[] = {
	[PAIR_TEXT] = {WARNING " xtrace bench measures it.\n\n", ""},
	[PAIR_MARKDOWN] = {"**" WARNING "**\n\n```\n", "```\n"},
};

static void put_comparison(struct output *out, const cJSON *const sides[PAIR_SIDES],
			   const struct pair_options *options)
{
	struct printer p = {out, options,
			    out->columns ? out->columns
					 : output_columns_wanted() ?: COLUMNS_DEFAULT};
	static const char steps[] = "headline.steps.step_count";
	struct arena *memory = arena_new();
	const char *a = pair_text(sides[PAIR_A], steps, memory);
	const char *b = pair_text(sides[PAIR_B], steps, memory);

	output_string(out, frames[options->format].begin);
	for (int s = 0; s < PAIR_SIDES && !options->is_redacted; s++)
		pair_put_text(&p, "recording", side_words[s], options->paths[s]);
	put_texts(&p, &pair_defs[0], sides, memory);
	if (*a && *b && strcmp(a, b))
		pair_put_text(&p, "note", "both",
			      "The runs have different numbers of steps, so do not compare "
			      "whole-run totals.");
	for (const struct pair_def *def = &pair_defs[1]; def->title; def++) {
		struct pair_table table = {0};

		if (!def->steps || (def->steps > 0) == (*a && *b))
			table = pair_match(def, sides, memory);
		if (table.count)
			pair_put_table(&p, def, &table);
		pair_free(&table);
	}
	output_string(out, frames[options->format].end);
	arena_free(memory);
}

/* The element that src/report/src/pair.tsx reads. A tag in a text would end it. */
static void put_base(struct output *out, cJSON *summary, const struct pair_options *options)
{
	static const char *const escapes[128] = {['<'] = "\\u003c"};
	cJSON *base = cJSON_CreateObject();
	char *text;

	for (int s = 0; s < PAIR_SIDES && !options->is_redacted; s++)
		cJSON_AddStringToObject(base, side_words[s], options->paths[s]);
	cJSON_DeleteItemFromObject(summary, "paths"); /* most of it, and in no table */
	cJSON_AddItemReferenceToObject(base, "summary", summary);
	text = cJSON_PrintUnformatted(base);
	output_format(out, "<script type=\"application/json\" id=\"xtrace-base\">%s</script>\n",
		      text_escaped(text ?: "null", escapes));
	cJSON_free(text);
	cJSON_Delete(base);
}

cJSON *summary_read(const char *path, const char *const *options, int *status_out)
{
	const char *arguments[ARGUMENTS_MAX] = {"merge", "--summary", "-"};
	int file = memfd_create("xtrace summary", MFD_CLOEXEC);
	size_t count = 3, bytes;
	cJSON *summary = NULL;
	char *text = NULL;

	while (*options && count < ARGUMENTS_MAX - 3)
		arguments[count++] = *options++;
	arguments[count++] = "--";
	arguments[count] = path;
	*status_out = file < 0 ? STATUS_FAILED : subprocess_run("merge", arguments, file);
	if (*status_out <= STATUS_INCOMPLETE)
		text = file_read(file, &bytes);
	if (text)
		summary = json_parse(text, bytes);
	free(text);
	close(file);
	return summary;
}

/* Returns the summary, or NULL after an error message. page: that of B, "" for A, NULL: none. */
static cJSON *read_side(const char *path, const char *page, const char *const *options,
			int *status_out)
{
	const char *list[ARGUMENTS_MAX] = {"--top", "1000000", "--html", page};
	size_t count = page && *page ? 4 : 2;
	cJSON *summary;
	int status;

	for (; options && *options && count < ARGUMENTS_MAX - 1; options++)
		if (!page || *page || !begins_with(*options, "--html-size"))
			list[count++] = *options;
	list[count] = NULL;
	summary = summary_read(path, list, &status);
	if (status >= STATUS_SIGNAL)
		print_error("cannot read %s: the process that reads it was ended by signal %d",
			    path, status - STATUS_SIGNAL);
	*status_out = !summary ? STATUS_FAILED : status > *status_out ? status : *status_out;
	return summary;
}

int pair_write(struct output *out, const struct pair_options *options, const char *page)
{
	int status = STATUS_OK;
	cJSON *sides[PAIR_SIDES] = {0};

	for (int s = 0; s < PAIR_SIDES && status < STATUS_FAILED; s++)
		sides[s] = read_side(options->paths[s], page && s == PAIR_A ? "" : page,
				     options->merge_options, &status);
	if (status < STATUS_FAILED && page)
		put_base(out, sides[PAIR_A], options);
	else if (status < STATUS_FAILED)
		put_comparison(out, (const cJSON *const *)sides, options);
	for (int s = 0; s < PAIR_SIDES; s++)
		cJSON_Delete(sides[s]);
	return status;
}

#define PAGE_START "<div id=\"page\">"

/* Puts the element in front of the page. Returns 0 or -errno. */
static int complete_page(const char *path, struct output *element)
{
	struct output_bytes bytes = output_bytes(element);
	size_t length;
	char *page = file_read_path(path, &length), *start = page ? strstr(page, PAGE_START) : NULL;
	struct output out;
	int error = page ? output_open_file(&out, path) : -errno;

	if (!error) {
		output_text(&out, page, start ? (size_t)(start - page) : 0);
		output_text(&out, bytes.data, bytes.length);
		output_string(&out, start ? start : page);
		error = output_commit(&out);
	}
	free(page);
	return error;
}

int pair_report(const struct pair_options *options, const char *page)
{
	struct output out;
	int status, error = 0;

	if (page)
		output_open_memory(&out);
	else
		error = output_open(&out, "-");
	status = error ? STATUS_FAILED : pair_write(&out, options, page);
	if (status < STATUS_FAILED)
		error = page ? complete_page(page, &out) : output_commit(&out);
	output_discard(&out);
	if (!error)
		return status;
	print_error("cannot write '%s': %s", page ? page : "-", xt_new_file_error(error));
	return STATUS_FAILED;
}
