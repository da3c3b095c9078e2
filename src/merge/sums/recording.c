/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED_MIN_NS 1000000

void handoffs_add(struct handoffs *handoffs, const struct model *model)
{
	const struct cupti_handoffs *of_log = &model->cupti_handoffs;

	if (!of_log->count)
		return;
	if (!handoffs->count)
		snprintf(handoffs->first_tool, sizeof(handoffs->first_tool), "%s",
			 names_text(&model->names, of_log->who, NULL));
	handoffs->count += of_log->count;
	handoffs->total_ns += of_log->total_ns;
	if (of_log->since_ns && model->times.last_clock_ns > of_log->since_ns)
		handoffs->total_ns += model->times.last_clock_ns - of_log->since_ns;
}

void stack_sampling_add(struct stack_sampling *sampling, const struct model *model)
{
	const struct stack_rates *rates = &model->rates;

	if (!rates->one_in_max)
		return;
	sampling->total_ns += rates->total_ns;
	if (rates->since_ns && model->times.last_clock_ns > rates->since_ns)
		sampling->total_ns += model->times.last_clock_ns - rates->since_ns;
	if (!sampling->one_in_min || rates->one_in_min < sampling->one_in_min)
		sampling->one_in_min = rates->one_in_min;
	if (rates->one_in_max > sampling->one_in_max)
		sampling->one_in_max = rates->one_in_max;
}

/* The process may have run for long before xtrace attach loaded the tracer. */
static void add_attach(struct recording *recording, const struct model *model,
		       const struct xt_log_header *header)
{
	uint64_t attached_ns = strtoull(model_meta(model, "process.attached"), NULL, 10);
	uint64_t start_ns = model_process_start_ns(model, header);

	if (!attached_ns)
		return;
	recording->attached_count++;
	if (attached_ns > start_ns && attached_ns - start_ns > recording->attached_ns)
		recording->attached_ns = attached_ns - start_ns;
}

/* Only with pauses. An armed process is on for a moment until it is switched off. */
static void add_recorded_time(struct recording *recording, const struct model *model)
{
	uint64_t paused_ns = pauses_total_ns(&model->pauses, model->times.last_clock_ns);
	uint64_t from_ns = model->times.from_ns > model->times.start_ns ? model->times.from_ns
									: model->times.start_ns;

	recording->paused_ns += paused_ns;
	if (model->pauses.count &&
	    model->times.last_clock_ns > from_ns + paused_ns + RECORDED_MIN_NS)
		recording->recorded_ns += model->times.last_clock_ns - from_ns - paused_ns;
}

void recording_add(struct recording *recording, const struct model *model,
		   const struct xt_log_header *header)
{
	recording->pause_count += model->pauses.count;
	recording->cut_count += model_is_cut(model);
	recording->stop_count += model->stops.count;
	add_recorded_time(recording, model);
	add_attach(recording, model, header);
}
