/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the tracer in a process.
 *
 * In cuInit(), the CUDA driver opens the library named by CUDA_INJECTION64_PATH and calls
 * InitializeInjection(). If preloaded, the library only sets that variable to its own path. In a
 * running process, xtrace attach opens the library and calls xtrace_attach(). The environment stays
 * unchanged there. On any error the program runs on untraced, and one line on stderr says why, or
 * xtrace attach does.
 *
 * Ends recording before the process exits by exit(), return from main(), quick_exit() or _exit():
 * flushes CUPTI and closes the log. Waits for that at most two seconds.
 *
 * Children of Python's multiprocessing and many signal handlers end a process by _exit(), which
 * runs no exit handler. So the C library's _exit() is hooked. Its caller may be a signal handler,
 * code inside a CUDA call, or a child of vfork() that shares its parent's memory. So the code that
 * runs at the exit is async-signal-safe and uses little stack: it sets flags and waits for the
 * tracer's threads. If waiting would be unsafe or useless, the process ends at once, and the rest
 * is recovered from the crash buffer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/activity.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/lifecycle/config.h"
#include "inject/lifecycle/cpu_sampler.h"
#include "inject/memory/crash_buffer.h"
#include "inject/nvtx/nvtx.h"
#include "inject/python/python_runtime.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/runtime/signal_guard.h"
#include "inject/torch/torch_runtime.h"
#include "inject/unwind/stack_walk.h"
#include "inject/writer/control.h"
#include "inject/writer/snapshot.h"
#include "inject/writer/writer_thread.h"
#include "log/write/compact.h"
#include "log/write/writer.h"

/* Called by the driver; returns 1 for success. */
__attribute__((visibility("default"))) int InitializeInjection(void);

/*
 * Called by xtrace attach, in a thread that it made for this (src/attach/). settings: see
 * settings_use(); they must ask for an armed start. Returns NULL, or why the tracer cannot start:
 * then another attempt may follow.
 */
__attribute__((visibility("default"))) const char *xtrace_attach(const char *settings);

/* Called by NVTX at its first use; returns 1 for success. */
__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(xt_nvtx_get_export_table get_export_table);

/* Called by NVTX at the first use of each extension; returns 1 for success. */
__attribute__((visibility("default"))) int
InitializeInjectionNvtxExtension(struct xt_nvtx_extension *extension);

#define SHUTDOWN_TIMEOUT_NS UINT64_C(2000000000)
#define EXIT_STATUS_WAIT_NS UINT64_C(100000000)

#define REST_IN_SPOOL "; the rest is in the .spool file"
#define REST_LOST     "; the rest is lost, as there is no .spool file"

/*
 * Why the log is not closed. Whole messages, because a handler's stack may be too small to format
 * one.
 */
static const struct {
	int error; /* 0: any other */
	const char *recoverable, *lost;
} endings[] = {
	{-EDEADLK, "cannot close the log: the process exits while it loads a library" REST_IN_SPOOL,
	 "cannot close the log: the process exits while it loads a library" REST_LOST},
	{-EIO, "cannot close the log: a write failed" REST_IN_SPOOL,
	 "cannot close the log: a write failed" REST_LOST},
	{0, "cannot close the log: CUPTI or the disk did not finish in time" REST_IN_SPOOL,
	 "cannot close the log: CUPTI or the disk did not finish in time" REST_LOST},
};

static void report_unclosed_log(int error)
{
	size_t i = 0;

	while (endings[i].error && endings[i].error != error)
		i++;
	log_message_text(crash_buffer_exists() ? endings[i].recoverable : endings[i].lost);
}

enum exit_path {
	NOT_EXITING = 0,
	EXIT_HANDLERS, /* exit(), whose other handlers may run for any time */
	EXIT_IMMEDIATE,
};

static atomic_bool begun;
static atomic_int first_exit_path;	    /* enum exit_path of the first thread that exits */
static atomic_uint_fast64_t shutdown_by_ns; /* 0: no thread exits yet */

/* The first thread stops recording; all wait until the log is closed. */
static void shut_down(enum exit_path exit_path)
{
	uint64_t by_ns = 0, now_ns = monotonic_ns();
	int result;

	if (atomic_compare_exchange_strong(&shutdown_by_ns, &by_ns, now_ns + SHUTDOWN_TIMEOUT_NS)) {
		atomic_store(&first_exit_path, exit_path);
		/* Calls of other threads from now on are counted as lost, with their GPU work. */
		recording_pause(PAUSED_SHUTDOWN);
		nvtx_abandon();
		result = writer_thread_finish(SHUTDOWN_TIMEOUT_NS);
		if (result)
			report_unclosed_log(result);
		/* Set in this order, so that every call is recorded or counted. */
		atomic_store(&callbacks_have_ended, true);
		atomic_store(&callbacks_active, false);
		return;
	}
	writer_thread_finish(by_ns > now_ns ? by_ns - now_ns : 0);
	/* Let the first thread end the process, so that its exit status is used. */
	if (atomic_load(&first_exit_path) == EXIT_IMMEDIATE)
		xt_sleep_ns(EXIT_STATUS_WAIT_NS);
}

static void at_exit(void)
{
	int cancelling;

	/* A child made by a raw system call has our handlers but not our threads. */
	if (!atomic_load(&begun) || !is_own_process())
		return;
	/* Defer cancellation. Otherwise exit() would never finish. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	shut_down(EXIT_HANDLERS);
	pthread_setcancelstate(cancelling, NULL);
}

/* Runs after all exit handlers, including those registered before ours. */
__attribute__((destructor)) static void at_end(void)
{
	if (atomic_load(&begun) && is_own_process())
		writer_thread_wait_late_calls();
}

/*
 * False in a child without our threads, in our own threads, which would wait for themselves, and in
 * a signal handler that interrupted CUDA or the tracer: CUPTI may need a lock that this thread
 * holds.
 */
static bool can_shut_down_here(void)
{
	const struct thread_buffer *tb = current_thread_buffer;

	return atomic_load(&begun) && is_own_process() && writer_thread_is_other_thread() &&
	       !(tb && (tb->within != THREAD_BUFFER_IDLE || tb->ring->open_count));
}

static void (*real_exit)(int), (*real_Exit)(int);

static void shutdown_at_once(void)
{
	int cancelling;
	sigset_t all;

	if (!can_shut_down_here())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	/* A handler that runs now could not be recorded anyway. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	shut_down(EXIT_IMMEDIATE);
	writer_thread_wait_late_calls();
}

static void hook_exit(int status)
{
	symbol_hook_entered();
	shutdown_at_once();
	real_exit(status);
}

static void hook_Exit(int status)
{
	symbol_hook_entered();
	shutdown_at_once();
	real_Exit(status);
}

static const struct symbol_hook hooks[] = {
	{"_exit", (void *)(uintptr_t)hook_exit, (void **)&real_exit},
	{"_Exit", (void *)(uintptr_t)hook_Exit, (void **)&real_Exit},
};

/* Installs the exit handlers and hooks, once tracing runs. */
static void shutdown_begin(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	atexit(at_exit);
	at_quick_exit(at_exit);
	atomic_store(&begun, true);
	/* Without the hooks, _exit() is like a kill: committed data is recovered. */
	if (libc)
		symbol_hooks_install(libc, hooks, sizeof(hooks) / sizeof(*hooks));
}

/* In a forked child, which has no log to close. True if its parent was tracing. */
static bool shutdown_abandon(void)
{
	atomic_store(&shutdown_by_ns, 0);
	return atomic_exchange(&begun, false);
}

static atomic_flag entered = ATOMIC_FLAG_INIT;

/*
 * Whether the loader mapped this library at program start. Preloaded libraries precede the loader
 * in its list; dlopen() appends libraries at the end.
 */
static bool is_preloaded(const struct link_map *own)
{
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (map == own)
			return true;
		if (map->l_addr == _r_debug.r_ldbase)
			return false;
	}
	return false; /* loaded by dlmopen() */
}

/*
 * Adds the missing variables. setenv() may free the array that another thread reads, which a
 * library's constructor started. Some shells replace setenv() by a function that does not work
 * before main().
 */
static void add_to_environment(const char *const *names, size_t count, const char *value)
{
	size_t present = 0, text_bytes = 0;
	char **enlarged, *text;

	while (environ && environ[present])
		present++;
	for (size_t i = 0; i < count; i++)
		text_bytes += strlen(names[i]) + strlen(value) + sizeof("=");
	enlarged = malloc((present + count + 1) * sizeof(*enlarged) + text_bytes);
	if (!enlarged) {
		log_message("cannot record this process: cannot set %s: out of memory", names[0]);
		return;
	}
	text = (char *)(enlarged + present + count + 1);
	if (present)
		memcpy(enlarged, environ, present * sizeof(*enlarged));
	for (size_t i = 0; i < count; i++) {
		if (getenv(names[i]))
			continue;
		enlarged[present++] = text;
		text += sprintf(text, "%s=%s", names[i], value) + 1;
	}
	enlarged[present] = NULL;
	__atomic_store_n(&environ, enlarged, __ATOMIC_RELEASE);
}

/*
 * If preloaded, makes the driver and NVTX open this library. In a running process, other threads
 * may be reading the environment, so it stays unchanged.
 */
__attribute__((constructor)) static void preloaded(void)
{
	static const char *const names[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
	int saved_errno = errno;
	struct link_map *own;
	char path[PATH_MAX];
	Dl_info info;

	/* In a running process, getenv() is no longer safe. */
	if (getauxval(AT_SECURE) ||
	    !dladdr1((void *)(uintptr_t)InitializeInjection, &info, (void **)&own,
		     RTLD_DL_LINKMAP) ||
	    !info.dli_fname || !is_preloaded(own) || (getenv(names[0]) && getenv(names[1])))
		goto out;
	/* An absolute path: the program may change its directory before it starts CUDA. */
	if (!realpath(info.dli_fname, path)) {
		if (info.dli_fname[0] != '/')
			log_message("cannot find the path of libxtrace_inject.so: %s",
				    strerror(errno));
		snprintf(path, sizeof(path), "%s", info.dli_fname);
	}
	add_to_environment(names, sizeof(names) / sizeof(*names), path);
out: /* this may run inside cuInit(), whose caller may look at errno */
	errno = saved_errno;
}

/*
 * A forked child has none of our threads, and the files belong to its parent. It can start tracing
 * if the parent had not.
 */
static void in_forked_child(void)
{
	loader_lock_in_child();
	cpu_sampler_in_child();
	thread_buffers_abandon();
	if (!shutdown_abandon())
		return;
	atomic_store(&callbacks_active, false);
	cupti_handoff_abandon();
	nvtx_abandon();
	activity_abandon();
	graph_level_abandon();
	writer_thread_abandon();
	crash_buffer_abandon();
	debug_log_abandon();
	fork_guard_abandon();
}

static void watch_forks(void)
{
	static atomic_flag watching = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&watching))
		pthread_atfork(loader_lock_before_fork, loader_lock_in_parent, in_forked_child);
}

/* In a shared directory, another user may have planted a link. */
static bool is_foreign_symlink(const char *path)
{
	struct stat status;

	return !lstat(path, &status) && S_ISLNK(status.st_mode) && status.st_uid &&
	       status.st_uid != geteuid();
}

/* Creates the log and stores its path in `path`, of PATH_MAX + 16 bytes. */
static int create_log(const struct config *config, struct xt_log_header *header, char *path,
		      struct xt_writer **log_out)
{
	if (mkdir(config->data_dir, 0700) && errno != EEXIST)
		return -errno;
	if (is_foreign_symlink(config->data_dir))
		return -ELOOP;
	return xt_writer_create_new(path, config->data_dir, ".xtr", header, log_out);
}

/* Writes the header at once, so that the file is a valid log. */
static int write_header(struct xt_writer *log)
{
	struct signal_guard guard;
	int rc;

	signal_hold(&guard, SIGXFSZ);
	rc = xt_writer_flush(log);
	signal_release(&guard, rc == -EFBIG);
	return rc;
}

/* loader_watch observes how its counter changes while these libraries are loaded and unloaded. */
static int open_libraries(const struct config *config, char *why, size_t why_bytes)
{
	int rc;

	stack_walk_close(); /* of an attempt that failed */
	loader_lock_begin();
	loader_watch_begin();
	rc = stack_walk_open(config->library_dir, why, why_bytes);
	if (rc)
		return rc;
	loader_watch_narrow();
	stack_walk_close();
	loader_watch_narrow();
	rc = stack_walk_open(config->library_dir, why, why_bytes);
	if (rc)
		return rc;
	loader_watch_narrow();
	rc = cupti_open(config->cupti_path, why, why_bytes);
	if (rc)
		return rc;
	loader_watch_narrow();
	loader_watch_end();
	return 0;
}

/* Recording waits for a request. */
static bool is_armed(const struct config *config)
{
	return config->start == START_ARMED || config->start == START_ARMED_GRAPHS;
}

/*
 * Creates the log and the crash buffer and starts the writer thread. Stores the log's path, of at
 * most PATH_MAX + 16 bytes, so that the caller can delete it.
 */
static int start_log(const struct config *config, char *log_path, char *why, size_t why_bytes)
{
	struct xt_log_header header = {
		.pid = (uint32_t)getpid(),
		.start_monotonic_ns = monotonic_ns(),
		.start_realtime_ns = xt_clock_ns(CLOCK_REALTIME),
		.clock = XT_CLOCK_MONOTONIC,
		.machine = XT_MACHINE_OWN,
	};
	char crash_buffer_path[PATH_MAX + 32];
	struct xt_writer *log = NULL;
	int rc, buffer_rc;

	process_identity_draw();
	rc = create_log(config, &header, log_path, &log);
	if (!rc) {
		debug_log_open(log_path);
		debug_log(DEBUG_PROCESS, "process %u: xtrace %s writes %s", header.pid,
			  XTRACE_VERSION, log_path);
		debug_log(DEBUG_CUPTI, "%s (%s): version %u, CUDA driver %u", cupti.path,
			  cupti.found_by, cupti.version, cupti.cuda_version);
		/*
		 * The crash buffer only matters if the process is killed, so recording continues
		 * without it.
		 */
		snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s.spool", log_path);
		buffer_rc = crash_buffer_create(crash_buffer_path, header.log_id, cupti.version);
		debug_log(DEBUG_MEMORY, "crash buffer %s: %s", crash_buffer_path,
			  buffer_rc ? strerror(-buffer_rc) : "created");
		if (buffer_rc && is_armed(config) && !settings_are_attached())
			log_message("cannot be started by xtrace start: cannot create %s: %s",
				    crash_buffer_path, strerror(-buffer_rc));
		rc = write_header(log);
		/* An attached process is of no use unless it can be started. */
		if (!rc && settings_are_attached())
			rc = buffer_rc;
	}
	if (rc) {
		snprintf(why, why_bytes, "cannot create a log in %s: %s", config->data_dir,
			 rc == -ELOOP ? "it is a link of another user" : strerror(-rc));
	} else {
		if (config->size_limit.keeps_newest)
			xt_compact_prepare(log);
		rc = writer_thread_start(log, header.start_monotonic_ns, &config->size_limit);
		if (rc)
			snprintf(why, why_bytes, "cannot start the writer thread: %s",
				 strerror(-rc));
	}
	if (rc) {
		crash_buffer_remove();
		if (log)
			unlink(log_path);
		xt_writer_close(log);
	}
	return rc;
}

/*
 * If the program started with closed standard streams, files that we and CUPTI open must not get
 * their numbers. Reading or writing the placeholder fails with EBADF, as before.
 */
static void hold_standard_streams(int held[STDERR_FILENO + 1])
{
	for (int i = 0; i <= STDERR_FILENO; i++)
		held[i] = fcntl(i, F_GETFD) < 0 ? open("/", O_PATH | O_CLOEXEC) : -1;
}

static void release_standard_streams(const int held[STDERR_FILENO + 1])
{
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (held[i] >= 0)
			close(held[i]);
}

/* No thread launches yet: an attached library starts armed. */
static int start_recording(enum api_level level, char *why, size_t why_bytes)
{
	bool are_locked = graph_level_lock_kinds();
	int rc = cupti_subscriber_start(level, true, why, why_bytes);

	graph_level_unlock_kinds(are_locked);
	return rc;
}

static int start_tracing(const struct config *config, char *log_path, char *why, size_t why_bytes)
{
	int rc;

	fork_guard_begin();
	rc = start_log(config, log_path, why, why_bytes);
	if (rc)
		return rc;
	rc = stack_walk_begin();
	if (rc)
		snprintf(why, why_bytes, "cannot initialise libunwind: %s", strerror(-rc));
	else if (config->start == START_ARMED_GRAPHS)
		cupti_subscriber_watch_graphs();
	else if (config->start != START_ARMED)
		rc = start_recording(config->api_level, why, why_bytes);
	if (rc) {
		activity_abandon();
		writer_thread_finish(SHUTDOWN_TIMEOUT_NS);
		unlink(log_path);
	}
	return rc;
}

/* Passes the settings on that are needed before the first library is opened. */
static void use_config(const struct config *config)
{
	stack_capture_audit_interval = config->audit_interval;
	if (is_armed(config))
		recording_pause(PAUSED_STOPPED);
	else if (config->start == START_PAUSED || config->follows_profiler)
		recording_pause(PAUSED_REQUESTED);
	snapshot_begin(&config->snapshots);
	snapshot_triggers_begin(config->triggers, config->trigger_count);
	python_wanted = config->python;
	python_modules_wanted = config->modules;
	python_modules_limited = config->limits_modules;
	torch_wanted = config->autograd;
	cupti_subscriber_set_callback(callback_entry);
	graph_level_begin(config->forces_graph_nodes, cupti_subscriber_stop,
			  thread_buffers_await_work);
}

/* On failure, *why says why. It stays empty if the process must not be traced. */
static bool start(char *why, size_t why_bytes)
{
	static struct config config;
	char log_path[PATH_MAX + 16];

	memset(&config, 0, sizeof(config));
	if (!config_read(&config)) {
		nvtx_abandon();
		return false;
	}
	process_exit_watch_begin();
	use_config(&config);
	if (open_libraries(&config, why, why_bytes))
		goto decline;
	if (config.start == START_ARMED && cupti_subscriber_needs_host_memory())
		config.start = START_ARMED_GRAPHS;
	if (config.start != START_ARMED &&
	    (cupti_subscriber_prepare(settings_are_attached(), why, why_bytes) ||
	     cupti_subscriber_subscribe(why, why_bytes)))
		goto decline;
	control_begin(config.start == START_PAUSED || config.follows_profiler);
	if (api_table_fill(config.api_level)) {
		snprintf(why, why_bytes, "out of memory");
		goto unsubscribe;
	}
	python_find();
	torch_find();
	cupti_owner_begin(&(struct cupti_owner_config){
		.level = config.api_level,
		.is_subscribed = !is_armed(&config),
		.keeps_graphs = config.start == START_ARMED_GRAPHS,
		.yields = config.yields,
		.await_work = thread_buffers_await_work,
	});
	if (start_tracing(&config, log_path, why, why_bytes))
		goto unsubscribe;
	if (config.follows_profiler)
		cupti_subscriber_follow_profiler();
	shutdown_begin();
	watch_forks();
	atomic_store(&callbacks_active, true);
	process_exit_watch_end();
	cupti_owner_ready();
	flusher_allow();
	cupti_handoff_begin();
	cpu_sampler_start(&config);
	debug_log(DEBUG_PROCESS, "%s",
		  is_armed(&config)		   ? "armed"
		  : atomic_load(&recording_paused) ? "recording starts, paused"
						   : "recording starts");
	return true;
unsubscribe:
	if (config.start != START_ARMED)
		cupti_subscriber_unsubscribe();
decline:
	if (!why[0])
		snprintf(why, why_bytes, "out of memory");
	nvtx_abandon();
	debug_log(DEBUG_PROCESS, "not recording: %s", why);
	return false;
}

int InitializeInjection(void)
{
	int held[STDERR_FILENO + 1];
	int saved_errno = errno, cancelling;
	char why[2048] = "";

	/* Defer cancellation until this call returns to the program. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	if (!atomic_flag_test_and_set(&entered)) {
		hold_standard_streams(held);
		if (!start(why, sizeof(why)) && why[0])
			log_message("cannot record this process: %s", why);
		release_standard_streams(held);
	}
	pthread_setcancelstate(cancelling, NULL);
	errno = saved_errno;
	return 1;
}

const char *xtrace_attach(const char *settings)
{
	static atomic_bool is_attaching;
	static char why[2048];
	char notes[1024] = "";
	bool is_started;

	/* A placeholder would be in the way of a thread that opens these descriptors again. */
	for (int i = 0; i <= STDERR_FILENO; i++)
		if (fcntl(i, F_GETFD) < 0)
			return "its standard input, output or error is closed, so the program "
			       "would "
			       "read or write files of xtrace";
	if (atomic_flag_test_and_set(&entered))
		return atomic_load(&is_attaching)
			       ? "another xtrace attach works on it; try again later"
			       : "the process carries xtrace already; unless xtrace ps shows it, "
				 "its recording has ended: restart the program to record it";
	atomic_store(&is_attaching, true);
	why[0] = '\0';
	settings_use(settings);
	/* If the process is not recorded, its stderr stays clean. */
	log_message_collect(notes, sizeof(notes));
	is_started = start(why, sizeof(why));
	log_message_collect(NULL, 0);
	atomic_store(&is_attaching, false);
	if (is_started) {
		if (notes[0])
			log_message("%s", notes + strlen("; "));
		return NULL;
	}
	settings_use(NULL);
	/* Its threads may have started, and cannot start twice. */
	if (!writer_thread_has_started())
		atomic_flag_clear(&entered);
	if (!why[0])
		snprintf(why, sizeof(why), "the process has raised privileges");
	strncat(why, notes, sizeof(why) - strlen(why) - 1);
	return why;
}

int InitializeInjectionNvtx2(xt_nvtx_get_export_table get_export_table)
{
	if (getauxval(AT_SECURE))
		return 0;
	watch_forks();
	return nvtx_take_over(get_export_table);
}

int InitializeInjectionNvtxExtension(struct xt_nvtx_extension *extension)
{
	if (getauxval(AT_SECURE))
		return 0;
	watch_forks();
	return nvtx_take_over_extension(extension);
}
