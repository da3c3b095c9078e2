/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that xtrace ci init can write, and the text of .xtrace/rules.
 */
#include "ci.h"

#include <math.h>

#include "shell_quote.h"

/*
 * A limit divided by the smallest detectable change. Later comparisons can be noisier than the one
 * that the limit was learned from. With 1.5, some of them were inconclusive.
 */
#define MARGIN	      2.0
#define PERCENT_BYTES 32

/* The first one must have a limit. The check makes no sense without it. */
const struct ci_rule ci_rules[CI_RULE_COUNT] = {
	{"gpu-time", "total", "gpu-time", "value", CI_PERCENT, 0.01, 0.25,
	 "The GPU time of all kernels, copies and memsets.",
	 "Raise the limit if unchanged code fails. Lower it after you reduced the noise."},
	{"path(*)", "path", NULL, "value", CI_PERCENT, 0.02, 1.0,
	 "The GPU time of each call path. It finds the function and line that became slower.",
	 "To accept one slower path, add a line: allow path(NAME) +10% until 2030-01-31"},
	{"range(*)", "range", NULL, "value", CI_PERCENT, 0.02, 1.0,
	 "The GPU time of the work in each NVTX range.",
	 "To judge one range more strictly, add a line: range(NAME) > 2%"},
	{"launches", "total", "launches", "count", CI_NO_MORE, 0, 0,
	 "The number of kernel launches. It grows if a fusion or a CUDA graph is lost.",
	 "If a change needs more launches, update the baseline with it."},
	{"copies", "total", "copies", "count", CI_NO_MORE, 0, 0,
	 "The number of copies and memsets.",
	 "If a change needs more copies, update the baseline with it."},
	{"bytes", "total", "bytes", "value", CI_NO_MORE, 0, 0, "The bytes of copies and memsets.",
	 "If a change moves more data, update the baseline with it."},
	{"waits", "total", "waits", "count", CI_NO_MORE, 0, 0,
	 "The number of calls that wait for the GPU, such as synchronisations.",
	 "If a change needs to wait more often, update the baseline with it."},
	{"call(*).count", "call", NULL, "count", CI_NO_MORE, 0, 0,
	 "The number of calls that wait, allocate or free, for each call path.",
	 "If a change needs more of them, update the baseline with it."},
	{"peak-memory", "total", "peak-memory", "value", CI_PERCENT, 0.05, 1.0,
	 "The peak of the GPU memory.", "Lower the limit if memory is scarce."},
	{"wall", "total", "wall", "value", CI_COMMENTED, 0.05, 1.0,
	 "The elapsed time. It also depends on the CPU and on other programs of the machine.",
	 "It is no rule by default. Remove '# ' from the next line to use it."},
};

/* Limits that people would choose, as ratios. */
static const double nice_limits[] = {0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12,
				     0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.75, 1.0};

double ci_limit(const struct ci_rule *rule, const struct ci_measured *measured)
{
	double wanted = fmax(measured->needed * MARGIN, rule->least);

	for (size_t i = 0; i < sizeof(nice_limits) / sizeof(nice_limits[0]); i++)
		if (nice_limits[i] >= wanted && nice_limits[i] <= rule->most)
			return nice_limits[i];
	return INFINITY;
}

/* "0.35 %", or "unknown". */
static const char *percent(char out[PERCENT_BYTES], double ratio)
{
	if (!isfinite(ratio))
		return "unknown";
	snprintf(out, PERCENT_BYTES, "%.*f %%", ratio < 0.1 ? 2 : 0, ratio * 100.0);
	return out;
}

static void put_measured(FILE *out, const struct ci_rule *rule, const struct ci_measured *measured)
{
	char low[PERCENT_BYTES], high[PERCENT_BYTES];

	fprintf(out, "# - measured: smallest detectable change %s", percent(low, measured->low));
	if (measured->high > measured->low)
		fprintf(out, " to %s", percent(high, measured->high));
	if (!rule->key)
		fprintf(out, ", in %zu row%s", measured->row_count,
			measured->row_count == 1 ? "" : "s");
	fputc('\n', out);
}

/* Explains where the limit comes from. */
static void put_reason(FILE *out, const struct ci_rule *rule, const struct ci_measured *measured)
{
	double wanted = measured->needed * MARGIN;
	char needed[PERCENT_BYTES];

	fprintf(out, "# - limit: %g times %s, rounded up", MARGIN,
		percent(needed, measured->needed));
	if (wanted < rule->least)
		fprintf(out, "; at least %g %%", rule->least * 100.0);
	else if (measured->needed < measured->high)
		fputs(", which suits most of the GPU time", out);
	fputc('\n', out);
}

/* A rule with a limit that was learned. */
static void put_limit(FILE *out, const struct ci_rule *rule, const struct ci_measured *measured)
{
	double limit = ci_limit(rule, measured);

	put_measured(out, rule, measured);
	if (isinf(limit)) {
		fputs("# - no rule: the runs vary too much for a useful limit\n", out);
		return;
	}
	put_reason(out, rule, measured);
	fprintf(out, "# %s\n%s%s > %g%%\n", rule->remedy, rule->limit == CI_COMMENTED ? "# " : "",
		rule->subject, limit * 100.0);
}

/* A rule about a number that may not grow. */
static void put_no_more(FILE *out, const struct ci_rule *rule, const struct ci_measured *measured)
{
	if (!measured->is_constant) {
		fputs("# - measured: differs between runs of the same program\n"
		      "# - no rule: an increase would not show a regression\n",
		      out);
		return;
	}
	fprintf(out,
		"# - measured: equal in all runs\n"
		"# - limit: no increase\n"
		"# %s\n%s > 0\n",
		rule->remedy, rule->subject);
}

static void put_head(FILE *out, const struct ci_setup *setup, const struct ci_learned *learned)
{
	char gpu[PERCENT_BYTES], wall[PERCENT_BYTES];

	fprintf(out,
		"# Rules for the GPU time of this program. A rule fails if the change is "
		"significant and\n"
		"# exceeds the limit. The manual page xtrace-diff(1) defines the language.\n"
		"#\n"
		"# 'xtrace ci init' recorded two sets of %u runs of the same program%s. It "
		"learned\n"
		"# the limits from the difference between the sets. Learn them again if the GPU or "
		"the\n"
		"# program changes much: xtrace ci init %s --force -- COMMAND\n"
		"#\n"
		"# Spread of all runs, (longest - shortest) / median: GPU time %s, elapsed time "
		"%s.\n",
		setup->runs, setup->is_simulated ? " on the simulated GPU" : "", setup->host->name,
		percent(gpu, learned->gpu_spread), percent(wall, learned->wall_spread));
}

void ci_rules_write(FILE *out, const struct ci_setup *setup, const struct ci_learned *learned)
{
	put_head(out, setup, learned);
	for (size_t i = 0; i < CI_RULE_COUNT; i++) {
		const struct ci_rule *rule = &ci_rules[i];
		const struct ci_measured *measured = &learned->rules[i];

		if (!measured->row_count)
			continue;
		fprintf(out, "\n# %s\n", rule->meaning);
		if (rule->limit == CI_NO_MORE)
			put_no_more(out, rule, measured);
		else
			put_limit(out, rule, measured);
	}
}
