/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a log's account: what each counts, and which are losses.
 * docs/internals/LOG_FORMAT.md has the same list. Any thread.
 */
#ifndef XTRACE_ACCOUNT_H
#define XTRACE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct xt_account {
	const char *name;
	const char *meaning; /* for a loss: what was lost and why */
} xt_accounts[] = {
	{"calls.seen", "calls that returned"},
	{"calls.written", "calls in the log"},
	{"calls.lost.ring_full", "calls: the ring was full"},
	{"calls.lost.no_ring", "calls: their thread got no ring"},
	{"calls.lost.nested",
	 "calls: made inside a callback, nested too deeply, or open when recording began"},
	{"calls.lost.write_failed", "calls: could not be written"},
	{"calls.lost.size", "calls: the log had reached --max-size"},
	{"calls.lost.leaving", "calls: made by other threads during process exit"},
	{"calls.lost.after_end", "launches, copies and memsets: made after recording ended"},
	{"calls.lost.killed", "calls: not in a ring yet when the process was killed"},
	{"calls.lost.cut_off", "calls: in a truncated part of the log"},
	{"kernels.written", "kernels in the log"},
	{"kernels.invalid", "kernels: invalid times in their records"},
	{"kernels.lost.write_failed", "kernels: could not be written"},
	{"kernels.lost.size", "kernels: the log had reached --max-size"},
	{"kernels.lost.leaving", "kernels: launched during process exit"},
	{"kernels.unfinished", "kernels of a snapshot that were running or had no record yet"},
	{"copies.written", "copies in the log"},
	{"copies.invalid", "copies: invalid times in their records"},
	{"copies.lost.write_failed", "copies: could not be written"},
	{"copies.lost.size", "copies: the log had reached --max-size"},
	{"copies.lost.leaving", "copies: started during process exit"},
	{"sets.written", "memsets in the log"},
	{"sets.invalid", "memsets: invalid times in their records"},
	{"sets.lost.write_failed", "memsets: could not be written"},
	{"sets.lost.size", "memsets: the log had reached --max-size"},
	{"sets.lost.leaving", "memsets: started during process exit"},
	{"memory.written", "allocations and frees in the log"},
	{"memory.lost.write_failed", "allocations and frees: could not be written"},
	{"memory.lost.size", "allocations and frees: the log had reached --max-size"},
	{"nodes.seen", "graph nodes created, cloned or changed"},
	{"nodes.lost", "graph nodes: no room in the ring or the log"},
	{"ranges.seen", "NVTX events"},
	{"ranges.lost", "NVTX events: no room in the ring or the log"},
	{"calls.skipped", "calls while recording was paused"},
	{"skips.lost",
	 "calls while recording was paused: the ring was full, so their GPU work has no call"},
	{"records.skipped", "kernels, copies and memsets of calls while recording was paused"},
	{"records.other", "activity records of kinds that are not recorded"},
	{"cupti.dropped", "records that CUPTI dropped"},
	{"buffers.completed", "activity buffers"},
	{"buffers.discarded", "activity buffers: none was free"},
	{"buffers.waited_ns", "time that CUPTI waited for an activity buffer"},
	{"buffers.lost", "activity buffers: could not be read completely"},
	{"buffers.invalid", "activity buffers: completed twice, or with an impossible size"},
	{"apis.lost", "driver functions: CUPTI failed to enable their callbacks"},
	{"kinds.lost", "kinds of GPU work: CUPTI failed to enable their records"},
	{"kinds.lost.unsafe",
	 "kinds of GPU work: CUPTI could make the program fail if it recorded them"},
	{"kinds.lost.memory",
	 "kinds of records: CUPTI could end the program if it recorded allocations and frees"},
	{"modules.lost", "loaded libraries: out of memory"},
	{"names.lost", "names of kernels: unloaded before they were read, or not readable"},
	{"stacks.walked", "stacks that were unwound"},
	{"stacks.hits", "stacks found in the stack cache"},
	{"stacks.audited", "stack cache hits that were checked by unwinding"},
	{"stacks.mismatched", "stacks: found wrong by a check"},
	{"stacks.truncated", "stacks whose unwinding ended early"},
	{"stacks.transient", "stacks that could not be cached"},
	{"stacks.unsampled", "calls without a stack because of --max-overhead"},
	{"stacks.lost", "stacks: no room in the ring or the log"},
	{"overhead.beyond_ns", "time above --max-overhead at the lowest sampling rate"},
	{"python.stacks", "unwound stacks with Python frames"},
	{"python.finalizing", "calls during interpreter shutdown: without Python frames"},
	{"python.unreadable", "stacks whose Python frames could not be read completely"},
	{"python.unplaced", "stacks whose Python frames have no known native frame"},
	{"python.unknown", "stacks with Python of another interpreter or thread state"},
	{"threads.waited_ns", "time that threads waited for room in their ring"},
	{"threads.seen", "host threads"},
	{"snapshots.automatic", "snapshots that a trigger started"},
	{"snapshots.triggers", "times that a trigger of snapshots fired"},
	{"spool.unbacked", "areas in plain memory, which a kill loses"},
	{"tracer.memory_bytes", "peak memory of the tracer"},
	{"tracer.memory_refusals", "requests for memory that the budget refused"},
	{"callbacks.ns", "estimated time of the program's threads in the tracer"},
	{"writer.cpu_ns", "CPU time of the writer thread"},
	{"flusher.cpu_ns", "CPU time of the flusher thread"},
	{"log.bytes", "bytes of the log"},
	/* In CPU logs: */
	{"cpu.observations", "observations of threads"},
	{"cpu.perf.samples", "samples from the kernel's events"},
	{"cpu.lost.perf", "samples of running threads: the kernel's buffer was full"},
	{"cpu.ended", "observations of threads that ended"},
	{"cpu.lost.observations", "observations of threads: their files could not be read"},
	{"cpu.lost.processes", "processes: the limit of open CPU logs was reached"},
	{"cpu.lost.write_failed", "samples of threads: could not be written"},
	{"cpu.switched", "stacks of threads that ran while they were read"},
	{"cpu.python.read", "Python frames that were read while their thread ran"},
	{"cpu.python.changed", "Python frames that changed while they were read"},
	{"cpu.sampler.cpu_ns", "CPU time of the sampler"},
	{"cpu.late_ns", "delay of sampling because it would have cost too much"},
	/* Written by recovery after a kill: */
	{"recovered.calls", "calls recovered"},
	{"recovered.open_calls", "calls recovered that had not returned"},
	{"recovered.ranges", "NVTX events recovered"},
	{"recovered.nodes", "graph nodes recovered"},
	{"recovered.kernels", "kernels recovered"},
	{"recovered.copies", "copies recovered"},
	{"recovered.sets", "sets recovered"},
	{"recovered.memory", "allocations and frees recovered"},
	{"recovered.unnamed", "names of kernels: not in the recovery file when the process ended"},
	{"recovered.unfinished",
	 "kernels, copies and memsets: CUPTI had not delivered their times when the process ended"},
	{"recovered.kernels_unfinished", "kernels among the work without delivered times"},
	{"recovered.areas_damaged", "parts of the recovery file: damaged"},
	{"recovered.areas_unknown", "parts of the recovery file: in an unknown layout"},
};

#define XT_ACCOUNTS (sizeof(xt_accounts) / sizeof(xt_accounts[0]))

/* NULL for an unknown name. The name need not be terminated. */
static inline const char *xt_account_meaning(const char *name, size_t length)
{
	for (size_t i = 0; i < XT_ACCOUNTS; i++)
		if (strlen(xt_accounts[i].name) == length &&
		    memcmp(xt_accounts[i].name, name, length) == 0)
			return xt_accounts[i].meaning;
	return NULL;
}

/*
 * Whether a counter is a loss, also in logs of later versions: its name contains one of these
 * words. If it is not 0, the recording is incomplete.
 */
static inline bool xt_account_is_loss(const char *name, size_t length)
{
	static const char *const words[] = {".lost",	   ".invalid",	  ".dropped",
					    ".discarded",  ".mismatched", "recovered.areas_",
					    "recovered.un"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (length && memmem(name, length, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Whether a loss is of events, and not of their names, stacks or modules. */
static inline bool xt_account_is_event_loss(const char *name, size_t length)
{
	static const char *const others[] = {"names.", "stacks.", "modules.",	      "apis.",
					     "kinds.", "skips.",  "recovered.unnamed"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (length >= strlen(others[i]) && !memcmp(name, others[i], strlen(others[i])))
			return false;
	return xt_account_is_loss(name, length);
}

/*
 * Whether a counter counts events that did not fit into the log. If META `log.flight_recorder` is
 * not empty, they are no loss.
 */
static inline bool xt_account_is_beyond_size(const char *name, size_t length)
{
	static const char end[] = ".lost.size";

	return length > strlen(end) && !memcmp(name + length - strlen(end), end, strlen(end));
}

#endif
