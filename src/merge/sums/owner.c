/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/owner.h"

#include <stdlib.h>

#include "base/memory.h"

uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread)
{
	switch (run->settings->by) {
	case BY_DEVICE:
		return model_device(model, stream);
	case BY_STREAM:
		return model_stream(model, stream)->defined ? stream : 0;
	case BY_THREAD:
		return thread < model->threads.count ? thread : 0;
	default:
		return 0;
	}
}

void owner_of_call(struct reading *reading, const struct launch *call, struct owner *owner)
{
	enum by by = reading->run->settings->by;

	*owner = (struct owner){.leaf = LEAF_CALL, .api = call->api};
	owner_add_call(reading, call, owner);
	if (reading->run->needs.origins)
		owner->thread = call->thread;
	owner->root = by == BY_DEVICE || by == BY_STREAM
			      ? ROOT_HOST
			      : owner_root(reading->run, reading->model, 0, call->thread);
}

void reading_find_stacks(struct reading *reading)
{
	const struct model *model = reading->model;

	reading->join.has_stack = xt_calloc(model->stacks.count + 1, 1);
	for (uint32_t id = 1; id < model->stacks.count; id++)
		reading->join.has_stack[id] = model_has_stack(model, id);
}
