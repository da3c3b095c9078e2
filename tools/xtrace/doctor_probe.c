/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records a program that launches one kernel, and reads from its log what was recorded and which
 * libcupti was chosen. So the tracer itself is asked: no second search can differ from its own.
 */
#include "doctor_probe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_options.h"
#include "data_dir.h"
#include "xtrace/reader.h"

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

int probe_main(void)
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

static void take_meta(struct probe *probe, struct xt_bytes key, struct xt_bytes value)
{
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
}

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
		for (uint32_t row = 0;
		     xt_chunk_kind(chunk) == XT_KIND_META && row < xt_chunk_rows(chunk); row++)
			take_meta(probe, xt_chunk_bytes(chunk, XT_META_KEY, row),
				  xt_chunk_bytes(chunk, XT_META_VALUE, row));
	}
	xt_reader_close(reader);
	probe->works = has_kernel && has_stack;
}

static void take_logs(struct probe *probe, const char *folder)
{
	char **logs, *path;
	size_t count;

	if (data_dir_list_logs(folder, &logs, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		if (asprintf(&path, "%s/%s", folder, logs[i]) < 0)
			continue;
		take_log(probe, path);
		free(path);
	}
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

void probe_run(enum probe_kind kind, const struct install_paths *paths, struct probe *probe)
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
