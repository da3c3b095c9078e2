/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace doctor: says what was found on this machine, and what will work. It records a program that
 * launches one kernel, and reads from its log what was recorded and which libcupti was chosen. So
 * the tracer itself is asked: no second search can differ from its own.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_options.h"
#include "commands.h"
#include "data_dir.h"
#include "log/base/number_format.h"
#include "log/read/rows.h"
#include "page/page.h"
#include "program.h"

struct facts {
	char system[128];	      /* such as "Debian GNU/Linux 12 (bookworm)"; empty: unknown */
	char kernel[128];	      /* such as "Linux 6.1.0 x86_64" */
	char glibc[32];		      /* version */
	char driver[64];	      /* version of the NVIDIA kernel module; empty: not loaded */
	bool is_container;	      /* probably */
	bool restricts_profiling;     /* the driver allows it for administrators only */
	bool is_administrator;	      /* CAP_SYS_ADMIN */
	char perf_event_paranoid[16]; /* such as "2", or "unset" */
	char ptrace_scope[16];	      /* such as "1", or "unset" */
	bool can_write;		      /* to the current directory */
	uint64_t free_bytes;	      /* there */
	const char *injection_path;   /* of CUDA_INJECTION64_PATH; NULL: none */
	const char *preload;	      /* of LD_PRELOAD; NULL: none */
};

#define PROBE_GPUS_MAX 16
#define PROBE_OPERAND  "--probe" /* xtrace doctor --probe is the recorded program */

enum probe_kind {
	PROBE_PYTHON,	 /* in Python, which finds libcupti in its packages */
	PROBE_PROGRAM,	 /* in C */
	PROBE_SIMULATED, /* in C, on the simulated GPU */
	PROBE_KINDS
};

struct probe {
	bool works;	   /* a kernel and the call path of its launch were recorded */
	char reason[1024]; /* why it does not work: one sentence */
	char python[PATH_MAX], python_version[32], torch_version[64]; /* empty: none */
	bool has_no_driver, has_python_frames;
	char gpus[PROBE_GPUS_MAX][96];
	unsigned gpu_count;
	uint32_t cuda_version, cupti_version; /* as CUDA and CUPTI number them; 0: unknown */
	char cupti_path[PATH_MAX], cupti_found[64];
};

#define PROBE_LIMIT_S 20

#define CAP_SYS_ADMIN 21 /* linux/capability.h */

/* Copies what follows `start` in the first line of the file that begins with it. */
static bool read_line(const char *path, const char *start, char *out, size_t out_bytes)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file)) {
		is_found = !strncmp(line, start, strlen(start));
		if (is_found)
			snprintf(out, out_bytes, "%.*s", (int)strcspn(line + strlen(start), "\n"),
				 line + strlen(start));
	}
	if (file)
		fclose(file);
	return is_found;
}

static void read_setting(const char *path, char out[16])
{
	if (!read_line(path, "", out, 16))
		strcpy(out, "unset");
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun ..." */
static void read_driver(struct facts *facts)
{
	char line[512], *at;

	if (!read_line("/proc/driver/nvidia/version", "NVRM version:", line, sizeof(line)))
		return;
	at = strstr(line, "  ");
	at = at ? at + strspn(at, " ") : line;
	snprintf(facts->driver, sizeof(facts->driver), "%.*s", (int)strcspn(at, " "), at);
}

static bool has_capability(int bit)
{
	char text[32];

	return read_line("/proc/self/status", "CapEff:", text, sizeof(text)) &&
	       strtoull(text, NULL, 16) >> bit & 1;
}

static void read_system(struct facts *facts)
{
	char *text = facts->system;
	struct utsname names;
	size_t length;

	if (!read_line("/etc/os-release", "PRETTY_NAME=", text, sizeof(facts->system)))
		text[0] = '\0';
	length = strlen(text);
	if (length > 1 && text[0] == '"') {
		memmove(text, text + 1, length);
		text[strcspn(text, "\"")] = '\0';
	}
	if (!uname(&names))
		snprintf(facts->kernel, sizeof(facts->kernel), "%s %.40s %.20s", names.sysname,
			 names.release, names.machine);
	snprintf(facts->glibc, sizeof(facts->glibc), "%s", gnu_get_libc_version());
	facts->is_container = !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK);
}

static struct facts facts_read(void)
{
	struct facts facts = {0};
	struct statvfs space;
	char answer[16];

	read_system(&facts);
	read_driver(&facts);
	facts.restricts_profiling = read_line("/proc/driver/nvidia/params",
					      "RmProfilingAdminOnly: ", answer, sizeof(answer)) &&
				    atoi(answer);
	facts.is_administrator = has_capability(CAP_SYS_ADMIN);
	read_setting("/proc/sys/kernel/perf_event_paranoid", facts.perf_event_paranoid);
	read_setting("/proc/sys/kernel/yama/ptrace_scope", facts.ptrace_scope);
	facts.can_write = !access(".", W_OK | X_OK);
	if (!statvfs(".", &space))
		facts.free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	facts.injection_path = user_setting("CUDA_INJECTION64_PATH");
	facts.preload = user_setting("LD_PRELOAD");
	return facts;
}

#define MARK "probe:" /* before each line that the recorded program prints */

#define PROBE_OUTPUT_BYTES 8 /* "/output" */

#define PTX ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n"

/* The same program for the interpreter, whose packages may contain libcupti. */
static const char python_program[] =
	"import ctypes, signal, sys\n"
	"def say(key, value):\n"
	"    print('" MARK "%s=%s' % (key, value), flush=True)\n"
	"signal.alarm(int(sys.argv[1]))\n"
	"say('python', sys.executable)\n"
	"say('version', '%d.%d.%d' % sys.version_info[:3])\n"
	"try:\n"
	"    from importlib.metadata import version\n"
	"    say('torch', version('torch'))\n"
	"except Exception:\n"
	"    pass\n"
	"try:\n"
	"    cuda = ctypes.CDLL('libcuda.so.1')\n"
	"except OSError:\n"
	"    say('missing', 'driver')\n"
	"    sys.exit(1)\n"
	"def call(name, *arguments):\n"
	"    result = getattr(cuda, name)(*arguments)\n"
	"    if result:\n"
	"        say('error', '%s() returned CUDA error %d' % (name, result))\n"
	"        sys.exit(1)\n"
	"context, module, function = (ctypes.c_void_p() for _ in range(3))\n"
	"count, name = ctypes.c_int(), ctypes.create_string_buffer(96)\n"
	"call('cuInit', 0)\n"
	"call('cuDeviceGetCount', ctypes.byref(count))\n"
	"for device in range(count.value):\n"
	"    call('cuDeviceGetName', name, 96, device)\n"
	"    say('gpu', name.value.decode())\n"
	"call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)\n"
	"call('cuCtxSetCurrent', context)\n"
	"call('cuModuleLoadData', ctypes.byref(module), sys.argv[2].encode())\n"
	"call('cuModuleGetFunction', ctypes.byref(function), module, b'k')\n"
	"call('cuLaunchKernel', function, 1, 1, 1, 1, 1, 1, 0, None, None, None)\n"
	"call('cuCtxSynchronize')\n";

static void say(const char *key, const char *value)
{
	printf(MARK "%s=%s\n", key, value);
	fflush(stdout);
}

static bool failed(const char *name, int result)
{
	char text[128];

	snprintf(text, sizeof(text), "%s() returned CUDA error %d", name, result);
	if (result)
		say("error", text);
	return result;
}

/* The functions of the driver, with a stand-in that returns an error for one that is missing. */
struct driver {
	int (*cuInit)(unsigned);
	int (*cuDeviceGetCount)(int *);
	int (*cuDeviceGetName)(char *, int, int);
	int (*cuDevicePrimaryCtxRetain)(void **, int);
	int (*cuCtxSetCurrent)(void *);
	int (*cuModuleLoadData)(void **, const char *);
	int (*cuModuleGetFunction)(void **, void *, const char *);
	int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			      unsigned, void *, void **, void **);
	int (*cuCtxSynchronize)(void);
};

#define LOAD(name)	(*(void **)&driver->name = dlsym(library, #name))
#define CALL(name, ...) (!failed(#name, driver->name(__VA_ARGS__)))

static bool load_driver(struct driver *driver, void *library)
{
	return LOAD(cuInit) && LOAD(cuDeviceGetCount) && LOAD(cuDeviceGetName) &&
	       LOAD(cuDevicePrimaryCtxRetain) && LOAD(cuCtxSetCurrent) && LOAD(cuModuleLoadData) &&
	       LOAD(cuModuleGetFunction) && LOAD(cuLaunchKernel) && LOAD(cuCtxSynchronize);
}

static bool name_gpus(const struct driver *driver)
{
	char name[96];
	int count;

	if (!CALL(cuDeviceGetCount, &count))
		return false;
	for (int device = 0; device < count; device++) {
		if (!CALL(cuDeviceGetName, name, sizeof(name), device))
			return false;
		say("gpu", name);
	}
	return true;
}

static bool launch_kernel(const struct driver *driver)
{
	void *context, *module, *function;

	return CALL(cuDevicePrimaryCtxRetain, &context, 0) && CALL(cuCtxSetCurrent, context) &&
	       CALL(cuModuleLoadData, &module, PTX) &&
	       CALL(cuModuleGetFunction, &function, module, "k") &&
	       CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) &&
	       CALL(cuCtxSynchronize);
}

/* Runs the C program to record. Returns its exit status. */
static int probe_main(void)
{
	struct driver functions, *driver = &functions;
	void *library;

	alarm(PROBE_LIMIT_S);
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library || !load_driver(driver, library)) {
		say("missing", "driver");
		return 1;
	}
	return !(CALL(cuInit, 0) && name_gpus(driver) && launch_kernel(driver));
}

static void set_text(char *out, size_t out_bytes, const char *text)
{
	snprintf(out, out_bytes, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Takes a line of the output of the recorded program: its own, or a message of the tracer. */
static void take_line(struct probe *probe, const char *line)
{
	const struct {
		const char *key;
		char *text;
		size_t text_bytes;
	} rows[] = {
		{MARK "python=", probe->python, sizeof(probe->python)},
		{MARK "version=", probe->python_version, sizeof(probe->python_version)},
		{MARK "torch=", probe->torch_version, sizeof(probe->torch_version)},
		{MARK "error=", probe->reason, sizeof(probe->reason)},
		{"xtrace: cannot record this process: ", probe->reason, sizeof(probe->reason)},
		{"xtrace: ", probe->reason, sizeof(probe->reason)},
	};

	if (!strncmp(line, MARK "missing=", strlen(MARK "missing=")))
		probe->has_no_driver = true;
	if (!strncmp(line, MARK "gpu=", strlen(MARK "gpu=")) && probe->gpu_count < PROBE_GPUS_MAX)
		set_text(probe->gpus[probe->gpu_count++], sizeof(probe->gpus[0]),
			 line + strlen(MARK "gpu="));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(line, rows[i].key, strlen(rows[i].key)) && !*rows[i].text) {
			set_text(rows[i].text, rows[i].text_bytes, line + strlen(rows[i].key));
			return;
		}
}

static void take_output(struct probe *probe, const char *path)
{
	char *line = NULL;
	size_t line_bytes = 0;
	FILE *file = fopen(path, "re");

	while (file && getline(&line, &line_bytes, file) > 0)
		take_line(probe, line);
	free(line);
	if (file)
		fclose(file);
}

static int take_meta(struct probe *probe, const struct xt_row_meta *row)
{
	struct xt_bytes key = row->key, value = row->value;
	char name[64], text[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)key.length, key.data ? key.data : "");
	snprintf(text, sizeof(text), "%.*s", (int)value.length, value.data ? value.data : "");
	if (!strcmp(name, "cuda.driver_version"))
		probe->cuda_version = (uint32_t)atol(text);
	if (!strcmp(name, "cupti.version"))
		probe->cupti_version = (uint32_t)atol(text);
	if (!strcmp(name, "cupti.path"))
		set_text(probe->cupti_path, sizeof(probe->cupti_path), text);
	if (!strcmp(name, "cupti.found"))
		set_text(probe->cupti_found, sizeof(probe->cupti_found), text);
	return 0;
}

XT_DEFINE_ROWS_READER(take_metas, meta, struct probe, take_meta)

#define KIND(kind) (UINT32_C(1) << (kind))

static void take_log(struct probe *probe, const char *path)
{
	bool has_kernel = false, has_stack = false;
	const struct xt_chunk *chunk;
	struct xt_reader *reader;

	if (xt_reader_open(path, &reader) != XT_OPEN_OK)
		return;
	while ((chunk = xt_reader_next(reader, KIND(XT_KIND_META) | KIND(XT_KIND_KERNEL) |
						       KIND(XT_KIND_STACK) |
						       KIND(XT_KIND_PYTHON_FRAME)))) {
		has_kernel |= xt_chunk_kind(chunk) == XT_KIND_KERNEL;
		has_stack |= xt_chunk_kind(chunk) == XT_KIND_STACK;
		probe->has_python_frames |= xt_chunk_kind(chunk) == XT_KIND_PYTHON_FRAME;
		if (xt_chunk_kind(chunk) == XT_KIND_META)
			take_metas(probe, chunk);
	}
	xt_reader_close(reader);
	probe->works = has_kernel && has_stack;
}

static void take_logs(struct probe *probe, const char *folder)
{
	char **logs;
	size_t count;

	if (data_dir_list_logs(folder, &logs, &count))
		return;
	for (size_t i = 0; i < count; i++)
		take_log(probe, logs[i]);
	data_dir_free_logs(logs, count);
}

/* A killed program leaves more than logs. */
static void remove_folder(const char *folder)
{
	DIR *listing = opendir(folder);
	struct dirent *entry;

	while (listing && (entry = readdir(listing)))
		unlinkat(dirfd(listing), entry->d_name, 0);
	if (listing)
		closedir(listing);
	rmdir(folder);
}

/* Remedies for errors of the driver or the tracer, by a part of the reason. */
static const struct {
	const char *part, *remedy;
} remedies[] = {
	{"CUDA error 2", "free GPU memory: nvidia-smi shows who uses it"},
	{"CUDA error 46", "the GPU is in exclusive use: wait for the other program"},
	{"CUDA error 100", "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES"},
	{"CUDA error 802", "start the fabric manager (nvidia-fabricmanager)"},
	{"CUDA error 803", "the driver was updated: reboot, or give the container its libcuda"},
	{"CUDA error ", "look at nvidia-smi and at dmesg"},
	{"but no kernel record", "end other profilers, and update libcupti or the driver"},
};

static void add_remedy(char *reason, size_t reason_bytes)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		const char *found = strstr(reason, remedies[i].part);
		size_t length = strlen(reason), part = strlen(remedies[i].part);

		if (!found || (found[part] >= '0' && found[part] <= '9' && found[part - 1] != ' '))
			continue;
		snprintf(reason + length, reason_bytes - length, ": %s", remedies[i].remedy);
		return;
	}
}

/*
 * Completes the reason if there is none, or if it lacks a remedy. If the program was recorded, only
 * what the tracer said of missing Python frames stays.
 */
static void explain(struct probe *probe, int error, int status)
{
	char *reason = probe->reason;
	size_t bytes = sizeof(probe->reason);

	if (probe->works) {
		if (probe->has_python_frames || !strstr(reason, "frames of Python"))
			reason[0] = '\0';
	} else if (error) {
		snprintf(reason, bytes, "cannot run the test program: %s", strerror(-error));
	} else if (probe->has_no_driver) {
		snprintf(reason, bytes,
			 "there is no NVIDIA driver (libcuda.so.1): install it, or start the "
			 "container with --gpus all");
	} else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		snprintf(reason, bytes,
			 "the NVIDIA driver did not answer in %d s: see its messages in dmesg",
			 PROBE_LIMIT_S);
	} else if (WIFSIGNALED(status)) {
		snprintf(reason, bytes, "the test program was killed by signal %d",
			 WTERMSIG(status));
	} else if (!reason[0]) {
		snprintf(reason, bytes,
			 "no kernel was recorded, for an unknown reason: set "
			 "XTRACE_DEBUG=all and look at the debug log");
	} else {
		add_remedy(reason, bytes);
	}
}

/* Makes a folder for the test recording. Returns 0 or -errno. */
static int make_folder(char out[PATH_MAX])
{
	const char *const places[] = {getenv("TMPDIR"), "/tmp", "/dev/shm", "."};
	int error = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!places[i] || snprintf(out, PATH_MAX, "%s/xtrace-doctor-XXXXXX", places[i]) >=
					  PATH_MAX - PROBE_OUTPUT_BYTES)
			continue;
		if (mkdtemp(out))
			return 0;
		error = -errno;
	}
	return error;
}

/* Runs the command in the folder. Returns 0 or -errno. */
static int run_recorded(char *const *command, const struct capture_options *options,
			const struct install_paths *paths, const char *folder, const char *output,
			int *status_out)
{
	/* The tracer prints to a regular file only if it is write-only, as shells open it. */
	struct child_care care = {.output = open(output, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
	struct capture_environment environment = {0};
	int error = care.output < 0 ? -errno : 0;

	if (!error)
		error = capture_environment_make(&environment, options, paths, folder);
	/* Clear settings that the user made for other programs: they must not silence this one. */
	capture_environment_add(&environment, "XTRACE_START", "");
	capture_environment_add(&environment, "XTRACE_CAPTURE_RANGE", "");
	capture_environment_add(&environment, "XTRACE_CPU", "");
	if (!error)
		error = child_run(command, environment.entries, &care, status_out);
	capture_environment_free(&environment);
	if (care.output >= 0)
		close(care.output);
	return error;
}

/* Runs for up to PROBE_LIMIT_S seconds. Writes to /tmp, and removes what it wrote. */
static void probe_run(enum probe_kind kind, const struct install_paths *paths, struct probe *probe)
{
	const struct capture_options options = {.simulates = kind == PROBE_SIMULATED};
	char limit[16], folder[PATH_MAX], output[PATH_MAX + PROBE_OUTPUT_BYTES];
	char *const python[] = {
		(char *)child_python(paths), "-c", (char *)python_program, limit, PTX, NULL};
	char *const program[] = {(char *)paths->program, "doctor", PROBE_OPERAND, NULL};
	char *const *command = kind == PROBE_PYTHON ? python : program;
	int status = 0, error;

	*probe = (struct probe){0};
	snprintf(limit, sizeof(limit), "%d", PROBE_LIMIT_S);
	error = child_find(command[0]);
	if (error && kind == PROBE_PYTHON) {
		snprintf(probe->reason, sizeof(probe->reason),
			 "cannot find %s: install it, or set XTRACE_INTERPRETER", command[0]);
		return;
	}
	if (!error)
		error = make_folder(folder);
	if (!error) {
		snprintf(output, sizeof(output), "%s/output", folder);
		error = run_recorded(command, &options, paths, folder, output, &status);
		take_output(probe, output);
		take_logs(probe, folder);
		remove_folder(folder);
	}
	explain(probe, error, status);
}

struct findings {
	bool as_json;
	struct install_paths paths;
	struct facts facts;
	struct probe probes[PROBE_KINDS];
};

static const struct option_row option_rows[] = {
	{"json", .help = "Print one JSON document", .apply = option_flag,
	 .offset = offsetof(struct findings, as_json)},
	{0},
};

static const struct {
	const char *key, *name;
} probe_names[] = {
	[PROBE_PYTHON] = {"python", "record Python programs"},
	[PROBE_PROGRAM] = {"programs", "record other programs"},
	[PROBE_SIMULATED] = {"simulated", "record on the simulated GPU"},
};

/* The probe that saw the GPUs, or else the first. */
static const struct probe *best_probe(const struct findings *found)
{
	const struct probe *probes = found->probes;

	return probes[PROBE_PYTHON].gpu_count >= probes[PROBE_PROGRAM].gpu_count
		       ? &probes[PROBE_PYTHON]
		       : &probes[PROBE_PROGRAM];
}

static bool can_record(const struct findings *found)
{
	return found->probes[PROBE_PYTHON].works || found->probes[PROBE_PROGRAM].works;
}

static void print_gpus(const struct probe *probe)
{
	for (unsigned i = 0, same; i < probe->gpu_count; i += same) {
		for (same = 1; i + same < probe->gpu_count; same++)
			if (strcmp(probe->gpus[i], probe->gpus[i + same]) != 0)
				break;
		printf("%-12s", i ? "" : "GPU");
		if (same > 1)
			printf("%u x ", same);
		printf("%s\n", probe->gpus[i]);
	}
	if (!probe->gpu_count)
		printf("%-12snone found\n", "GPU");
}

static void print_driver(const struct findings *found)
{
	uint32_t version = found->probes[PROBE_PYTHON].cuda_version;

	if (!version)
		version = found->probes[PROBE_PROGRAM].cuda_version;
	printf("%-12s%s", "driver", *found->facts.driver ? found->facts.driver : "none found");
	if (version) /* 1000 * major + 10 * minor */
		printf(", CUDA %u.%u", version / 1000, version / 10 % 100);
	printf("\n");
}

static void print_python(const struct probe *probe)
{
	if (!*probe->python) {
		printf("%-12snone found\n", "Python");
		return;
	}
	printf("%-12s%s, %s", "Python", probe->python_version, probe->python);
	if (*probe->torch_version)
		printf(", PyTorch %s", probe->torch_version);
	printf("\n");
}

static void print_settings(const struct facts *facts)
{
	if (facts->injection_path)
		printf("%-12sCUDA_INJECTION64_PATH=%s is replaced while xtrace records\n", "note",
		       facts->injection_path);
	if (facts->preload)
		printf("%-12sLD_PRELOAD=%s also applies to recorded programs\n", "note",
		       facts->preload);
}

static void print_facts(const struct findings *found)
{
	const struct facts *facts = &found->facts;
	char commit[64], size[TIME_BYTES];

	version_commit(commit, sizeof(commit));
	printf("%-12s%s, commit %s\n%-12s%s\n", "xtrace", XTRACE_VERSION, commit, "",
	       found->paths.program);
	printf("%-12s%s%s\n", "system", *facts->system ? facts->system : "unknown",
	       facts->is_container ? ", in a container" : "");
	printf("%-12s%s, glibc %s\n", "", facts->kernel, facts->glibc);
	print_driver(found);
	print_gpus(best_probe(found));
	print_python(&found->probes[PROBE_PYTHON]);
	if (*facts->driver)
		printf("%-12sthe driver lets %s profile%s\n", "permissions",
		       facts->restricts_profiling ? "administrators only" : "all users",
		       facts->restricts_profiling && facts->is_administrator ? "; you are one"
									     : "");
	printf("%-12sperf_event_paranoid %s, for CPU sampling; ptrace_scope %s, also for "
	       "xtrace attach\n",
	       *facts->driver ? "" : "permissions", facts->perf_event_paranoid,
	       facts->ptrace_scope);
	format_bytes(size, facts->free_bytes);
	printf("%-12s%s free in this directory%s\n", "disk", size,
	       facts->can_write ? "" : ", which you cannot write to: record with -o DIR");
	print_settings(facts);
}

static void print_answer(bool is_yes, const char *what)
{
	printf("  %-5s%s\n", is_yes ? "yes" : "no", what);
}

static void print_probe(const struct findings *found, enum probe_kind kind)
{
	const struct probe *probe = &found->probes[kind];

	print_answer(probe->works, probe_names[kind].name);
	if (!probe->works)
		printf("       %s\n", probe->reason);
	if (probe->works && kind != PROBE_SIMULATED)
		printf("       with %s\n       (CUPTI %u, %s)\n", probe->cupti_path,
		       probe->cupti_version, probe->cupti_found);
	if (probe->works && kind == PROBE_PYTHON && !probe->has_python_frames)
		printf("       without Python lines: %s\n", *probe->reason ? probe->reason
							    : getenv("XTRACE_PYTHON")
								    ? "XTRACE_PYTHON is off"
								    : "for an unknown reason");
}

static void print_text(const struct findings *found)
{
	print_facts(found);
	printf("\nWhat will work\n");
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		print_probe(found, kind);
	print_answer(page_is_there(), "report in the browser");
	if (!page_is_there())
		printf("       xtrace was built without node: xtrace report prints text\n");
}

static void add_text(cJSON *object, const char *name, const char *text)
{
	cJSON_AddItemToObject(object, name,
			      text && *text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

static void add_facts(cJSON *root, const struct findings *found)
{
	const struct facts *facts = &found->facts;
	const struct probe *best = best_probe(found);
	cJSON *gpus = cJSON_AddArrayToObject(root, "gpus");
	char commit[64];

	version_commit(commit, sizeof(commit));
	for (unsigned i = 0; i < best->gpu_count; i++)
		cJSON_AddItemToArray(gpus, cJSON_CreateString(best->gpus[i]));
	add_text(root, "commit", commit);
	add_text(root, "program", found->paths.program);
	add_text(root, "system", facts->system);
	add_text(root, "kernel", facts->kernel);
	add_text(root, "glibc_version", facts->glibc);
	add_text(root, "driver_version", facts->driver);
	cJSON_AddBoolToObject(root, "is_container", facts->is_container);
	cJSON_AddBoolToObject(root, "driver_restricts_profiling", facts->restricts_profiling);
	cJSON_AddBoolToObject(root, "is_administrator", facts->is_administrator);
	add_text(root, "perf_event_paranoid", facts->perf_event_paranoid);
	add_text(root, "ptrace_scope", facts->ptrace_scope);
	cJSON_AddBoolToObject(root, "can_write", facts->can_write);
	cJSON_AddNumberToObject(root, "free_bytes", (double)facts->free_bytes);
	add_text(root, "cuda_injection64_path", facts->injection_path);
	add_text(root, "ld_preload", facts->preload);
}

static void add_probe(cJSON *root, enum probe_kind kind, const struct probe *probe)
{
	cJSON *object = cJSON_AddObjectToObject(root, probe_names[kind].key);

	cJSON_AddBoolToObject(object, "works", probe->works);
	add_text(object, "reason", probe->reason);
	cJSON_AddNumberToObject(object, "cuda_version", probe->cuda_version);
	cJSON_AddNumberToObject(object, "cupti_version", probe->cupti_version);
	add_text(object, "cupti_path", probe->cupti_path);
	add_text(object, "cupti_found", probe->cupti_found);
	if (kind != PROBE_PYTHON)
		return;
	add_text(object, "python", probe->python);
	add_text(object, "python_version", probe->python_version);
	add_text(object, "torch_version", probe->torch_version);
	cJSON_AddBoolToObject(object, "has_python_frames", probe->has_python_frames);
}

static int print_json(const struct findings *found)
{
	cJSON *root = json_new("xtrace.doctor"), *works;

	cJSON_AddBoolToObject(root, "can_record", can_record(found));
	add_facts(root, found);
	works = cJSON_AddObjectToObject(root, "recording");
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		add_probe(works, kind, &found->probes[kind]);
	cJSON_AddBoolToObject(root, "has_page", page_is_there());
	return json_print(root);
}

static int run_doctor(const struct command *command, int argc, char **argv)
{
	struct findings found = {0};
	int status, count;

	if (argc == 2 && !strcmp(argv[1], PROBE_OPERAND))
		return probe_main();
	status = command_parse(command, NULL, &found, argc, argv, 0, &count);
	if (status != COMMAND_GO_ON)
		return status;
	status = capture_find_parts(&(struct capture_options){.simulates = true}, &found.paths);
	if (status)
		return status;
	found.facts = facts_read();
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		probe_run(kind, &found.paths, &found.probes[kind]);
	if (!found.as_json)
		print_text(&found);
	else if (print_json(&found)) {
		print_error("out of memory");
		return STATUS_FAILED;
	}
	return can_record(&found) ? STATUS_OK : STATUS_INCOMPLETE;
}

static const char details[] =
	"Records a small program on the GPU, from Python and from C, and on the simulated GPU.\n"
	"It tests the Python that 'xtrace record' uses for scripts.\n\n"
	"Exit status: 0 if programs can be recorded on a GPU, 1 if not, 2 for wrong usage.\n";

const struct command command_doctor = {
	.name = "doctor",
	.arguments = "[--json]",
	.summary = "Check this machine and report what will work",
	.details = details,
	.options = option_rows,
	.run = run_doctor,
};
