/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The language of rules: patterns with '*' and '?', frame by frame; the parser, whose syntax
 * errors show the line with a caret; and lists of rules, from files and by default.
 *
 * A rule fails if the change is significant and exceeds the limit. It passes if noise is small
 * enough to exclude that. Otherwise the outcome is unknown. docs/internals/DIFF_METHOD.md has the
 * details.
 */
#include "diff/rules/rule.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/row_text.h"
#include "diff/stats/statistics.h"
#include "log/base/spellcheck.h"

/* '*' matches any text, '?' any character. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || (*pattern && *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* A part with '*' or '?' must match the whole frame. Other parts match anywhere in it. */
static bool fits(const char *part, const char *frame)
{
	if (!strpbrk(part, "*?"))
		return strstr(frame, part) != NULL;
	if (glob(part, frame))
		return true;
	/* Outputs do not show the kernel marker. */
	frame = frame_name(frame);
	return glob(part, frame + strspn(frame, " "));
}

bool rule_matches(const char *pattern, const char *key, bool to_end)
{
	char *parts = xt_strdup(pattern), *next_part = parts, *part = strsep(&next_part, "/");
	char *frames = xt_strdup(key), *next_frame = frames, *frame;

	while (part && (frame = strsep(&next_frame, ";"))) {
		bool is_last_part = !next_part, is_last_frame = !next_frame;

		if (fits(part, frame) && (!to_end || !is_last_part || is_last_frame))
			part = strsep(&next_part, "/");
	}
	free_all(parts, frames);
	return !part;
}

/* The level before the parenthesis, and the pattern inside. LEVELS if the text is malformed. */
static enum level split(const char *text, const char **name_out, size_t *length_out)
{
	size_t word = strcspn(text, "("), length = strlen(text);

	if (!text[word]) {
		*name_out = text;
		*length_out = length;
		return length && !strpbrk(text, ") ") ? LEVEL_TOTAL : LEVELS;
	}
	*name_out = text + word + 1;
	*length_out = length - word - 2;
	if (text[length - 1] != ')' || length < word + 3)
		return LEVELS;
	for (int level = 0; level < LEVELS; level++)
		if (strlen(level_specs[level].word) == word &&
		    !strncmp(level_specs[level].word, text, word))
			return (enum level)level;
	return LEVELS;
}

bool row_pattern_is_valid(const char *pattern)
{
	const char *name;
	size_t length;

	return split(pattern, &name, &length) != LEVELS;
}

bool row_pattern_matches(const char *pattern, enum level level, const char *key)
{
	const char *name;
	size_t length;
	char *copy;
	bool fits;

	if (!*pattern)
		return true;
	if (split(pattern, &name, &length) != level)
		return false;
	copy = xt_strndup(name, length);
	fits = level == LEVEL_TOTAL ? !strcmp(copy, key) : rule_matches(copy, key, false);
	free(copy);
	return fits;
}

#define WORD_BYTES  32
#define DIGITS	    "0123456789"
#define YEAR_DIGITS 4

static void rule_free(struct rule *rule)
{
	free_all(rule->text, rule->origin, rule->pattern, rule->reason);
}

struct parser {
	const char *text; /* the line, without white space in front */
	const char *at;
	const char *origin;
	struct problems *problems;
};

/* Whether the word of the level is a subject. Metrics of subjects lead to the other levels. */
static bool is_subject(enum level level)
{
	return level != LEVEL_TOTAL && level != LEVEL_SPAN && level != LEVEL_BYTES;
}

/* Metrics of subjects. LEVELS means any level. */
static const struct {
	const char *word;
	enum level of;	  /* level of the subject */
	enum level level; /* new level of the rule; LEVELS: unchanged */
	enum metric metric;
} metrics[] = {
	{"gpu-time", LEVELS, LEVELS, METRIC_VALUE},
	{"time", LEVELS, LEVELS, METRIC_VALUE},
	{"count", LEVELS, LEVELS, METRIC_COUNT},
	{"each", LEVELS, LEVELS, METRIC_EACH},
	{"wall", LEVEL_RANGE, LEVEL_SPAN, METRIC_VALUE},
	{"launches", LEVEL_RANGE, LEVELS, METRIC_COUNT},
	{"bytes", LEVEL_COPY, LEVEL_BYTES, METRIC_VALUE},
};
#define METRIC_COUNT_OF_TABLE (sizeof(metrics) / sizeof(metrics[0]))

static const struct {
	const char *word;
	enum unit unit;
	double factor;
} units[] = {
	{"ns", UNIT_NS, 1},	   {"us", UNIT_NS, 1e3},	{"ms", UNIT_NS, 1e6},
	{"s", UNIT_NS, 1e9},	   {"B", UNIT_BYTES, 1},	{"kB", UNIT_BYTES, 1e3},
	{"KB", UNIT_BYTES, 1e3},   {"MB", UNIT_BYTES, 1e6},	{"GB", UNIT_BYTES, 1e9},
	{"KiB", UNIT_BYTES, 1024}, {"MiB", UNIT_BYTES, 0x1p20}, {"GiB", UNIT_BYTES, 0x1p30},
};

/* Reports a syntax error at a position. Returns -EINVAL. */
static int syntax_error(const struct parser *p, const char *at, const char *format, ...)
{
	va_list arguments;
	char *what;

	va_start(arguments, format);
	what = xt_vasprintf(format, arguments);
	va_end(arguments);
	problems_add(p->problems, "%s: %s\n    %s\n    %*s^", p->origin, what, p->text,
		     (int)(at - p->text), "");
	free(what);
	return -EINVAL;
}

/* Returns the place behind the white space. */
static const char *skip_space(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
	return p->at;
}

/* Reads letters, digits and '-'. The word is "" if there are none. */
static void read_word(struct parser *p, char word[WORD_BYTES])
{
	size_t length = 0;

	skip_space(p);
	while ((isalnum((unsigned char)*p->at) || (*p->at == '-' && length)) &&
	       length + 1 < WORD_BYTES)
		word[length++] = *p->at++;
	word[length] = '\0';
}

static int unknown_subject(const struct parser *p, const char *at, const char *word)
{
	struct suggestion suggestion = {.name = word, .length = strlen(word)};

	for (size_t i = 0; i < total_count; i++)
		suggest_consider(&suggestion, total_specs[i].name);
	for (int level = 0; level < LEVELS; level++)
		if (is_subject((enum level)level))
			suggest_consider(&suggestion, level_specs[level].word);
	if (suggestion.best)
		return syntax_error(p, at, "unknown subject '%s'; did you mean '%s'?", word,
				    suggestion.best);
	return syntax_error(p, at, "expected a subject: gpu-time, path(…), range(…), …");
}

/* "(pattern)" with balanced parentheses. */
static int read_pattern(struct parser *p, struct rule *rule)
{
	const char *open = p->at, *from;
	int depth = 0;

	if (*open != '(')
		return syntax_error(p, open, "expected a pattern in parentheses");
	for (from = open + 1; *p->at; p->at++) {
		depth += *p->at == '(';
		depth -= *p->at == ')';
		if (!depth)
			break;
	}
	if (!*p->at)
		return syntax_error(p, open, "unclosed parenthesis");
	if (p->at == from)
		return syntax_error(p, from, "empty pattern; use '*' to match everything");
	rule->pattern = xt_strndup(from, (size_t)(p->at - from));
	rule->is_each |= rule->pattern && !strcmp(rule->pattern, "*");
	p->at++;
	return 0;
}

static int read_metric(struct parser *p, struct rule *rule)
{
	const char *at = ++p->at;
	char word[WORD_BYTES];

	read_word(p, word);
	for (size_t i = 0; i < METRIC_COUNT_OF_TABLE; i++) {
		if (strcmp(word, metrics[i].word) != 0 ||
		    (metrics[i].of != LEVELS && metrics[i].of != rule->level))
			continue;
		rule->metric = metrics[i].metric;
		if (metrics[i].level != LEVELS)
			rule->level = metrics[i].level;
		return 0;
	}
	return syntax_error(
		p, at,
		"expected time, count or each; wall or launches for ranges, bytes for copies");
}

static int read_subject(struct parser *p, struct rule *rule)
{
	size_t total = 0, level = 0;
	const char *at = skip_space(p);
	char word[WORD_BYTES];
	int error = 0;

	read_word(p, word);
	while (total < total_count && strcmp(word, total_specs[total].name) != 0)
		total++;
	while (level < LEVELS &&
	       !(is_subject((enum level)level) && !strcmp(word, level_specs[level].word)))
		level++;
	if (total < total_count) {
		rule->level = LEVEL_TOTAL;
		rule->metric = total_specs[total].metric;
		rule->name = total_specs[total].name;
	} else if (level < LEVELS) {
		rule->level = (enum level)level;
		rule->metric = METRIC_VALUE;
		rule->name = "";
		error = read_pattern(p, rule);
	} else {
		return unknown_subject(p, at, word);
	}
	if (!error && *p->at == '.')
		error = read_metric(p, rule);
	return error;
}

static enum unit unit_of(const struct rule *rule)
{
	return rule->metric == METRIC_COUNT ? UNIT_COUNT : level_unit(rule->level, rule->name);
}

/* "3%", "12ms", "100MB" or "7", depending on the unit of the rule. */
static int read_amount(struct parser *p, struct rule *rule)
{
	static const char *const fitting[] = {[UNIT_NS] = "ns, us, ms, s or %",
					      [UNIT_BYTES] = "B, KB, MB, GB, KiB, MiB, GiB or %",
					      [UNIT_COUNT] = "% or none"};
	enum unit unit = unit_of(rule);
	const char *at = skip_space(p);
	char *end, word[WORD_BYTES];

	/* Reject hexadecimal numbers, which strtod() accepts. */
	if (!isdigit((unsigned char)*at) || tolower((unsigned char)at[1]) == 'x')
		return syntax_error(p, at, "expected a number");
	rule->limit = strtod(at, &end);
	if (!isfinite(rule->limit))
		return syntax_error(p, at, "the number is too large");
	p->at = end;
	if (*p->at == '%') {
		p->at++;
		rule->limit /= 100.0;
		rule->is_relative = true;
		return 0;
	}
	at = p->at;
	read_word(p, word);
	if ((!word[0] || !strcmp(word, "until")) && (unit == UNIT_COUNT || rule->limit == 0.0)) {
		p->at = at;
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(word, units[i].word) != 0 || units[i].unit != unit)
			continue;
		rule->limit *= units[i].factor;
		return 0;
	}
	skip_space(p);
	return syntax_error(p, at, "expected a unit: %s", fitting[unit]);
}

static int read_limit(struct parser *p, struct rule *rule)
{
	const char *at = skip_space(p);
	int error;

	if (*at != '>' && *at != '<')
		return syntax_error(p, at,
				    "expected '>' (a limit on the change) or '<' (a budget)");
	rule->kind = *at == '>' ? RULE_LIMIT : RULE_BUDGET;
	p->at++;
	error = read_amount(p, rule);
	if (!error && rule->kind == RULE_BUDGET && rule->is_relative)
		return syntax_error(p, at, "a budget must be an amount, not a percentage");
	return error;
}

/* "+10%" or "+2ms", optionally "until 2027-01-31", which is the last day. */
static int read_allowance(struct parser *p, struct rule *rule)
{
	char word[WORD_BYTES], *end;
	struct tm day = {.tm_isdst = -1, .tm_hour = 23, .tm_min = 59, .tm_sec = 59};
	const char *at;
	int error, wanted;

	if (*skip_space(p) != '+')
		return syntax_error(p, p->at, "expected an amount such as +10%%");
	p->at++;
	error = read_amount(p, rule);
	if (error)
		return error;
	at = skip_space(p);
	if (!*at || *at == '#')
		return 0;
	read_word(p, word);
	if (strcmp(word, "until") != 0)
		return syntax_error(p, at, "expected 'until' and a date");
	end = strptime(skip_space(p), "%Y-%m-%d", &day);
	if (!end || strspn(p->at, DIGITS) != YEAR_DIGITS ||
	    (*end && !isspace((unsigned char)*end) && *end != '#'))
		return syntax_error(p, p->at, "expected a date such as 2027-01-31");
	p->at = end;
	wanted = day.tm_mday;
	rule->until = mktime(&day);
	if (day.tm_mday != wanted)
		return syntax_error(p, at, "invalid date");
	return 0;
}

/* Only a comment may follow. The comment of an allowance is its reason. */
static int read_end(struct parser *p, struct rule *rule)
{
	char *end = rule->text + (p->at - p->text);

	/* Outputs show the rule without its comment. */
	while (end > rule->text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	skip_space(p);
	if (*p->at && *p->at != '#')
		return syntax_error(p, p->at, "unexpected text");
	if (*p->at != '#')
		return 0;
	p->at++;
	rule->reason = xt_strdup(skip_space(p));
	return 0;
}

static int read_rule(struct parser *p, struct rule *rule)
{
	const char *begin = skip_space(p);
	char word[WORD_BYTES];
	int error;

	read_word(p, word);
	rule->kind = !strcmp(word, "ignore")  ? RULE_IGNORE
		     : !strcmp(word, "allow") ? RULE_ALLOW
					      : RULE_LIMIT;
	rule->is_each = !strcmp(word, "each");
	if (rule->kind == RULE_LIMIT && !rule->is_each)
		p->at = begin;
	error = read_subject(p, rule);
	if (!error && rule->kind == RULE_LIMIT)
		error = read_limit(p, rule);
	else if (!error && rule->kind == RULE_ALLOW)
		error = read_allowance(p, rule);
	return error ? error : read_end(p, rule);
}

const char *const rules_default_lines[] = {
	"gpu-time > 1%",     "path(*) > 1%", "each path([GPU_Memcpy*).count > 0",
	"call(*).count > 0", NULL,
};

int rules_add(struct rules *rules, const char *text, const char *origin, struct problems *problems)
{
	struct parser parser = {.at = text, .origin = origin, .problems = problems};
	struct rule rule;
	int error;

	parser.text = skip_space(&parser);
	if (!*parser.at || *parser.at == '#')
		return 0;
	rule = (struct rule){.text = xt_strdup(parser.at), .origin = xt_strdup(origin)};
	error = read_rule(&parser, &rule);
	if (error)
		rule_free(&rule);
	else
		list_append(*rules, rule);
	return error;
}

void rules_free(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		rule_free(&rules->list[i]);
	free(rules->list);
	*rules = (struct rules){0};
}

/* Appends soft rules from lines that are known to be right. */
static void add_soft(struct rules *rules, const char *const *lines, const char *origin,
		     bool is_counting)
{
	struct problems none = {0};
	size_t first = rules->count;

	for (size_t i = 0; lines[i]; i++)
		rules_add(rules, lines[i], origin, &none);
	for (size_t r = first; r < rules->count; r++) {
		rules->list[r].is_soft = true;
		rules->list[r].is_counting = is_counting;
	}
	problems_free(&none);
}

void rules_add_default(struct rules *rules)
{
	add_soft(rules, rules_default_lines, "default", false);
}

size_t rules_keep_exceptions(struct rules *rules)
{
	size_t kept = 0, count = rules->count;

	for (size_t r = 0; r < rules->count; r++) {
		struct rule *rule = &rules->list[r];

		if (rule->kind == RULE_ALLOW || rule->kind == RULE_IGNORE)
			rules->list[kept++] = *rule;
		else
			rule_free(rule);
	}
	rules->count = kept;
	return count - kept;
}

void rules_add_counting(struct rules *rules)
{
	static const char *const lines[] = {
		"launches > 0",	       "copies > 0",	    "bytes > 0", "waits > 0",
		"kernel(*).count > 0", "call(*).count > 0", NULL,
	};

	/* A program may have no copies or waits. */
	add_soft(rules, lines, "--only-counts", true);
}

int rules_read(struct rules *rules, const char *path, struct problems *problems)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, origin[4200];
	size_t room = 0, number = 0;
	ssize_t length;
	int result = 0;

	if (!file) {
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	while ((length = getline(&line, &room, file)) >= 0) {
		int error;

		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			line[--length] = '\0';
		snprintf(origin, sizeof(origin), "%s:%zu", path, ++number);
		error = rules_add(rules, line, origin, problems);
		result = result ? result : error;
	}
	if (ferror(file)) {
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
		result = -EINVAL;
	}
	free(line);
	fclose(file);
	return result;
}

#define SOFT_LIMIT	0.1 /* limit on the smallest detectable change: default rules with a ratio */
#define ZERO_DETECTABLE 0.1 /* the same for rules that allow no change */
#define NEW_RUNS_MIN	2   /* runs of NEW that show a new row */

const char *const outcome_words[] = {"pass", "regression", "unknown"};

/* The change as the rule sees it, which can include the significant common change. */
struct rule_view {
	double change, low, high; /* a ratio, or an amount */
	double detectable;	  /* the same */
	bool is_significant;
};

double rule_convert_ratio(const struct rule *rule, const struct effect *effect, double ratio)
{
	if (rule->is_relative)
		return ratio;
	return effect->base > 0.0 ? ratio * effect->base : ratio > 0.0 ? effect->new : 0.0;
}

/* Does the rule include the common change of all GPU times? */
static bool includes_common_change(const struct rule *rule)
{
	return level_specs[rule->level].is_gpu_time && !rule->is_each &&
	       rule->metric != METRIC_COUNT;
}

/* The significant change common to all GPU times, if the rule includes it; else 0. */
static double rule_common_change(const struct comparison *c, const struct rule *rule,
				 const struct effect *effect)
{
	return !effect->includes_common && c->common.effect.test.is_significant &&
			       includes_common_change(rule)
		       ? c->common.effect.net.ratio
		       : 0.0;
}

/*
 * The confidence interval of the change that the rule sees, as ratios. Combines both parts' errors.
 */
static void rule_change_bounds(const struct comparison *c, const struct rule *rule,
			       const struct effect *effect, double *low_out, double *high_out)
{
	const struct effect *all = &c->common.effect;
	double common = rule_common_change(c, rule, effect), below, above, all_below, all_above;

	*low_out = effect->net.low;
	*high_out = effect->net.high;
	/* A row that BASE lacks has no ratio. */
	if (common == 0.0 || !isfinite(effect->net.ratio))
		return;
	below = effect->net.ratio - effect->net.low;
	above = effect->net.high - effect->net.ratio;
	all_below = all->net.ratio - all->net.low;
	all_above = all->net.high - all->net.ratio;
	*low_out = effect->net.ratio + common - sqrt(below * below + all_below * all_below);
	*high_out = effect->net.ratio + common + sqrt(above * above + all_above * all_above);
}

double rule_detectable(const struct comparison *c, const struct rule *rule,
		       const struct effect *effect)
{
	double own = effect->net.detectable, all = c->common.effect.net.detectable;

	/* Combine both errors, as rule_change_bounds() does. */
	return rule_common_change(c, rule, effect) == 0.0 || !isfinite(effect->net.ratio)
		       ? own
		       : sqrt(own * own + all * all);
}

double rule_effective_limit(const struct rule *rule)
{
	if (!rule->is_soft)
		return rule->limit;
	return rule->is_relative ? SOFT_LIMIT : 0.0;
}

static struct rule_view view_effect(const struct comparison *c, const struct rule *rule,
				    const struct effect *effect)
{
	double common = rule_common_change(c, rule, effect), low, high;
	struct rule_view view;

	view.change = rule_convert_ratio(rule, effect, effect->net.ratio + common);
	rule_change_bounds(c, rule, effect, &low, &high);
	view.low = rule_convert_ratio(rule, effect, low);
	view.high = rule_convert_ratio(rule, effect, high);
	view.detectable = rule_convert_ratio(rule, effect, rule_detectable(c, rule, effect));
	/* A common change does not make an exact change significant. */
	view.is_significant = effect->test.is_significant ||
			      (common != 0.0 && !effect->is_exact && view.low > 0.0);
	/* A row that BASE lacks has no ratio, but an amount. */
	if (!rule->is_relative && !(effect->base > 0.0))
		view.change = effect->change;
	return view;
}

/*
 * The row is new. It occurs in several runs of NEW. If it is rare there, at least half of the runs
 * have it.
 */
static bool is_new_in_some(const struct comparison *c, const struct effect *effect)
{
	return !(effect->base > 0.0) && effect->new_runs.count >= NEW_RUNS_MIN &&
	       (!effect->new_runs.is_rare ||
		2 * effect->new_runs.count >= c->side_counts[SIDE_NEW]);
}

/*
 * The common change is significant between runs but not compared with drift, so it is not part of
 * the view.
 */
static bool is_common_drift(const struct comparison *c, const struct rule *rule,
			    const struct effect *effect)
{
	double with_all = effect->net.ratio + c->common.effect.net.ratio;

	return c->common.effect.test.is_drift && !effect->includes_common &&
	       includes_common_change(rule) && isfinite(with_all) &&
	       rule_convert_ratio(rule, effect, with_all) > rule->limit;
}

/* For "> 0": NEW has more than any run of BASE, so it is not noise of BASE. Times always vary. */
static bool is_more_than_any(const struct rule *rule, const struct effect *effect)
{
	return !rule->is_soft && rule->limit == 0.0 && !effect->is_time &&
	       rule->metric != METRIC_EACH && !effect->test.is_significant &&
	       effect->new > effect->base_max;
}

/* The noise exceeds the limit. */
static bool is_too_noisy(const struct comparison *c, const struct rule *rule,
			 const struct effect *effect, const struct rule_view *view)
{
	double limit = rule_effective_limit(rule);

	if (limit > 0.0)
		return view->high > limit && view->detectable > limit;
	return !rule->is_soft && view->high > 0.0 &&
	       rule_detectable(c, rule, effect) > ZERO_DETECTABLE;
}

/* Sets *is_decisive if one such row decides a rule about many rows. */
static enum outcome evaluate_limit(const struct comparison *c, const struct rule *rule,
				   const struct effect *effect, bool *is_decisive)
{
	const struct rule_view view = view_effect(c, rule, effect);
	bool exceeds = view.change > 0.0 && view.change > rule->limit;

	/* NEW has no items and BASE has none either, or the rule is about the cost per item. */
	if (!(effect->new > 0.0) && (rule->metric == METRIC_EACH || !(effect->base > 0.0)))
		return OUTCOME_PASS;
	if (effect->is_boundary_shift)
		return OUTCOME_PASS;
	if (isnan(effect->test.p))
		return OUTCOME_UNKNOWN;
	*is_decisive = true;
	if (exceeds && view.is_significant)
		return OUTCOME_FAIL;
	/* Without variation between runs, nothing shows that the change is noise. */
	if (exceeds && (effect->is_exact || is_new_in_some(c, effect)))
		return OUTCOME_UNKNOWN;
	*is_decisive = false;
	/* The permutation test or the drift between sets contradicts a significant change. */
	if (exceeds && ((!rule->is_each && effect->test.is_disputed) || effect->test.is_drift))
		return OUTCOME_UNKNOWN;
	return is_common_drift(c, rule, effect) || is_more_than_any(rule, effect) ||
			       is_too_noisy(c, rule, effect, &view)
		       ? OUTCOME_UNKNOWN
		       : OUTCOME_PASS;
}

/* The half-width of the confidence interval of NEW's value. NAN: unknown. */
static double rule_budget_margin(const struct comparison *c, const struct rule *rule,
				 const struct effect *effect)
{
	const struct effect *common = &c->common.effect;
	/* The part of the variance of the difference that comes from NEW. */
	double share = (double)c->side_counts[SIDE_BASE] /
		       (double)(c->side_counts[SIDE_BASE] + c->side_counts[SIDE_NEW]);
	double error = effect->net.error, dof = effect->net.dof;

	if ((effect->is_boundary_shift || !(effect->base > 0.0)) && effect->new > 0.0)
		return isnan(effect->new_runs.error)
			       ? NAN
			       : student_t_quantile(c->alpha, effect->new_runs.dof) *
					 effect->new_runs.error * effect->new;
	if (isnan(error) || isnan(effect->new))
		return NAN;
	if (effect->is_exact || !(error > 0.0))
		return 0.0;
	if (!effect->includes_common && c->common.is_known &&
	    level_specs[rule->level].is_gpu_time && rule->metric != METRIC_COUNT &&
	    common->net.error > 0.0) {
		error = sqrt(error * error + common->net.error * common->net.error);
		dof = fmin(dof, common->net.dof);
	}
	return student_t_quantile(c->alpha, dof) * error * sqrt(share) * effect->new;
}

static enum outcome evaluate_budget(const struct comparison *c, const struct rule *rule,
				    const struct effect *effect)
{
	double bound = rule_budget_margin(c, rule, effect);

	if (isnan(bound))
		return OUTCOME_UNKNOWN;
	if (effect->new - bound >= rule->limit)
		return OUTCOME_FAIL;
	return effect->new + bound < rule->limit ? OUTCOME_PASS : OUTCOME_UNKNOWN;
}

/* Is the rule about total GPU time, which depends on the GPU clock? */
static bool goes_with_clocks(const struct rule *rule)
{
	if (rule->level == LEVEL_TOTAL)
		return !strcmp(rule->name, "gpu-time") || !strcmp(rule->name, "gpu-busy");
	return includes_common_change(rule);
}

bool rule_varies_in_base(const struct effect *effect)
{
	return effect->base_min < effect->base_max;
}

/*
 * A value that was equal in all runs of BASE fails if it is larger in all runs of NEW. If it is in
 * some of them, it varies after all. One that varies in BASE is not judged, unless it is far above.
 */
static enum outcome evaluate_counting(const struct effect *effect)
{
	if (!(effect->new_runs.min > effect->base_max))
		return OUTCOME_PASS;
	if (!rule_varies_in_base(effect))
		return OUTCOME_FAIL;
	return effect->new_runs.min > 2.0 * effect->base_max - effect->base_min ? OUTCOME_UNKNOWN
										: OUTCOME_PASS;
}

enum outcome rule_evaluate(const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, bool *is_decisive_out)
{
	bool is_decisive = false;
	enum outcome outcome = rule->is_counting ? evaluate_counting(effect)
			       : rule->kind == RULE_BUDGET
				       ? evaluate_budget(c, rule, effect)
				       : evaluate_limit(c, rule, effect, &is_decisive);

	if (is_decisive_out)
		*is_decisive_out = is_decisive;
	/*
	 * A clock change is no regression of the program, but no pass either. It must explain at
	 * least half of this change.
	 */
	if (outcome == OUTCOME_FAIL && rule->kind == RULE_LIMIT && c->common.is_of_clocks &&
	    goes_with_clocks(rule) &&
	    log(c->common.clocks_mhz[SIDE_BASE] / c->common.clocks_mhz[SIDE_NEW]) >=
		    log1p(effect->ratio) / 2.0)
		return OUTCOME_UNKNOWN;
	return outcome;
}

/* Describes a value that one or both sides lack. Returns NULL if neither does. */
static const char *describe_missing(const struct comparison *c, const struct effect *effect,
				    enum unit unit)
{
	if (isnan(effect->base) && !isnan(effect->new))
		return text_print("%s, new: BASE has no value", format_amount(unit, effect->new));
	if (isnan(effect->new) && !isnan(effect->base))
		return text_print("%s, gone", format_amount(unit, effect->base));
	if (effect->base == 0.0 && effect->new == 0.0)
		return text_print("none on either side%s",
				  c->has_iterations ? " after warm-up" : "");
	if (effect->base == 0.0 && !effect->is_exact && !effect->is_boundary_shift)
		return text_print("%s -> %s, new, in %u of %zu runs",
				  format_amount(unit, effect->base),
				  format_amount(unit, effect->new), effect->new_runs.count,
				  c->side_counts[SIDE_NEW]);
	return NULL;
}

static const char *describe_exact(const struct effect *effect, enum outcome outcome)
{
	if (effect->change == 0.0)
		return ", equal in all runs";
	if (outcome == OUTCOME_UNKNOWN)
		return ", in too few runs to be significant";
	return effect->base > 0.0 && effect->new > 0.0 ? ", equal in all runs of each side"
						       : ", in all runs";
}

/* Says how certain a change is. */
static const char *describe_certainty(const struct comparison *c, const struct rule *rule,
				      const struct effect *effect, enum outcome outcome)
{
	const char *detectable = format_percent(rule_detectable(c, rule, effect));
	/* A large common change that may be chance is not part of net_ratio: show both. */
	bool beside = fabs(effect->ratio - effect->net.ratio) > effect->net.detectable, apart;
	double low, high;

	if (isnan(effect->test.p))
		return ": too few runs to measure noise";
	if (effect->is_boundary_shift)
		return ": equally often per run; only the end of warm-up differs";
	if (effect->is_exact)
		return describe_exact(effect, outcome);
	if (outcome == OUTCOME_UNKNOWN && effect->test.is_drift && !effect->test.is_significant)
		return text_print(": within the drift between sets of the baseline; smallest "
				  "detectable change: %s",
				  detectable);
	if (outcome == OUTCOME_PASS && !effect->test.is_significant)
		return text_print("%s%s%s: within noise; smallest detectable change: %s",
				  beside ? " (" : "", beside ? format_ratio(effect->net.ratio) : "",
				  beside ? " net of the common change)" : "", detectable);
	rule_change_bounds(c, rule, effect, &low, &high);
	if (!isfinite(low) && !isfinite(high))
		return ", no confidence interval";
	/*
	 * The interval is around net_ratio, which excludes outliers and the common factor. Name it
	 * if the ratio is outside.
	 */
	apart = effect->ratio < low || effect->ratio > high;
	return text_print(
		" (%s%s%sinterval %s to %s); smallest detectable change: %s", apart ? "net " : "",
		apart ? format_ratio(effect->net.ratio + rule_common_change(c, rule, effect)) : "",
		apart ? ", " : "", format_ratio(low), format_ratio(high), detectable);
}

const char *rule_describe(const struct comparison *c, const struct rule *rule,
			  const struct effect *effect, enum unit unit, enum outcome outcome)
{
	const char *text;

	if (rule->kind == RULE_BUDGET && !(effect->new > 0.0))
		return "none in any run of NEW";
	if (rule->kind == RULE_BUDGET)
		return text_print(
			"%s +/- %s", format_amount(unit, effect->new),
			format_percent(rule_budget_margin(c, rule, effect) / effect->new));
	text = describe_missing(c, effect, unit);
	if (text)
		return text;
	return text_print("%s -> %s, %s%s", format_amount(unit, effect->base),
			  format_amount(unit, effect->new), format_ratio(effect->ratio),
			  describe_certainty(c, rule, effect, outcome));
}
