/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/chrome/chrome_text.h"

#include <errno.h>
#include <stdlib.h>
#include "log/base/grow.h"

int chrome_json(struct text *out, const char *text, size_t length)
{
	out->data = malloc(text_json_bound(length) + 1);
	if (!out->data)
		return -ENOMEM;
	out->length = text_json(out->data, text, length);
	out->data[out->length] = '\0';
	return 0;
}

const struct text *chrome_name(struct chrome *c, const struct process *process, uint32_t name)
{
	const char *text;
	size_t length;

	if (grow(&c->known_names, &c->known_name_capacity, (size_t)name + 1,
		 sizeof(*c->known_names)) < 0)
		return NULL;
	if (c->known_names[name].data)
		return &c->known_names[name];
	text = names_text(&process->paths->names, name, &length);
	return chrome_json(&c->known_names[name], text, length) ? NULL : &c->known_names[name];
}

int chrome_use_frame(struct chrome *c, uint32_t node)
{
	if (node == PATH_FAILED ||
	    grow(&c->used_nodes, &c->used_capacity, (size_t)node + 1, sizeof(*c->used_nodes)) < 0)
		return -ENOMEM;
	c->used_nodes[node] = true;
	return 0;
}
