/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/exporter.h"

#define COST_MIN_NS  1000000 /* cheaper findings are never reported */
#define ALL_RULES    "all"
#define USAGE_BYTES  1024
#define CPU_ESTIMATE "time the GPU is idle while the CPU does this"

/* docs/FINDINGS.md defines the rules and says how each can be wrong. */
const struct rule_spec rule_specs[RULES] = {
	[RULE_API_ERRORS] = {.name = "api-errors",
			     .estimate = "time in the failed calls",
			     .is_error = true,
			     .is_thread_time = true},
	[RULE_MODULE_LOADS] = {.name = "module-loads",
			       .share_percent = 5,
			       .estimate = "time in the loading calls",
			       .is_thread_time = true},
	[RULE_ALLOC_LOOP] = {.name = "alloc-loop",
			     .share_percent = 5,
			     .estimate = "time in the allocating and freeing calls",
			     .is_thread_time = true},
	[RULE_SMALL_COPIES] = {.name = "small-copies",
			       .share_percent = 5,
			       .estimate = "time of the copies except the first of each sequence",
			       .is_thread_time = true},
	[RULE_PAGEABLE_ASYNC] = {.name = "pageable-async",
				 .share_percent = 10,
				 .estimate = "time the calls block their thread",
				 .is_thread_time = true},
	[RULE_LOW_BANDWIDTH] = {.name = "low-bandwidth",
				.share_percent = 10,
				.estimate = "time beyond a copy at 25 GB/s"},
	[RULE_SYNC_IDLE] = {.name = "sync-idle",
			    .share_percent = 10,
			    .estimate = "time the GPU is idle around the waits",
			    .is_about_idle = true},
	[RULE_SHORT_KERNELS] = {.name = "short-kernels",
				.share_percent = 15,
				.estimate = "time the GPU waits for these launches",
				.is_about_idle = true},
	[RULE_SERIAL_STREAMS] = {.name = "serial-streams",
				 .share_percent = 15,
				 .estimate = "time kernels wait for other streams"},
	[RULE_STREAM_IMBALANCE] = {.name = "stream-imbalance",
				   .share_percent = 15,
				   .estimate = "time of the busiest stream beyond the mean"},
	[RULE_DEVICE_IMBALANCE] = {.name = "device-imbalance",
				   .share_percent = 15,
				   .estimate = "time of the busiest device beyond the mean"},
	[RULE_SMALL_GRIDS] = {.name = "small-grids",
			      .share_percent = 15,
			      .estimate = "time a full GPU would save, at most"},
	[RULE_COPY_SHARE] = {.name = "copy-share",
			     .share_percent = 20,
			     .estimate = "time with copies but no kernel"},
	[RULE_GPU_IDLE] = {.name = "gpu-idle",
			   .share_percent = 25,
			   .estimate = "idle time of this kind, without the longest gaps",
			   .is_about_idle = true},
	[RULE_HANG] = {.name = "hang",
		       .estimate = "time since the first rank entered a collective that never ends",
		       .is_urgent = true},
	[RULE_LATE_RANK] = {.name = "late-rank",
			    .share_percent = 5,
			    .estimate = "time that the ranks lose in collectives, on average"},
	[RULE_DATA_LOADING] = {.name = "data-loading",
			       .share_percent = 10,
			       .estimate = CPU_ESTIMATE,
			       .is_about_idle = true},
	[RULE_JIT] = {.name = "jit-compile",
		      .share_percent = 10,
		      .estimate = CPU_ESTIMATE,
		      .is_about_idle = true},
	[RULE_IMPORTS] = {.name = "imports",
			  .share_percent = 10,
			  .estimate = CPU_ESTIMATE,
			  .is_about_idle = true},
	[RULE_BLOCKING_IO] = {.name = "blocking-io",
			      .share_percent = 10,
			      .estimate = CPU_ESTIMATE,
			      .is_about_idle = true},
	[RULE_RANK_WAIT] = {.name = "rank-wait",
			    .share_percent = 10,
			    .estimate = CPU_ESTIMATE,
			    .is_about_idle = true},
	[RULE_GIL] = {.name = "gil",
		      .share_percent = 10,
		      .estimate = CPU_ESTIMATE,
		      .is_about_idle = true},
	[RULE_CPU_SHORTAGE] = {.name = "cpu-shortage",
			       .share_percent = 10,
			       .estimate = CPU_ESTIMATE,
			       .is_about_idle = true},
	[RULE_HOST_MEMORY] = {.name = "host-memory",
			      .share_percent = 10,
			      .estimate = CPU_ESTIMATE,
			      .is_about_idle = true},
	[RULE_HOST_WAIT] = {.name = "host-wait",
			    .share_percent = 10,
			    .estimate = CPU_ESTIMATE,
			    .is_about_idle = true},
	[RULE_PYTHON_OVERHEAD] = {.name = "python-overhead",
				  .share_percent = 10,
				  .estimate = CPU_ESTIMATE,
				  .is_about_idle = true},
	[RULE_HOST_CODE] = {.name = "host-code",
			    .share_percent = 10,
			    .estimate = CPU_ESTIMATE,
			    .is_about_idle = true},
};

const char *finding_rule_name(enum rule rule)
{
	return rule < RULES ? rule_specs[rule].name : NULL;
}

const char *finding_estimate(enum rule rule)
{
	return rule_specs[rule].estimate;
}

const char *finding_usage(void)
{
	static char text[USAGE_BYTES];
	size_t length = (size_t)snprintf(text, sizeof(text),
					 "a rule, '=' and a share of the active time from 0 to "
					 "100, or off; the rules are all,");

	for (int rule = 0; rule < RULES && length < sizeof(text); rule++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   rule ? ", " : " ", rule_specs[rule].name);
	return text;
}

/* True if the name means this rule. The name is not terminated. */
static bool name_matches(int rule, const char *name, size_t length)
{
	const char *own = rule_specs[rule].name;

	return (length == strlen(ALL_RULES) && !memcmp(name, ALL_RULES, length)) ||
	       (length == strlen(own) && !memcmp(name, own, length));
}

int finding_parse(double shares[RULES], const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	double share;
	char *end;
	int meant = 0;

	if (!equals)
		return -EINVAL;
	share = strtod(equals + 1, &end);
	if (!strcmp(equals + 1, "off"))
		share = -1;
	else if (equals[1] < '0' || equals[1] > '9' || *end || !(share <= 100))
		return -EINVAL;
	for (int rule = 0; rule < RULES; rule++) {
		if (!name_matches(rule, text, length))
			continue;
		shares[rule] = share == 0 ? 1e-9 : share;
		meant++;
	}
	return meant ? 0 : -EINVAL;
}

bool rule_reaches(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns)
{
	return rule_specs[rule].is_error || rule_specs[rule].is_urgent ||
	       (cost_ns >= COST_MIN_NS && (double)cost_ns * 100 >= (double)whole_ns * share);
}

bool rule_reports(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		  uint64_t whole_ns)
{
	double share = settings->finding_shares[rule];

	return share >= 0 && rule_reaches(rule, share ? share : rule_specs[rule].share_percent,
					  cost_ns, whole_ns);
}
