/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/host_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/symbolize/addresses.h"
#include "merge/symbolize/embedded_symbols.h"

/* Returns whether the log names any such function. Most logs do not. */
static bool has_names(const struct model *model)
{
	for (size_t s = 1; s < model->symbols.count; s++) {
		size_t length;
		const char *name = names_text(&model->names, model->symbols.rows[s].name, &length);

		if (host_call_of(name, length).is_mpi)
			return true;
	}
	return false;
}

static struct host_call find_innermost(const struct model *model, const struct stack *stack)
{
	for (uint32_t f = 0; f < stack->frame_count; f++) {
		size_t place = stack->first_frame + f, length;
		struct address address = {.frame = model->frames[place]};
		uint32_t module = model_module_of(model, stack, place, address_lookup(&address));
		const struct module *row = &model->modules.rows[module];
		const struct embedded_symbol *symbol =
			module ? embedded_symbol_find(model, row->id,
						      address_virtual(&address, row))
			       : NULL;
		struct host_call call = {0};
		const char *name;

		if (!symbol)
			continue;
		name = names_text(&model->names, symbol->name, &length);
		call = host_call_of(name, length);
		call.name = symbol->name;
		if (call.is_mpi)
			return call;
	}
	return (struct host_call){0};
}

int host_stacks_find(struct model *model)
{
	struct host_calls *calls = &model->host_calls;

	if (calls->list || !has_names(model))
		return 0;
	calls->list = calloc(model->stacks.count + 1, sizeof(*calls->list));
	if (!calls->list)
		return -ENOMEM;
	calls->count = model->stacks.count;
	for (size_t id = 1; id < calls->count; id++) {
		calls->list[id] = find_innermost(model, &model->stacks.rows[id]);
		calls->has_mpi |= calls->list[id].is_mpi;
	}
	return 0;
}

struct host_call host_call_at(const struct model *model, uint32_t stack)
{
	if (!model->host_calls.list)
		return (struct host_call){0};
	stack = model_own_stack(model, stack);
	return stack < model->host_calls.count ? model->host_calls.list[stack]
					       : (struct host_call){0};
}
