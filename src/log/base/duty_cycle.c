/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/duty_cycle.h"

#include <string.h>

#include "log/base/size_text.h"

bool xt_duty_cycle_parse(const char *text, struct xt_duty_cycle *cycle)
{
	const char *slash = strchr(text, '/');

	*cycle = (struct xt_duty_cycle){0};
	if (slash && xt_time_parse(text, (size_t)(slash - text), &cycle->window_ns) &&
	    xt_time_parse(slash + 1, strlen(slash + 1), &cycle->period_ns) &&
	    cycle->window_ns >= XT_DUTY_WINDOW_MIN && cycle->period_ns / 2 >= cycle->window_ns)
		return true;
	*cycle = (struct xt_duty_cycle){0};
	return false;
}
