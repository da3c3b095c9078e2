/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/snapshot_trigger.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "log/base/number_format.h"

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
