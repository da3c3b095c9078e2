/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties and values of the points of a group.
 */
#include "diff/history/group.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define COMMIT_DIGITS 12

const struct property_spec property_specs[PROPERTIES] = {
	[PROPERTY_PROGRAM] = {"program", CAUSE_REAL, 0.0},
	[PROPERTY_FILTERS] = {"filters", CAUSE_REAL, 0.0},
	[PROPERTY_GPU] = {"GPU", CAUSE_HARDWARE, 0.0},
	[PROPERTY_HOST] = {"host", CAUSE_HARDWARE, 0.0},
	[PROPERTY_DRIVER] = {"CUDA driver", CAUSE_HARDWARE, 0.0},
	[PROPERTY_CLOCK] = {"GPU clock", CAUSE_HARDWARE, 0.03},
	[PROPERTY_CUPTI] = {"CUPTI version", CAUSE_METHOD, 0.0},
	[PROPERTY_COMMAND] = {"command line", CAUSE_METHOD, 0.0},
	[PROPERTY_ITERATIONS] = {"kind of iterations", CAUSE_METHOD, 0.0},
	[PROPERTY_ITERATION_COUNT] = {"number of iterations", CAUSE_METHOD, 0.05},
};

/* Long paths keep their end, which differs. */
static void put_origin(char out[LABEL_BYTES], const char *origin)
{
	const char *end;
	size_t length;

	if (!strncmp(origin, "./", 2) && origin[2])
		origin += 2;
	length = strlen(origin);
	while (length > 1 && origin[length - 1] == '/')
		length--;
	if (length < LABEL_BYTES) {
		snprintf(out, LABEL_BYTES, "%.*s", (int)length, origin);
		return;
	}
	end = origin + length;
	origin = end - (LABEL_BYTES - 4);
	/* Begin with a whole character of UTF-8. */
	while (origin < end && ((unsigned char)*origin & 0xc0) == 0x80)
		origin++;
	snprintf(out, LABEL_BYTES, "...%.*s", (int)(end - origin), origin);
}

const char *point_label(char out[LABEL_BYTES], const struct history_point *point)
{
	time_t seconds = (time_t)(point->time_ns / 1000000000);
	struct tm parts;

	if (point->label[0]) {
		/* A full commit hash is longer than people need. */
		size_t digits = strspn(point->label, "0123456789abcdef");
		bool is_hash = digits >= 40 && !point->label[digits];

		snprintf(out, LABEL_BYTES, "%.*s", is_hash ? COMMIT_DIGITS : LABEL_BYTES - 1,
			 point->label);
	} else if (point->commit) {
		snprintf(out, LABEL_BYTES, "%.*s", COMMIT_DIGITS, point->commit);
	} else if (point->time_ns && !point->is_alone) {
		gmtime_r(&seconds, &parts);
		strftime(out, LABEL_BYTES, "%Y-%m-%d %H:%M:%S", &parts);
	} else {
		put_origin(out, point->origin);
	}
	return out;
}

struct history_value group_value(const struct history *h, const struct history_group *group,
				 size_t row, size_t place)
{
	const struct history_point *point = group_point(h, group, place);
	struct history_value value = {.value = NAN};

	for (; row != ROW_NONE && isnan(value.value); row = group->renamed_to[row])
		value = point_value(point, row);
	return value;
}
