/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that are no outputs: what each is called, what it does, and which outputs it matters to.
 */
#include "merge/option_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_WORDS                                                                               \
	"gpu-time|count|cpu-wait|gpu-exclusive|gpu-idle|alloc-bytes|peak-bytes|leaked-bytes"

#define TOP_MAX	 1000000
#define JOBS_MAX 1000

#define SIZE_UNITS_MAX 1000000

static int apply_unit(struct options *options, const char *value)
{
	if (strcmp(value, "ns") && strcmp(value, "us"))
		return -EINVAL;
	options->settings.unit = !strcmp(value, "us") ? UNIT_US : UNIT_NS;
	return 0;
}

static int apply_weight(struct options *options, const char *value)
{
	for (int w = 0; w < WEIGHTS; w++) {
		if (strcmp(weight_specs[w].name, value))
			continue;
		options->settings.weight = (enum weight)w;
		return 0;
	}
	return -EINVAL;
}

/* The place of value in words, which NULL ends; -EINVAL if it is not among them. */
static int place_of(const char *const *words, const char *value)
{
	for (int w = 0; words[w]; w++)
		if (!strcmp(words[w], value))
			return w;
	return -EINVAL;
}

static int apply_graph_stacks(struct options *options, const char *value)
{
	static const char *const words[] = {
		[GRAPH_STACKS_BOTH] = "both",
		[GRAPH_STACKS_REPLAY] = "replay",
		[GRAPH_STACKS_CAPTURE] = "capture",
		NULL,
	};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.graph_stacks = (enum graph_stacks)place;
	return 0;
}

static int apply_nvtx(struct options *options, const char *value)
{
	static const char *const words[] = {
		[NVTX_FRAMES] = "frames", [NVTX_ROOTS] = "roots", [NVTX_OFF] = "off", NULL};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.nvtx = (enum nvtx)place;
	return 0;
}

static int apply_python(struct options *options, const char *value)
{
	static const char *const words[] = {[PYTHON_MIXED] = "mixed",
					    [PYTHON_ONLY] = "only",
					    [PYTHON_OFF] = "off",
					    [PYTHON_FULL] = "full",
					    NULL};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.frames.python = (enum python_shown)place;
	return 0;
}

static int apply_by(struct options *options, const char *value)
{
	static const char *const words[] = {"device", "stream", "thread", "process", "none", NULL};
	int place = place_of(words, value);

	if (place < 0)
		return place;
	options->settings.by = (enum by)(BY_DEVICE + place);
	return 0;
}

static int apply_switch(bool *place, const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return -EINVAL;
	*place = !strcmp(value, "on");
	return 0;
}

static int apply_inline(struct options *options, const char *value)
{
	return apply_switch(&options->settings.frames.inlines, value);
}

static int apply_lines(struct options *options, const char *value)
{
	return apply_switch(&options->settings.frames.lines, value);
}

static int apply_full_names(struct options *options, const char *value)
{
	(void)value;
	options->settings.names = DEMANGLE_FULL;
	return 0;
}

static int apply_debug_dir(struct options *options, const char *value)
{
	options->settings.debug_directory = value;
	return value[0] ? 0 : -EINVAL;
}

/* From 1 to max. */
static int read_number(const char *value, unsigned long max, uint32_t *number_out)
{
	unsigned long number;
	char *end;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	number = strtoul(value, &end, 10);
	if (*end || !number || number > max)
		return -EINVAL;
	*number_out = (uint32_t)number;
	return 0;
}

static int apply_finding(struct options *options, const char *value)
{
	return finding_parse(options->settings.finding_shares, value);
}

/* "200K", "10M" */
static int apply_html_size(struct options *options, const char *value)
{
	char *end;
	unsigned long long size;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	size = strtoull(value, &end, 10);
	if ((strcmp(end, "K") && strcmp(end, "M")) || !size || size > SIZE_UNITS_MAX)
		return -EINVAL;
	options->settings.html_bytes_max = size * (end[0] == 'K' ? 1000 : 1000000);
	return 0;
}

static int apply_top(struct options *options, const char *value)
{
	return read_number(value, TOP_MAX, &options->settings.top_count);
}

static int apply_jobs(struct options *options, const char *value)
{
	return read_number(value, JOBS_MAX, &options->settings.jobs);
}

/* "1.5s", "200ms", "30us", "7ns"; without a unit, seconds. */
static int parse_time(const char *value, uint64_t *ns_out)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double number;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	number = strtod(value, &end);
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (strcmp(end, units[u].name) || !(number * units[u].ns < (double)INT64_MAX))
			continue;
		*ns_out = (uint64_t)(number * units[u].ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

static int apply_from(struct options *options, const char *value)
{
	return parse_time(value, &options->settings.wanted.from_ns);
}

static int apply_to(struct options *options, const char *value)
{
	return parse_time(value, &options->settings.wanted.until_ns);
}

static int apply_filter(struct options *options, const char *value)
{
	options->settings.wanted.patterns[PATTERN_FILTER] = value;
	return value[0] ? 0 : -EINVAL;
}

static int apply_focus(struct options *options, const char *value)
{
	options->settings.wanted.patterns[PATTERN_FOCUS] = value;
	return value[0] ? 0 : -EINVAL;
}

static int apply_hide(struct options *options, const char *value)
{
	options->settings.wanted.patterns[PATTERN_HIDE] = value;
	return value[0] ? 0 : -EINVAL;
}

static int apply_range(struct options *options, const char *value)
{
	options->settings.wanted.patterns[PATTERN_RANGE] = value;
	return value[0] ? 0 : -EINVAL;
}

static int apply_iteration(struct options *options, const char *value)
{
	options->settings.iterations.iteration = value;
	return value[0] ? 0 : -EINVAL;
}

static int apply_warmup(struct options *options, const char *value)
{
	char *end;
	unsigned long count;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	count = strtoul(value, &end, 10);
	if (*end || count > UINT32_MAX)
		return -EINVAL;
	options->settings.iterations.warmup_count = (uint32_t)count;
	options->settings.iterations.has_warmup = true;
	return 0;
}

static int apply_embed_symbols(struct options *options, const char *value)
{
	(void)value;
	options->embed_symbols = true;
	return 0;
}

static int apply_no_recover(struct options *options, const char *value)
{
	(void)value;
	options->no_recover = true;
	return 0;
}

static int apply_completion(struct options *options, const char *value)
{
	if (strcmp(value, "bash") && strcmp(value, "zsh"))
		return -EINVAL;
	options->completion = value;
	return 0;
}

static int apply_quiet(struct options *options, const char *value)
{
	(void)value;
	options->quiet = true;
	return 0;
}

static int apply_version(struct options *options, const char *value)
{
	(void)value;
	options->version = true;
	return 0;
}

static int apply_help(struct options *options, const char *value)
{
	(void)value;
	options->help = true;
	return 0;
}

const struct option_row option_rows[] = {
	{"unit", 0, "ns|us", "unit of time in folded stacks (ns)", USES_UNIT, apply_unit},
	{"weight", 0, WEIGHT_WORDS,
	 "what folded stacks, the flame graph and the tree of --text are weighted by: GPU time "
	 "(the default), the "
	 "number of kernels, "
	 "copies "
	 "and sets, time that the CPU waited, GPU time that overlapping work shares, GPU idle time "
	 "and why, bytes allocated, held at the peak, or never freed",
	 USES_WEIGHT, apply_weight},
	{"by", 0, "device|stream|thread|process|none",
	 "what stands at the root of call paths (the process, if there are several)", USES_PATHS,
	 apply_by},
	{"graph-stacks", 0, "both|replay|capture",
	 "which call paths the work of a CUDA graph stands below: the one that launched the graph, "
	 "the one that made the node, or the one and then the other (both)",
	 USES_PATHS | USES_GRAPH_STACKS, apply_graph_stacks},
	{"nvtx", 0, "frames|roots|off",
	 "NVTX ranges in call paths: at their place among the frames, before all of them, or not "
	 "(frames)",
	 USES_PATHS, apply_nvtx},
	{"python", 0, "mixed|full|only|off",
	 "Python frames in call paths: among the native ones, without the interpreter's own "
	 "(mixed) or with these (full); without any native ones (only); or no Python frames (off)",
	 USES_PATHS | USES_GRAPH_STACKS, apply_python},
	{"inline", 0, "on|off",
	 "functions that the compiler inlined, as frames of their own (on); that needs debug "
	 "information",
	 0, apply_inline},
	{"lines", 0, "on|off",
	 "the line that each frame stands at, \"f (file.c:12)\", from debug information (off)", 0,
	 apply_lines},
	{"full-names", 0, NULL,
	 "names of functions and kernels with all parameters and template arguments, however long",
	 0, apply_full_names},
	{"debug-dir", 0, "DIR",
	 "where the debug files of stripped programs are, before /usr/lib/debug", 0,
	 apply_debug_dir},
	{"top", 0, "N", "rows of each table (10 in text, 1000 in --summary)", USES_TOP, apply_top},
	{"finding", 0, "RULE=PERCENT",
	 "findings of that rule must cost so much of the time at work (docs/FINDINGS.md names the "
	 "rules and "
	 "their shares), RULE=off: they are not told of; may be given for several rules, all is "
	 "each of them",
	 USES_FINDINGS, apply_finding},
	{"html-size", 0, "SIZE",
	 "the most that the report may take (10M): beyond that the smallest call paths are one; "
	 "200K, 5M",
	 USES_SIZE, apply_html_size},
	{"from", 0, "TIME",
	 "only what begins at that time or later: 1.5s (or 1.5), 200ms, 30us, 7ns from the start "
	 "of the first log on",
	 USES_ANY, apply_from},
	{"to", 0, "TIME", "only what begins before that time", USES_ANY, apply_to},
	{"range", 0, "REGEX",
	 "only what was called in an NVTX range that matches (POSIX extended), or within one",
	 USES_ANY, apply_range},
	{"filter", 0, "REGEX", "only call paths with a frame that matches", USES_ANY, apply_filter},
	{"focus", 0, "REGEX",
	 "only call paths with a frame that matches, from the outermost such frame on",
	 USES_PATHS | USES_GRAPH_STACKS, apply_focus},
	{"hide", 0, "REGEX", "leave frames that match out of call paths",
	 USES_PATHS | USES_GRAPH_STACKS, apply_hide},
	{"iteration", 0, "NAME",
	 "the NVTX range whose instances are the iterations of a profile (found out, if not given)",
	 USES_ITERATIONS, apply_iteration},
	{"warmup", 0, "COUNT",
	 "the first iterations, of which a profile takes no notice (found out, if not given)",
	 USES_ITERATIONS, apply_warmup},
	{"jobs", 0, "N",
	 "how many logs are read at the same time, 8 at most, where outputs and options allow it "
	 "(as many as there are processors)",
	 0, apply_jobs},
	{"embed-symbols", 0, NULL,
	 "append the names of all functions in the stacks to each log, so that it can be read "
	 "where the binaries are not",
	 0, apply_embed_symbols},
	{"no-recover", 0, NULL,
	 "leave the spools of killed processes alone, instead of putting what is in them into the "
	 "logs",
	 0, apply_no_recover},
	{"completion", 0, "bash|zsh", "print completion for that shell and exit", 0,
	 apply_completion},
	{"quiet", 'q', NULL, "no warnings on stderr, only errors", 0, apply_quiet},
	{"version", 'V', NULL, "print the version and exit", 0, apply_version},
	{"help", 'h', NULL, "print this help and exit", 0, apply_help},
};
const size_t option_count = sizeof(option_rows) / sizeof(option_rows[0]);
