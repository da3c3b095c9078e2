/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of recording, in the thread that ends the process.
 *
 * Forked children of Python's multiprocessing, and many a program that handles signals, end by _exit(),
 * which calls nobody. So the C library's _exit() is hooked as CUPTI's functions are for --yield. It may
 * be called anywhere: in a signal handler, in the middle of a CUDA call, in a child of vfork() with its
 * parent's memory. So what is done here is async-signal-safe: flags are set, and the tracer's threads
 * waited for, which do the work; and little stack is taken, as a handler's may be small. Where that might harm or be in vain, the process ends as it would
 * without us, and what is missing is recovered from the crash buffer.
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
#include "inject/runtime/clock.h"
#include "inject/capture/thread_buffer.h"
#include "inject/nvtx/nvtx_events.h"
#include "inject/runtime/fork_guard.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/sleep.h"
#include "inject/memory/crash_buffer.h"
#include "inject/runtime/recording_state.h"
#include "inject/runtime/symbol_hooks.h"
#include "inject/writer/writer_thread.h"

#define EXIT_STATUS_WAIT_NS UINT64_C(100000000)

#define REST_IN_SPOOL "; what is missing is in the spool"
#define REST_LOST     "; there is no spool file to keep the rest, so it is lost"

/* Why the log is not closed. A handler's stack may be too small to put texts together. */
static const struct {
	int error; /* 0: any other */
	const char *recoverable, *lost;
} endings[] = {
	{-EDEADLK, "the process ends as it loads a library" REST_IN_SPOOL,
	 "the process ends as it loads a library" REST_LOST},
	{-EIO, "cannot write the end of the log" REST_IN_SPOOL,
	 "cannot write the end of the log" REST_LOST},
	{0, "CUPTI or the disk did not finish" REST_IN_SPOOL,
	 "CUPTI or the disk did not finish" REST_LOST},
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
	EXIT_HANDLERS, /* exit() goes on for as long as it likes */
	EXIT_IMMEDIATE,
};

static atomic_bool begun;
static atomic_int first_exit_path;	    /* enum way, of the first that leaves */
static atomic_uint_fast64_t shutdown_by_ns; /* 0: nobody leaves yet */

/* Whoever comes first stops recording; all wait until what was recorded is in the log. */
static void shut_down(enum exit_path exit_path)
{
	uint64_t by_ns = 0, now_ns = monotonic_ns();
	int result;

	if (atomic_compare_exchange_strong(&shutdown_by_ns, &by_ns, now_ns + SHUTDOWN_TIMEOUT_NS)) {
		atomic_store(&first_exit_path, exit_path);
		/* Other threads may go on launching: that is lost, with what the GPU does for them, and counted. */
		recording_pause(PAUSED_SHUTDOWN);
		nvtx_abandon();
		result = writer_thread_finish(SHUTDOWN_TIMEOUT_NS);
		if (result)
			report_unclosed_log(result);
		/* In this order: what is not recorded is counted. */
		atomic_store(&callbacks_have_ended, true);
		atomic_store(&callbacks_active, false);
		return;
	}
	writer_thread_finish(by_ns > now_ns ? by_ns - now_ns : 0);
	/* The first one's status is the program's, as it would be if it had not waited. */
	if (atomic_load(&first_exit_path) == EXIT_IMMEDIATE)
		xt_sleep_ns(EXIT_STATUS_WAIT_NS);
}

static void at_exit(void)
{
	int cancelling;

	/* A child of which the C library does not know has our handlers and nothing else of ours. */
	if (!atomic_load(&begun) || !is_own_process())
		return;
	/* Who wants to end this thread has to wait, or the process would go on. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	shut_down(EXIT_HANDLERS);
	pthread_setcancelstate(cancelling, NULL);
}

/* Behind all exit handlers, those that were registered before ours included. */
__attribute__((destructor)) static void at_end(void)
{
	if (atomic_load(&begun) && is_own_process())
		writer_thread_settle();
}

/*
 * Not in a child that has our memory and none of our threads. Not in our own threads, which would wait
 * for themselves. Not where a signal handler has interrupted CUDA or us: what the thread holds, CUPTI
 * may need.
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
	/* For what comes now it would be too late, too. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	shut_down(EXIT_IMMEDIATE);
	writer_thread_settle();
}

static void hook_exit(int status)
{
	shutdown_at_once();
	real_exit(status);
}

static void hook_Exit(int status)
{
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
	/* Where that fails, _exit() is like a kill: what was committed is recovered. */
	if (libc)
		symbol_hooks_install(libc, hooks, sizeof(hooks) / sizeof(*hooks));
}

bool shutdown_abandon(void)
{
	atomic_store(&shutdown_by_ns, 0);
	return atomic_exchange(&begun, false);
}
