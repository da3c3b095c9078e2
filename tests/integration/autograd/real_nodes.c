/* SPDX-License-Identifier: Apache-2.0 */
/* Reads nodes of the PyTorch in this process as the tracer does, for real_nodes.py. */
#include <string.h>

#include "inject/torch/torch_runtime.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int node_is_right(uintptr_t node, uintptr_t control);
EXPORTED uint64_t node_sequence(uintptr_t node);
EXPORTED uint64_t node_thread(uintptr_t node);
EXPORTED const char *node_name(uintptr_t node);

int node_is_right(uintptr_t node, uintptr_t control)
{
	const struct torch_shared_node shared = {.node = node, .control = control};

	return torch_node_check(&shared);
}

uint64_t node_sequence(uintptr_t node)
{
	struct torch_node_key key;

	return torch_node_read(node, &key);
}

uint64_t node_thread(uintptr_t node)
{
	struct torch_node_key key;

	torch_node_read(node, &key);
	return key.thread;
}

/* Its mangled type, or an empty text. Valid until the next call. */
const char *node_name(uintptr_t node)
{
	static struct torch_node_names names;

	memset(&names, 0, sizeof(names));
	return torch_node_name(node, &names) ? names.type : "";
}
