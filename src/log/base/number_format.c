/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/number_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *format_count(char *out, uint64_t value)
{
	char *at = out;
	char digits[COUNT_BYTES];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return out;
}

/* Three significant digits, or three decimal places. */
static void format_number(char *out, double value, const char *unit, bool is_short)
{
	int places = !is_short || value < 9.995 ? 2 + !is_short : value < 99.95 ? 1 : 0;

	snprintf(out, TIME_BYTES, "%.*f %s", places, value, unit);
}

static const char *put_time(char *out, uint64_t ns, bool is_short)
{
	static const struct {
		uint64_t from_ns;
		double unit_ns;
		const char *unit;
	} units[] = {{1000000000, 1e9, "s"}, {1000000, 1e6, "ms"}, {1000, 1e3, "us"}};

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		/* Three digits of 999.6 us are 1.00 ms. */
		if (ns < units[u].from_ns - (is_short ? units[u].from_ns / 2000 : 0))
			continue;
		format_number(out, (double)ns / units[u].unit_ns, units[u].unit, is_short);
		return out;
	}
	snprintf(out, TIME_BYTES, "%" PRIu64 " ns", ns);
	return out;
}

static const char *put_bytes(char *out, uint64_t bytes, bool is_short)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t u = 0;

	for (; value >= (is_short ? 1023.5 : 1024) && u + 1 < sizeof(units) / sizeof(units[0]); u++)
		value /= 1024;
	if (u)
		format_number(out, value, units[u], is_short);
	else
		snprintf(out, TIME_BYTES, "%.0f B", value);
	return out;
}

const char *format_time(char *out, uint64_t ns)
{
	return put_time(out, ns, false);
}

const char *format_bytes(char *out, uint64_t bytes)
{
	return put_bytes(out, bytes, false);
}

const char *format_time_short(char *out, uint64_t ns)
{
	return put_time(out, ns, true);
}

const char *format_bytes_short(char *out, uint64_t bytes)
{
	return put_bytes(out, bytes, true);
}

const char *format_share(char *out, uint64_t part, uint64_t whole)
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0.0;

	if (part < whole && percent > 99.9)
		percent = 99.9;
	if (percent > 0 && percent < 0.1)
		snprintf(out, SHARE_BYTES, "<0.1 %%");
	else
		snprintf(out, SHARE_BYTES, "%.1f %%", percent);
	return out;
}

#define XT_SIZE_BOUND_MIN (UINT64_C(256) << 10)
#define XT_TIME_BOUND_MIN UINT64_C(1000000000)

bool xt_size_bound_parse(const char *text, struct xt_size_bound *bound)
{
	static const char units[] = "KMGT";
	unsigned long long value;
	const char *unit;
	char *end;

	*bound = (struct xt_size_bound){0};
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
		if (__builtin_mul_overflow(value, 1024, &value))
			return false;
	if (unit)
		end++;
	if (strcmp(end, ":newest") != 0 && *end)
		return false;
	if (value < XT_SIZE_BOUND_MIN || value > INT64_MAX)
		return false;
	bound->bytes = value;
	bound->keeps_newest = *end != '\0';
	return true;
}

/*
 * Parses a decimal fraction. Returns what follows it, or NULL if there is none. strtod() depends on
 * the program's locale.
 */
static const char *parse_number(const char *text, double *value)
{
	bool has_digits = false;
	double digit = 1;

	*value = 0;
	for (; isdigit((unsigned char)*text); text++, has_digits = true)
		*value = *value * 10 + (*text - '0');
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++, has_digits = true) {
			digit /= 10;
			*value += digit * (*text - '0');
		}
	return has_digits ? text : NULL;
}

bool xt_time_parse(const char *text, size_t length, uint64_t *time_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"h", 3600e9}, {"m", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	const char *end = text + length, *unit;
	double number;

	unit = parse_number(text, &number);
	if (!unit || unit >= end)
		return false;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (strlen(units[u].name) != (size_t)(end - unit) ||
		    memcmp(units[u].name, unit, (size_t)(end - unit)) != 0)
			continue;
		/* A multiple of it must fit, too. */
		if (!(number * units[u].ns >= 1 && number * units[u].ns < (double)(INT64_MAX / 4)))
			return false;
		*time_ns = (uint64_t)(number * units[u].ns + 0.5);
		return true;
	}
	return false;
}

bool xt_flight_recorder_parse(const char *text, struct xt_size_bound *bound)
{
	if (!strchr(text, ':') && xt_size_bound_parse(text, bound)) {
		bound->keeps_newest = bound->is_flight_recorder = true;
		return true;
	}
	*bound = (struct xt_size_bound){.keeps_newest = true, .is_flight_recorder = true};
	if (xt_time_parse(text, strlen(text), &bound->keep_ns) &&
	    bound->keep_ns >= XT_TIME_BOUND_MIN)
		return true;
	*bound = (struct xt_size_bound){0};
	return false;
}

/* Parses a factor above 1, such as 3x or 2.5x. False if malformed, or not below a million. */
static bool xt_factor_parse(const char *text, size_t length, double *factor)
{
	double number;
	const char *unit = parse_number(text, &number);

	if (!unit || unit + 1 != text + length || *unit != 'x' || !(number > 1 && number < 1e6))
		return false;
	*factor = number;
	return true;
}

static const struct {
	const char *start; /* ends with ">" or ":" if more follows */
	enum xt_trigger_kind kind;
	bool has_factor; /* the limit may be a multiple of the median */
} kinds[] = {
	{"range:", XT_TRIGGER_RANGE, true}, {"iteration>", XT_TRIGGER_ITERATION, true},
	{"hang>", XT_TRIGGER_HANG, false},  {"error", XT_TRIGGER_ERROR, false},
	{"oom", XT_TRIGGER_OOM, false},
};

/* The end of the trigger if a limit begins at text, else NULL. */
static const char *parse_limit(const char *text, bool has_factor,
			       struct xt_snapshot_trigger *trigger)
{
	size_t length = strcspn(text, ",");

	if (has_factor && xt_factor_parse(text, length, &trigger->factor))
		return text + length;
	return xt_time_parse(text, length, &trigger->limit_ns) ? text + length : NULL;
}

static const char *parse_name(const char *name, struct xt_snapshot_trigger *trigger)
{
	const char *end = NULL, *arrow = name;

	while (!end && (arrow = strchr(arrow, '>')))
		end = parse_limit(++arrow, true, trigger);
	if (!end || arrow - 1 == name)
		return NULL;
	trigger->name = name;
	trigger->name_bytes = (size_t)(arrow - 1 - name);
	return end;
}

/* Returns what follows the trigger, or NULL. */
static const char *parse_one(const char *text, struct xt_snapshot_trigger *trigger)
{
	*trigger = (struct xt_snapshot_trigger){.text = text};
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		size_t length = strlen(kinds[k].start);

		if (strncmp(text, kinds[k].start, length) != 0)
			continue;
		trigger->kind = kinds[k].kind;
		switch (kinds[k].start[length - 1]) {
		case ':':
			return parse_name(text + length, trigger);
		case '>':
			return parse_limit(text + length, kinds[k].has_factor, trigger);
		default:
			return text + length;
		}
	}
	return NULL;
}

int xt_snapshot_triggers_parse(const char *text,
			       struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX])
{
	for (int count = 0; count < XT_SNAPSHOT_TRIGGERS_MAX; count++) {
		const char *end = parse_one(text, &triggers[count]);

		if (!end || (*end && *end != ','))
			return -EINVAL;
		triggers[count].text_bytes = (size_t)(end - text);
		if (!*end)
			return count + 1;
		text = end + 1;
	}
	return -EINVAL;
}
