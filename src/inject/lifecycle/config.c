/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the settings. Runs in the thread that starts the tracer.
 */
#include "inject/lifecycle/config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"

#define AUDIT_INTERVAL_DEFAULT 16384

/* The value of a variable; NULL if it is not set or empty. */
static const char *wanted(const char *name)
{
	const char *value = setting(name);

	return value && *value ? value : NULL;
}

static void read_path(const char *name, const char *fallback, char *out)
{
	const char *value = wanted(name);

	snprintf(out, PATH_MAX, "%s", value ? value : fallback);
}

/* The program may change its working directory; the log must not move. */
static void make_absolute(char *path)
{
	char cwd[PATH_MAX], joined[PATH_MAX];

	if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return;
	if (snprintf(joined, sizeof(joined), "%s/%s", cwd, path) < (int)sizeof(joined))
		strcpy(path, joined);
}

static void find_own_directory(char *out)
{
	Dl_info info;
	char *slash;

	out[0] = '\0';
	if (!dladdr((void *)(uintptr_t)config_read, &info) || !info.dli_fname)
		return;
	if (!realpath(info.dli_fname, out))
		snprintf(out, PATH_MAX, "%s", info.dli_fname);
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
	else
		strcpy(out, ".");
}

static void reject(const char *name, const char *why)
{
	log_message("cannot use %s=%s: %s", name, setting(name), why);
}

/* The index of the variable's value in a list of words. */
static int read_choice(const char *name, const char *const *words, size_t count, int fallback,
		       const char *advice)
{
	const char *value = wanted(name);

	if (!value)
		return fallback;
	for (size_t i = 0; i < count; i++)
		if (words[i] && !strcmp(value, words[i]))
			return (int)i;
	reject(name, advice);
	return fallback;
}

static enum api_level read_api_level(void)
{
	static const char *const names[] = {
		[API_LEVEL_LAUNCH] = "launch", [API_LEVEL_WORK] = "work", [API_LEVEL_ALL] = "all"};

	return read_choice("XTRACE_API", names, sizeof(names) / sizeof(*names), API_LEVEL_WORK,
			   "choose launch, work or all; using work");
}

/* Whether graphs with conditional nodes are recorded node by node, too. */
static bool read_graph_detail(void)
{
	static const char *const names[] = {"auto", "node"};

	return read_choice("XTRACE_GRAPH_DETAIL", names, sizeof(names) / sizeof(*names), 0,
			   "choose auto or node; using auto") == 1;
}

static enum start_mode read_start(void)
{
	static const char *const names[] = {[START_PAUSED] = "paused",
					    [START_ARMED] = "armed",
					    [START_ARMED_GRAPHS] = "armed-graphs"};

	return read_choice("XTRACE_START", names, sizeof(names) / sizeof(*names), START_RECORDING,
			   "choose paused, armed or armed-graphs; recording from the start");
}

/* Whether the variable has its only valid value. */
static bool read_word(const char *name, const char *word, const char *advice)
{
	return read_choice(name, &word, 1, -1, advice) == 0;
}

/* On unless it says off or 0. */
static bool read_switch(const char *name)
{
	static const char *const words[] = {"off", "on", "0", "1"};

	return read_choice(name, words, 4, 1, "choose on or off; using on") % 2;
}

/* False if the value is not a number within these bounds. */
static bool parse_number(const char *value, unsigned long from, unsigned long to, uint32_t *out)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);

	if (*end || number < from || number > to || *value == '-')
		return false;
	*out = (uint32_t)number;
	return true;
}

static void read_cpu(unsigned *hz)
{
	const char *value = wanted("XTRACE_CPU");

	if (value && strcmp(value, "off") != 0 && !parse_number(value, 1, 1000, hz))
		reject("XTRACE_CPU",
		       "not off, or a number of samples per second from 1 to 1000; using off");
}

static void read_max_size(struct xt_size_bound *bound)
{
	const char *value = wanted("XTRACE_MAX_SIZE");

	*bound = (struct xt_size_bound){0};
	if (value && !xt_size_bound_parse(value, bound))
		reject("XTRACE_MAX_SIZE",
		       "not a size of 256K or more, such as 500M, 2G or 2G:newest; using no limit");
}

static void read_flight_recorder(struct xt_size_bound *bound)
{
	const char *value = wanted("XTRACE_FLIGHT_RECORDER");
	struct xt_size_bound parsed;

	if (!value)
		return;
	if (!xt_flight_recorder_parse(value, &parsed)) {
		reject("XTRACE_FLIGHT_RECORDER",
		       "not a time of 1s or more, such as 30s, or a size of 256K or more, such as "
		       "200M; recording everything");
		return;
	}
	if (bound->bytes)
		log_message("cannot use both XTRACE_MAX_SIZE and XTRACE_FLIGHT_RECORDER; ignoring "
			    "the first");
	*bound = parsed;
}

/* A removed option must not record more than wanted in silence. */
static void report_removed(void)
{
	static const struct {
		const char *name, *instead;
	} removed[] = {
		{"XTRACE_DUTY", "XTRACE_FLIGHT_RECORDER, or XTRACE_START=armed with xtrace start "
				"--duration"},
		{"XTRACE_MAX_OVERHEAD", "XTRACE_PYTHON=off or XTRACE_API=launch"},
	};

	for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++)
		if (wanted(removed[i].name))
			log_message("ignoring %s: it was removed; use %s", removed[i].name,
				    removed[i].instead);
}

static void read_triggers(struct config *config)
{
	const char *value = wanted("XTRACE_SNAPSHOT_ON");
	int count;

	if (!value)
		return;
	snprintf(config->trigger_text, sizeof(config->trigger_text), "%s", value);
	count = xt_snapshot_triggers_parse(config->trigger_text, config->triggers);
	if (count < 0)
		reject("XTRACE_SNAPSHOT_ON", "not a list such as range:NAME>500ms,iteration>3x,"
					     "hang>10s,error,oom; ignored");
	else
		config->trigger_count = (uint32_t)count;
}

static void read_snapshot_limits(struct snapshot_limits *limits)
{
	const char *interval = wanted("XTRACE_SNAPSHOT_INTERVAL");
	const char *count = wanted("XTRACE_SNAPSHOT_MAX");

	*limits = (struct snapshot_limits){XT_SNAPSHOT_INTERVAL_NS, XT_SNAPSHOT_COUNT_MAX};
	if (interval && !xt_time_parse(interval, strlen(interval), &limits->interval_ns))
		reject("XTRACE_SNAPSHOT_INTERVAL", "not a time such as 60s; using 60s");
	if (count && !parse_number(count, 0, UINT32_MAX, &limits->count_max))
		log_message("cannot use XTRACE_SNAPSHOT_MAX=%s: not a number; using %u", count,
			    XT_SNAPSHOT_COUNT_MAX);
}

bool config_read(struct config *config)
{
	const char *audit;
	char *end;

	if (getauxval(AT_SECURE))
		return false;
	read_path("XTRACE_DATA", "xtrace.data", config->data_dir);
	make_absolute(config->data_dir);
	read_path("XTRACE_CUPTI", "", config->cupti_path);
	find_own_directory(config->library_dir);
	debug_log_enable(setting("XTRACE_DEBUG"));
	process_ranks_read();
	config->python = read_switch("XTRACE_PYTHON");
	config->autograd = read_switch("XTRACE_AUTOGRAD");
	config->modules = config->python && read_switch("XTRACE_MODULES");
	config->limits_modules = !wanted("XTRACE_MODULES");
	config->api_level = read_api_level();
	config->start = read_start();
	config->forces_graph_nodes = read_graph_detail();
	if (config->forces_graph_nodes)
		log_message("CUDA graphs with conditional nodes can make the program fail "
			    "(--graph-detail node)");
	config->follows_profiler = read_word("XTRACE_CAPTURE_RANGE", "cudaProfilerApi",
					     "the only value is cudaProfilerApi; ignored");
	if (config->follows_profiler && config->start != START_RECORDING) {
		log_message("cannot use XTRACE_START and XTRACE_CAPTURE_RANGE together; using "
			    "XTRACE_CAPTURE_RANGE");
		config->start = START_RECORDING;
	}
	read_max_size(&config->size_limit);
	read_flight_recorder(&config->size_limit);
	report_removed();
	read_triggers(config);
	read_snapshot_limits(&config->snapshots);
	read_cpu(&config->cpu_hz);
	config->yields = read_switch("XTRACE_YIELD");
	audit = wanted("XTRACE_AUDIT");
	config->audit_interval =
		audit ? (uint32_t)strtoul(audit, &end, 10) : AUDIT_INTERVAL_DEFAULT;
	if (audit && *end) {
		log_message("cannot use XTRACE_AUDIT=%s: not a number; using %u", audit,
			    AUDIT_INTERVAL_DEFAULT);
		config->audit_interval = AUDIT_INTERVAL_DEFAULT;
	}
	return true;
}
