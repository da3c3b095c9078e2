/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/html/html_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/sums/memory.h"
#include "merge/tracks/track_names.h"

uint32_t html_label(struct html_labels *labels, const struct process *process, char *text,
		    uint32_t id)
{
	char *label = text;
	uint32_t name;

	if (process->process_count > 1)
		label = xt_asprintf("%s of %s", text, process->label);
	name = names_intern(&labels->names, label, strlen(label));
	if (label != text)
		free(label);
	xt_grow(&labels->origins, &labels->origin_capacity, (size_t)name + 1,
		sizeof(*labels->origins));
	labels->origins[name] = (struct html_origin){process_first(process), id};
	return name;
}

void html_labels_free(struct html_labels *labels)
{
	names_free(&labels->names);
	free(labels->origins);
	*labels = (struct html_labels){0};
}

uint32_t html_device(struct html *html, const struct process *process, uint32_t device)
{
	char *text;
	uint32_t name;

	if (device == MEMORY_POOL_HOST)
		text = xt_strdup("host");
	else if (device >= MEMORY_POOLS_MAX - 1)
		text = xt_strdup("other devices");
	else
		text = track_device_name(process->model, device);
	name = html_label(&html->devices, process, text, device);
	free(text);
	return name;
}

uint32_t html_known_thread(const struct html *html, size_t process, uint32_t tid)
{
	for (uint32_t n = NAME_EMPTY + 1; n < html->threads.names.count; n++)
		if (html->threads.origins[n].process == process &&
		    html->threads.origins[n].id == tid)
			return n;
	return NAME_EMPTY;
}

uint32_t html_thread(struct html *html, const struct process *process, uint32_t thread)
{
	const struct model *model = process->model;
	const struct thread *row;
	char *text;

	if (!thread || thread >= model->threads.count || !model->threads.rows[thread].tid)
		return NAME_EMPTY;
	if (html->process_threads[thread])
		return html->process_threads[thread];
	row = &model->threads.rows[thread];
	if (process->is_continued)
		html->process_threads[thread] = html_known_thread(html, process->index, row->tid);
	if (html->process_threads[thread])
		return html->process_threads[thread];
	text = xt_asprintf("%s (%u)", track_thread_name(model, thread), row->tid);
	html->process_threads[thread] = html_label(&html->threads, process, text, row->tid);
	free(text);
	return html->process_threads[thread];
}
