/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of levels, and numbers with three significant digits.
 */
#include "diff/base/level.h"

#include "diff/base/text.h"
#include "log/base/number_format.h"

#include <math.h>
#include <string.h>

const struct level_spec level_specs[LEVELS] = {
	[LEVEL_TOTAL] = {"totals", "total", "Whole run", UNIT_NS, false, false},
	[LEVEL_IDLE] = {"idle", "idle", "GPU idle time by cause", UNIT_NS, false, false},
	[LEVEL_COPY] = {"copies", "copy", "GPU time of copies and memsets", UNIT_NS, true, false},
	[LEVEL_BYTES] = {"bytes", "bytes", "Bytes of copies and memsets", UNIT_BYTES, false, false},
	[LEVEL_MEMORY] = {"memory", "memory", "Peak memory", UNIT_BYTES, false, false},
	[LEVEL_RANGE] = {"ranges", "range", "GPU time by NVTX range", UNIT_NS, true, false},
	[LEVEL_SPAN] = {"spans", "span", "Wall time in NVTX ranges", UNIT_NS, false, false},
	[LEVEL_KERNEL] = {"kernels", "kernel", "GPU time by kernel", UNIT_NS, true, false},
	[LEVEL_API] = {"apis", "api", "CPU time by API function, sum over threads", UNIT_NS, false,
		       false},
	[LEVEL_PATH] = {"paths", "path", "GPU time by call path", UNIT_NS, true, true},
	[LEVEL_CALL] = {"calls", "call",
			"CPU time in calls that wait, allocate or free, sum over threads", UNIT_NS,
			false, true},
};

const struct total_spec total_specs[] = {
	{"gpu-time", UNIT_NS, METRIC_VALUE, false},
	{"gpu-busy", UNIT_NS, METRIC_VALUE, false},
	{"gpu-idle", UNIT_NS, METRIC_VALUE, false},
	{"wall", UNIT_NS, METRIC_VALUE, false},
	{"iterations", UNIT_COUNT, METRIC_COUNT, true},
	{"launches", UNIT_COUNT, METRIC_COUNT, false},
	{"launch-latency", UNIT_NS, METRIC_EACH, false},
	{"waits", UNIT_NS, METRIC_COUNT, false},
	{"copies", UNIT_NS, METRIC_COUNT, false},
	{"bytes", UNIT_BYTES, METRIC_VALUE, false},
	{"peak-memory", UNIT_BYTES, METRIC_VALUE, true},
};
const size_t total_count = sizeof(total_specs) / sizeof(total_specs[0]);

/* NULL: other versions of xtrace may have other totals. */
static const struct total_spec *find_total(const char *name)
{
	for (size_t i = 0; i < total_count; i++)
		if (!strcmp(total_specs[i].name, name))
			return &total_specs[i];
	return NULL;
}

bool level_is_of_run(enum level level, const char *name)
{
	const struct total_spec *total = level == LEVEL_TOTAL ? find_total(name) : NULL;

	return level == LEVEL_MEMORY || (total && total->is_of_run);
}

enum unit level_unit(enum level level, const char *name)
{
	const struct total_spec *total = level == LEVEL_TOTAL ? find_total(name) : NULL;

	return total ? total->unit : level_specs[level].unit;
}

/* Decimals for three significant digits. */
static int decimals_of(double value)
{
	return fabs(value) >= 99.95 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
}

const char *format_amount(enum unit unit, double value)
{
	static const struct {
		const char *name;
		double factor;
	} names[][4] = {
		[UNIT_NS] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}},
		[UNIT_BYTES] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}},
	};
	char count[COUNT_BYTES];
	size_t i = 0;

	if (isnan(value))
		return "?";
	if (unit == UNIT_COUNT && decimals_of(value) && fabs(value - round(value)) >= 5e-4)
		return text_print("%.*f", decimals_of(value), value);
	if (unit == UNIT_COUNT)
		return text_print("%s%s", value <= -0.5 ? "-" : "",
				  format_count(count, (uint64_t)fmin(round(fabs(value)), 1e18)));
	while (i < 3 && fabs(value) < names[unit][i].factor)
		i++;
	if (i == 3 && fabs(value - round(value)) < 5e-3)
		return text_print("%.0f %s", value, names[unit][i].name);
	value /= names[unit][i].factor;
	return text_print("%.*f %s", decimals_of(value), value, names[unit][i].name);
}

const char *format_percent(double ratio)
{
	if (isnan(ratio))
		return "?";
	return isinf(ratio) ? "any"
			    : text_print("%.*f %%", decimals_of(ratio * 100.0), ratio * 100.0);
}

const char *format_ratio(double ratio)
{
	double percent = ratio * 100.0;

	if (isnan(ratio))
		return "?";
	if (isinf(ratio))
		return "new";
	if (ratio == -1.0)
		return "gone";
	if (fabs(percent) < 0.005)
		return "+0.00 %";
	return text_print("%+.*f %%", decimals_of(percent), percent);
}

#define ARGUMENT_BYTES 255 /* that are shown */

const char *format_argument(const char *argument)
{
	size_t length = strcspn(argument, ","), others = 0;
	int shown = length < ARGUMENT_BYTES ? (int)length : ARGUMENT_BYTES;

	for (const char *at = argument + length; *at; at++)
		others += *at == ',' && at[1] && at[1] != ',';
	return others ? text_print("%.*s and %zu more", shown, argument, others)
		      : text_print("%.*s", shown, argument);
}
