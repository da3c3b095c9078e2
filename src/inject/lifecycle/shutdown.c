/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the thread that ends the process.
 *
 * Children of Python's multiprocessing and many signal handlers end a process by _exit(), which
 * runs no exit handler. So the C library's _exit() is hooked. Its caller may be a signal handler,
 * code inside a CUDA call, or a child of vfork() that shares its parent's memory. So this code is
 * async-signal-safe and uses little stack: it sets flags and waits for the tracer's threads. If
 * waiting would be unsafe or useless, the process ends at once, and the rest is recovered from the
 * crash buffer.
 */
#include "inject/lifecycle/shutdown.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/thread_buffer.h"
#include "inject/memory/crash_buffer.h"
#include "inject/nvtx/nvtx.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/writer/writer_thread.h"

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

void shutdown_begin(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	atexit(at_exit);
	at_quick_exit(at_exit);
	atomic_store(&begun, true);
	/* Without the hooks, _exit() is like a kill: committed data is recovered. */
	if (libc)
		symbol_hooks_install(libc, hooks, sizeof(hooks) / sizeof(*hooks));
}

bool shutdown_abandon(void)
{
	atomic_store(&shutdown_by_ns, 0);
	return atomic_exchange(&begun, false);
}
