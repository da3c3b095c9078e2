/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/base/weights.h"

#define WEIGHT_SPEC(weight, ...) {__VA_ARGS__},
const struct weight_spec weight_specs[WEIGHTS] = {WEIGHT_LIST(WEIGHT_SPEC)};

const char *weight_unit(enum weight weight)
{
	if (weight_specs[weight].is_time)
		return "ns";
	return weight == WEIGHT_COUNT || weight == WEIGHT_UNTIMED ? "count" : "bytes";
}
