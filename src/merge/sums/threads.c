/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timelines of all threads, in bounded memory.
 */
#include "merge/sums/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum thread_state threads_state_of(const struct model *model, const struct api *api)
{
	return thread_state_of_call(api->class, names_text(&model->names, api->name, NULL));
}

void threads_init(struct threads *threads, const struct model *model)
{
	threads->count = model->threads.count;
	threads->checkpoints_max = THREADS_CHECKPOINTS_MAX;
	threads->timelines = xt_calloc(threads->count, sizeof(*threads->timelines));
	threads->states = xt_calloc(model->apis.count, sizeof(*threads->states));
	for (size_t a = 0; a < model->apis.count; a++)
		threads->states[a] = (uint8_t)threads_state_of(model, &model->apis.rows[a]);
}

void threads_free(struct threads *threads)
{
	for (size_t t = 0; threads->timelines && t < threads->count; t++)
		thread_timeline_free(&threads->timelines[t]);
	free(threads->timelines);
	free(threads->states);
	*threads = (struct threads){0};
}

/* Short timelines stay. If there are very many threads, raise the limit instead. */
static void thin(struct threads *threads)
{
	threads->checkpoint_count = 0;
	for (size_t t = 0; t < threads->count; t++) {
		thread_timeline_thin(&threads->timelines[t]);
		threads->checkpoint_count += threads->timelines[t].count;
	}
	if (threads->checkpoints_max < threads->checkpoint_count + threads->checkpoint_count / 8)
		threads->checkpoints_max =
			threads->checkpoint_count + threads->checkpoint_count / 8;
}

uint32_t threads_note_submission(struct threads *threads, const struct launch *call)
{
	struct thread_timeline *timeline = threads_timeline(threads, call->thread);
	uint64_t since_ns = call->enter_ns > timeline->last_submit_ns
				    ? call->enter_ns - timeline->last_submit_ns
				    : 0;

	if (!timeline->last_submit_ns)
		since_ns = UINT32_MAX;
	timeline->last_submit_ns = call->enter_ns;
	return since_ns < UINT32_MAX ? (uint32_t)since_ns : UINT32_MAX;
}

void threads_add_call(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		      uint64_t *own_ns)
{
	struct thread_timeline *timeline = threads_timeline(threads, call->thread);
	size_t before = timeline->count;

	if (thread_timeline_add_call(timeline, threads->states[call->api], call->enter_ns, exit_ns,
				     own_ns) < 0)
		xt_out_of_memory(0);
	threads->checkpoint_count += timeline->count - before;
	if (threads->checkpoint_count > threads->checkpoints_max)
		thin(threads);
}
