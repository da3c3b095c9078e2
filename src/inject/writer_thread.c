/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread and the flusher thread.
 *
 * The writer never calls anything of CUPTI's that could block; the flusher does nothing else. So
 * a flush that hangs stops neither the log nor, beyond a bound, the end of the program. Both run
 * with all signals blocked: handlers are the program's.
 */
#include "inject/writer_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "inject/callbacks.h"
#include "inject/clock.h"
#include "inject/recorder.h"
#include "inject/spool.h"

/* A ring of 256 KiB holds 6,500 calls; the writer looks often enough for a million a second. */
#define ROUND_NS	   (2 * 1000000)
#define FLUSH_CUPTI_NS	   (50 * 1000000)
#define FLUSH_LOG_NS	   (250 * 1000000)
#define ACCOUNT_NS	   (1000 * 1000000)
#define RING_FLUSH_PERCENT 40
#define HELD_FLUSH_COUNT   3
#define STACK_BYTES	   (256 << 10)

/* At the end: how long the writer waits for the flusher, and for calls in mid-callback. */
#define FLUSHER_PATIENCE_NS UINT64_C(1500000000)
#define BALANCE_ROUNDS	    50

static struct {
	struct recorder recorder;
	int log_fd;
	atomic_bool stopping;
	atomic_bool flushed; /* CUPTI has given out all it had */
	atomic_bool finished;
} threads = {.log_fd = -1};

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}

static void *flusher_main(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "xtrace-flush");
	while (!atomic_load(&threads.stopping)) {
		for (uint64_t slept = 0; slept < FLUSH_CUPTI_NS && !atomic_load(&threads.stopping);
		     slept += ROUND_NS)
			sleep_ns(ROUND_NS);
		cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
	}
	/* Complete records first; then whatever is left, finished or not. */
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_FORCED);
	atomic_store(&threads.flushed, true);
	return NULL;
}

static uint32_t take_all(struct recorder *rec)
{
	uint32_t ring_percent;

	record_modules(rec);
	ring_percent = record_calls(rec);
	record_kernels(rec);
	return ring_percent;
}

static void keep_stock(void)
{
	uint32_t spare = 0;

	for (uint32_t i = 0; i < lane_count(); i++) {
		struct lane *lane = lane_at(i);

		if (lane && atomic_load(&lane->state) == LANE_FREE)
			spare++;
	}
	while (spare++ < LANES_SPARE)
		if (!lane_create_spare())
			break;
	activity_stock(ACTIVITY_SPARE);
}

static void run_until_stopped(struct recorder *rec)
{
	uint64_t last_flush_ns = monotonic_ns(), last_account_ns = last_flush_ns;

	while (!atomic_load(&threads.stopping)) {
		uint32_t ring_percent = take_all(rec);
		uint64_t now_ns = monotonic_ns();

		if (rec->buffers_completed)
			record_devices(rec);
		if (now_ns - last_account_ns >= ACCOUNT_NS) {
			record_clock(rec);
			record_account(rec);
			last_account_ns = now_ns;
		}
		if (now_ns - last_flush_ns >= FLUSH_LOG_NS || ring_percent >= RING_FLUSH_PERCENT ||
		    rec->held_count >= HELD_FLUSH_COUNT) {
			recorder_flush(rec);
			last_flush_ns = now_ns;
		}
		keep_stock();
		sleep_ns(ROUND_NS);
	}
}

static void finish(struct recorder *rec)
{
	uint64_t deadline_ns = monotonic_ns() + FLUSHER_PATIENCE_NS;

	while (!atomic_load(&threads.flushed) && monotonic_ns() < deadline_ns) {
		take_all(rec);
		sleep_ns(ROUND_NS / 4);
	}
	/* A thread may have been inside a callback when they were switched off. */
	take_all(rec);
	for (int i = 0; i < BALANCE_ROUNDS && !record_is_balanced(rec); i++) {
		sleep_ns(ROUND_NS / 4);
		take_all(rec);
	}
	while (rec->held_count == HELD_BUFFERS_MAX) {
		recorder_flush(rec);
		record_kernels(rec);
	}
	record_devices(rec);
	record_clock(rec);
	/* One flush for the rows, one for the account of them, so that the account counts what is
	 * really in the file. */
	recorder_flush(rec);
	record_account(rec);
	if (recorder_flush(rec) == 0 && xt_writer_add_end(rec->writer) == 0 &&
	    xt_writer_flush(rec->writer) == 0)
		spool_remove();
}

static void *writer_main(void *unused)
{
	struct recorder *rec = &threads.recorder;

	(void)unused;
	prctl(PR_SET_NAME, "xtrace-writer");
	record_start(rec);
	run_until_stopped(rec);
	finish(rec);
	atomic_store(&threads.finished, true);
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
	pthread_attr_destroy(&attributes);
	return -rc;
}

int writer_thread_start(struct xt_writer *log, uint64_t start_ns)
{
	sigset_t all, before;
	int rc = recorder_init(&threads.recorder, log, start_ns);

	if (rc)
		goto give_up;
	threads.log_fd = xt_writer_fd(log);
	keep_stock();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = start_thread(flusher_main);
	if (!rc) {
		rc = start_thread(writer_main);
		if (rc)
			atomic_store(&threads.stopping, true); /* the flusher ends by itself */
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		return 0;
give_up:
	threads.recorder.writer = NULL;
	threads.log_fd = -1;
	recorder_free(&threads.recorder);
	return rc;
}

bool writer_thread_finish(uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;

	atomic_store(&threads.stopping, true);
	while (!atomic_load(&threads.finished)) {
		if (monotonic_ns() >= deadline_ns)
			return false;
		sleep_ns(200000);
	}
	return true;
}

void writer_thread_abandon(void)
{
	if (threads.log_fd >= 0)
		close(threads.log_fd);
	threads.log_fd = -1;
}
