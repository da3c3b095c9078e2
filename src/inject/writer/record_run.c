/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about the run itself: the process, its modules and threads, clocks, pauses. Writer thread
 * only.
 *
 * Reads /proc/thread-self. /proc/self would be empty after the main thread ended while others run.
 * The callback of dl_iterate_phdr() runs under the loader's list lock, so it only copies into
 * existing memory.
 */
#include "inject/writer/record.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/memory/memory.h"
#include "inject/python/python_modules.h"
#include "inject/python/python_runtime.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/torch/torch_runtime.h"
#include "log/base/compare.h"

/* Finds the file mapped at an address; false if there is none. */
static bool find_mapped(uint64_t address, char *path)
{
	static const char deleted_suffix[] = " (deleted)";
	static struct loader_maps maps; /* too large for a stack */
	char *text, *file;

	if (loader_find_mapping(&maps, address, &text))
		return false;
	file = strchr(text, '/');
	if (!file || strlen(file) >= XT_MODULE_PATH_MAX)
		return false;
	if (ends_with(file, deleted_suffix))
		file[strlen(file) - strlen(deleted_suffix)] = '\0';
	strcpy(path, file);
	return true;
}

/* Whether the file may have been opened by that name. Another file may be mapped there by now. */
static bool could_be_file(const char *path, const char *name)
{
	static char whole[PATH_MAX];

	return !strcmp(base_name(path), base_name(name)) ||
	       (realpath(name, whole) && !strcmp(whole, path));
}

size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path)
{
	static char own[XT_MODULE_PATH_MAX], found[XT_MODULE_PATH_MAX];

	if (name_bytes >= XT_MODULE_PATH_MAX)
		name_bytes = XT_MODULE_PATH_MAX - 1;
	if (!name_bytes)
		return own_program_path(path, XT_MODULE_PATH_MAX);
	memcpy(own, name, name_bytes);
	own[name_bytes] = '\0';
	name = own;
	/* "linux-vdso.so.1" is no file. */
	if (name[0] != '/' && find_mapped(image->start, found) && could_be_file(found, name))
		name = found;
	name_bytes = strlen(name);
	memcpy(path, name, name_bytes);
	return name_bytes;
}

#define META_VALUE_BYTES_MAX (32u << 10)

void record_meta(struct recorder *rec, const char *key, const char *value)
{
	size_t value_bytes = strlen(value);
	struct xt_table *table;

	value_bytes = smaller(value_bytes, META_VALUE_BYTES_MAX);
	table = recorder_table(rec, XT_KIND_META, strlen(key) + value_bytes);
	if (!table)
		return;
	xt_write_meta(table, &(struct xt_row_meta){xt_text(key), {value, value_bytes}});
}

void record_meta_number(struct recorder *rec, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	record_meta(rec, key, text);
}

#define FIELDS_TO_START 20 /* in /proc/self/stat, counted from the name, which may contain spaces */

/*
 * The start of the process: files older than this belong to an earlier process with the same pid.
 */
static void record_start_time(struct recorder *rec)
{
	char text[1024];
	const char *field =
		loader_read_file("/proc/self/stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	struct timespec boot, real;
	uint64_t ticks, hundredths, ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);

	for (int i = 0; field && i < FIELDS_TO_START; i++)
		field = strchr(field + 1, ' ');
	if (!field || clock_gettime(CLOCK_BOOTTIME, &boot) || clock_gettime(CLOCK_REALTIME, &real))
		return;
	ticks = strtoull(field, NULL, 10);
	hundredths = (uint64_t)((real.tv_sec - boot.tv_sec) * 100 +
				(real.tv_nsec - boot.tv_nsec) / 10000000) +
		     ticks * 100 / ticks_per_s;
	snprintf(text, sizeof(text), "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
	record_meta(rec, "process.started", text);
}

/* Distinguishes the process from others with the same host name and pid. */
static void record_identity(struct recorder *rec)
{
	char text[PROCESS_IDENTITY_BYTES], boot[64];
	struct stat status;
	size_t length;

	process_identity_text(text);
	record_meta(rec, "process.identity", text);
	if (!stat("/proc/thread-self/ns/pid", &status))
		record_meta_number(rec, "process.pid_namespace", status.st_ino);
	length = loader_read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (length && boot[length - 1] == '\n')
		boot[length - 1] = '\0';
	if (length)
		record_meta(rec, "host.boot", boot);
}

static void record_ranks(struct recorder *rec)
{
	for (int i = 0; i < PROCESS_RANKS; i++) {
		const char *name, *value = process_rank(i, &name);
		char key[40];

		snprintf(key, sizeof(key), "env.%s", name);
		if (value[0])
			record_meta(rec, key, value);
	}
}

static void record_process(struct recorder *rec)
{
	char text[16 << 10];
	size_t length = loader_read_file("/proc/thread-self/cmdline", text, sizeof(text));
	struct utsname host;

	for (size_t i = 0; i + 1 < length; i++)
		if (!text[i])
			text[i] = ' ';
	record_meta(rec, "process.cmdline", length ? text : "");
	own_program_path(text, sizeof(text));
	record_meta(rec, "process.exe", text);
	if (getcwd(text, sizeof(text)))
		record_meta(rec, "process.cwd", text);
	record_meta_number(rec, "process.id", (uint64_t)getpid());
	record_meta_number(rec, "process.parent", (uint64_t)getppid());
	record_identity(rec);
	record_ranks(rec);
	record_start_time(rec);
	if (!uname(&host)) {
		record_meta(rec, "host.name", host.nodename);
		snprintf(text, sizeof(text), "%s %s", host.sysname, host.release);
		record_meta(rec, "host.kernel", text);
	}
}

static void record_apis(struct recorder *rec)
{
	for (uint32_t i = 0; i < recorded_apis.count; i++) {
		const struct recorded_api *api = &recorded_apis.apis[i];
		struct xt_table *table = recorder_table(rec, XT_KIND_API, strlen(api->name));

		if (!table)
			return;
		xt_write_api(table, &(struct xt_row_api){api->id, xt_text(api->name), api->class});
	}
}

static void record_python(struct recorder *rec)
{
	const struct python_info *about = python_info();

	if (!python_wanted)
		record_meta(rec, "python.off", "1");
	if (!about->path[0]) {
		debug_log(DEBUG_PYTHON, "no interpreter in this process yet");
		return;
	}
	record_meta(rec, "python.version", about->version);
	record_meta(rec, "python.path", about->path);
	debug_log(DEBUG_PYTHON, "%s: version %s%s%s", about->path, about->version,
		  about->why_not[0] ? "; cannot read its frames: " : "", about->why_not);
	/* An empty value withdraws an earlier one. */
	if (about->why_not[0] || about->is_after_rejected)
		record_meta(rec, "python.missing", about->why_not);
	if (python_modules_wanted)
		record_meta(rec, "modules.missing", about->why_no_modules);
}

static void record_torch(struct recorder *rec)
{
	const struct torch_info *about = torch_info();

	if (!about->path[0])
		return;
	record_meta(rec, "torch.path", about->path);
	record_meta(rec, "torch.version", about->version);
	record_meta(rec, "torch.missing", about->why_not);
	debug_log(DEBUG_PYTHON, "%s: PyTorch %s%s%s", about->path, about->version,
		  about->why_not[0] ? "; cannot read its autograd: " : "", about->why_not);
}

void record_start(struct recorder *rec)
{
	unsigned paused = atomic_load(&recording_paused);

	record_meta(rec, "xtrace.version", XTRACE_VERSION);
	record_process(rec);
	if (settings_are_attached())
		record_meta_number(rec, "process.attached", rec->start_ns);
	record_meta_number(rec, "cuda.driver_version", cupti.cuda_version);
	record_meta(rec, "cupti.path", cupti.path);
	record_meta_number(rec, "cupti.version", cupti.version);
	record_meta(rec, "cupti.found", cupti.found_by);
	record_python(rec);
	record_torch(rec);
	if (rec->size_limit.bound.is_flight_recorder)
		record_meta(rec, "log.flight_recorder", "1");
	record_apis(rec);
	record_clock(rec);
	if (paused)
		record_switch(rec, rec->start_ns, false,
			      paused & PAUSED_STOPPED ? XT_SWITCH_STOPPED : XT_SWITCH_ASKED);
	if (paused & PAUSED_STOPPED)
		rec->stopped_ns = rec->start_ns;
}

struct module {
	struct module_image image;
	char path[PATH_MAX];
};

#define MODULES_MAX 8192

struct module_list {
	struct module *modules; /* MODULES_MAX elements; pages are used as needed */
	uint32_t count;
};

static struct {
	struct module_list known, seen;
	uint64_t generation;
	uint64_t seen_generation; /* of the last list */
	bool scanned;
} state;

static bool map_list(struct module_list *list)
{
	list->modules = map_memory(MODULES_MAX * sizeof(struct module));
	return list->modules;
}

static int see_module(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	struct module *module = &state.seen.modules[state.seen.count];

	(void)info_bytes, (void)unused;
	state.seen_generation = info->dlpi_adds;
	if (state.seen.count == MODULES_MAX)
		return 1;
	if (!module_image_read(&module->image, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
		return 0;
	if (info->dlpi_name)
		memccpy(module->path, info->dlpi_name, '\0', sizeof(module->path) - 1);
	else
		module->path[0] = '\0';
	state.seen.count++;
	return 0;
}

/* Whether a list has the module; most keep their position. */
static bool is_in(const struct module_list *list, const struct module *module, uint32_t likely)
{
	for (uint32_t n = 0; n < list->count; n++) {
		const struct module *other = &list->modules[(likely + n) % list->count];

		if (module_image_is_same(&other->image, &module->image) &&
		    !strcmp(other->path, module->path))
			return true;
	}
	return false;
}

static void module_loaded(struct recorder *rec, const struct module *module)
{
	debug_log(DEBUG_STACK, "module loaded at %#llx: %s",
		  (unsigned long long)module->image.start, module->path);
	/* No row will refer to it. */
	if (recorder_is_full(rec))
		return;
	rec->modules_lost += !recorder_module(rec, &module->image, module->path,
					      strlen(module->path), rec->last_scan_ns);
}

static void module_unloaded(struct recorder *rec, const struct module *module)
{
	struct xt_table *table;
	uint32_t id;

	debug_log(DEBUG_STACK, "module unloaded from %#llx: %s",
		  (unsigned long long)module->image.start, module->path);
	if (recorder_is_full(rec))
		return;
	id = recorder_module(rec, &module->image, module->path, strlen(module->path),
			     rec->last_scan_ns);
	table = id ? recorder_table(rec, XT_KIND_MODULE_UNLOAD, 0) : NULL;
	if (!table) {
		rec->modules_lost++;
		return;
	}
	xt_write_module_unload(table, &(struct xt_row_module_unload){id, monotonic_ns()});
}

/* Reports modules that are in one list and not in the other. */
static bool report_changes(const struct module_list *list, const struct module_list *other,
			   void (*told)(struct recorder *, const struct module *),
			   struct recorder *rec)
{
	bool any = false;

	for (uint32_t i = 0; i < list->count; i++) {
		if (is_in(other, &list->modules[i], i))
			continue;
		any = true;
		told(rec, &list->modules[i]);
	}
	return any;
}

/* Not under the loader's lock: makes system calls. */
static void find_path(struct module *module)
{
	char path[PATH_MAX];

	if (module->path[0] == '/')
		return;
	path[module_path(&module->image, module->path, strlen(module->path), path)] = '\0';
	memcpy(module->path, path, sizeof(path));
}

/* Reports modules loaded or unloaded since the last call. True if any was loaded. */
static bool scan_modules(struct recorder *rec)
{
	uint64_t generation = loader_watch_poll();
	struct module_list seen;
	bool any_came;

	if ((!state.known.modules && !map_list(&state.known)) ||
	    (!state.seen.modules && !map_list(&state.seen))) {
		rec->scans_failed++;
		return false;
	}
	/* An unload alone does not change the count; it is found at the next load. */
	if (state.scanned && generation == state.generation)
		return false;
	state.seen.count = 0;
	loader_iterate(see_module, NULL);
	for (uint32_t i = 0; i < state.seen.count; i++)
		find_path(&state.seen.modules[i]);
	any_came = report_changes(&state.seen, &state.known, module_loaded, rec);
	report_changes(&state.known, &state.seen, module_unloaded, rec);
	seen = state.seen;
	state.seen = state.known;
	state.known = seen;
	state.scanned = true;
	state.generation = state.seen_generation;
	return any_came;
}

void record_modules(struct recorder *rec)
{
	uint64_t now_ns = monotonic_ns();
	bool any_came;

	/* A later scan finds what is loaded now. */
	if (rec->write_error)
		return;
	if (!rec->last_scan_ns)
		rec->last_scan_ns = rec->start_ns;
	any_came = scan_modules(rec);
	rec->last_scan_ns = now_ns;
	if (any_came && python_find())
		record_python(rec);
	if (python_modules_gave_up())
		record_meta(rec, "modules.missing",
			    "reading them took more than 2 s and 2 % of the time, because there "
			    "are too many or they change");
	if ((any_came && torch_find()) || torch_has_given_up())
		record_torch(rec);
}

bool record_thread(struct recorder *rec, struct thread_buffer *tb)
{
	struct xt_table *table;
	char path[64], name[64];
	size_t length;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tb->ring->tid);
	length = loader_read_file(path, name, sizeof(name));
	if (length && name[length - 1] == '\n')
		length--;
	if (!length) { /* the thread has ended */
		length = strnlen(tb->first_name, sizeof(tb->first_name));
		memcpy(name, tb->first_name, length);
	}
	debug_log(DEBUG_PROCESS, "thread %u: tid %u, %.*s", tb->known_thread_id, tb->ring->tid,
		  (int)length, name);
	table = recorder_table(rec, XT_KIND_THREAD, length);
	if (!table)
		return false;
	xt_write_thread(table, &(struct xt_row_thread){tb->known_thread_id,
						       tb->ring->tid,
						       {name, length},
						       tb->ring->start_ns});
	return true;
}

void record_clock(struct recorder *rec)
{
	struct xt_table *table = recorder_table(rec, XT_KIND_CLOCK, 0);

	if (!table)
		return;
	xt_write_clock(table, &(struct xt_row_clock){monotonic_ns(), xt_clock_ns(CLOCK_REALTIME)});
}

static void record_switch_of(struct recorder *rec, uint64_t time_ns, bool is_on,
			     enum xt_switch_why why, const char *who)
{
	size_t who_bytes = strlen(who);
	struct xt_table *table =
		recorder_is_full(rec) ? NULL : recorder_table(rec, XT_KIND_SWITCH, who_bytes);

	rec->last_switch_ns = larger(rec->last_switch_ns, time_ns);
	if (!table)
		return;
	xt_write_switch(table, &(struct xt_row_switch){time_ns, is_on, why, {who, who_bytes}});
}

void record_switch(struct recorder *rec, uint64_t time_ns, bool is_on, enum xt_switch_why why)
{
	record_switch_of(rec, time_ns, is_on, why, "");
}

void record_handoffs(struct recorder *rec)
{
	struct cupti_owner_event event;

	while (cupti_owner_next_event(&event)) {
		debug_log(DEBUG_CUPTI, "handoff: %s%s",
			  event.is_back ? "subscribed again" : "released to ", event.who);
		if (event.is_back) /* correlation ids may have restarted */
			suppressed_ids_forget(&rec->skipped);
		record_switch_of(rec, event.time_ns, event.is_back, XT_SWITCH_YIELDED, event.who);
	}
}

/* Prints the usual groups of digits. */
static void record_uuid(struct recorder *rec, uint32_t device, const uint8_t *uuid)
{
	static const uint8_t unknown[GPU_UUID_BYTES];
	char key[32], text[2 * GPU_UUID_BYTES + 5], *end = text;

	if (!memcmp(uuid, unknown, sizeof(unknown)))
		return;
	for (uint32_t b = 0; b < GPU_UUID_BYTES; b++)
		end += sprintf(end, "%s%02x", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "",
			       uuid[b]);
	snprintf(key, sizeof(key), "gpu.%u.uuid", device);
	record_meta(rec, key, text);
}

static void record_limits(struct recorder *rec, uint32_t device, const int limits[GPU_LIMITS])
{
	char key[64], text[16];

	for (int l = 0; l < GPU_LIMITS; l++) {
		if (limits[l] < 0)
			continue;
		snprintf(key, sizeof(key), "gpu.%u.%s", device, gpu_limit_names[l]);
		snprintf(text, sizeof(text), "%d", limits[l]);
		record_meta(rec, key, text);
	}
}

void record_devices(struct recorder *rec)
{
	const struct gpu_names *gpus = rec->devices_named ? NULL : gpu_names();

	if (!gpus)
		return;
	rec->devices_named = true;
	for (uint32_t device = 0; device < gpus->count; device++) {
		char key[32];

		snprintf(key, sizeof(key), "gpu.%u.name", device);
		record_meta(rec, key, gpus->names[device]);
		debug_log(DEBUG_CUPTI, "device %u: %s", device, gpus->names[device]);
		record_uuid(rec, device, gpus->uuids[device]);
		record_limits(rec, device, gpus->limits[device]);
		if (strstr(gpus->names[device], "simulated"))
			record_meta(rec, "gpu.simulated", "1");
	}
}
