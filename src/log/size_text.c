/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a bound on the size of a log. Any thread; allocates nothing.
 */
#include "log/size_text.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
