/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/track_labels.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/base/labels.h"
#include "merge/tracks/track_names.h"

#define LABEL_ARGS_MAX 8

struct track_labels {
	struct track_label *rows[WORK_KINDS]; /* by work.shape */
	size_t counts[WORK_KINDS];
};

void track_labels_begin(struct tracks *t)
{
	const struct model *model = t->process->model;

	t->labels = xt_calloc(1, sizeof(*t->labels));
	t->labels->counts[WORK_KERNEL] = model->shapes.count;
	t->labels->counts[WORK_COPY] = model->copy_shapes.count;
	t->labels->counts[WORK_MEMSET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++)
		t->labels->rows[kind] =
			xt_calloc(t->labels->counts[kind], sizeof(*t->labels->rows[kind]));
}

void track_labels_end(struct tracks *t)
{
	if (!t->labels)
		return;
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		for (size_t i = 0; i < t->labels->counts[kind]; i++) {
			free(t->labels->rows[kind][i].args);
			free(t->labels->rows[kind][i].text);
		}
		free(t->labels->rows[kind]);
	}
	free(t->labels);
	t->labels = NULL;
}

static void add(struct track_label *label, struct track_arg arg)
{
	label->args[label->arg_count++] = arg;
}

static void add_number(struct track_label *label, enum track_arg_key key, uint64_t number)
{
	add(label, (struct track_arg){.key = key, .type = ARG_NUMBER, .number = number});
}

static void add_text(struct track_label *label, enum track_arg_key key, const char *text)
{
	add(label, (struct track_arg){.key = key, .type = ARG_TEXT, .text = text});
}

static void add_sizes(struct track_label *label, enum track_arg_key key, const uint32_t sizes[3])
{
	add(label, (struct track_arg){
			   .key = key, .type = ARG_SIZES, .sizes = {sizes[0], sizes[1], sizes[2]}});
}

/* Adds an argument of a compact format, which combines those of a full one. Frees text. */
static void add_combined(struct tracks *t, struct track_label *label, enum track_arg_key key,
			 char *text)
{
	add(label,
	    (struct track_arg){.key = key,
			       .type = ARG_INTERNED,
			       .name = tracks_need(names_intern(&t->texts, text, strlen(text)))});
	free(text);
}

static void add_kernel(struct tracks *t, struct track_label *label, uint32_t id)
{
	const struct shape *shape = &t->process->model->shapes.rows[id];
	struct demangle_cache *names = t->process->names;
	uint32_t full;

	if (t->writer->is_compact) {
		add_combined(t, label, ARG_LAUNCH,
			     xt_asprintf("grid %ux%ux%u, block %ux%ux%u, %u registers, %llu + %llu "
					 "bytes shared",
					 shape->grid[0], shape->grid[1], shape->grid[2],
					 shape->block[0], shape->block[1], shape->block[2],
					 shape->registers,
					 (unsigned long long)shape->static_shared_bytes,
					 (unsigned long long)shape->dynamic_shared_bytes));
		return;
	}
	full = tracks_need(
		demangle(names, model_kernel_name(t->process->model, id), DEMANGLE_FULL));
	/* The name may be shortened. */
	if (full != label->name)
		add(label, (struct track_arg){.key = ARG_FUNCTION, .type = ARG_NAME, .name = full});
	add_sizes(label, ARG_GRID, shape->grid);
	add_sizes(label, ARG_BLOCK, shape->block);
	add_number(label, ARG_REGISTERS, shape->registers);
	add_number(label, ARG_STATIC_SHARED, shape->static_shared_bytes);
	add_number(label, ARG_DYNAMIC_SHARED, shape->dynamic_shared_bytes);
}

static void add_copy(struct tracks *t, struct track_label *label, uint32_t id)
{
	const struct copy_shape *shape = &t->process->model->copy_shapes.rows[id];
	bool is_peer = shape->from_device && shape->to_device;
	const char *source = memory_kind_label(shape->source);
	const char *destination = memory_kind_label(shape->destination);
	char devices[64] = "";

	if (t->writer->is_compact) {
		if (is_peer)
			snprintf(devices, sizeof(devices), ", GPU %u to GPU %u",
				 shape->from_device - 1, shape->to_device - 1);
		add_combined(t, label, ARG_COPY,
			     xt_asprintf("%s to %s, %s%s", source, destination,
					 shape->is_async ? "asynchronous" : "synchronous",
					 devices));
		return;
	}
	add_text(label, ARG_SOURCE, source);
	add_text(label, ARG_DESTINATION, destination);
	add(label, (struct track_arg){
			   .key = ARG_ASYNCHRONOUS, .type = ARG_BOOL, .number = shape->is_async});
	if (!is_peer)
		return;
	add_number(label, ARG_FROM_DEVICE, shape->from_device - 1);
	add_number(label, ARG_TO_DEVICE, shape->to_device - 1);
}

static void add_set(struct tracks *t, struct track_label *label, uint32_t memory)
{
	const char *text = memory_kind_label(memory);

	if (t->writer->is_compact)
		add_combined(t, label, ARG_COPY, xt_strdup(text));
	else
		add_text(label, ARG_MEMORY, text);
}

struct track_label *track_label(struct tracks *t, const struct work *work)
{
	static void (*const add_args[WORK_KINDS])(struct tracks *, struct track_label *,
						  uint32_t) = {
		[WORK_KERNEL] = add_kernel, [WORK_COPY] = add_copy, [WORK_MEMSET] = add_set};
	uint32_t id = work->shape < t->labels->counts[work->kind] ? work->shape : 0;
	struct track_label *label = &t->labels->rows[work->kind][id];

	if (label->args)
		return label;
	label->name = tracks_need(track_work_name(t->process, work->kind, id));
	label->args = xt_calloc(LABEL_ARGS_MAX, sizeof(*label->args));
	add_args[work->kind](t, label, id);
	return label;
}
