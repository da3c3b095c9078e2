/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and descriptions of rows for people, and the frames of a call path that tell a reader
 * where it is.
 */
#include "diff/compare/row_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "diff/base/level.h"
#include "diff/base/text.h"
#include "log/base/compare.h"

/* The file of "f (file.c:12)", and its length; NULL if the frame has no line. */
static const char *file_of(const char *frame, size_t *length_out)
{
	size_t length = strlen(frame), end = length;
	const char *open;

	if (length < 5 || frame[length - 1] != ')')
		return NULL;
	for (end = length - 2; end && frame[end] >= '0' && frame[end] <= '9'; end--)
		;
	if (end == length - 2 || frame[end] != ':')
		return NULL;
	open = memrchr(frame, '(', end);
	if (!open || open == frame || open[-1] != ' ')
		return NULL;
	*length_out = (size_t)(frame + end - open - 1);
	return open + 1;
}

/* Does the function of this frame occur elsewhere in the path? */
static bool is_repeated(const struct profile_entry *entry, uint32_t frame)
{
	size_t length = strcspn(entry->frames[frame], " ") + 1;

	for (uint32_t f = 0; f < entry->frame_count; f++)
		if (f != frame && !strncmp(entry->frames[f], entry->frames[frame], length))
			return true;
	return false;
}

/* Is the frame in the file of the outermost frame with a line? */
static bool is_own(const struct profile_entry *entry, uint32_t frame)
{
	size_t length, own_length = 0;
	const char *file = file_of(entry->frames[frame], &length), *own = NULL;

	for (uint32_t f = 0; f < entry->frame_count && !own; f++)
		own = file_of(entry->frames[f], &own_length);
	return file && length == own_length && !memcmp(file, own, length);
}

static size_t select_places(const struct profile_entry *entry, bool takes_repeated,
			    const char *places[SOURCE_PLACES_MAX])
{
	size_t count = 0, length;
	bool has_own = false;

	for (uint32_t f = entry->frame_count; f-- > 0 && count < SOURCE_PLACES_MAX;) {
		bool own = is_own(entry, f);

		if (!file_of(entry->frames[f], &length) ||
		    (!takes_repeated && is_repeated(entry, f)))
			continue;
		/* Keep the last place for a frame in the program's own file. */
		if (!own && !has_own && count == SOURCE_PLACES_MAX - 1)
			continue;
		has_own |= own;
		places[count++] = entry->frames[f];
	}
	return count;
}

/* CUDA and PyTorch internals, which are the same for every operation. */
static bool is_plumbing(const struct profile_entry *entry, const char *frame)
{
	static const char *const starts[] = {"cuda", "cuLaunch", "cuMem", "c10::impl::"};

	return entry->level == LEVEL_PATH &&
	       (BEGINS_WITH_ANY(frame, starts) || strstr(frame, "gpu_kernel_impl"));
}

/* PyTorch's backward threads have no frames of the user. This function names the operation. */
#define AUTOGRAD_MARK "torch::autograd::generated::"

/* Without lines: named functions, except those of the Python interpreter and the kernel. */
static size_t select_names(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX])
{
	size_t count = 0;

	for (uint32_t f = entry->frame_count - 1; f-- > 0 && !count;)
		if (!strncmp(entry->frames[f], AUTOGRAD_MARK, strlen(AUTOGRAD_MARK)))
			places[count++] = entry->frames[f];
	for (uint32_t f = entry->frame_count - 1; f-- > 0 && count < SOURCE_PLACES_MAX;) {
		const char *frame = entry->frames[f];

		if (frame[0] != '[' && !is_plumbing(entry, frame) && !strstr(frame, "+0x") &&
		    strncmp(frame, "_Py", 3) && strncmp(frame, "Py", 2) && !is_repeated(entry, f) &&
		    (!count || frame != places[0]))
			places[count++] = frame;
	}
	return count;
}

size_t source_places(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX])
{
	size_t count = select_places(entry, false, places);

	if (!count)
		count = select_places(entry, true, places);
	return count ? count : select_names(entry, places);
}

bool source_place_is_own(const struct profile_entry *entry, const char *place)
{
	for (uint32_t f = 0; f < entry->frame_count; f++)
		if (entry->frames[f] == place)
			return is_own(entry, f);
	return false;
}

#define KERNEL_MARK "[GPU_Kernel]"

static int percent_digits(double percent)
{
	return fabs(percent) >= 100 ? 0 : fabs(percent) >= 10 || percent == 0 ? 1 : 2;
}

const char *effect_interval(const struct effect *effect)
{
	double low = 100 * effect->net.low, high = 100 * effect->net.high;
	bool apart = effect->ratio < effect->net.low || effect->ratio > effect->net.high;
	int digits = percent_digits(high);

	if (effect->is_exact)
		return effect->change != 0 ? "exact" : "";
	if (!isfinite(low) || !isfinite(high) || effect->base == 0 || effect->new == 0)
		return "";
	/*
	 * The interval is around net_ratio, which excludes outliers and the common factor. Name it
	 * if the ratio is outside.
	 */
	return text_print("%s%+.*f to %+.*f %%",
			  apart ? text_print("net %+.*f %%, ", digits, 100 * effect->net.ratio)
				: "",
			  digits, low, digits, high);
}

const char *effect_doubt(const struct effect *effect)
{
	if (effect->test.is_significant || effect->change == 0)
		return "";
	/* Values that are equal in few runs may differ in the next one. */
	if (isnan(effect->test.p) || isnan(effect->net.detectable))
		return "; noise unknown";
	return effect->is_exact ? "" : "; within noise";
}

const char *frame_name(const char *frame)
{
	size_t mark = strlen(KERNEL_MARK);

	return strncmp(frame, KERNEL_MARK, mark) ? frame : frame + mark;
}

enum unit row_unit(const struct comparison_row *row, enum metric metric)
{
	return metric == METRIC_COUNT ? UNIT_COUNT : row->unit;
}

const char *row_level(const struct comparison_row *row)
{
	return row->level == LEVEL_SPAN ? "range, wall time" : level_specs[row->level].word;
}

const char *row_basis_note(const struct comparison *c, const struct comparison_row *row)
{
	const char *basis = comparison_basis(c, row->level, row->key);

	if (!strcmp(basis, "instance"))
		return " (one instance)";
	return c->has_iterations && !strcmp(basis, "run") ? " (whole run)" : "";
}

const char *totals_title(const struct comparison *c)
{
	return c->has_iterations ? "One iteration" : level_specs[LEVEL_TOTAL].title;
}

/* A CUDA function between the program and the work it launches. It adds no information. */
static bool is_glue(const struct profile_entry *entry, uint32_t frame)
{
	const char *name = entry->frames[frame];

	return entry->level == LEVEL_PATH && frame + 2 == entry->frame_count && frame &&
	       !strncmp(name, "cu", 2);
}

const char *path_name(const struct profile_entry *entry, size_t columns_max)
{
	size_t length = 1, columns = 0;
	char *text, *end;

	for (uint32_t f = 0; f < entry->frame_count; f++)
		length += strlen(entry->frames[f]) + strlen(" < ");
	text = xt_malloc(length);
	end = text;
	*end = '\0';
	for (uint32_t f = entry->frame_count; f-- > 0;) {
		const char *name = frame_name(entry->frames[f]);
		size_t more = text_columns(name, strlen(name)) + (columns ? strlen(" < ") : 0);

		if (is_glue(entry, f))
			continue;
		if (columns && columns + more > columns_max)
			break;
		end += sprintf(end, "%s%s", columns ? " < " : "", name);
		columns += more;
	}
	return text_keep(text);
}

const char *row_name(const struct comparison_row *row, size_t columns_max)
{
	const struct profile_entry *entry = change_entry(row);
	const char *text = entry ? path_name(entry, columns_max) : row->key;

	/* A single name can be too long. */
	if (columns_max > 3 && text_columns(text, strlen(text)) > columns_max)
		return text_print("%.*s...", (int)utf8_prefix(text, columns_max - 3), text);
	return text;
}

#define OF_COUNTS    (CHANGE_MORE_OFTEN | CHANGE_LESS_OFTEN)
#define NOT_OF_BYTES (CHANGE_SLOWER | CHANGE_FASTER | CHANGE_MORE_OFTEN | CHANGE_LESS_OFTEN)

const char *row_change_text(const struct comparison_row *row)
{
	static const struct {
		uint32_t change;
		const char *word;
	} words[] = {
		{CHANGE_APPEARED, "appeared"},
		{CHANGE_VANISHED, "vanished"},
		{CHANGE_MORE_OFTEN, "more often"},
		{CHANGE_LESS_OFTEN, "less often"},
		{CHANGE_SLOWER, "slower"},
		{CHANGE_FASTER, "faster"},
		{CHANGE_MORE, "more"},
		{CHANGE_LESS, "less"},
	};
	const struct effect *count = &row->effects[METRIC_COUNT];
	const char *text = "";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		/* Bytes are neither faster nor more frequent. */
		if (row->unit == UNIT_BYTES && words[i].change & NOT_OF_BYTES)
			continue;
		/* If a total has other items, its mean cost per item says nothing. */
		if (row->level == LEVEL_TOTAL && row->change & OF_COUNTS &&
		    words[i].change & (CHANGE_SLOWER | CHANGE_FASTER))
			continue;
		/* Skip "more" and "less" after a more specific word. */
		if (!(row->change & words[i].change) ||
		    (words[i].change & (CHANGE_MORE | CHANGE_LESS) && *text))
			continue;
		text = text_print("%s%s%s", text, *text ? ", " : "", words[i].word);
		if (words[i].change & OF_COUNTS)
			text = text_print("%s: %s to %s", text,
					  format_amount(UNIT_COUNT, count->base),
					  format_amount(UNIT_COUNT, count->new));
	}
	return row->is_renamed ? text_print("%s%srenamed", text, *text ? ", " : "") : text;
}
