/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/track_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/base/labels.h"
#include "merge/sums/process.h"

const char *track_device_model(const struct model *model, uint32_t device)
{
	char key[32];

	snprintf(key, sizeof(key), "gpu.%u.name", device);
	return model_meta(model, key);
}

char *track_device_name(const struct model *model, uint32_t device)
{
	const char *title = model_title(model, &model->device_names, 0, device);
	const char *gpu = track_device_model(model, device);

	return xt_asprintf("GPU %u%s%s%s%s", device, title[0] ? " " : "", title, gpu[0] ? " " : "",
			   gpu);
}

char *track_stream_name(const struct model *model, uint32_t stream, uint32_t lane)
{
	const struct stream *row = &model->streams.rows[stream];
	const char *title = model_title(model, &model->stream_names, row->context, row->stream);
	char number[16] = "";

	if (lane)
		snprintf(number, sizeof(number), " (%u)", lane + 1);
	if (!row->defined)
		return xt_asprintf("[unknown stream]%s", number);
	return xt_asprintf("context %u stream %u%s%s%s", row->context, row->stream,
			   title[0] ? " " : "", title, number);
}

const char *track_thread_name(const struct model *model, uint32_t thread)
{
	const struct thread *row = &model->threads.rows[thread < model->threads.count ? thread : 0];
	const char *name = names_text(&model->names, row->name, NULL);

	return !row->tid ? "[unknown thread]" : name[0] ? name : "[no name]";
}

uint32_t track_work_name(const struct process *process, enum work_kind kind, uint32_t shape)
{
	const struct model *model = process->model;
	char label[64] = "Memset";

	if (kind == WORK_KERNEL)
		return demangle(process->names, model_kernel_name(model, shape),
				process->names->style);
	if (kind == WORK_COPY)
		snprintf(label, sizeof(label), "Memcpy %s",
			 copy_kind_label(model->copy_shapes.rows[shape].kind));
	return names_intern(process->names->shown, label, strlen(label));
}
