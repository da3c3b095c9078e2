/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads what the tracer switched: pauses, handoffs of CUPTI, sampling rates of stacks.
 */
#include "merge/read/model_switch_rows.h"

#include "base/memory.h"
#include "merge/read/row_of_id.h"

static void load_handoff(struct model *model, uint64_t time_ns, bool is_on, bool is_handoff,
			 struct xt_bytes who)
{
	struct cupti_handoffs *cupti_handoffs = &model->cupti_handoffs;

	if (!is_on && is_handoff && !cupti_handoffs->since_ns) {
		if (!cupti_handoffs->count++)
			cupti_handoffs->who =
				names_intern(&model->names, who.data ? who.data : "", who.length);
		cupti_handoffs->since_ns = time_ns;
	} else if (is_on && cupti_handoffs->since_ns) {
		cupti_handoffs->total_ns +=
			time_ns > cupti_handoffs->since_ns ? time_ns - cupti_handoffs->since_ns : 0;
		cupti_handoffs->since_ns = 0;
	}
}

void model_load_switches(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_SWITCH_TIME_NS);
	const uint64_t *is_on = xt_chunk_u64(chunk, XT_SWITCH_IS_ON);
	const uint64_t *why = xt_chunk_u64(chunk, XT_SWITCH_WHY);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		load_handoff(model, time_ns[r], is_on[r] != 0, why[r] == XT_SWITCH_YIELDED,
			     xt_chunk_bytes(chunk, XT_SWITCH_WHO, r));
		pauses_add(&model->pauses, time_ns[r], is_on[r] != 0);
		if (!is_on[r] && why[r] == XT_SWITCH_SIZE)
			model->full_ns = time_ns[r];
		if ((is_on[r] || why[r] == XT_SWITCH_STOPPED || why[r] == XT_SWITCH_DUTY))
			pauses_add(&model->stops, time_ns[r], is_on[r] != 0);
		if (is_on[r] && why[r] == XT_SWITCH_YIELDED) {
			xt_grow(&model->renumbered_ns.rows, &model->renumbered_ns.capacity,
				model->renumbered_ns.count + 1, sizeof(*model->renumbered_ns.rows));
			model->renumbered_ns.rows[model->renumbered_ns.count++] = time_ns[r];
		}
	}
}

void model_load_rates(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_STACK_RATE_TIME_NS);
	const uint64_t *one_in = xt_chunk_u64(chunk, XT_STACK_RATE_ONE_IN);
	struct stack_rates *rates = &model->rates;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		if (rates->since_ns && time_ns[r] > rates->since_ns)
			rates->total_ns += time_ns[r] - rates->since_ns;
		rates->since_ns = one_in[r] > 1 ? time_ns[r] : 0;
		if (one_in[r] <= 1)
			continue;
		if (!rates->one_in_min || one_in[r] < rates->one_in_min)
			rates->one_in_min = one_in[r];
		if (one_in[r] > rates->one_in_max)
			rates->one_in_max = one_in[r];
	}
}
