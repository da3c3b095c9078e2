/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot has all rows of the log, then its own: a clock, an account that fits these rows, the
 * reason for it, and END. It is copied in small steps, so that the rings are drained in between.
 * The live log does not change.
 */
#include "inject/writer/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/cupti/flusher.h"
#include "inject/memory/crash_buffer.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/debug_log.h"
#include "inject/runtime/loader_lock.h"
#include "inject/runtime/log_message.h"
#include "inject/writer/record_account.h"
#include "inject/writer/record_run.h"
#include "inject/writer/undelivered_work.h"
#include "log/write/snapshot_file.h"

#define STEP_BYTES	 UINT64_C(4194304) /* copied per round; takes a few milliseconds */
#define FLUSH_TIMEOUT_NS UINT64_C(300000000)
#define TRIGGER_BYTES	 256
#define NUMBER_MAX	 1000000
#define PATH_BYTES	 (PATH_MAX + 64)

static struct snapshot_limits limits;

static struct {
	enum {
		SNAPSHOT_NONE,
		SNAPSHOT_FLUSHING, /* CUPTI delivers the records of finished work */
		SNAPSHOT_COPYING,
	} state;
	char trigger[TRIGGER_BYTES];
	bool is_automatic;
	uint64_t time_ns;     /* of the request */
	uint64_t flush_count; /* flushes of CUPTI before */
	uint64_t last_automatic_ns;
	uint32_t last_number; /* of the last snapshot's name */
	bool is_request_done;
} snapshot;

void snapshot_begin(const struct snapshot_limits *wanted)
{
	limits = *wanted;
}

bool snapshot_is_busy(void)
{
	return snapshot.state != SNAPSHOT_NONE;
}

uint64_t snapshot_wants_from_ns(void)
{
	return snapshot_is_busy() ? snapshot.time_ns : monotonic_ns();
}

static void start(const char *trigger, size_t trigger_bytes, bool is_automatic)
{
	snprintf(snapshot.trigger, sizeof(snapshot.trigger), "%.*s", (int)trigger_bytes, trigger);
	snapshot.is_automatic = is_automatic;
	snapshot.time_ns = monotonic_ns();
	snapshot.flush_count = flusher_flush_count();
	snapshot.state = SNAPSHOT_FLUSHING;
	debug_log(DEBUG_WRITER, "snapshot begins: %s", snapshot.trigger);
}

bool snapshot_request(void)
{
	static const char trigger[] = "request";

	if (snapshot_is_busy())
		return false;
	snapshot.is_request_done = false;
	start(trigger, strlen(trigger), false);
	return true;
}

bool snapshot_request_is_done(void)
{
	return snapshot.is_request_done;
}

bool snapshot_fire(struct recorder *rec, const char *trigger, size_t trigger_bytes, bool is_again)
{
	uint64_t now_ns = monotonic_ns();

	rec->triggers_fired += !is_again;
	if (snapshot_is_busy() || rec->snapshots_automatic >= limits.count_max ||
	    (rec->snapshots_automatic &&
	     now_ns - snapshot.last_automatic_ns < limits.interval_ns)) {
		if (!is_again)
			debug_log(DEBUG_WRITER, "trigger %.*s is only counted", (int)trigger_bytes,
				  trigger);
		return false;
	}
	rec->snapshots_automatic++;
	snapshot.last_automatic_ns = now_ns;
	start(trigger, trigger_bytes, true);
	return true;
}

static int path_of(const struct recorder *rec, const char *ending, char path[PATH_BYTES])
{
	return xt_snapshot_path(xt_writer_path(rec->writer), ending, path, PATH_BYTES);
}

/* In a shared directory, another user may have made the folder, or a link. */
static int make_folder(const char *path)
{
	struct stat status;

	if (!mkdir(path, 0700))
		return 0;
	if (errno != EEXIST || lstat(path, &status))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == geteuid() ? 0 : -EACCES;
}

static int create_draft(struct recorder *rec)
{
	char path[PATH_BYTES], *slash;
	int error = path_of(rec, XT_SNAPSHOT_DRAFT, path);

	if (error)
		return error;
	slash = strrchr(path, '/');
	*slash = '\0';
	error = make_folder(path);
	if (error)
		return error;
	*slash = '/';
	/* A child forked meanwhile would inherit the descriptors. */
	loader_lock();
	error = xt_snapshot_begin(rec->writer, path);
	loader_unlock();
	return error;
}

static void finish(const char *path, int error)
{
	snapshot.state = SNAPSHOT_NONE;
	snapshot.is_request_done |= !snapshot.is_automatic;
	crash_buffer_snapshot(error ? 0 : snapshot.last_number, error);
	debug_log(DEBUG_WRITER, "snapshot ends: %s", error ? strerror(-error) : path);
	if (error == -ECANCELED)
		return;
	if (error && snapshot.is_automatic)
		log_message("cannot write a snapshot (%s): %s", snapshot.trigger, strerror(-error));
	else if (snapshot.is_automatic)
		log_message("snapshot (%s): %s", snapshot.trigger, path);
}

static int begin_copy(struct recorder *rec)
{
	struct undelivered_work undelivered;
	char time[24];
	int error = rec->write_error ? rec->write_error : recorder_flush(rec);

	if (!error)
		error = create_draft(rec);
	if (error)
		return error;
	find_undelivered_work(&undelivered);
	snprintf(time, sizeof(time), "%llu", (unsigned long long)snapshot.time_ns);
	record_meta(rec, "snapshot.trigger", snapshot.trigger);
	record_meta(rec, "snapshot.time", time);
	record_clock(rec);
	record_snapshot_account(rec, undelivered.kernel_count);
	error = recorder_cut(rec);
	if (!error)
		error = xt_writer_add_end(rec->writer);
	/* In any case, the rows must not get into the log. */
	if (xt_snapshot_seal(rec->writer))
		return -ENOMEM;
	if (error) {
		xt_table_clear(&rec->tables[XT_KIND_META]);
		xt_table_clear(&rec->tables[XT_KIND_CLOCK]);
		xt_table_clear(&rec->tables[XT_KIND_ACCOUNT]);
		xt_snapshot_give_up(rec->writer);
	}
	return error;
}

/* Gives the copy the next free name. A process with the same name may have left some. */
static int commit(struct recorder *rec, char path[PATH_BYTES])
{
	int error = 0;

	do {
		char ending[XT_SNAPSHOT_ENDING_BYTES];

		xt_snapshot_ending(ending, ++snapshot.last_number);
		error = path_of(rec, ending, path);
	} while (!error && !access(path, F_OK) && snapshot.last_number < NUMBER_MAX);
	if (!error)
		return xt_snapshot_commit(rec->writer, path);
	xt_snapshot_give_up(rec->writer);
	return error;
}

void snapshot_update(struct recorder *rec)
{
	char path[PATH_BYTES] = "";
	int error = 0;

	if (snapshot.state == SNAPSHOT_FLUSHING) {
		/* The first of two flushes may have begun before the trigger. */
		if (flusher_flush_count() < snapshot.flush_count + 2 &&
		    monotonic_ns() < snapshot.time_ns + FLUSH_TIMEOUT_NS)
			return;
		error = begin_copy(rec);
		snapshot.state = SNAPSHOT_COPYING;
	} else if (snapshot.state == SNAPSHOT_COPYING) {
		error = xt_snapshot_step(rec->writer, STEP_BYTES);
		if (error > 0)
			error = commit(rec, path);
		else if (!error)
			return;
	} else {
		return;
	}
	if (error || path[0])
		finish(path, error);
}

void snapshot_end(struct recorder *rec)
{
	xt_snapshot_give_up(rec->writer);
	if (snapshot_is_busy())
		finish("", -ECANCELED);
}
