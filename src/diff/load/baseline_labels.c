/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels are often commits, which people shorten.
 */
#include "diff/load/baseline_labels.h"

#include <stdio.h>
#include <string.h>

#include "log/base/spellcheck.h"

#define LABELS_MAX 10 /* that are listed */

static bool begins_with(const struct baseline_set *set, const char *label)
{
	return *label && !strncmp(set->label, label, strlen(label));
}

const struct baseline_set *baseline_find_label(const struct baseline *baseline, const char *label)
{
	const struct baseline_set *found = NULL;
	size_t count = 0;

	for (size_t s = baseline->count; *label && s-- > 0;)
		if (!strcmp(baseline->sets[s].label, label))
			return &baseline->sets[s];
	for (size_t s = 0; s < baseline->count; s++)
		if (begins_with(&baseline->sets[s], label)) {
			found = &baseline->sets[s];
			count++;
		}
	return count == 1 ? found : NULL;
}

/* Lists the newest labels that begin with a text. Returns how many there are. */
static size_t list_labels(char out[ADVICE_BYTES], const struct baseline *baseline,
			  const char *heading, const char *beginning)
{
	size_t count = 0, used = (size_t)snprintf(out, ADVICE_BYTES, "%s", heading);

	for (size_t s = baseline->count; s-- > 0;) {
		const char *label = baseline->sets[s].label;

		if (!*label || (*beginning && !begins_with(&baseline->sets[s], beginning)))
			continue;
		if (++count <= LABELS_MAX && used < ADVICE_BYTES)
			used += (size_t)snprintf(out + used, ADVICE_BYTES - used, "%s%s",
						 count > 1 ? ", " : " ", label);
	}
	if (count > LABELS_MAX && used < ADVICE_BYTES)
		snprintf(out + used, ADVICE_BYTES - used, " and %zu more", count - LABELS_MAX);
	return count;
}

const char *baseline_advise_label(char out[ADVICE_BYTES], const struct baseline *baseline,
				  const char *label)
{
	struct suggestion near = {.name = label, .length = strlen(label)};

	if (*label && list_labels(out, baseline, "several labels begin with it:", label))
		return out;
	for (size_t s = baseline->count; s-- > 0;)
		suggest_consider(&near, baseline->sets[s].label);
	if (near.best && *near.best)
		snprintf(out, ADVICE_BYTES, "did you mean '%s'?", near.best);
	else if (!list_labels(out, baseline, "its labels are", ""))
		snprintf(out, ADVICE_BYTES, "its sets have no labels");
	return out;
}
