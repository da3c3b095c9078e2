/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/html/html_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t html_label(struct names *names, const struct process *process, char *text)
{
	char *label = text;
	uint32_t name = NAME_FAILED;

	if (process->process_count > 1 && asprintf(&label, "%s of %s", text, process->label) < 0)
		return NAME_FAILED;
	name = names_intern(names, label, strlen(label));
	if (label != text)
		free(label);
	return name;
}

uint32_t html_device(struct html *html, const struct process *process, uint32_t device)
{
	const char *gpu_name;
	char key[32], *text;
	uint32_t name;
	int length;

	snprintf(key, sizeof(key), "gpu.%u.name", device);
	gpu_name = model_meta(process->model, key);
	if (device == MEMORY_POOL_HOST)
		length = asprintf(&text, "host");
	else if (device >= MEMORY_POOLS_MAX - 1)
		length = asprintf(&text, "other devices");
	else
		length = asprintf(&text, "GPU %u%s%s", device, gpu_name[0] ? " " : "", gpu_name);
	if (length < 0)
		return NAME_FAILED;
	name = html_label(&html->devices, process, text);
	free(text);
	return name;
}
