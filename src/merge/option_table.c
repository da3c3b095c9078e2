/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that are not outputs, and how to parse their values.
 */
#include "merge/option_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/options.h"
#include "merge/sums/exporter.h"

#define TOP_MAX	 1000000
#define JOBS_MAX 1000

#define SIZE_UNITS_MAX 1000000

static struct settings *settings_of(void *context)
{
	return &((struct options *)context)->settings;
}

static int apply_python(void *context, const struct option_row *row, const char *value)
{
	static const enum python_shown order[] = {PYTHON_MIXED, PYTHON_FULL, PYTHON_ONLY,
						  PYTHON_OFF};
	unsigned position;
	struct option_row words = {.value = row->value};
	int error = option_word(&position, &words, value);

	if (!error)
		settings_of(context)->frames.python = order[position];
	return error;
}

static int apply_full_names(void *context, const struct option_row *row, const char *value)
{
	(void)row;
	(void)value;
	settings_of(context)->names = DEMANGLE_FULL;
	return 0;
}

static int apply_finding(void *context, const struct option_row *row, const char *value)
{
	(void)row;
	if (!finding_parse(((struct options *)context)->finding_shares, value))
		return 0;
	print_error("cannot use '%s' for --finding: it must be %s", value, finding_usage());
	return -ENOENT;
}

/* "all" and the names of the rules. */
static const char *finding_key(size_t i)
{
	return !i ? "all" : i <= RULES ? rule_specs[i - 1].name : NULL;
}

/* "200K", "10M" */
static int apply_html_size(void *context, const struct option_row *row, const char *value)
{
	char *end;
	unsigned long long size;

	(void)row;
	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	size = strtoull(value, &end, 10);
	if ((strcmp(end, "K") && strcmp(end, "M")) || !size || size > SIZE_UNITS_MAX)
		return -EINVAL;
	settings_of(context)->html_bytes_max = size * (end[0] == 'K' ? 1000 : 1000000);
	return 0;
}

static int apply_warmup(void *context, const struct option_row *row, const char *value)
{
	settings_of(context)->iterations.has_warmup = true;
	return option_number(context, row, value);
}

#define TARGET(member)	.offset = offsetof(struct options, member)
#define PATTERN(number) .apply = option_text, TARGET(settings.wanted.patterns[number])
#define A_REGEX		.value = "REGEX", .expected = "a regular expression that is not empty"
#define A_TIME		.value = "TIME", .expected = "a time such as 1.5s, 200ms, 30us or 7ns"

const struct option_row merge_option_rows[] = {
	{"unit", .value = "ns|us", .help = "Set the unit of time in folded stacks (default: ns)",
	 .uses = USES_UNIT, .is_single = true, .apply = option_word, TARGET(settings.unit)},
	{"weight",
	 .value = "gpu-time|count|cpu-wait|gpu-exclusive|gpu-idle|alloc-bytes|peak-bytes|"
		  "leaked-bytes|cpu-time|off-cpu|collective-wait|"
		  "collective-cause|untimed-launches",
	 .help = "Weight folded stacks, the flame graph and the tree of --text by GPU time "
		 "(default), number of kernels, copies and memsets, CPU wait time, GPU time shared "
		 "among overlapping work, GPU idle time by cause, bytes allocated, live at the "
		 "peak, or never freed, time of host threads on and off a CPU (recorded with "
		 "--cpu), of several ranks, where they wait in collectives and what makes them "
		 "wait, or launches of kernels in CUDA graphs recorded as a whole",
	 .uses = USES_WEIGHT, .is_single = true, .apply = option_word, TARGET(settings.weight)},
	{"by", .value = "none|device|stream|thread|process|rank",
	 .help = "Group call paths by this at the root. The default, none, merges identical "
		 "paths of several processes",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word, TARGET(settings.by)},
	{"graph-stacks", .value = "both|replay|capture",
	 .help = "Show CUDA graph work below the call path that launched the graph (replay), the "
		 "one that created the node (capture), or the first followed by the second "
		 "(default: both)",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, .apply = option_word,
	 TARGET(settings.graph_stacks)},
	{"nvtx", .value = "frames|roots|off",
	 .help = "Show NVTX ranges among the frames (default), above all frames, or not at all",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word, TARGET(settings.nvtx)},
	{"python", .value = "mixed|full|only|off",
	 .help = "Show Python frames among the native frames, without those of the interpreter "
		 "(default: mixed) or with them (full). Show only the Python frames (only), or "
		 "none "
		 "(off)",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, .apply = apply_python},
	{"backward", .value = "forward|engine|both",
	 .help = "Show launches of PyTorch's backward pass below the forward line that created "
		 "their autograd node (forward), below the autograd engine that launched them "
		 "(engine), or the first followed by the second (default: forward)",
	 .uses = USES_PATHS, .is_single = true, .apply = option_word,
	 TARGET(settings.frames.backward)},
	{"inline", .value = "on|off",
	 .help = "Show inlined functions as frames of their own (default: on). Needs debug "
		 "information",
	 .is_single = true, .apply = option_switch, TARGET(settings.frames.inlines)},
	{"lines", .value = "on|off",
	 .help = "Show the source line of each frame, as in \"f (file.c:12)\" (default: off). "
		 "Needs "
		 "debug information",
	 .is_single = true, .apply = option_switch, TARGET(settings.frames.lines)},
	{"full-names",
	 .help = "Print functions and kernels with all parameters and template arguments",
	 .apply = apply_full_names},
	{"debug-dir", .value = "DIR",
	 .help = "Search DIR for debug files of stripped binaries, before /usr/lib/debug",
	 .expected = "a directory", .is_single = true, .apply = option_text,
	 TARGET(settings.debug_directory)},
	{"top", .value = "N", .help = "Limit each table to N rows (default: 10, 1000 in --summary)",
	 .uses = USES_TOP, .is_single = true, .apply = option_number, TARGET(settings.top_count),
	 .min = 1, .max = TOP_MAX},
	{"finding", .value = "RULE=PERCENT",
	 .help = "Report findings of RULE that cost at least PERCENT of the active time "
		 "(docs/FINDINGS.md lists the rules). RULE=off hides a rule. all means every rule. "
		 "May be repeated",
	 .uses = USES_FINDINGS, .apply = apply_finding, .key = finding_key},
	{"html-size", .value = "SIZE",
	 .help = "Limit the size of the HTML report, as in 200K or 5M (default: 10M). To meet the "
		 "limit, the shortest single events are left out, then the smallest call paths "
		 "merged",
	 .expected = "a size such as 200K or 10M", .uses = USES_SIZE, .is_single = true,
	 .apply = apply_html_size},
	{"from", A_TIME,
	 .help = "Include only what starts at TIME or later: 1.5s (or 1.5), 200ms, 30us or 7ns "
		 "after "
		 "the start of the first log",
	 .uses = USES_ANY, .is_single = true, .apply = option_time,
	 TARGET(settings.wanted.from_ns)},
	{"to", A_TIME, .help = "Include only what starts before TIME", .uses = USES_ANY,
	 .is_single = true, .apply = option_time, TARGET(settings.wanted.until_ns)},
	{"range", A_REGEX,
	 .help = "Include only calls inside an NVTX range whose name matches (POSIX extended)",
	 .uses = USES_ANY, .is_single = true, PATTERN(PATTERN_RANGE)},
	{"filter", A_REGEX, .help = "Include only call paths with a frame that matches",
	 .uses = USES_ANY, .is_single = true, PATTERN(PATTERN_FILTER)},
	{"focus", A_REGEX,
	 .help = "Include only call paths with a frame that matches, and start them at the "
		 "outermost "
		 "such frame",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, PATTERN(PATTERN_FOCUS)},
	{"hide", A_REGEX, .help = "Remove matching frames from call paths",
	 .uses = USES_PATHS | USES_GRAPH_STACKS, .is_single = true, PATTERN(PATTERN_HIDE)},
	{"my-code", A_REGEX,
	 .help = "Count as your own code only frames whose file matches (default: all but "
		 "installed "
		 "libraries)",
	 .uses = USES_ANY, .is_single = true, .apply = option_text,
	 TARGET(settings.frames.user_files)},
	{"redact",
	 .help = "Replace folders of private files, host names, GPU identifiers and arguments of "
		 "programs, to share the output",
	 .apply = option_flag, TARGET(settings.is_redacted)},
	{"iteration", .value = "NAME",
	 .help = "Treat each instance of this NVTX range as one iteration of a profile (default: "
		 "detected)",
	 .expected = "a name", .uses = USES_ITERATIONS, .is_single = true, .apply = option_text,
	 TARGET(settings.iterations.iteration)},
	{"warmup", .value = "COUNT",
	 .help = "Ignore the first COUNT iterations in a profile (default: detected)",
	 .uses = USES_ITERATIONS, .is_single = true, .apply = apply_warmup,
	 TARGET(settings.iterations.warmup_count), .max = UINT32_MAX},
	{"jobs", .value = "N",
	 .help = "Read logs with up to N threads, at most four for each log (default: number of "
		 "processors)",
	 .is_single = true, .apply = option_number, TARGET(settings.jobs), .min = 1,
	 .max = JOBS_MAX},
	{"embed-symbols",
	 .help = "Append the function names of all stacks to each log, so that other machines can "
		 "read it without the binaries",
	 .apply = option_flag, TARGET(embed_symbols)},
	{"torch-trace", .value = "DIR",
	 .help = "Read PyTorch's structured logs from DIR when embedding symbols (default: the "
		 "directory of each log). They name the source lines of torch.compile's code",
	 .expected = "a directory", .is_single = true, .apply = option_text, TARGET(torch_trace)},
	{"no-recover",
	 .help = "Leave the recovery files (*.spool) of killed processes alone, instead of adding "
		 "their events to the logs",
	 .apply = option_flag, TARGET(no_recover)},
	{"completion", .value = "bash|zsh", .help = "Print shell completion and exit",
	 .is_single = true, .apply = option_text, TARGET(completion)},
	{0},
};
