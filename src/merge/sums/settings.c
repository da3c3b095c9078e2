/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Match times, ranges and paths, and suggest names for patterns that match nothing.
 */
#include "merge/sums/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/spellcheck.h"

#define HIDDEN_LABEL	"[hidden]" /* replaces a path whose frames are all hidden */
#define PATTERN_UNKNOWN PATTERNS   /* bit of name_matches: set once the name was matched */
#define NEAR_MAX	3
#define WORD_BYTES	64
#define BEGIN_BYTES	6 /* words this long are also compared with the beginning of longer words */

const char *const pattern_options[PATTERNS] = {
	[PATTERN_FILTER] = "filter",
	[PATTERN_FOCUS] = "focus",
	[PATTERN_HIDE] = "hide",
	[PATTERN_RANGE] = "range",
};

bool wanted_is_part(const struct wanted *wanted)
{
	return wanted_has_patterns(wanted) || wanted->from_ns || wanted->until_ns;
}

int selection_new(struct selection **selection_out, const struct wanted *wanted,
		  struct report *report)
{
	struct selection *selection = xt_calloc(1, sizeof(*selection));
	char message[128];

	selection->wanted = wanted;
	selection->seen_from_ns = UINT64_MAX;
	for (int p = 0; p < PATTERNS; p++) {
		int code = wanted->patterns[p]
				   ? regcomp(&selection->compiled[p], wanted->patterns[p],
					     REG_EXTENDED | REG_NOSUB)
				   : 0;

		if (!code)
			continue;
		regerror(code, &selection->compiled[p], message, sizeof(message));
		report_error(report, STATUS_FAILED,
			     "--%s '%s': %s; use a POSIX extended regular expression (see "
			     "regex(7))",
			     pattern_options[p], wanted->patterns[p], message);
		while (p--)
			if (wanted->patterns[p])
				regfree(&selection->compiled[p]);
		free(selection);
		return -EINVAL;
	}
	*selection_out = selection;
	return 0;
}

void selection_free(struct selection *selection)
{
	if (!selection)
		return;
	for (int p = 0; p < PATTERNS; p++)
		if (selection->wanted->patterns[p])
			regfree(&selection->compiled[p]);
	free_all(selection->name_matches.list, selection->results.list, selection->chain,
		 selection);
}

static bool matches(struct selection *selection, enum pattern pattern, const char *text)
{
	bool is_match = selection->wanted->patterns[pattern] &&
			!regexec(&selection->compiled[pattern], text, 0, NULL, 0);

	selection->has_matched[pattern] |= is_match;
	return is_match;
}

bool selection_has_time(struct selection *selection, uint64_t time_ns)
{
	bool is_in = time_ns >= selection->wanted->from_ns &&
		     (!selection->wanted->until_ns || time_ns < selection->wanted->until_ns);

	selection->seen_from_ns = smaller(selection->seen_from_ns, time_ns);
	selection->seen_until_ns = larger(selection->seen_until_ns, time_ns);
	selection->has_window_event |= is_in;
	return is_in;
}

bool selection_has_range(struct selection *selection, const char *label)
{
	return !selection->wanted->patterns[PATTERN_RANGE] ||
	       matches(selection, PATTERN_RANGE, label);
}

/* One bit for each pattern that the name matches. */
static int name_bits(struct selection *selection, const struct names *names, uint32_t name)
{
	uint8_t *known = by_id(selection->name_matches, name), bits = 1u << PATTERN_UNKNOWN;
	const char *text;

	if (*known)
		return *known;
	text = names_text(names, name, NULL);
	for (int p = 0; p < PATTERN_RANGE; p++)
		if (matches(selection, (enum pattern)p, text))
			bits |= (uint8_t)(1u << p);
	return *known = bits;
}

static uint32_t path_of(struct selection *selection, struct paths *paths, uint32_t node)
{
	const struct wanted *wanted = selection->wanted;
	int depth = paths_chain(paths, node, &selection->chain, &selection->chain_capacity);
	bool is_in = !wanted->patterns[PATTERN_FILTER];
	int first = wanted->patterns[PATTERN_FOCUS] ? -1 : 0;
	uint32_t result = PATH_ROOT;

	for (int d = 0; d < depth; d++) {
		int bits =
			name_bits(selection, &paths->names, paths->nodes[selection->chain[d]].name);

		is_in |= bits >> PATTERN_FILTER & 1;
		if (first < 0 && (bits >> PATTERN_FOCUS & 1))
			first = d;
	}
	if (!is_in || first < 0)
		return PATH_DROPPED;
	selection->has_kept = true;
	if (!wanted_changes_paths(wanted))
		return node;
	for (int d = first; d < depth; d++) {
		uint32_t name = paths->nodes[selection->chain[d]].name;

		if (!(selection->name_matches.list[name] >> PATTERN_HIDE & 1))
			result = paths_child(paths, result, name);
	}
	if (result == PATH_ROOT && depth)
		result = paths_child(
			paths, PATH_ROOT,
			names_intern(&paths->names, HIDDEN_LABEL, strlen(HIDDEN_LABEL)));
	return result;
}

uint32_t selection_path(struct selection *selection, struct paths *paths, uint32_t node)
{
	uint32_t *result = by_id(selection->results, node);

	if (!*result)
		*result = path_of(selection, paths, node) + 1;
	return *result - 1;
}

/* Copy the longest word of a pattern in lower case. Returns its length. */
static size_t longest_word(const char *pattern, char out[WORD_BYTES])
{
	size_t best = 0;

	out[0] = '\0';
	for (const char *p = pattern; *p;) {
		size_t length = 0;

		while (isalnum((unsigned char)p[length]) || p[length] == '_')
			length++;
		if (length > best && length < WORD_BYTES) {
			best = length;
			for (size_t i = 0; i < length; i++)
				out[i] = (char)tolower((unsigned char)p[i]);
			out[length] = '\0';
		}
		p += length ? length : 1;
	}
	return best;
}

/*
 * Edit distance from word to the nearest word of a text, or to its beginning, ignoring case.
 * Returns 0 if the text contains it and SIZE_MAX if nothing is near.
 */
static size_t distance_of(const char *text, const char *word, size_t length)
{
	size_t best = SIZE_MAX;

	if (strcasestr(text, word))
		return 0;
	for (const char *p = text; *p;) {
		struct suggestion near = {.name = word, .length = length};
		char candidate[WORD_BYTES];
		size_t n = 0;

		for (; (isalnum((unsigned char)*p) || *p == '_') && n + 1 < sizeof(candidate); p++)
			candidate[n++] = (char)tolower((unsigned char)*p);
		candidate[n] = '\0';
		suggest_consider(&near, candidate);
		if (length >= BEGIN_BYTES && n > length) {
			candidate[length] = '\0';
			suggest_consider(&near, candidate);
		}
		if (near.best && near.distance + 1 < best)
			best = near.distance + 1;
		p += !n;
	}
	return best;
}

/* Formats similar names that the pattern does not match, as "; similar names: 'a', 'b'". */
static void describe_near(const struct names *names, const char *pattern, const regex_t *compiled,
			  char *out, size_t bytes)
{
	uint32_t nearest[NEAR_MAX] = {NAME_EMPTY};
	size_t distances[NEAR_MAX] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
	char word[WORD_BYTES];
	size_t length = longest_word(pattern, word), used = 0;

	out[0] = '\0';
	for (uint32_t n = NAME_EMPTY + 1; length && n < names->count; n++) {
		const char *text = names_text(names, n, NULL);
		size_t distance = distance_of(text, word, length);
		int place = NEAR_MAX;

		if (distance < SIZE_MAX && !regexec(compiled, text, 0, NULL, 0))
			continue;
		while (place && distance < distances[place - 1])
			place--;
		if (place == NEAR_MAX)
			continue;
		for (int i = NEAR_MAX - 1; i > place; i--) {
			nearest[i] = nearest[i - 1];
			distances[i] = distances[i - 1];
		}
		nearest[place] = n;
		distances[place] = distance;
	}
	for (int i = 0; i < NEAR_MAX && nearest[i] != NAME_EMPTY && used < bytes; i++)
		used += (size_t)snprintf(
			out + used, bytes - used, "%s'%.80s'",
			i ? ", " : "; similar names: ", names_text(names, nearest[i], NULL));
}

#define MOMENT_BYTES 32

/* Formats a time as --from and --to accept it. */
static void format_moment(char out[MOMENT_BYTES], uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	size_t u = 0;

	while (ns < units[u].ns && u + 1 < sizeof(units) / sizeof(units[0]))
		u++;
	snprintf(out, MOMENT_BYTES, "%.9g%s", (double)ns / (double)units[u].ns, units[u].name);
}

/* True if several conditions were given, which may exclude each other. */
static bool is_compound(const struct wanted *wanted)
{
	int count = wanted->from_ns || wanted->until_ns;

	for (int p = 0; p < PATTERNS; p++)
		count += p != PATTERN_HIDE && wanted->patterns[p];
	return count > 1;
}

/* True if the pattern matches any name, selected or not. */
static bool matches_any(const struct selection *selection, enum pattern pattern,
			const struct names *names)
{
	for (uint32_t n = NAME_EMPTY + 1; n < names->count; n++)
		if (!regexec(&selection->compiled[pattern], names_text(names, n, NULL), 0, NULL, 0))
			return true;
	return false;
}

/* Reports a pattern without any match. Returns 0 if that is no error. */
static int report_unmatched(const struct selection *selection, enum pattern pattern,
			    const struct names *names, struct report *report)
{
	const char *text = selection->wanted->patterns[pattern];
	struct wanted others = *selection->wanted;
	char near[512], rest[WANTED_BYTES];

	others.patterns[pattern] = others.patterns[PATTERN_HIDE] = NULL;
	wanted_describe(&others, rest, sizeof(rest));

	describe_near(names, text, &selection->compiled[pattern], near, sizeof(near));
	if (strstr(text, "\\|"))
		snprintf(near, sizeof(near), "; write | instead of \\| between alternatives");
	if (pattern == PATTERN_HIDE) {
		report_warn(report, "no frame matches --hide '%s'%s", text, near);
		return 0;
	}
	report_error(report, STATUS_FAILED, "no %s matches --%s '%s'%s%s%s",
		     pattern == PATTERN_RANGE ? "NVTX range" : "frame", pattern_options[pattern],
		     text, rest[0] ? " in the part selected by " : "", rest,
		     pattern == PATTERN_RANGE && names->count <= NAME_EMPTY + 1
			     ? "; the log has no NVTX ranges"
			     : near);
	return -EINVAL;
}

static int report_empty_window(const struct selection *selection, struct report *report)
{
	char first[MOMENT_BYTES], last[MOMENT_BYTES];

	format_moment(first, selection->seen_from_ns);
	format_moment(last, selection->seen_until_ns);
	report_error(
		report, STATUS_FAILED,
		"no event begins between --from and --to; the recorded events begin between %s "
		"and %s",
		first, last);
	return -EINVAL;
}

int selection_check(const struct selection *selection, const struct paths *paths,
		    const struct names *ranges, struct report *report)
{
	const struct wanted *wanted = selection->wanted;
	bool wants_paths = wanted->patterns[PATTERN_FILTER] || wanted->patterns[PATTERN_FOCUS];
	bool is_apart = wants_paths && !selection->has_kept;
	char all[WANTED_BYTES];
	int error = 0;

	if (!selection->has_window_event && selection->seen_from_ns <= selection->seen_until_ns)
		return report_empty_window(selection, report);
	for (int p = 0; p < PATTERNS; p++) {
		const struct names *names = p == PATTERN_RANGE ? ranges : &paths->names;

		if (!wanted->patterns[p] || selection->has_matched[p])
			continue;
		if (!is_compound(wanted) || !matches_any(selection, (enum pattern)p, names))
			error |= report_unmatched(selection, (enum pattern)p, names, report);
		else
			is_apart |= p != PATTERN_HIDE;
	}
	if (error || !is_apart)
		return error ? -EINVAL : 0;
	wanted_describe(wanted, all, sizeof(all));
	report_error(
		report, STATUS_FAILED,
		"the selection is empty: each of %s matches something, but nothing matches all "
		"of them",
		all);
	return -EINVAL;
}

void wanted_describe(const struct wanted *wanted, char *out, size_t bytes)
{
	char time[MOMENT_BYTES];
	size_t used = 0;

	out[0] = '\0';
	if (wanted->from_ns) {
		format_moment(time, wanted->from_ns);
		used += (size_t)snprintf(out + used, bytes - used, " --from %s", time);
	}
	if (wanted->until_ns && used < bytes) {
		format_moment(time, wanted->until_ns);
		used += (size_t)snprintf(out + used, bytes - used, " --to %s", time);
	}
	for (int p = 0; p < PATTERNS && used < bytes; p++)
		if (wanted->patterns[p])
			used += (size_t)snprintf(out + used, bytes - used, " --%s '%s'",
						 pattern_options[p], wanted->patterns[p]);
	if (out[0])
		memmove(out, out + 1, strlen(out));
}
