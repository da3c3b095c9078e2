/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's account of itself: what it saw, wrote and lost, and what it costs. Writer thread
 * only.
 */
#include "inject/writer/record.h"

#include <stddef.h>
#include <string.h>

#include "inject/capture/callbacks.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/nvtx/nvtx.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/log_message.h"
#include "log/base/compare.h"
#include "xtrace/ring_accounts.h"

static uint64_t relaxed(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/*
 * Estimated time of the program's threads in the tracer: cold paths as measured, other calls by the
 * timed ones. A call is charged the mean cost when first seen, so that the sum never decreases.
 */
static uint64_t callbacks_cost_ns(void)
{
	static struct {
		uint64_t slow_path_ns, seen;
	} counted[THREAD_BUFFERS_MAX]; /* what the sum includes of each thread buffer */
	static uint64_t sum_ns;
	const struct thread_buffer *tb;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));) {
		uint64_t slow_path_ns = relaxed(&tb->slow_path_ns);
		uint64_t timed_ns = relaxed(&tb->timed_ns), timed_count = relaxed(&tb->timed_count);
		uint64_t seen = relaxed(&tb->ring->counters[XT_RING_CALLS_SEEN]);

		sum_ns += slow_path_ns - counted[i - 1].slow_path_ns;
		counted[i - 1].slow_path_ns = slow_path_ns;
		if (!timed_count)
			continue;
		sum_ns += (uint64_t)((double)timed_ns / (double)timed_count *
				     (double)(seen - counted[i - 1].seen));
		counted[i - 1].seen = seen;
	}
	return sum_ns;
}

#define COUNTS_MAX 128

static uint32_t counts_logged; /* index of the next counter in this account */

/* Sums a counter of struct xt_ring_header. */
static uint64_t rings_field_sum(size_t offset)
{
	const struct thread_buffer *tb;
	uint64_t sum = 0;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));)
		/* Pairs with counter_add_lost(). */
		sum += __atomic_load_n((const uint64_t *)((const uint8_t *)tb->ring + offset),
				       __ATOMIC_ACQUIRE);
	return sum;
}

static uint64_t thread_buffers_sum(enum xt_ring_counter counter)
{
	return rings_field_sum(offsetof(struct xt_ring_header, counters) +
			       counter * sizeof(uint64_t));
}

/* Calls that callbacks could not count in a ring. */
static uint64_t calls_outside_rings(void)
{
	return atomic_load(&thread_buffer_calls_missed) + atomic_load(&callbacks_reentered);
}

/* The debug domain of a counter, by the first part of its name. */
static enum debug_domain domain_of(const char *name)
{
	static const struct {
		const char *prefix;
		enum debug_domain domain;
	} domains[] = {
		{"stacks.", DEBUG_STACK},    {"modules.", DEBUG_STACK}, {"buffers.", DEBUG_CUPTI},
		{"cupti.", DEBUG_CUPTI},     {"records.", DEBUG_CUPTI}, {"python.", DEBUG_PYTHON},
		{"ranges.", DEBUG_NVTX},     {"tracer.", DEBUG_MEMORY}, {"spool.", DEBUG_MEMORY},
		{"threads.", DEBUG_PROCESS},
	};

	for (size_t i = 0; i < sizeof(domains) / sizeof(*domains); i++)
		if (begins_with(name, domains[i].prefix))
			return domains[i].domain;
	return DEBUG_WRITER;
}

static void debug_count(const char *name, uint64_t value)
{
	static uint64_t last[COUNTS_MAX];
	uint32_t i = counts_logged++ % COUNTS_MAX;

	if (value != last[i])
		debug_log(domain_of(name), "%s %llu (+%lld)", name, (unsigned long long)value,
			  (long long)(value - last[i]));
	last[i] = value;
}

static bool add_count(struct recorder *rec, const char *name, uint64_t value)
{
	struct xt_table *table = recorder_table(rec, XT_KIND_ACCOUNT, strlen(name));

	debug_count(name, value);
	if (!table)
		return false;
	xt_write_account(table, &(struct xt_row_account){xt_text(name), value});
	return true;
}

uint64_t record_calls_seen(void)
{
	return thread_buffers_sum(XT_RING_CALLS_SEEN) + calls_outside_rings() +
	       atomic_load(&callbacks_after_end);
}

/* The calls of an account: seen = written + lost. */
struct call_sums {
	uint64_t seen_here; /* record_calls_seen() at the same moment */
	uint64_t counted;   /* the sum of the following, which are written or lost */
	uint64_t seen, written, ring_full, no_ring, nested, beyond_size, shutdown_dropped,
		after_end;
	uint64_t size_dropped; /* part of beyond_size that was not recorded */
	bool is_settled;
};

static struct call_sums sum_calls(const struct recorder *rec)
{
	struct call_sums sums = {
		.after_end = atomic_load(&callbacks_after_end),
		.written = rec->calls.written + rec->calls.pending,
		.size_dropped = rings_field_sum(offsetof(struct xt_ring_header, size_drop_count)),
	};
	uint64_t reentered = atomic_load(&callbacks_reentered), counted;

	sums.beyond_size = rec->calls.beyond_size + sums.size_dropped;
	sums.ring_full = thread_buffers_sum(XT_RING_LOST_RING_FULL);
	sums.no_ring = atomic_load(&thread_buffer_calls_missed);
	sums.shutdown_dropped =
		rings_field_sum(offsetof(struct xt_ring_header, shutdown_drop_count));
	sums.nested = thread_buffers_sum(XT_RING_LOST_NESTED) + reentered;
	/*
	 * Last, so that it has every call that is counted above. If both sums are equal, no call
	 * was on its way. The other order could miss one call and find another one lost.
	 */
	sums.seen_here =
		thread_buffers_sum(XT_RING_CALLS_SEEN) + sums.no_ring + reentered + sums.after_end;
	sums.seen = sums.seen_here + sums.size_dropped;
	counted = sums.written + sums.ring_full + sums.no_ring + sums.nested +
		  rec->calls.write_failed + sums.beyond_size + sums.shutdown_dropped +
		  sums.after_end;
	/* A thread was in a callback when the log was closed. */
	if (rec->is_closed && sums.seen > counted) {
		sums.after_end += sums.seen - counted;
		counted = sums.seen;
	}
	sums.counted = counted;
	sums.is_settled = sums.seen == counted;
	return sums;
}

/* Calls of rings outside the crash buffer: recovery cannot count them. */
static uint64_t calls_unbacked(void)
{
	const struct thread_buffer *tb;
	uint64_t sum = 0;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));)
		if (tb->is_unbacked)
			sum += relaxed(&tb->ring->counters[XT_RING_CALLS_SEEN]) +
			       relaxed(&tb->ring->size_drop_count);
	return sum;
}

struct losses {
	uint64_t counters[XT_CRASH_BUFFER_COUNTERS];
};

static struct losses sum_losses(const struct recorder *rec)
{
	uint64_t ranges_unplaced = atomic_load(&nvtx_events_without_thread_buffer);

	return (struct losses){{
		[XT_CRASH_BUFFER_CALLS_NO_RING] = atomic_load(&thread_buffer_calls_missed),
		[XT_CRASH_BUFFER_CALLS_REENTERED] = atomic_load(&callbacks_reentered),
		[XT_CRASH_BUFFER_CALLS_WRITE_FAILED] = rec->calls.write_failed,
		[XT_CRASH_BUFFER_KERNELS_INVALID] = rec->kernels.invalid,
		[XT_CRASH_BUFFER_KERNELS_WRITE_FAILED] = rec->kernels.write_failed,
		[XT_CRASH_BUFFER_COPIES_INVALID] = rec->copies.invalid,
		[XT_CRASH_BUFFER_COPIES_WRITE_FAILED] = rec->copies.write_failed,
		[XT_CRASH_BUFFER_SETS_INVALID] = rec->sets.invalid,
		[XT_CRASH_BUFFER_SETS_WRITE_FAILED] = rec->sets.write_failed,
		[XT_CRASH_BUFFER_MEMORY_WRITE_FAILED] = rec->memory.write_failed,
		[XT_CRASH_BUFFER_NODES_LOST] = rec->nodes_beyond_size + rec->nodes_lost,
		/* Rings count what threads committed. */
		[XT_CRASH_BUFFER_RANGES_SEEN] = ranges_unplaced + rec->open_ranges.ended_count -
						rec->open_ranges.ignored_count -
						rec->ranges_forgotten,
		[XT_CRASH_BUFFER_RANGES_LOST] =
			ranges_unplaced + rec->ranges_beyond_size + rec->ranges_lost,
		[XT_CRASH_BUFFER_STACKS_LOST] = rec->stacks_lost,
		[XT_CRASH_BUFFER_MODULES_LOST] =
			rec->modules_lost + (rec->scans_failed > 1 ? rec->scans_failed : 0),
		[XT_CRASH_BUFFER_NAMES_LOST] = rec->names_lost,
		[XT_CRASH_BUFFER_CUPTI_DROPPED] = atomic_load(&flusher_dropped_records),
		[XT_CRASH_BUFFER_BUFFERS_DISCARDED] = atomic_load(&activity_discarded),
		[XT_CRASH_BUFFER_BUFFERS_LOST] = rec->buffers_lost,
		[XT_CRASH_BUFFER_BUFFERS_INVALID] = atomic_load(&activity_invalid),
		[XT_CRASH_BUFFER_CALLS_UNBACKED] = calls_unbacked(),
		[XT_CRASH_BUFFER_CALLS_AFTER_END] = atomic_load(&callbacks_after_end),
		[XT_CRASH_BUFFER_CALLS_SIZE] = rec->calls.beyond_size,
		[XT_CRASH_BUFFER_KERNELS_SIZE] = rec->kernels.beyond_size,
		[XT_CRASH_BUFFER_COPIES_SIZE] = rec->copies.beyond_size,
		[XT_CRASH_BUFFER_SETS_SIZE] = rec->sets.beyond_size,
		[XT_CRASH_BUFFER_MEMORY_SIZE] = rec->memory.beyond_size,
	}};
}

/* Calls and GPU work that were lost, for xtrace ps. */
static uint64_t lost_events(const struct recorder *rec, const struct losses *losses)
{
	static const enum xt_crash_buffer_counter counters[] = {
		XT_CRASH_BUFFER_CALLS_NO_RING,	      XT_CRASH_BUFFER_CALLS_REENTERED,
		XT_CRASH_BUFFER_CALLS_WRITE_FAILED,   XT_CRASH_BUFFER_KERNELS_INVALID,
		XT_CRASH_BUFFER_KERNELS_WRITE_FAILED, XT_CRASH_BUFFER_COPIES_INVALID,
		XT_CRASH_BUFFER_COPIES_WRITE_FAILED,  XT_CRASH_BUFFER_SETS_INVALID,
		XT_CRASH_BUFFER_SETS_WRITE_FAILED,    XT_CRASH_BUFFER_CUPTI_DROPPED,
		XT_CRASH_BUFFER_CALLS_SIZE,	      XT_CRASH_BUFFER_KERNELS_SIZE,
		XT_CRASH_BUFFER_COPIES_SIZE,	      XT_CRASH_BUFFER_SETS_SIZE,
		XT_CRASH_BUFFER_MEMORY_SIZE,
	};
	uint64_t sum = thread_buffers_sum(XT_RING_LOST_RING_FULL) +
		       thread_buffers_sum(XT_RING_LOST_NESTED) +
		       rings_field_sum(offsetof(struct xt_ring_header, size_drop_count));
	/* A flight recorder forgets on purpose: without the counters by size. */
	bool forgets =
		rec->size_limit.bound.is_flight_recorder && rec->size_limit.state < SIZE_PAUSED;

	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters) - (forgets ? 5 : 0); i++)
		sum += losses->counters[counters[i]];
	return sum;
}

void record_losses(const struct recorder *rec)
{
	struct losses losses = sum_losses(rec);

	crash_buffer_totals(rec->launches, lost_events(rec, &losses));
	/* Only lost if the process is killed now. */
	losses.counters[XT_CRASH_BUFFER_BUFFERS_LOST] += activity_unbacked();
	crash_buffer_count(losses.counters);
}

/* Events that were seen, as far as their rows are in the log. */
static uint64_t seen_in_log(const struct recorder *rec, enum xt_ring_counter counter,
			    const struct losses *losses, uint64_t seen)
{
	if (counter == XT_RING_RANGES_SEEN)
		return rec->ranges_written + thread_buffers_sum(XT_RING_RANGES_LOST) +
		       losses->counters[XT_CRASH_BUFFER_RANGES_LOST];
	if (counter == XT_RING_NODES_SEEN)
		return rec->nodes_written + thread_buffers_sum(XT_RING_NODES_LOST) +
		       losses->counters[XT_CRASH_BUFFER_NODES_LOST];
	return seen;
}

static bool add_shared_counts(struct recorder *rec, bool is_snapshot)
{
	const struct losses losses = sum_losses(rec);

	for (size_t i = 0; i < sizeof(xt_ring_accounts) / sizeof(*xt_ring_accounts); i++) {
		const struct xt_ring_account *account = &xt_ring_accounts[i];
		uint64_t outside = account->outside < XT_CRASH_BUFFER_COUNTERS
					   ? losses.counters[account->outside]
					   : 0;

		uint64_t value = thread_buffers_sum(account->counter) + outside;

		if (is_snapshot)
			value = seen_in_log(rec, account->counter, &losses, value);
		if (!add_count(rec, account->name, value))
			return false;
	}
	for (size_t i = 0; i < sizeof(xt_crash_buffer_accounts) / sizeof(*xt_crash_buffer_accounts);
	     i++)
		if (!add_count(rec, xt_crash_buffer_accounts[i].name,
			       losses.counters[xt_crash_buffer_accounts[i].counter]))
			return false;
	return true;
}

static bool add_account(struct recorder *rec, bool is_snapshot)
{
	const struct call_sums calls = sum_calls(rec);
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"calls.seen", is_snapshot ? calls.counted : calls.seen},
		{"calls.written", calls.written},
		{"calls.lost.ring_full", calls.ring_full},
		{"calls.lost.no_ring", calls.no_ring},
		{"calls.lost.nested", calls.nested},
		{"calls.lost.write_failed", rec->calls.write_failed},
		{"calls.lost.size", calls.beyond_size},
		{"calls.lost.leaving", calls.shutdown_dropped},
		{"calls.lost.after_end", calls.after_end},
		{"kernels.written", rec->kernels.written + rec->kernels.pending},
		{"kernels.lost.size", rec->kernels.beyond_size},
		{"kernels.lost.leaving", rec->kernels.shutdown_dropped},
		{"copies.written", rec->copies.written + rec->copies.pending},
		{"copies.lost.size", rec->copies.beyond_size},
		{"copies.lost.leaving", rec->copies.shutdown_dropped},
		{"sets.written", rec->sets.written + rec->sets.pending},
		{"sets.lost.size", rec->sets.beyond_size},
		{"sets.lost.leaving", rec->sets.shutdown_dropped},
		{"memory.written", rec->memory.written + rec->memory.pending},
		{"memory.lost.size", rec->memory.beyond_size},
		{"calls.skipped", rec->skipped.count - rec->skipped_beyond_size},
		{"records.skipped", rec->records_skipped},
		{"records.other", rec->records_other},
		{"buffers.completed", rec->buffers_completed},
		{"buffers.waited_ns", atomic_load(&activity_waited_ns)},
		{"apis.lost", atomic_load(&cupti_lost_apis)},
		{"kinds.lost", atomic_load(&cupti_lost_kinds)},
		{"kinds.lost.unsafe", atomic_load(&cupti_unsafe_kinds)},
		{"kinds.lost.memory", atomic_load(&cupti_unsafe_memory)},
		{"threads.seen", rec->threads_seen},
		{"snapshots.automatic", rec->snapshots_automatic},
		{"snapshots.triggers", rec->triggers_fired},
		{"spool.unbacked", crash_buffer_unbacked_areas()},
		{"tracer.memory_bytes", budget_peak_bytes()},
		{"tracer.memory_refusals", budget_refusals()},
		{"callbacks.ns", callbacks_cost_ns()},
		{"writer.cpu_ns", xt_clock_ns(CLOCK_THREAD_CPUTIME_ID)},
		{"flusher.cpu_ns", atomic_load(&flusher_cpu_ns)},
		{"log.bytes", xt_writer_file_bytes(rec->writer)},
	};

	counts_logged = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!add_count(rec, rows[i].name, rows[i].value))
			return false;
	if (!add_shared_counts(rec, is_snapshot))
		return false;
	rec->calls_seen = calls.seen_here;
	return calls.is_settled;
}

bool record_account(struct recorder *rec)
{
	return add_account(rec, false);
}

void record_snapshot_account(struct recorder *rec, uint64_t kernels_unfinished)
{
	add_account(rec, true);
	add_count(rec, "kernels.unfinished", kernels_unfinished);
}
