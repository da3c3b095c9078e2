/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace attach: loads the library into a process that runs without it, and starts recording.
 *
 * The library starts armed. Recording then starts as with xtrace start, so a process whose attach
 * was interrupted only costs what an armed one does.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/attach.h"
#include "capture_options.h"
#include "commands.h"
#include "data_dir.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"
#include "processes.h"
#include "program.h"
#include "rotation.h"
#include "sampler/process_read.h"

#define ATTACH_SETTINGS_MAX 64

struct attach_settings {
	struct attach_setting list[ATTACH_SETTINGS_MAX];
	size_t count;
	struct capture_environment environment;
	char *start_values[16]; /* owned: the process's own variables */
	size_t start_count;
	char own_cupti[PATH_MAX + 32];
};

#define OWN_PREFIX "XTRACE_"

static void add_setting(struct attach_settings *settings, const char *name, const char *value)
{
	if (value && settings->count < ATTACH_SETTINGS_MAX)
		settings->list[settings->count++] =
			(struct attach_setting){.name = name, .value = value};
}

/* Variables of the process that the library uses. It must not read its environment any more. */
static void add_start_values(struct attach_settings *settings, const struct target *target)
{
	static const char *const names[] = {
		"VIRTUAL_ENV",
		"CUDA_HOME",
		"CUDA_PATH",
		"RANK",
		"LOCAL_RANK",
		"WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK",
		"PMI_RANK",
		"SLURM_PROCID",
		"LD_LIBRARY_PATH", /* may be long */
	};
	size_t first = settings->count;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *value = process_variable(target->pid, names[i]);

		add_setting(settings, names[i], value);
		settings->start_values[settings->start_count++] = value;
	}
	for (size_t i = first; i < settings->count; i++)
		settings->list[i].is_optional = true;
}

/* Variables of this shell. The library uses the first setting of a name. */
static void add_own_variables(struct attach_settings *settings)
{
	for (char **entry = environ; *entry; entry++) {
		char *equals = strchr(*entry, '=');
		char *name = equals && !strncmp(*entry, OWN_PREFIX, strlen(OWN_PREFIX))
				     ? strndup(*entry, (size_t)(equals - *entry))
				     : NULL;

		/* Used until this program ends, so it is not freed. */
		if (name)
			add_setting(settings, name, equals + 1);
	}
}

/* A program on the simulated GPU needs the simulated CUPTI. */
static void add_simulator(struct attach_settings *settings, const struct install_paths *paths,
			  const struct target *target)
{
	char folder[PATH_MAX], cuda[PATH_MAX];

	snprintf(cuda, sizeof(cuda), "%s", target->cuda_path);
	if (!realpath(paths->simulator, folder) || strcmp(dirname(cuda), folder) != 0)
		return;
	snprintf(settings->own_cupti, sizeof(settings->own_cupti), "%s/libcupti.so", folder);
	add_setting(settings, "XTRACE_CUPTI", settings->own_cupti);
}

/*
 * *settings is all zeros before. Returns 0 or -ENOMEM. Call attach_settings_free() in both cases;
 * options, paths and data_dir must stay until then.
 */
static int attach_settings_make(struct attach_settings *settings,
				const struct capture_options *options,
				const struct install_paths *paths, const struct target *target,
				const char *data_dir)
{
	int error = capture_environment_make(&settings->environment, options, paths, data_dir);

	if (error)
		return error;
	for (size_t i = 0; i < settings->environment.count; i++)
		if (!strncmp(settings->environment.entries[i].name, OWN_PREFIX, strlen(OWN_PREFIX)))
			add_setting(settings, settings->environment.entries[i].name,
				    settings->environment.entries[i].value);
	/* The library would wait for the program's profiler calls, which may be over. */
	add_setting(settings, "XTRACE_CAPTURE_RANGE", "");
	add_own_variables(settings);
	add_simulator(settings, paths, target);
	add_start_values(settings, target);
	return 0;
}

static void attach_settings_free(struct attach_settings *settings)
{
	capture_environment_free(&settings->environment);
	for (size_t i = 0; i < settings->start_count; i++)
		free(settings->start_values[i]);
}

#define ENTRY_POINT	 "xtrace_attach" /* of the library */
#define COMMAND_BYTES	 4096
#define ARGUMENTS_MAX	 256
#define READY_TIMEOUT_MS 5000
#define NS_PER_MS	 UINT64_C(1000000)
#define DURATION_MAX_NS	 (UINT32_MAX * NS_PER_MS) /* as of xtrace start */

struct request {
	struct capture_options options; /* first: its option rows use this as context */
	uint64_t duration_ns;
	bool is_armed; /* as the user asked */
	pid_t pid;
	const char *pid_text;
	struct install_paths paths;
};

static const struct option_row option_rows[] = {
	{"duration", .value = "TIME", .expected = "a time such as 10s or 500ms",
	 .help = "Stop recording after TIME, and wait for that. Ctrl-C stops earlier",
	 .apply = option_time, .offset = offsetof(struct request, duration_ns)},
	{0},
};

/* The options of xtrace record that make no sense here, and -p, which other tools have. */
static const struct {
	const char *name;
	char letter;
	const char *instead;
} missing[] = {
	{"paused", 0, "use --armed"},
	{"capture-range", 0, "the process may have made its profiler calls before; use --duration"},
	{"simulate", 's', "the process keeps its GPU; start it with xtrace record -s"},
	{"pid", 'p', "name the process without it: xtrace attach 1234"},
};

static int apply_missing(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)value;
	print_error("cannot attach with --%s: %s", row->name, row->help);
	return -ENOTSUP;
}

static bool is_missing(const char *name)
{
	for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		if (!strcmp(missing[i].name, name))
			return true;
	return false;
}

static void list_options(struct option_list *list)
{
	struct option_list record = {0};

	capture_options_list(&record);
	for (size_t i = 0; i < record.count; i++) {
		struct option_row *row = &record.rows[i];

		/* A number after a space would be taken from the process id. */
		if (row->number && *row->number != '=')
			row->number = "=HZ";
		if (!is_missing(row->name))
			option_list_add_row(list, row);
	}
	option_list_add(list, option_rows);
	for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		option_list_add_row(list, &(struct option_row){.name = missing[i].name,
							       .letter = missing[i].letter,
							       .is_hidden = true,
							       .number = "=",
							       .help = missing[i].instead,
							       .apply = apply_missing});
}

/* An option whose value needs an equals sign, or the next word would be the process. */
struct misplaced {
	const char *option, *value;
};

static struct misplaced find_misplaced(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if ((!strcmp(argv[i], "--cpu") || !strcmp(argv[i], "--armed")) &&
		    *argv[i + 1] != '-')
			return (struct misplaced){argv[i], argv[i + 1]};
	return (struct misplaced){0};
}

/* The library would never see a range. */
static int check_triggers(const struct request *request)
{
	struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX];
	const char *text = request->options.snapshot_on;
	int count = text ? xt_snapshot_triggers_parse(text, triggers) : 0;

	for (int i = 0; i < count; i++)
		if (triggers[i].kind == XT_TRIGGER_RANGE) {
			print_error("cannot use '%.*s' for --snapshot-on: an attached process has "
				    "no NVTX ranges; use iteration, hang, error or oom",
				    (int)triggers[i].text_bytes, triggers[i].text);
			return STATUS_FAILED;
		}
	return STATUS_OK;
}

static int parse(struct request *request, const struct command *command, int argc, char **argv)
{
	struct misplaced misplaced = find_misplaced(argc, argv);
	struct option_list list;
	int status, count;

	request->options.output = DEFAULT_DATA_DIR;
	status = command_parse(command, &list, request, argc, argv,
			       misplaced.option ? ANY_OPERANDS : 1, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (count > 1) {
		print_error("unexpected argument '%s': write %s=%s", misplaced.value,
			    misplaced.option, misplaced.value);
		return STATUS_FAILED;
	}
	request->is_armed = request->options.armed != NULL;
	if (request->is_armed && option_is_given(&list, "duration")) {
		print_error("choose one of --armed and --duration");
		return STATUS_FAILED;
	}
	if (option_is_given(&list, "duration") &&
	    (request->duration_ns < NS_PER_MS || request->duration_ns > DURATION_MAX_NS)) {
		print_error("cannot use this --duration: choose a time from 1ms to 49 days");
		return STATUS_FAILED;
	}
	if (!request->is_armed)
		request->options.armed = "armed";
	request->pid_text = argv[1];
	request->pid = process_parse(argv[1]);
	status = request->pid ? check_triggers(request) : STATUS_FAILED;
	if (!status)
		status = capture_find_parts(&request->options, &request->paths);
	return status ? status : COMMAND_GO_ON;
}

static int refuse_request(const struct request *request, const char *why)
{
	print_error("cannot attach process %d: %s", request->pid, why);
	return STATUS_FAILED;
}

/* Whether the process carries xtrace. Then says what to do instead. */
static bool carries_xtrace(const struct request *request)
{
	struct process_list list = {0};
	bool is_traced = !processes_find_pid(&list, request->pid) && list.count;

	if (is_traced)
		print_error("process %d carries xtrace already, with the log '%s', and keeps its "
			    "options; to record: xtrace "
			    "start %d",
			    request->pid, list.rows[0].log, request->pid);
	processes_free(&list);
	return is_traced;
}

/* ---- The trace directory. */

/* The process joins a trace whose processes still run. */
static bool is_in_use(const char *path)
{
	struct process_list list = {0};
	bool is_alive = false;

	if (info_is_ours(path) && !processes_find_directory(&list, path))
		for (size_t i = 0; i < list.count && !is_alive; i++)
			is_alive = process_is_alive(&list.rows[i]);
	processes_free(&list);
	return is_alive;
}

/* The command line of the process. Returns the number of arguments. */
static size_t read_command(pid_t pid, char *text, char **arguments)
{
	ssize_t length = proc_file_read(PROC_PATH("%d/cmdline", pid), text, COMMAND_BYTES);
	size_t count = 0;

	for (char *at = text; at < text + length && count < ARGUMENTS_MAX; at += strlen(at) + 1)
		arguments[count++] = at;
	arguments[count] = NULL;
	return count;
}

/* Returns 0 or -errno after an error message. dir->path is set. */
static int make_dir(const struct request *request, struct recording_dir *dir)
{
	char text[COMMAND_BYTES], *arguments[ARGUMENTS_MAX + 1];
	struct info info = {.command = arguments};
	int error;

	if (is_in_use(request->options.output)) {
		error = data_dir_check_owner(request->options.output);
		dir->path = error ? NULL : realpath(request->options.output, NULL);
		return error ? error : dir->path ? 0 : -errno;
	}
	error = recording_dir_create(request->options.output, dir);
	if (error)
		return error;
	read_command(request->pid, text, arguments);
	info.start_realtime_ns = realtime_ns();
	return recording_dir_begin(dir, &info);
}

/* Nothing was recorded: the trace that was there before comes back. */
static void undo_dir(struct recording_dir *dir)
{
	char info[PATH_MAX];

	/* Without a claim, the directory is not ours, or is as before already. */
	if (dir->claim < 0)
		return;
	close(dir->claim);
	dir->claim = -1;
	if (dir->older)
		rotation_settle(dir->place, ROTATION_NOW);
	else if (dir->is_made)
		data_dir_remove(dir->place);
	else if (snprintf(info, sizeof(info), "%s/%s", dir->place, DATA_DIR_INFO) <
		 (int)sizeof(info))
		unlink(info);
}

/* The process may record from now on, so an older trace cannot come back. */
static void keep_dir(struct recording_dir *dir)
{
	if (dir->claim < 0)
		return;
	close(dir->claim);
	dir->claim = -1;
	rotation_settle(dir->place, ROTATION_KEEP);
}

/* ---- The steps. */

/* Returns 0, or -errno after an error message; -EINPROGRESS as attach_process() does. */
static int load_library(const struct request *request, struct target *target, const char *data_dir)
{
	static struct attach_settings settings;
	char why[ATTACH_WHY_BYTES], library_dir[PATH_MAX];
	struct attach_request attach = {
		.library = request->paths.injected,
		.library_dir = library_dir,
		.entry = ENTRY_POINT,
		.settings = settings.list,
	};
	int error = attach_settings_make(&settings, &request->options, &request->paths, target,
					 data_dir);

	snprintf(library_dir, sizeof(library_dir), "%s", request->paths.injected);
	dirname(library_dir);
	attach.setting_count = settings.count;
	snprintf(why, sizeof(why), "out of memory");
	if (!error)
		error = attach_process(target, &attach, &(struct why){why, sizeof(why)});
	attach_settings_free(&settings);
	if (error == -EINTR)
		print_error("interrupted; process %d %s", request->pid, why);
	else if (error)
		refuse_request(request, why);
	return error;
}

/* The library can start only if the process can write to the directory. */
static int check_dir(const struct request *request, const struct target *target, const char *path)
{
	char problem[ATTACH_WHY_BYTES / 2], why[ATTACH_WHY_BYTES];

	if (target_sees(target, path, &(struct why){problem, sizeof(problem)}))
		return STATUS_OK;
	snprintf(why, sizeof(why),
		 "it cannot write the trace: %s; choose a directory that both can see, with -o",
		 problem);
	return refuse_request(request, why);
}

/* The tracer takes requests once it has published its state. */
static void wait_until_ready(const struct traced_process *process)
{
	struct process_status status;

	for (int i = 0; i < READY_TIMEOUT_MS; i++) {
		if (process_status_read(process, &status) || status.state != XT_STATE_UNKNOWN ||
		    attach_is_interrupted())
			return;
		nap_ns(NS_PER_MS);
	}
}

/* The process was changed, but recording did not start. */
static void note_idle(const struct traced_process *process, const char *why)
{
	struct process_status status = {.state = XT_STATE_UNKNOWN};

	/* An interrupted command may not have waited for the state. */
	if (process_status_read(process, &status) && !attach_is_interrupted())
		return;
	if (status.state == XT_STATE_ARMED || status.state == XT_STATE_STOPPED ||
	    status.state == XT_STATE_UNKNOWN)
		print_error("%sprocess %d carries xtrace now, but does not record; to record: "
			    "xtrace start %d",
			    why, process->pid, process->pid);
}

/* mask: of this program, before its signals were blocked. Returns whether recording has started. */
static bool start(const struct request *request, struct process_list *list, const sigset_t *mask)
{
	bool is_started;

	if (attach_is_interrupted()) {
		note_idle(&list->rows[0], "interrupted: ");
		return false;
	}
	control_handle_interrupts();
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	is_started = control_start(list, request->pid_text, request->duration_ns);
	if (!is_started)
		note_idle(&list->rows[0], "");
	return is_started;
}

static int record(const struct request *request, const sigset_t *mask)
{
	struct process_list list = {0};
	bool is_done = false;

	print_note("attached process %d: its trace lacks NVTX ranges and memory allocated before "
		   "now",
		   request->pid);
	if (processes_find_pid(&list, request->pid))
		print_error("process %d has ended", request->pid);
	else if (request->is_armed)
		print_note("%s: nothing has been recorded yet; to start: xtrace start %d",
			   list.rows[0].log, request->pid);
	if (list.count)
		wait_until_ready(&list.rows[0]);
	if (list.count)
		is_done = request->is_armed || start(request, &list, mask);
	processes_free(&list);
	return is_done ? STATUS_OK : STATUS_FAILED;
}

static int attach(const struct request *request, struct target *target)
{
	struct recording_dir dir = {.older_claim = -1, .claim = -1};
	int error = make_dir(request, &dir);

	if (!error && check_dir(request, target, dir.path))
		error = -ENOENT;
	if (!error)
		error = load_library(request, target, dir.path);
	if (error && error != -EINPROGRESS)
		undo_dir(&dir);
	else
		keep_dir(&dir);
	recording_dir_close(&dir);
	return error ? STATUS_FAILED : STATUS_OK;
}

/* They take effect once the directory is as before, or the process carries xtrace. */
static void block_ends(sigset_t *mask)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, mask);
}

static int run_attach(const struct command *command, int argc, char **argv)
{
	static struct request request;
	char why[ATTACH_WHY_BYTES];
	struct target target;
	sigset_t mask;
	int status = parse(&request, command, argc, argv);

	if (status != COMMAND_GO_ON)
		return status;
	if (!attach_is_supported()) {
		print_error("cannot attach to process %d: xtrace attaches on x86-64 only; start "
			    "the program with 'xtrace record'",
			    request.pid);
		return STATUS_FAILED;
	}
	if (carries_xtrace(&request))
		return STATUS_FAILED;
	block_ends(&mask);
	if (target_open(&target, request.pid, request.paths.injected,
			&(struct why){why, sizeof(why)}))
		status = refuse_request(&request, why);
	else
		status = attach(&request, &target);
	target_close(&target);
	if (!status)
		status = record(&request, &mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return status;
}

static const char details[] =
	"  xtrace attach --duration 10s -o trace 1234; xtrace report trace\n\n"
	"The process must belong to you, and the rules for ptrace must allow it; otherwise the\n"
	"error says which rule forbids it, and how to be allowed. One thread that waits in a\n"
	"system call is stopped for some milliseconds. The process continues even if this command\n"
	"is killed. If xtrace does not start in it within 30 s, it does not start later either,\n"
	"unless the error says so.\n\n"
	"Ctrl-C before that thread is stopped changes nothing. After that, xtrace may stay in the\n"
	"process without recording; a message says so: 'process 1234 carries xtrace now'.\n\n"
	"NVTX ranges are missing, because NVTX looks for tools at its first use only. So\n"
	"--snapshot-on cannot watch them. Memory counts from now on, and graphs that exist appear\n"
	"under the call that launches them. A kernel that launches such a graph itself makes the\n"
	"program fail.\n\n"
	"The library stays in the process. Later: xtrace stop PID, xtrace start PID. With --cpu,\n"
	"samples are taken until the process ends. Rates need an equals sign: --cpu=99.\n\n"
	"If DIR holds an older trace, it moves to DIR.old. Until the process carries xtrace, it\n"
	"is in DIR.previous. If processes that record into DIR still run, the process joins their\n"
	"trace.\n\n"
	"Exit status: 0 if the process records, or is armed; else 2.\n";

const struct command command_attach = {
	.name = "attach",
	.arguments = "[OPTION]... PID",
	.summary = "Record a process that was started without xtrace",
	.details = details,
	.operand = "PID",
	.needed = "process",
	.list_options = list_options,
	.run = run_attach,
};
