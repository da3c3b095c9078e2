/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/snapshot_trigger.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "log/base/size_text.h"

static const struct {
	const char *start; /* ends with ">" or ":" if more follows */
	enum xt_trigger_kind kind;
} kinds[] = {
	{"range:", XT_TRIGGER_RANGE}, {"idle>", XT_TRIGGER_IDLE}, {"hang>", XT_TRIGGER_HANG},
	{"error", XT_TRIGGER_ERROR},  {"oom", XT_TRIGGER_OOM},
};

/* The end of the trigger if a limit begins at text, else NULL. */
static const char *parse_limit(const char *text, struct xt_snapshot_trigger *trigger)
{
	size_t length = strcspn(text, ",");

	return xt_time_parse(text, length, &trigger->limit_ns) ? text + length : NULL;
}

static const char *parse_range(const char *name, struct xt_snapshot_trigger *trigger)
{
	const char *end = NULL, *arrow = name;

	while (!end && (arrow = strchr(arrow, '>')))
		end = parse_limit(++arrow, trigger);
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
		if (trigger->kind == XT_TRIGGER_RANGE)
			return parse_range(text + length, trigger);
		return kinds[k].start[length - 1] == '>' ? parse_limit(text + length, trigger)
							 : text + length;
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
