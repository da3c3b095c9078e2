/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by NVTX range. Work counts for the range in which its call was made and for all ranges
 * around it.
 */
#include "merge/sums/build_tree_ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "merge/sums/process.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

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
	char *label = xt_malloc(room + 1), *end = label;
	uint32_t name;

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

uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category)
{
	uint32_t text = model_category(model, domain, category);
	char number[16];

	if (text)
		return range_label(names, model, 0, text, "", "");
	snprintf(number, sizeof(number), "%u", category);
	return names_intern(names, number, strlen(number));
}

static void add_sums(struct run *run, const struct model *model, const struct range_node *range,
		     struct range_sums *sums)
{
	bool is_first = !sums->opened_count;
	uint32_t category = NAME_EMPTY;

	if (range->category && range->category != RANGE_CATEGORY_SEVERAL)
		category = range_category(&run->sums->ranges.tree.names, model, range->domain,
					  range->category);
	sums->has_several_categories |= range->category == RANGE_CATEGORY_SEVERAL ||
					(!is_first && range->count && sums->category != category);
	if (is_first)
		sums->category = category;
	sums->opened_count += range->count;
	range_payload_add(&sums->payload, &range->payload);
}

/* Map each node of the log's range tree to a node of run->sums->ranges.tree. Parents come first. */
static void make_nodes(struct run *run, const struct model *model, uint32_t *nodes)
{
	const struct ranges *ranges = &model->ranges;

	for (uint32_t r = 1; r < ranges->node_count; r++) {
		const struct range_node *range = &ranges->nodes[r];

		nodes[r] = paths_child(&run->sums->ranges.tree, nodes[range->parent],
				       range_label(&run->sums->ranges.tree.names, model,
						   range->domain, range->text, "", ""));
		xt_grow(&run->sums->ranges.sums, &run->sums->ranges.sum_capacity, nodes[r] + 1,
			sizeof(*run->sums->ranges.sums));
		add_sums(run, model, range, &run->sums->ranges.sums[nodes[r]]);
	}
}

void build_range_tree(struct run *run, const struct process *process,
		      const struct aggregate *aggregate)
{
	size_t count = process->model->ranges.node_count;
	uint32_t *nodes = xt_calloc(count ? count : 1, sizeof(*nodes));

	make_nodes(run, process->model, nodes);
	for (uint32_t t = 0; t < aggregate->count; t++) {
		const struct total *total = &aggregate->entries[t];
		uint32_t node = total->owner.range < count ? nodes[total->owner.range] : PATH_ROOT;

		for (; node != PATH_ROOT; node = run->sums->ranges.tree.nodes[node].parent)
			for (int w = 0; w < WEIGHTS; w++)
				run->sums->ranges.tree.nodes[node].weights[w] += total->weights[w];
	}
	free(nodes);
}
