/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a pprof profile: each total's call path, weights, and labels for its device, thread
 * and ranges.
 */
#include "merge/export/pprof/pprof_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
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

static int push(struct pprof *pprof, uint64_t location)
{
	if (!location || grow(&pprof->path, &pprof->path_capacity, pprof->path_length + 1,
			      sizeof(*pprof->path)) < 0)
		return -ENOMEM;
	pprof->path[pprof->path_length++] = location;
	return 0;
}

static int push_text(struct pprof *pprof, const char *text)
{
	return push(pprof, pprof_name_location(pprof, text, strlen(text)));
}

/* Appends a name of the path tree. */
static int push_name(struct pprof *pprof, const struct paths *paths, uint32_t name)
{
	size_t length;
	const char *text = names_text(&paths->names, name, &length);

	return push(pprof, pprof_name_location(pprof, text, length));
}

static int push_python(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct python_line line;
	int error = 0;

	for (uint32_t n = 0; !error && frames_python_line(process->frames, id, n, &line); n++)
		error = push(pprof, pprof_python_location(pprof, process, &line));
	return error;
}

static int push_item(struct pprof *pprof, const struct process *process,
		     const struct path_item *item)
{
	switch (item->kind) {
	case MERGED_TRUNCATED:
		return push_text(pprof, FRAME_TRUNCATED);
	case MERGED_PYTHON:
		return push_python(pprof, process, item->value);
	case MERGED_LABEL:
		return push_name(pprof, process->paths, item->value);
	case MERGED_NATIVE:
		break;
	}
	if (!process->frames->address_names[item->value])
		return 0;
	return push(pprof, pprof_address_location(pprof, process, item->value));
}

static int push_stack(struct pprof *pprof, const struct process *process, uint32_t id)
{
	struct path_items list = {0};
	int error;

	if (!frames_has_stack(process->frames, id))
		return push_text(pprof, FRAME_UNATTRIBUTED);
	error = joined_paths_list(process->frames, id, &list);
	for (size_t i = 0; i < list.count && !error; i++)
		error = push_item(pprof, process, &list.items[i]);
	free(list.items);
	return error;
}

/* Appends the nodes of the tree from `first` to its descendant `node`, by names only. */
static int push_nodes(struct pprof *pprof, const struct process *process, uint32_t first,
		      uint32_t node)
{
	const struct paths *paths = process->paths;
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity), d = 0, error = 0;

	while (first != PATH_ROOT && d < depth && chain[d] != first)
		d++;
	for (; d < depth && !error; d++)
		error = push_name(pprof, paths, paths->nodes[chain[d]].name);
	free(chain);
	return depth < 0 ? depth : error;
}

/* Appends the CUDA function that a stack called, if it is known. */
static int push_api(struct pprof *pprof, const struct process *process, uint32_t stack,
		    uint32_t api)
{
	const struct frames *frames = process->frames;

	if (!frames_knows_api(frames, stack, api))
		return 0;
	return push_name(pprof, process->paths, frames_api_name(frames, stack, api));
}

/* Appends what a sampled thread did. */
static int push_sampled(struct pprof *pprof, const struct process *process,
			const struct owner *owner)
{
	const char *label = cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack);
	int error = owner->stack ? push_stack(pprof, process, owner->stack) : 0;

	if (!error)
		error = push_api(pprof, process, owner->stack, MODEL_API_UNKNOWN);
	return !error && label ? push_text(pprof, label) : error;
}

/* Appends the path as in the tree, but without ranges and roots, which become labels. */
static int push_path(struct pprof *pprof, const struct process *process, const struct owner *owner,
		     uint32_t node)
{
	const struct frames *frames = process->frames;
	int error = 0;

	if (owner->leaf == LEAF_CPU)
		return push_sampled(pprof, process, owner);
	if (owner_stand_in(owner)) {
		error = push_text(pprof, owner_stand_in(owner));
	} else if (owner_has_call(owner)) {
		error = push_stack(pprof, process, owner->stack);
		if (!error && (owner->stack || owner->leaf == LEAF_CALL))
			error = push_name(pprof, process->paths,
					  frames_api_name(frames, owner->stack, owner->api));
	}
	if (!error && owner->marks & OWNER_IN_GRAPH)
		error = push_text(pprof, PATH_GRAPH_MARK);
	if (!error && owner->creation) {
		const struct creation *creation = &process->model->nodes.creations[owner->creation];

		error = push_stack(pprof, process, creation->stack);
		if (!error)
			error = push_api(pprof, process, creation->stack, creation->api);
	}
	if (!error && owner->leaf == LEAF_IDLE)
		return push_nodes(pprof, process, path_of_idle_class(process->paths, node), node);
	if (!error && owner->leaf != LEAF_CALL)
		error = push_name(pprof, process->paths, process->paths->nodes[node].name);
	return error;
}

static int add_label(struct pprof *pprof, struct labels *labels, const char *key, const char *text)
{
	Perftools__Profiles__Label *label = &labels->rows[labels->count];

	perftools__profiles__label__init(label);
	label->key = pprof_string(pprof, key, strlen(key));
	label->str = pprof_string(pprof, text, strlen(text));
	labels->list[labels->count++] = label;
	return label->key < 0 || label->str < 0 ? -ENOMEM : 0;
}

/* Includes names that the program gave to streams and contexts, as path roots do. */
static int label_gpu(struct pprof *pprof, struct labels *labels, const struct model *model,
		     uint32_t device)
{
	const char *title = model_title(model, &model->device_names, 0, device);
	char *text;
	int error;

	if (asprintf(&text, title[0] ? "GPU%u (%s)" : "GPU%u", device, title) < 0)
		return -ENOMEM;
	error = add_label(pprof, labels, "device", text);
	free(text);
	return error;
}

static int label_device(struct pprof *pprof, struct labels *labels, const struct model *model,
			const struct owner *owner)
{
	const struct stream *stream = &model->streams.rows[owner->stream];
	uint32_t pool = MEMORY_WHAT_POOL(owner->what);
	char text[64];
	int error;

	if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOL_HOST)
		return add_label(pprof, labels, "device", "host");
	if (owner->leaf == LEAF_MEMORY && pool == MEMORY_POOLS_MAX - 1)
		return add_label(pprof, labels, "device", "other");
	if (owner->leaf == LEAF_MEMORY)
		return label_gpu(pprof, labels, model, pool);
	if (!stream->defined)
		return 0;
	error = label_gpu(pprof, labels, model, stream->device);
	snprintf(text, sizeof(text), "context %u stream %u", stream->context, stream->stream);
	return error ? error : add_label(pprof, labels, "stream", text);
}

static int label_thread(struct pprof *pprof, struct labels *labels, const struct model *model,
			uint32_t id)
{
	const struct thread *thread = &model->threads.rows[id < model->threads.count ? id : 0];
	const char *name = names_text(&model->names, thread->name, NULL);
	char *text;
	int error;

	if (!thread->tid)
		return 0;
	if (asprintf(&text, "%s (%u)", name[0] ? name : "[no name]", thread->tid) < 0)
		return -ENOMEM;
	error = add_label(pprof, labels, "thread", text);
	free(text);
	return error;
}

/* Adds all nested ranges as one label, outermost first: "step;forward". */
static int label_range(struct pprof *pprof, struct labels *labels, const struct process *process,
		       uint32_t range)
{
	const struct ranges *ranges = &process->model->ranges;
	struct names *names = process->names->shown;
	char *text = NULL;
	int error = 0;

	if (!range || range >= ranges->node_count)
		return 0;
	for (; range != RANGE_NONE && !error; range = ranges->nodes[range].parent) {
		const struct range_node *node = &ranges->nodes[range];
		uint32_t name =
			range_label(names, process->model, node->domain, node->text, "", "");
		char *longer = NULL;

		if (name == NAME_FAILED ||
		    asprintf(&longer, "%s%s%s", names_text(names, name, NULL), text ? ";" : "",
			     text ? text : "") < 0)
			error = -ENOMEM;
		free(text);
		text = error ? NULL : longer;
	}
	if (!error)
		error = add_label(pprof, labels, "nvtx_range", text);
	free(text);
	return error;
}

static int put_labels(struct pprof *pprof, struct labels *labels, const struct process *process,
		      const struct owner *owner)
{
	const struct model *model = process->model;
	uint32_t range = owner_has_call(owner) ? owner->range
					       : model->nodes.creations[owner->creation].range;
	int error = label_device(pprof, labels, model, owner);

	if (!error)
		error = label_thread(pprof, labels, model, owner->thread);
	if (!error)
		error = label_range(pprof, labels, process, range);
	if (!error && process->process_count > 1)
		error = add_label(pprof, labels, "process", process->label);
	return error;
}

/* Writes a sample of the path, which was pushed outermost first. */
static int put_sample(struct pprof *pprof, struct labels *labels, const uint64_t weights[WEIGHTS],
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
	return pprof_put(pprof, &piece);
}

int pprof_put_sample(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node)
{
	struct pprof *pprof = sink->state;
	struct labels labels = {.count = 0};
	int error;

	if (total->owner.leaf == LEAF_NODE)
		return 0;
	pprof->path_length = 0;
	error = wanted_changes_paths(&sink->settings->wanted)
			? push_nodes(pprof, process, PATH_ROOT, node)
			: push_path(pprof, process, &total->owner, node);
	if (!error)
		error = put_labels(pprof, &labels, process, &total->owner);
	return error ? error : put_sample(pprof, &labels, total->weights, process->listed_weights);
}

/* Appends a path of the tree by names only, without ranges. */
static int push_without_ranges(struct pprof *pprof, const struct paths *paths, uint32_t node)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity), error = 0;

	for (int d = 0; d < depth && !error; d++) {
		uint32_t name = paths->nodes[chain[d]].name;

		if (strncmp(names_text(&paths->names, name, NULL), RANGE_MARK, strlen(RANGE_MARK)))
			error = push_name(pprof, paths, name);
	}
	free(chain);
	return depth < 0 ? depth : error;
}

int pprof_put_rank_weights(struct pprof *pprof, const struct run *run)
{
	int error = 0;

	for (size_t p = 0; p < run->rank_weights.count && !error; p++) {
		const struct rank_weight *part = &run->rank_weights.list[p];
		uint64_t weights[WEIGHTS] = {0};
		struct labels labels = {.count = 0};

		weights[part->weight] = part->ns;
		pprof->path_length = 0;
		error = push_without_ranges(pprof, &run->paths, part->common);
		if (!error)
			error = add_label(pprof, &labels, "process", run->labels[part->log]);
		if (!error)
			error = put_sample(pprof, &labels, weights, run_listed_weights(run));
	}
	return error;
}
