/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a pprof profile: each total's call path, weights, and labels for its device, thread
 * and ranges.
 */
#include "merge/export/pprof/pprof_samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/naming/joined_paths.h"
#include "merge/reading.h"
#include "merge/sums/tables.h"

#include "merge/export/pprof/pprof_locations.h"
#include "merge/export/pprof/pprof_messages.h"
#include "merge/sums/build_tree_ranges.h"

#define LABELS_MAX 8
#define RANGE_MARK "[NVTX "

struct labels {
	Perftools__Profiles__Label rows[LABELS_MAX];
	Perftools__Profiles__Label *list[LABELS_MAX];
	size_t count;
};

static void push(struct pprof *pprof, uint64_t location)
{
	xt_grow(&pprof->path, &pprof->path_capacity, pprof->path_length + 1, sizeof(*pprof->path));
	pprof->path[pprof->path_length++] = location;
}

static void push_text(struct pprof *pprof, const char *text)
{
	push(pprof, pprof_name_location(pprof, text, strlen(text)));
}

/* Appends a name of the path tree. */
static void push_name(struct pprof *pprof, const struct paths *paths, uint32_t name)
{
	size_t length;
	const char *text = names_text(&paths->names, name, &length);

	push(pprof, pprof_name_location(pprof, text, length));
}

static void push_python(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct python_line line;

	for (uint32_t n = 0; frames_python_line(process->frames, id, n, &line); n++)
		push(pprof, pprof_python_location(pprof, process, &line));
}

static void push_item(struct pprof *pprof, const struct process *process,
		      const struct path_item *item)
{
	switch (item->kind) {
	case MERGED_TRUNCATED:
		push_text(pprof, FRAME_TRUNCATED);
		break;
	case MERGED_PYTHON:
		push_python(pprof, process, item->value);
		break;
	case MERGED_LABEL:
		push_name(pprof, process->paths, item->value);
		break;
	case MERGED_NATIVE:
		if (process->frames->address_names[item->value])
			push(pprof, pprof_address_location(pprof, process, item->value));
	}
}

static void push_stack(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct path_items list = {0};

	if (!frames_has_stack(process->frames, id)) {
		push_text(pprof, FRAME_UNATTRIBUTED);
		return;
	}
	joined_paths_list(process->frames, id, &list);
	for (size_t i = 0; i < list.count; i++)
		push_item(pprof, process, &list.items[i]);
	free(list.items);
}

/* Appends the nodes of the tree from `first` to its descendant `node`, by names only. */
static void push_nodes(struct pprof *pprof, const struct process *process, uint32_t first,
		       uint32_t node)
{
	const struct paths *paths = process->paths;
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity), d = 0;

	while (first != PATH_ROOT && d < depth && chain[d] != first)
		d++;
	for (; d < depth; d++)
		push_name(pprof, paths, paths->nodes[chain[d]].name);
	free(chain);
}

/* Appends the CUDA function that a stack called, if it is known. */
static void push_api(struct pprof *pprof, const struct process *process, uint32_t stack,
		     uint32_t api)
{
	const struct frames *frames = process->frames;

	if (frames_knows_api(frames, stack, api))
		push_name(pprof, process->paths, frames_api_name(frames, stack, api));
}

/* Appends what a sampled thread did. */
static void push_sampled(struct pprof *pprof, const struct process *process,
			 const struct owner *owner)
{
	const char *label = cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack);

	if (owner->stack)
		push_stack(pprof, process, owner->stack);
	push_api(pprof, process, owner->stack, MODEL_API_UNKNOWN);
	if (label)
		push_text(pprof, label);
}

/* Appends the path as in the tree, but without ranges and roots, which become labels. */
static void push_path(struct pprof *pprof, const struct process *process, const struct owner *owner,
		      uint32_t node)
{
	if (owner->leaf == LEAF_CPU) {
		push_sampled(pprof, process, owner);
		return;
	}
	if (owner_stand_in(owner)) {
		push_text(pprof, owner_stand_in(owner));
	} else if (owner_has_call(owner)) {
		push_stack(pprof, process, owner->stack);
		if (owner->stack || owner->leaf == LEAF_CALL)
			push_name(pprof, process->paths,
				  frames_api_name(process->frames, owner->stack, owner->api));
	}
	if (owner->marks & OWNER_IN_GRAPH)
		push_text(pprof, PATH_GRAPH_MARK);
	if (owner->creation) {
		const struct creation *creation = &process->model->nodes.creations[owner->creation];

		push_stack(pprof, process, creation->stack);
		push_api(pprof, process, creation->stack, creation->api);
	}
	if (owner->leaf == LEAF_IDLE)
		push_nodes(pprof, process, path_of_idle_class(process->paths, node), node);
	else if (owner->leaf != LEAF_CALL)
		push_name(pprof, process->paths, process->paths->nodes[node].name);
}

static void add_label(struct pprof *pprof, struct labels *labels, const char *key, const char *text)
{
	Perftools__Profiles__Label *label = &labels->rows[labels->count];

	perftools__profiles__label__init(label);
	label->key = pprof_string(pprof, key, strlen(key));
	label->str = pprof_string(pprof, text, strlen(text));
	labels->list[labels->count++] = label;
}

/* Includes names that the program gave to streams and contexts, as path roots do. */
static void label_gpu(struct pprof *pprof, struct labels *labels, const struct model *model,
		      uint32_t device)
{
	const char *title = model_title(model, &model->device_names, 0, device);
	char *text = xt_asprintf(title[0] ? "GPU%u (%s)" : "GPU%u", device, title);

	add_label(pprof, labels, "device", text);
	free(text);
}

static void label_device(struct pprof *pprof, struct labels *labels, const struct model *model,
			 const struct owner *owner)
{
	const struct stream *stream = &model->streams.rows[owner->stream];
	uint32_t pool = MEMORY_WHAT_POOL(owner->what);
	char text[64];

	if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOL_HOST) {
		add_label(pprof, labels, "device", "host");
	} else if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOLS_MAX - 1) {
		add_label(pprof, labels, "device", "other");
	} else if (owner->leaf == LEAF_MEMORY) {
		label_gpu(pprof, labels, model, pool);
	} else if (stream->defined) {
		label_gpu(pprof, labels, model, stream->device);
		snprintf(text, sizeof(text), "context %u stream %u", stream->context,
			 stream->stream);
		add_label(pprof, labels, "stream", text);
	}
}

static void label_thread(struct pprof *pprof, struct labels *labels, const struct model *model,
			 uint32_t id)
{
	const struct thread *thread = &model->threads.rows[id < model->threads.count ? id : 0];
	const char *name = names_text(&model->names, thread->name, NULL);
	char *text;

	if (!thread->tid)
		return;
	text = xt_asprintf("%s (%u)", name[0] ? name : "[no name]", thread->tid);
	add_label(pprof, labels, "thread", text);
	free(text);
}

/* Adds all nested ranges as one label, outermost first: "step;forward". */
static void label_range(struct pprof *pprof, struct labels *labels, const struct process *process,
			uint32_t range)
{
	const struct ranges *ranges = &process->model->ranges;
	struct names *names = process->names->shown;
	char *text = NULL;

	if (!range || range >= ranges->node_count)
		return;
	for (; range != RANGE_NONE; range = ranges->nodes[range].parent) {
		const struct range_node *node = &ranges->nodes[range];
		uint32_t name =
			range_label(names, process->model, node->domain, node->text, "", "");
		char *longer = xt_asprintf("%s%s%s", names_text(names, name, NULL), text ? ";" : "",
					   text ? text : "");

		free(text);
		text = longer;
	}
	add_label(pprof, labels, "nvtx_range", text);
	free(text);
}

static void put_labels(struct pprof *pprof, struct labels *labels, const struct process *process,
		       const struct owner *owner)
{
	const struct model *model = process->model;
	uint32_t range = owner_has_call(owner) ? owner->range
					       : model->nodes.creations[owner->creation].range;

	label_device(pprof, labels, model, owner);
	label_thread(pprof, labels, model, owner->thread);
	label_range(pprof, labels, process, range);
	if (process->process_count > 1)
		add_label(pprof, labels, "process", process->label);
}

/* Writes a sample of the path, which was pushed outermost first. */
static void put_sample(struct pprof *pprof, struct labels *labels, const uint64_t weights[WEIGHTS],
		       uint32_t listed_weights)
{
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *list = &sample;
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t values[WEIGHTS];

	for (size_t i = 0; i < pprof->path_length / 2; i++) {
		uint64_t *other = &pprof->path[pprof->path_length - 1 - i], location = *other;

		*other = pprof->path[i];
		pprof->path[i] = location;
	}
	for (int w = 0; w < WEIGHTS; w++)
		if ((listed_weights & ~GRAPH_WEIGHTS) >> w & 1)
			values[sample.n_value++] = (int64_t)(weights[w] & INT64_MAX);
	sample.location_id = pprof->path;
	sample.n_location_id = pprof->path_length;
	sample.value = values;
	sample.label = labels->list;
	sample.n_label = labels->count;
	piece.sample = &list;
	piece.n_sample = 1;
	pprof_put(pprof, &piece);
}

void pprof_put_sample(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	struct pprof *pprof = sink->state;
	struct labels labels = {.count = 0};

	if (total->owner.leaf == LEAF_NODE)
		return;
	pprof->path_length = 0;
	if (wanted_changes_paths(&sink->settings->wanted))
		push_nodes(pprof, process, PATH_ROOT, node);
	else
		push_path(pprof, process, &total->owner, node);
	put_labels(pprof, &labels, process, &total->owner);
	put_sample(pprof, &labels, total->weights, process->listed_weights);
}

/* Appends a path of the tree by names only, without ranges. */
static void push_without_ranges(struct pprof *pprof, const struct paths *paths, uint32_t node)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity);

	for (int d = 0; d < depth; d++) {
		uint32_t name = paths->nodes[chain[d]].name;

		if (strncmp(names_text(&paths->names, name, NULL), RANGE_MARK, strlen(RANGE_MARK)))
			push_name(pprof, paths, name);
	}
	free(chain);
}

void pprof_put_rank_weights(struct pprof *pprof, const struct run *run)
{
	for (size_t p = 0; p < run->rank_weights.count; p++) {
		const struct rank_weight *part = &run->rank_weights.list[p];
		uint64_t weights[WEIGHTS] = {0};
		struct labels labels = {.count = 0};

		weights[part->weight] = part->ns;
		pprof->path_length = 0;
		push_without_ranges(pprof, &run->paths, part->common);
		add_label(pprof, &labels, "process", run->labels[part->log]);
		put_sample(pprof, &labels, weights, run_listed_weights(run));
	}
}
