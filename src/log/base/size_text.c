/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/size_text.h"

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

/* strtod() depends on the program's locale, so parse the number here. */
bool xt_percent_parse(const char *text, double *percent)
{
	double value = 0, digit = 1;
	bool has_digits = false;

	for (; isdigit((unsigned char)*text); text++, has_digits = true)
		value = value * 10 + (*text - '0');
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++, has_digits = true) {
			digit /= 10;
			value += digit * (*text - '0');
		}
	*percent = 0;
	if (*text || !has_digits || value <= 0 || value > 100)
		return false;
	*percent = value;
	return true;
}
