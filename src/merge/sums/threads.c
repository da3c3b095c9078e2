/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pasts of all threads, in bounded memory.
 */
#include "merge/sums/threads.h"

#include <stdlib.h>
#include <string.h>

#include "merge/base/grow.h"

/* Only by its name can a call be told to block: the record of a copy comes later or never. */
enum past_state threads_state_of(const struct model *model, const struct api *api)
{
	const char *name = names_text(&model->names, api->name, NULL);

	if (api->class == XT_API_SYNC)
		return PAST_IN_SYNC;
	if (api->class == XT_API_COPY && !strstr(name, "Async") && !strstr(name, "Prefetch"))
		return PAST_IN_COPY;
	return PAST_BUSY;
}

int threads_init(struct threads *threads, const struct model *model)
{
	threads->count = model->threads.count;
	threads->moments_max = THREADS_MOMENTS_MAX;
	threads->pasts = calloc(threads->count, sizeof(*threads->pasts));
	threads->states = calloc(model->apis.count, sizeof(*threads->states));
	if (!threads->pasts || !threads->states)
		return -ENOMEM;
	for (size_t a = 0; a < model->apis.count; a++)
		threads->states[a] = (uint8_t)threads_state_of(model, &model->apis.rows[a]);
	return 0;
}

void threads_free(struct threads *threads)
{
	for (size_t t = 0; threads->pasts && t < threads->count; t++)
		past_free(&threads->pasts[t]);
	free(threads->pasts);
	free(threads->states);
	*threads = (struct threads){0};
}

/* Threads with few moments keep them: where they are very many, there is room for more. */
static void thin(struct threads *threads)
{
	threads->moment_count = 0;
	for (size_t t = 0; t < threads->count; t++) {
		past_thin(&threads->pasts[t]);
		threads->moment_count += threads->pasts[t].count;
	}
	if (threads->moments_max < threads->moment_count + threads->moment_count / 8)
		threads->moments_max = threads->moment_count + threads->moment_count / 8;
}

uint32_t threads_ask(struct threads *threads, const struct launch *call)
{
	struct past *past = threads_past(threads, call->thread);
	uint64_t since_ns = call->enter_ns > past->asked_ns ? call->enter_ns - past->asked_ns : 0;

	if (!past->asked_ns)
		since_ns = UINT32_MAX;
	past->asked_ns = call->enter_ns;
	return since_ns < UINT32_MAX ? (uint32_t)since_ns : UINT32_MAX;
}

int threads_note(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		 uint64_t *own_ns)
{
	struct past *past = threads_past(threads, call->thread);
	size_t before = past->count;
	int error = past_call(past, threads->states[call->api], call->enter_ns, exit_ns, own_ns);

	threads->moment_count += past->count - before;
	if (threads->moment_count > threads->moments_max)
		thin(threads);
	return error;
}
