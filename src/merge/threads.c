/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past of threads.
 */
#include "merge/threads.h"

#include <stdlib.h>
#include <string.h>

#include "merge/grow.h"

struct thread_past {
	uint64_t exit_ns; /* of its last call */
	uint64_t wait_enter_ns;
	uint64_t wait_exit_ns;
	uint8_t wait; /* enum wait_kind */
};

/* Only by its name can a call be told to block: the record of a copy comes later or never. */
static enum wait_kind wait_of(const struct model *model, const struct api *api)
{
	const char *name = names_text(&model->names, api->name, NULL);

	if (api->class == XT_API_SYNC)
		return WAIT_SYNC;
	if (api->class == XT_API_COPY && !strstr(name, "Async") && !strstr(name, "Prefetch"))
		return WAIT_COPY;
	return WAIT_NONE;
}

int threads_init(struct threads *threads, const struct model *model)
{
	threads->count = model->threads.count;
	threads->pasts = calloc(threads->count, sizeof(*threads->pasts));
	threads->waits = calloc(model->apis.count, sizeof(*threads->waits));
	if (!threads->pasts || !threads->waits)
		return -ENOMEM;
	for (size_t a = 0; a < model->apis.count; a++)
		threads->waits[a] = (uint8_t)wait_of(model, &model->apis.rows[a]);
	return 0;
}

void threads_free(struct threads *threads)
{
	free(threads->pasts);
	free(threads->waits);
	*threads = (struct threads){0};
}

void threads_note(struct threads *threads, struct launch *call, uint64_t exit_ns)
{
	struct thread_past *past =
		&threads->pasts[call->thread < threads->count ? call->thread : 0];

	call->previous_exit_ns = past->exit_ns;
	call->wait_enter_ns = past->wait_enter_ns;
	call->wait_exit_ns = past->wait_exit_ns;
	if (past->wait == WAIT_COPY)
		call->flags |= LAUNCH_COPY_WAIT;
	past->exit_ns = exit_ns;
	if (!threads->waits[call->api])
		return;
	past->wait = threads->waits[call->api];
	past->wait_enter_ns = call->enter_ns;
	past->wait_exit_ns = exit_ns;
}
