/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that choose what is recorded, as environment variables. xtrace env prints them, so that a
 * program records itself: for containers, batch scripts and services.
 */
#include "capture_options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "commands.h"
#include "data_dir.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "sample.h"

static int apply_size(void *context, const struct option_row *row, const char *value)
{
	struct xt_size_bound bound;

	return xt_size_bound_parse(value, &bound) ? option_text(context, row, value) : -EINVAL;
}

static int apply_flight_recorder(void *context, const struct option_row *row, const char *value)
{
	struct xt_size_bound bound;

	return xt_flight_recorder_parse(value, &bound) ? option_text(context, row, value) : -EINVAL;
}

static int apply_interval(void *context, const struct option_row *row, const char *value)
{
	uint64_t interval_ns;

	return xt_time_parse(value, strlen(value), &interval_ns) ? option_text(context, row, value)
								 : -EINVAL;
}

/* Whether a list has a trigger of earlier versions. Then an error was printed. */
static bool has_removed_trigger(const char *list)
{
	static const struct {
		const char *start, *instead;
	} removed[] = {
		{"iteration:", "range:NAME>LIMIT"},
		{"idle>", "iteration>LIMIT or hang>TIME"},
	};

	for (size_t r = 0; r < sizeof(removed) / sizeof(*removed); r++) {
		const char *found = strstr(list, removed[r].start);

		if (!found || (found != list && found[-1] != ','))
			continue;
		print_error("cannot use '%s' for --snapshot-on: this trigger was removed; use %s",
			    found, removed[r].instead);
		return true;
	}
	return false;
}

/* Collects the triggers of all options, as the variable lists them. */
static int apply_trigger(void *context, const struct option_row *row, const char *value)
{
	static char all[XT_SNAPSHOT_TEXT_BYTES];
	struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
	size_t length = strlen(all);

	if (xt_snapshot_triggers_parse(value, triggers) < 0)
		return has_removed_trigger(value) ? -ENOTSUP : -EINVAL;
	if (length + strlen(value) + 2 > sizeof(all))
		return -EINVAL;
	sprintf(all + length, "%s%s", length ? "," : "", value);
	if (xt_snapshot_triggers_parse(all, triggers) < 0) {
		print_error("cannot use --%s more than %d times", row->name,
			    XT_SNAPSHOT_TRIGGERS_MAX);
		return -E2BIG;
	}
	return option_text(context, row, all);
}

/* Checks the word, and stores it as text for the environment of the program. */
static int apply_word(void *context, const struct option_row *row, const char *value)
{
	const struct option_row word = {.value = row->value};
	unsigned position;
	int error = option_word(&position, &word, value);

	return error ? error : option_text(context, row, value);
}

/* The rate may be left out. */
static int apply_rate(void *context, const struct option_row *row, const char *value)
{
	return option_number(context, row, value ? value : CPU_SAMPLING_HZ);
}

/* --modules is the default, and takes precedence over the environment. */
static int apply_modules(void *context, const struct option_row *row, const char *value)
{
	(void)value;
	return option_text(context, row, begins_with(row->name, "no-") ? "off" : "on");
}

/* --armed or --armed=graphs. Stores the value of XTRACE_START. */
static int apply_armed(void *context, const struct option_row *row, const char *value)
{
	if (value && strcmp(value, "graphs") != 0)
		return -EINVAL;
	return option_text(context, row, value ? "armed-graphs" : "armed");
}

#define TARGET(member) .offset = offsetof(struct capture_options, member)

static const struct option_row capture_rows[] = {
	{"output", 'o', .value = "DIR", .expected = "a name that is not empty",
	 .help = "Write the trace to DIR (default: " DEFAULT_DATA_DIR ")", .apply = option_text,
	 TARGET(output)},
	{"simulate", 's', .help = "Run on the simulated GPU, on a machine without one",
	 .apply = option_flag, TARGET(simulates)},
	{"api", .value = "launch|work|all",
	 .help = "Record kernel and graph launches (launch), also copies, memsets, allocations, "
		 "frees, waits and modules (default: work), or also events, graph construction, "
		 "contexts and streams (all)",
	 .apply = apply_word, TARGET(api_level)},
	{"armed", .number = "=graphs", .expected = "--armed or --armed=graphs",
	 .help = "Do not record until 'xtrace start' asks for it, and cost almost nothing until "
		 "then. graphs: note who creates CUDA graphs, at some cost for each launch of one",
	 .apply = apply_armed, TARGET(armed)},
	{"paused",
	 .help = "Start paused, but with CUPTI enabled, which costs as much as recording. 'xtrace "
		 "start', or xtrace_gpu.recording() in the program, starts recording at once",
	 .apply = option_flag, TARGET(is_paused)},
	{"capture-range", .value = "cudaProfilerApi",
	 .help = "Record only between cudaProfilerStart() and cudaProfilerStop()",
	 .apply = apply_word, TARGET(capture_range)},
	{"cpu", .number = "HZ",
	 .help = "Also sample what each thread does, HZ times per second (default: " CPU_SAMPLING_HZ
		 "), in the program and the processes that it starts, until they end, also while "
		 "recording is stopped",
	 .apply = apply_rate, TARGET(cpu_hz), .min = 1, .max = CPU_SAMPLING_HZ_MAX,
	 .expected = "a number of samples per second from 1 to 1000"},
	{"python", .value = "on|off",
	 .help = "Record Python frames (default: on). --python of 'xtrace report' chooses how to "
		 "show them",
	 .apply = apply_word, TARGET(python)},
	{"no-modules",
	 .help = "Do not add the paths of PyTorch's modules, such as layers.3.self_attn.q_proj, to "
		 "the Python frames",
	 .apply = apply_modules, TARGET(modules)},
	{"modules", .is_hidden = true, .help = "Add them, whatever they cost",
	 .apply = apply_modules, TARGET(modules)},
	{"graph-detail", .value = "auto|node",
	 .help = "Record CUDA graphs kernel by kernel, but those with conditional nodes as a whole "
		 "(default: auto), or also those kernel by kernel (node), which can make the "
		 "program fail",
	 .apply = apply_word, TARGET(graph_detail)},
	{"no-yield",
	 .help = "Keep recording when the program's own profiler wants to use CUPTI, which keeps "
		 "that profiler out",
	 .apply = option_flag, TARGET(keeps_cupti)},
	{"max-size", .value = "SIZE",
	 .expected = "a size of 256K or more, such as 500M, 2G or 2G:newest",
	 .help = "Stop recording a process when its log reaches SIZE. SIZE:newest drops the oldest "
		 "part instead",
	 .apply = apply_size, TARGET(max_size)},
	{"flight-recorder", .value = "TIME|SIZE",
	 .expected = "a time of 1s or more, such as 30s, or a size of 256K or more, such as 200M",
	 .help = "Keep only the newest TIME or SIZE of events, and drop older ones. 'xtrace "
		 "snapshot' "
		 "saves them while recording continues",
	 .apply = apply_flight_recorder, TARGET(flight_recorder)},
	{"snapshot-on", .value = "TRIGGER",
	 .expected = "range:NAME>LIMIT, iteration>LIMIT, hang>TIME, error or oom, with a TIME such "
		     "as 500ms and a LIMIT such as 500ms or 3x",
	 .help = "Take a snapshot when an NVTX range takes longer than TIME (range:NAME>500ms) or "
		 "than a multiple of its median (range:NAME>3x), an iteration does "
		 "(iteration>3x), the GPU has work and finished nothing for longer (hang>10s), or "
		 "a CUDA call failed (error), or found no memory (oom). Several may be given",
	 .apply = apply_trigger, TARGET(snapshot_on)},
	{"snapshot-interval", .value = "TIME", .expected = "a time such as 60s",
	 .help = "Let triggers take at most one snapshot in TIME (default: 60s)",
	 .apply = apply_interval, TARGET(snapshot_interval)},
	{"snapshot-max", .value = "N", .expected = "a number from 1 to 100000",
	 .help = "Let triggers take at most N snapshots of a process (default: 20)",
	 .apply = option_number, TARGET(snapshot_max), .min = 1, .max = 100000},
	{0},
};

void capture_options_list(struct option_list *list)
{
	option_list_add(list, capture_rows);
}

int capture_check(const struct capture_options *options)
{
	if (!!options->armed + options->is_paused + !!options->capture_range <= 1)
		return STATUS_OK;
	print_error("choose one of --armed, --paused and --capture-range");
	return STATUS_FAILED;
}

int capture_find_parts(const struct capture_options *options, struct install_paths *paths)
{
	int error;

	if (options->flight_recorder && options->max_size) {
		print_error("choose one of --flight-recorder and --max-size");
		return STATUS_FAILED;
	}
	error = install_paths_find(paths);
	if (error) {
		print_error("cannot find libxtrace_inject.so in lib/ next to bin/: %s",
			    strerror(-error));
		return STATUS_FAILED;
	}
	if (options->simulates && access(paths->simulator, X_OK)) {
		print_error("cannot find the simulated GPU '%s': %m", paths->simulator);
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

/* The caller frees it. */
static char *before_search_path(const char *folder, const char *variable)
{
	const char *path = user_setting(variable);
	char *longer;

	return asprintf(&longer, "%s%s%s", folder, path ? ":" : "", path ? path : "") < 0 ? NULL
											  : longer;
}

void capture_environment_add(struct capture_environment *environment, const char *name,
			     const char *value)
{
	if (value)
		environment->entries[environment->count++] =
			(struct environment_entry){name, value};
}

int capture_environment_make(struct capture_environment *environment,
			     const struct capture_options *options,
			     const struct install_paths *paths, const char *data_dir)
{
	char *hz = environment->cpu_hz;
	const struct environment_entry rows[] = {
		{"CUDA_INJECTION64_PATH", paths->injected},
		{"NVTX_INJECTION64_PATH", paths->injected},
		{"XTRACE_DATA", data_dir},
		{"XTRACE_API", options->api_level},
		{"XTRACE_START", options->is_paused ? "paused" : options->armed},
		{"XTRACE_CAPTURE_RANGE", options->capture_range},
		{"XTRACE_CPU", options->cpu_hz ? hz : NULL},
		{"XTRACE_PYTHON", options->python},
		{"XTRACE_MODULES", options->modules},
		{"XTRACE_GRAPH_DETAIL", options->graph_detail},
		{"XTRACE_YIELD", options->keeps_cupti ? "off" : NULL},
		{"XTRACE_MAX_SIZE", options->max_size},
		{"XTRACE_FLIGHT_RECORDER", options->flight_recorder},
		{"XTRACE_SNAPSHOT_ON", options->snapshot_on},
		{"XTRACE_SNAPSHOT_INTERVAL", options->snapshot_interval},
		{"XTRACE_SNAPSHOT_MAX", options->snapshot_max ? environment->snapshot_max : NULL},
	};

	snprintf(hz, sizeof(environment->cpu_hz), "%u", options->cpu_hz);
	snprintf(environment->snapshot_max, sizeof(environment->snapshot_max), "%u",
		 options->snapshot_max);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		capture_environment_add(environment, rows[i].name, rows[i].value);
	if (!options->simulates)
		return 0;
	environment->libraries = before_search_path(paths->simulator, "LD_LIBRARY_PATH");
	if (!environment->libraries ||
	    asprintf(&environment->cupti, "%s/libcupti.so", paths->simulator) < 0) {
		environment->cupti = NULL;
		return -ENOMEM;
	}
	capture_environment_add(environment, "LD_LIBRARY_PATH", environment->libraries);
	capture_environment_add(environment, "XTRACE_CUPTI", environment->cupti);
	return 0;
}

void capture_environment_free(struct capture_environment *environment)
{
	free(environment->libraries);
	free(environment->cupti);
	*environment = (struct capture_environment){0};
}

enum format { FORMAT_SH, FORMAT_DOCKER, FORMAT_JSON };

struct request {
	struct capture_options options; /* first: its option rows use this as context */
	enum format format;
	struct install_paths paths;
};

static const struct option_row option_rows[] = {
	{"format", .value = "sh|docker|json",
	 .help = "Print lines for a shell (default: sh), for docker run --env-file (docker), or a "
		 "JSON object",
	 .apply = option_word, .offset = offsetof(struct request, format)},
	{0},
};

/* Lines for a shell or for docker, which takes the rest of a line as it is. */
static int print_lines(const struct capture_environment *environment, const char *data_dir,
		       bool is_docker)
{
	char *folder = shell_quote(data_dir);
	int error = folder ? 0 : -ENOMEM;

	/* A newline would end the comment below. */
	if (strchr(data_dir, '\n'))
		error = -EINVAL;
	for (size_t i = 0; i < environment->count; i++)
		if (is_docker && strchr(environment->entries[i].value, '\n'))
			error = -EINVAL;
	for (size_t i = 0; i < environment->count && !error; i++) {
		const struct environment_entry *entry = &environment->entries[i];
		char *value = is_docker ? strdup(entry->value) : shell_quote(entry->value);

		if (value)
			printf("%s%s=%s\n", is_docker ? "" : "export ", entry->name, value);
		else
			error = -ENOMEM;
		free(value);
	}
	if (!error)
		printf("# After the run, %s: xtrace merge --embed-symbols %s\n",
		       is_docker ? "in the container" : "on the same machine", folder);
	free(folder);
	return error;
}

static int print_json(const struct capture_environment *environment)
{
	cJSON *root = cJSON_CreateObject();

	for (size_t i = 0; i < environment->count; i++)
		cJSON_AddStringToObject(root, environment->entries[i].name,
					environment->entries[i].value);
	return json_print(root);
}

static int run_env(const struct command *command, int argc, char **argv)
{
	struct request request = {.options.output = DEFAULT_DATA_DIR};
	struct capture_environment environment = {0};
	char *data_dir;
	int status, count, error = -ENOMEM;

	status = command_parse(command, NULL, &request, argc, argv, 0, &count);
	if (status != COMMAND_GO_ON)
		return status;
	status = capture_check(&request.options);
	if (!status)
		status = capture_find_parts(&request.options, &request.paths);
	if (status)
		return status;
	data_dir = absolute_path(request.options.output);
	if (data_dir)
		error = capture_environment_make(&environment, &request.options, &request.paths,
						 data_dir);
	if (!error)
		error = request.format == FORMAT_JSON
				? print_json(&environment)
				: print_lines(&environment, data_dir,
					      request.format == FORMAT_DOCKER);
	if (error)
		print_error("cannot print the variables: %s",
			    error == -EINVAL ? "this form has no place for a newline"
					     : strerror(-error));
	capture_environment_free(&environment);
	free(data_dir);
	return error ? STATUS_FAILED : STATUS_OK;
}

static const char details[] =
	"  eval \"$(xtrace env -o trace)\"; ./server; xtrace merge --embed-symbols trace\n\n"
	"Paths are those of this machine. For a container, run 'xtrace env' inside it, or mount\n"
	"the installation at the same place.\n";

const struct command command_env = {
	.name = "env",
	.arguments = "[OPTION]...",
	.summary = "Print environment variables that make a program record itself",
	.details = details,
	.list_options = capture_options_list,
	.options = option_rows,
	.run = run_env,
};
