/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread, and the start and end of both threads.
 *
 * The writer makes no CUPTI or driver call that could block; the flusher does. So a hanging flush
 * blocks neither the log nor, beyond a timeout, the program's exit. Both threads block all signals:
 * handlers belong to the program, and a file beyond its size limit gives an error instead of
 * SIGXFSZ.
 */
#include "inject/writer/writer_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/capture/callbacks.h"
#include "inject/cupti/activity.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"
#include "inject/writer/control.h"
#include "inject/writer/record.h"
#include "inject/writer/recorder.h"
#include "inject/writer/snapshot.h"

/*
 * A ring of 256 KiB has room for 6,500 calls; this period suffices for a million calls per second.
 */
#define ROUND_NS	   (2 * 1000000)
#define IDLE_ROUND_NS	   (10 * 1000000) /* while recording is stopped */
#define FLUSH_LOG_NS	   (250 * 1000000)
#define RETRY_NS	   (10 * 1000000) /* after a failed write; doubled each time */
#define RETRY_MOST_NS	   (250 * 1000000)
#define PREFETCH_NAMES_NS  (50 * 1000000)
#define EXIT_CHECK_NS	   (250 * 1000000) /* check whether the program's threads have ended */
#define ACCOUNT_NS	   (1000 * 1000000)
#define SHRINK_NS	   (1000 * 1000000)
#define ACCOUNT_FULL_NS	   UINT64_C(10000000000)
#define RING_FLUSH_PERCENT 40
#define HELD_FLUSH_COUNT   12
#define STACK_BYTES	   (256 << 10)
#define LARGE_STACK_BYTES  (8 << 20)

/* At the start: how long the program waits for the first rows. */
#define BEGIN_TIMEOUT_NS UINT64_C(1000000000)

/* At the end: how long the writer waits for the flusher, and for threads in callbacks. */
#define FLUSHER_TIMEOUT_NS    UINT64_C(1500000000)
#define BALANCE_TIMEOUT_NS    UINT64_C(250000000)
#define DEADLOCK_NS	      UINT64_C(300000000)
#define LATE_CALLS_TIMEOUT_NS UINT64_C(250000000) /* and for late calls to be counted */

static struct {
	struct recorder recorder;
	struct xt_writer *log; /* NULL: not running */
	atomic_int writer_id, flusher_id;
	atomic_bool has_begun; /* the log has the rows that others refer to */
	atomic_bool stopping;
	atomic_bool finished;
	void (*_Atomic at_end)(void);
	int error;	      /* why the log is not closed; 0: closed. Valid once finished */
	atomic_uint scanning; /* odd while scanning modules, which takes the loader's lock */
	atomic_bool waiting_for_late_calls;
	atomic_uint_fast64_t counted_calls; /* record_calls_seen() of the closed log */
} threads;

static uint32_t drain_round(struct recorder *rec)
{
	uint32_t ring_percent;

	atomic_fetch_add(&threads.scanning, 1);
	record_modules(rec);
	atomic_fetch_add(&threads.scanning, 1);
	ring_percent = record_calls(rec);
	record_activity(rec);
	record_losses(rec);
	return ring_percent;
}

static void keep_spares(void)
{
	struct thread_buffer *tb;
	uint32_t spare = 0;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));)
		spare += atomic_load(&tb->state) == THREAD_BUFFER_FREE;
	while (spare++ < THREAD_BUFFERS_SPARE)
		if (!thread_buffer_create_spare())
			break;
	activity_refill(ACTIVITY_SPARE);
}

static bool flush_is_due(const struct recorder *rec, uint64_t since_ns, uint32_t ring_percent)
{
	/* If memory is short, only a flush of the held buffers gives CUPTI buffers again. */
	return since_ns >= FLUSH_LOG_NS || ring_percent >= RING_FLUSH_PERCENT ||
	       rec->held_count >= HELD_FLUSH_COUNT || (rec->held_count && map_has_failed_lately());
}

/* A full log grows only by its account, so each period is twice as long. */
static uint64_t next_period_ns(const struct recorder *rec, uint64_t period_ns)
{
	if (!recorder_is_full(rec))
		return ACCOUNT_NS;
	return period_ns < ACCOUNT_FULL_NS ? ACCOUNT_FULL_NS : 2 * period_ns;
}

/* Times of periodic work. */
struct times {
	uint64_t flush_ns, account_ns, shrink_ns, names_ns, exit_check_ns;
	uint64_t account_period_ns, retry_period_ns;
};

static bool is_due(uint64_t *last_ns, uint64_t period_ns, uint64_t now_ns)
{
	if (now_ns - *last_ns < period_ns)
		return false;
	*last_ns = now_ns;
	return true;
}

/* Adds no rows meanwhile: the disk may stay full for any time. */
static void retry(struct recorder *rec, struct times *last, uint64_t now_ns)
{
	if (!is_due(&last->flush_ns, last->retry_period_ns, now_ns))
		return;
	if (last->retry_period_ns < RETRY_MOST_NS)
		last->retry_period_ns *= 2;
	/* A write that must fail would briefly take the last free space from the program. */
	if (rec->write_error == -ENOSPC && !xt_writer_has_room(rec->writer))
		return;
	recorder_flush(rec);
}

static void add_and_flush(struct recorder *rec, struct times *last, uint64_t now_ns,
			  uint32_t ring_percent)
{
	record_devices(rec);
	record_handoffs(rec);
	/* The log of a stopped process does not grow. */
	if (!(atomic_load(&recording_paused) & PAUSED_STOPPED) &&
	    is_due(&last->account_ns, last->account_period_ns, now_ns)) {
		last->account_period_ns = next_period_ns(rec, last->account_period_ns);
		record_clock(rec);
		record_account(rec);
	}
	if (flush_is_due(rec, now_ns - last->flush_ns, ring_percent)) {
		last->flush_ns = now_ns;
		last->retry_period_ns = RETRY_NS;
		recorder_flush(rec);
	}
}

static void run_until_stopped(struct recorder *rec)
{
	uint64_t start_ns = monotonic_ns();
	struct times last = {
		start_ns, start_ns, start_ns, start_ns, start_ns, ACCOUNT_NS, RETRY_NS,
	};

	while (!atomic_load(&threads.stopping)) {
		uint32_t ring_percent = drain_round(rec);
		uint64_t now_ns = monotonic_ns();

		/* Its account must not be below an earlier one: that may count calls in rings. */
		snapshot_update(rec);
		control_update(rec);
		if (!control_is_idle() && is_due(&last.names_ns, PREFETCH_NAMES_NS, now_ns))
			prefetch_names(rec);
		if (is_due(&last.shrink_ns, SHRINK_NS, now_ns))
			activity_shrink();
		if (rec->write_error)
			retry(rec, &last, now_ns);
		else
			add_and_flush(rec, &last, now_ns, ring_percent);
		if (is_due(&last.exit_check_ns, EXIT_CHECK_NS, now_ns) &&
		    process_exit_watch_has_ended())
			return;
		size_limit_enforce(rec);
		snapshot_triggers_update(rec);
		keep_spares();
		xt_sleep_ns(control_is_idle() ? IDLE_ROUND_NS : ROUND_NS);
	}
}

static void drain_and_flush(struct recorder *rec)
{
	uint32_t ring_percent = drain_round(rec);

	if (!rec->write_error &&
	    (ring_percent >= RING_FLUSH_PERCENT || rec->held_count >= HELD_FLUSH_COUNT))
		recorder_flush(rec);
}

/* A CUPTI that does not match the driver reports only launches, or only kernels. */
static void warn_if_incomplete(const struct recorder *rec)
{
	uint64_t kernels = rec->kernels.written + rec->kernels.invalid;

	if (rec->launches && !kernels && !atomic_load(&activity_discarded))
		log_message("cannot record kernels: %llu launches, but no kernel record from %s",
			    (unsigned long long)rec->launches, cupti.path);
	if (!rec->launches && kernels)
		log_message("cannot record call paths: %llu kernels, but no launch reported by %s",
			    (unsigned long long)kernels, cupti.path);
}

/* Drains everything. -errno if it cannot be written; the rest stays in the crash buffer. */
static int drain_everything(struct recorder *rec)
{
	int error = rec->write_error ? recorder_flush(rec) : 0;

	/* There may be more completed buffers than can be held at once. */
	for (drain_round(rec); !error && rec->held_count; drain_round(rec))
		error = recorder_flush(rec);
	return error;
}

static int close_log(struct recorder *rec)
{
	int error = xt_writer_add_end(rec->writer);

	return error ? error : xt_writer_flush(rec->writer);
}

/*
 * Drains everything and closes the log. 0, -ETIMEDOUT if CUPTI or a thread did not finish, or
 * -errno of a failed write.
 */
static int finish(struct recorder *rec)
{
	uint64_t began_ns = monotonic_ns(), deadline_ns = began_ns + FLUSHER_TIMEOUT_NS;
	bool balanced = false;
	int error;

	snapshot_end(rec);
	flusher_stop();
	while (!flusher_is_done() && monotonic_ns() < deadline_ns) {
		drain_and_flush(rec);
		xt_sleep_ns(ROUND_NS / 4);
	}
	error = drain_everything(rec);
	/* Calls that return after this point are only counted. */
	atomic_store(&callbacks_have_ended, true);
	atomic_store(&callbacks_active, false);
	if (error)
		return error;
	record_devices(rec);
	record_clock(rec);
	record_handoffs(rec);
	if (atomic_load(&recording_paused) & ~(unsigned)PAUSED_SHUTDOWN)
		/* Shutdown is not a pause. */
		record_switch(rec, monotonic_ns(), true, XT_SWITCH_ASKED);
	/* A thread may still be in a callback: repeat the account until it adds up. */
	deadline_ns = monotonic_ns() + BALANCE_TIMEOUT_NS;
	while (!error) {
		if (record_calls(rec) >= RING_FLUSH_PERCENT)
			error = recorder_flush(rec);
		balanced = record_account(rec);
		if (balanced || monotonic_ns() >= deadline_ns)
			break;
		xt_sleep_ns(ROUND_NS / 4);
	}
	size_limit_end(rec);
	error = recorder_flush(rec);
	if (error)
		return error;
	/* Recovery reads the records that CUPTI kept from the crash buffer. */
	if (!flusher_is_done() || !balanced ||
	    (!cupti_owner_left_records() && cupti_holds_unfinished_work(began_ns)))
		return -ETIMEDOUT;
	warn_if_incomplete(rec);
	if (xt_writer_is_deleted(rec->writer) && !control_log_is_deleted())
		log_message("the log was deleted during recording");
	return close_log(rec);
}

/*
 * Counts calls after the log was closed. Exit handlers registered before CUDA was initialised run
 * after ours and may launch. Each time, the account is appended and the log closed again; periods
 * double, so that the log does not grow forever.
 */
static void count_after_end(struct recorder *rec)
{
	uint64_t period_ns = ROUND_NS, last_ns = monotonic_ns();

	for (;;) {
		atomic_store(&threads.counted_calls, rec->calls_seen);
		xt_sleep_ns(ROUND_NS);
		if (record_calls_seen() == rec->calls_seen ||
		    (monotonic_ns() - last_ns < period_ns &&
		     !atomic_load(&threads.waiting_for_late_calls)))
			continue;
		last_ns = monotonic_ns();
		period_ns *= 2;
		record_account(rec);
		if (recorder_flush(rec) || close_log(rec))
			break;
	}
	atomic_store(&threads.counted_calls, UINT64_MAX);
}

static int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

static void *flusher_thread_main(void *unused)
{
	atomic_store(&threads.flusher_id, thread_id());
	return flusher_main(unused);
}

static void mark_crash_buffer_end(int error)
{
	if (error == -ETIMEDOUT)
		crash_buffer_end(XT_CRASH_BUFFER_UNFINISHED, 0);
	else
		crash_buffer_end(XT_CRASH_BUFFER_WRITE_FAILED, -error);
}

static void *writer_main(void *unused)
{
	struct recorder *rec = &threads.recorder;

	(void)unused;
	atomic_store(&threads.writer_id, thread_id());
	prctl(PR_SET_NAME, "xtrace-writer");
	record_start(rec);
	record_modules(rec);
	recorder_flush(rec);
	atomic_store(&threads.has_begun, true);
	run_until_stopped(rec);
	debug_log(DEBUG_WRITER, "recording stops");
	threads.error = finish(rec);
	debug_log(DEBUG_WRITER, "log: %s", threads.error ? strerror(-threads.error) : "closed");
	if (threads.error) {
		record_losses(rec);
		mark_crash_buffer_end(threads.error);
	} else {
		rec->is_closed = true;
		atomic_store(&threads.counted_calls, rec->calls_seen);
		crash_buffer_remove();
		activity_abandon();
	}
	if (atomic_load(&threads.at_end))
		atomic_load (&threads.at_end)();
	atomic_store(&threads.finished, true);
	/* The program's threads have ended. */
	if (!atomic_load(&threads.stopping))
		process_exit_watch_end_process();
	if (!threads.error)
		count_after_end(rec);
	return NULL;
}

static int start_thread(void *(*main_function)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc = pthread_attr_init(&attributes);

	if (rc)
		return -rc;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	rc = pthread_create(&thread, &attributes, main_function, NULL);
	if (rc == EINVAL) {
		/* Thread-local storage is part of the stack, and some programs have a lot. */
		pthread_attr_setstacksize(&attributes, LARGE_STACK_BYTES);
		rc = pthread_create(&thread, &attributes, main_function, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -rc;
}

/*
 * The process may be killed at once. A recovered log needs the names of APIs and modules, so
 * recording starts only after these are in the log.
 */
static void wait_for_begin(void)
{
	uint64_t deadline_ns = monotonic_ns() + BEGIN_TIMEOUT_NS;

	while (!atomic_load(&threads.has_begun) && monotonic_ns() < deadline_ns)
		xt_sleep_ns(200000);
}

int writer_thread_start(struct xt_writer *log, uint64_t start_ns,
			const struct xt_size_bound *size_limit)
{
	sigset_t all, before;
	int rc = recorder_init(&threads.recorder, log, start_ns);

	if (rc)
		goto give_up;
	threads.recorder.size_limit.bound = *size_limit;
	threads.log = log;
	thread_buffers_set_writer();
	keep_spares();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = start_thread(flusher_thread_main);
	if (!rc) {
		rc = start_thread(writer_main);
		if (rc)
			flusher_stop();
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc) {
		wait_for_begin();
		return 0;
	}
give_up:
	threads.recorder.writer = NULL; /* still owned by the caller */
	threads.log = NULL;
	recorder_free(&threads.recorder);
	return rc;
}

bool writer_thread_has_started(void)
{
	return threads.log != NULL;
}

void writer_thread_at_end(void (*function)(void))
{
	atomic_store(&threads.at_end, function);
}

/*
 * A signal handler may have interrupted this thread while it loaded a library. Then the writer
 * waits for its lock, and this thread for the writer.
 */
static bool is_deadlocked(struct deadlock_probe *probe, uint64_t now_ns)
{
	unsigned scanning = atomic_load(&threads.scanning);

	return scanning % 2 && deadlock_probe_blocked_ns(probe, atomic_load(&threads.writer_id),
							 scanning, now_ns) >= DEADLOCK_NS;
}

int writer_thread_finish(uint64_t timeout_ns)
{
	uint64_t now_ns = monotonic_ns(), deadline_ns = now_ns + timeout_ns;
	struct deadlock_probe probe = {0};

	atomic_store(&threads.stopping, true);
	for (; !atomic_load(&threads.finished); now_ns = monotonic_ns()) {
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		if (is_deadlocked(&probe, now_ns))
			return -EDEADLK;
		xt_sleep_ns(200000);
	}
	return threads.error && threads.error != -ETIMEDOUT ? -EIO : threads.error;
}

void writer_thread_wait_late_calls(void)
{
	uint64_t wanted = record_calls_seen();
	uint64_t deadline_ns = monotonic_ns() + LATE_CALLS_TIMEOUT_NS;

	if (!wanted || !atomic_load(&threads.finished) || threads.error ||
	    thread_id() == atomic_load(&threads.writer_id))
		return;
	atomic_store(&threads.waiting_for_late_calls, true);
	while (atomic_load(&threads.counted_calls) < wanted && monotonic_ns() < deadline_ns)
		xt_sleep_ns(200000);
}

bool writer_thread_is_other_thread(void)
{
	int id = thread_id(), writer_id = atomic_load(&threads.writer_id);
	int saved_errno = errno;
	bool is_here;

	if (id == writer_id || id == atomic_load(&threads.flusher_id))
		return false;
	is_here = atomic_load(&threads.finished) || !syscall(SYS_tgkill, getpid(), writer_id, 0);
	errno = saved_errno; /* after vfork(), errno is shared with the parent */
	return is_here;
}

void writer_thread_abandon(void)
{
	if (threads.log)
		xt_writer_abandon(threads.log);
	threads.log = NULL;
}
