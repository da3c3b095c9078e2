/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/owner.h"
#include "merge/sums/build_tree.h"

void owner_of_call(struct reading *reading, const struct launch *call, struct owner *owner)
{
	enum by by = reading->run->settings->by;

	*owner = (struct owner){.leaf = LEAF_CALL, .api = call->api};
	owner_add_call(reading, call, owner);
	if (reading->run->wants_origins)
		owner->thread = call->thread;
	owner->root = by == BY_DEVICE || by == BY_STREAM
			      ? ROOT_HOST
			      : owner_root(reading->run, reading->model, 0, call->thread);
}
