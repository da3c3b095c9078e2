/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a log says of what the tracer did by itself or was told to do: pauses, yields, rates of stacks.
 */
#include <errno.h>

#include "merge/base/grow.h"
#include "merge/read/model_load.h"

static void load_yield(struct model *model, uint64_t time_ns, bool is_on, bool is_yield,
		       struct xt_bytes who)
{
	struct yields *yields = &model->yields;

	if (!is_on && is_yield && !yields->since_ns) {
		if (!yields->count++)
			yields->who =
				names_intern(&model->names, who.data ? who.data : "", who.length);
		yields->since_ns = time_ns;
	} else if (is_on && yields->since_ns) {
		yields->total_ns += time_ns > yields->since_ns ? time_ns - yields->since_ns : 0;
		yields->since_ns = 0;
	}
}

int model_load_switches(struct model *model, const struct xt_chunk *chunk)
{
	const uint64_t *time_ns = xt_chunk_u64(chunk, XT_SWITCH_TIME_NS);
	const uint64_t *is_on = xt_chunk_u64(chunk, XT_SWITCH_IS_ON);
	const uint64_t *why = xt_chunk_u64(chunk, XT_SWITCH_WHY);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		load_yield(model, time_ns[r], is_on[r] != 0, why[r] == XT_SWITCH_YIELDED,
			   xt_chunk_bytes(chunk, XT_SWITCH_WHO, r));
		error = model->yields.who == NAME_FAILED
				? -ENOMEM
				: pauses_add(&model->pauses, time_ns[r], is_on[r] != 0);
		if (!error && is_on[r] && why[r] == XT_SWITCH_YIELDED) {
			error = grow(&model->renumbered_ns.rows, &model->renumbered_ns.capacity,
				     model->renumbered_ns.count + 1,
				     sizeof(*model->renumbered_ns.rows));
			if (!error)
				model->renumbered_ns.rows[model->renumbered_ns.count++] =
					time_ns[r];
		}
	}
	return error;
}

int model_load_rates(struct model *model, const struct xt_chunk *chunk)
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
	return 0;
}
