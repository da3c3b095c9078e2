/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by NVTX range: each piece of work counts for the range in which its call was made, and
 * for all ranges around that.
 */
#include <stdlib.h>
#include <string.h>

#include "merge/grow.h"
#include "merge/reading.h"
#include "merge/text.h"

static struct xt_bytes string_text(const struct model *model, uint32_t string)
{
	struct xt_bytes bytes;

	bytes.data =
		names_text(&model->names,
			   string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY,
			   &bytes.length);
	return bytes;
}

uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after)
{
	struct xt_bytes domain_bytes = string_text(model, domain);
	struct xt_bytes text_bytes = string_text(model, text);
	size_t room = strlen(before) + text_clean_bound(domain_bytes.length) + 1 +
		      text_clean_bound(text_bytes.length) + strlen("[no name]") + strlen(after);
	char *label = malloc(room + 1), *end = label;
	uint32_t name;

	if (!label)
		return NAME_FAILED;
	end = text_copy(end, before, strlen(before));
	if (domain_bytes.length) {
		end += text_clean(end, domain_bytes.data, domain_bytes.length, ';');
		*end++ = ':';
	}
	if (text_bytes.length)
		end += text_clean(end, text_bytes.data, text_bytes.length, ';');
	else
		end = TEXT_LITERAL(end, "[no name]");
	end = text_copy(end, after, strlen(after));
	name = names_intern(names, label, (size_t)(end - label));
	free(label);
	return name;
}

/* The nodes of run->ranges by node of the log's tree, whose parents come first. */
static int make_nodes(struct run *run, const struct model *model, uint32_t *nodes)
{
	const struct ranges *ranges = &model->ranges;

	for (uint32_t r = 1; r < ranges->node_count; r++) {
		const struct range_node *range = &ranges->nodes[r];

		nodes[r] = paths_child(
			&run->ranges, nodes[range->parent],
			range_label(&run->ranges.names, model, range->domain, range->text, "", ""));
		if (nodes[r] == PATH_FAILED ||
		    grow(&run->range_openings, &run->range_opening_capacity, nodes[r] + 1,
			 sizeof(*run->range_openings)) < 0)
			return -ENOMEM;
		run->range_openings[nodes[r]] += range->count;
	}
	return 0;
}

int plant_ranges(struct run *run, const struct process *process, const struct totals *totals)
{
	size_t count = process->model->ranges.node_count;
	uint32_t *nodes = calloc(count ? count : 1, sizeof(*nodes));
	int error = nodes ? make_nodes(run, process->model, nodes) : -ENOMEM;

	for (uint32_t t = 0; t < totals->count && !error; t++) {
		const struct total *total = &totals->entries[t];
		uint32_t node = total->owner.range < count ? nodes[total->owner.range] : PATH_ROOT;

		for (; node != PATH_ROOT; node = run->ranges.nodes[node].parent)
			for (int w = 0; w < WEIGHTS; w++)
				run->ranges.nodes[node].weights[w] += total->weights[w];
	}
	free(nodes);
	return error;
}
