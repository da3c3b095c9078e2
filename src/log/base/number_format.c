/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/number_format.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

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

void format_time(char *out, uint64_t ns)
{
	static const struct {
		uint64_t from_ns;
		double unit_ns;
		const char *unit;
	} units[] = {{1000000000, 1e9, "s"}, {1000000, 1e6, "ms"}, {1000, 1e3, "us"}};

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (ns < units[u].from_ns)
			continue;
		snprintf(out, TIME_BYTES, "%.3f %s", (double)ns / units[u].unit_ns, units[u].unit);
		return;
	}
	snprintf(out, TIME_BYTES, "%" PRIu64 " ns", ns);
}

void format_bytes(char *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t u = 0;

	for (; value >= 1024 && u + 1 < sizeof(units) / sizeof(units[0]); u++)
		value /= 1024;
	snprintf(out, TIME_BYTES, u ? "%.3f %s" : "%.0f %s", value, units[u]);
}

void format_share(char *out, uint64_t part, uint64_t whole)
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0.0;

	if (part < whole && percent > 99.9)
		percent = 99.9;
	if (percent > 0 && percent < 0.1)
		snprintf(out, SHARE_BYTES, "<0.1 %%");
	else
		snprintf(out, SHARE_BYTES, "%.1f %%", percent);
}
