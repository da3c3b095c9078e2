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
	{"calls.seen", "calls that the callbacks saw return"},
	{"calls.written", "calls in the log"},
	{"calls.lost.ring_full", "calls: the ring was full"},
	{"calls.lost.no_ring", "calls: there was no ring for the thread"},
	{"calls.lost.nested", "calls: in a callback, or too many within each other"},
	{"calls.lost.write_failed", "calls: could not be written"},
	{"calls.lost.size", "calls: beyond the size that the log may have"},
	{"calls.lost.leaving", "calls: of other threads, while the process ended"},
	{"calls.lost.after_end",
	 "launches, copies and sets: when recording had ended with the process"},
	{"calls.lost.killed", "calls: not in a ring yet when the process was killed"},
	{"calls.lost.cut_off", "calls: in a part of the log that was cut off"},
	{"kernels.written", "kernels in the log"},
	{"kernels.invalid", "kernels: record without valid times"},
	{"kernels.lost.write_failed", "kernels: could not be written"},
	{"kernels.lost.size", "kernels: beyond the size that the log may have"},
	{"kernels.lost.leaving", "kernels: of calls while the process ended"},
	{"copies.written", "copies in the log"},
	{"copies.invalid", "copies: record without valid times"},
	{"copies.lost.write_failed", "copies: could not be written"},
	{"copies.lost.size", "copies: beyond the size that the log may have"},
	{"copies.lost.leaving", "copies: of calls while the process ended"},
	{"sets.written", "sets in the log"},
	{"sets.invalid", "sets: record without valid times"},
	{"sets.lost.write_failed", "sets: could not be written"},
	{"sets.lost.size", "sets: beyond the size that the log may have"},
	{"sets.lost.leaving", "sets: of calls while the process ended"},
	{"memory.written", "allocations and frees in the log"},
	{"memory.lost.write_failed", "allocations and frees: could not be written"},
	{"memory.lost.size", "allocations and frees: beyond the size that the log may have"},
	{"nodes.seen", "graph nodes made, cloned or changed"},
	{"nodes.lost", "graph nodes: no room in the ring or the log"},
	{"ranges.seen", "NVTX events"},
	{"ranges.lost", "NVTX events: no room in the ring or the log"},
	{"calls.skipped", "calls while recording was paused"},
	{"skips.lost",
	 "calls while recording was paused: the ring was full, their work is nobody's"},
	{"records.skipped", "kernels, copies and sets of such calls"},
	{"records.other", "activity records of kinds that are not recorded"},
	{"cupti.dropped", "records that CUPTI dropped"},
	{"buffers.completed", "activity buffers"},
	{"buffers.discarded", "activity buffers: none was free"},
	{"buffers.waited_ns", "time in which CUPTI waited for an activity buffer"},
	{"buffers.lost", "activity buffers: could not be read to the end"},
	{"buffers.invalid", "activity buffers: given back twice, or longer than they are"},
	{"apis.lost", "functions of the driver: CUPTI failed to tell of their calls"},
	{"kinds.lost", "kinds of GPU work: CUPTI failed to record them"},
	{"modules.lost", "loaded libraries: there was no memory"},
	{"names.lost", "names of kernels: gone before they were read, or not to be read"},
	{"stacks.walked", "stacks that were walked in full"},
	{"stacks.hits", "stacks known by verified memo"},
	{"stacks.audited", "hits that were checked by a full walk"},
	{"stacks.mismatched", "stacks: wrong when they were checked"},
	{"stacks.truncated", "stacks whose walk ended early"},
	{"stacks.transient", "stacks that could not be memoised"},
	{"stacks.unsampled", "calls whose stack was not taken, to keep the overhead bound"},
	{"stacks.lost", "stacks: no room in the ring or the log"},
	{"overhead.beyond_ns",
	 "time in which the tracer cost more than it may with the fewest stacks"},
	{"python.stacks", "stacks walked that had Python frames"},
	{"python.finalizing", "calls while the interpreter shut down: without Python frames"},
	{"python.unreadable", "stacks whose Python frames could not be read to the end"},
	{"python.unplaced", "stacks of which it is not known what runs their Python frames"},
	{"python.unknown", "stacks with Python that is not the thread's own interpreter's"},
	{"threads.waited_ns", "time in which threads waited for room in their ring"},
	{"threads.seen", "host threads"},
	{"spool.unbacked", "areas in plain memory, which a kill loses"},
	{"tracer.memory_bytes", "the most memory that the tracer held"},
	{"tracer.memory_refusals", "times when it could have used more than it may hold"},
	{"callbacks.ns", "time of the program's threads in the tracer, estimated"},
	{"writer.cpu_ns", "CPU time of the writer thread"},
	{"flusher.cpu_ns", "CPU time of the thread that asks CUPTI for records"},
	{"log.bytes", "bytes of the log"},
	/* Written by recovery after a kill: */
	{"recovered.calls", "calls recovered"},
	{"recovered.open_calls", "calls recovered that had not returned"},
	{"recovered.ranges", "NVTX events recovered"},
	{"recovered.nodes", "graph nodes recovered"},
	{"recovered.kernels", "kernels recovered"},
	{"recovered.copies", "copies recovered"},
	{"recovered.sets", "sets recovered"},
	{"recovered.memory", "allocations and frees recovered"},
	{"recovered.unnamed", "names of kernels: not in the spool yet when the process was killed"},
	{"recovered.unfinished",
	 "kernels, copies and memsets: CUPTI had not delivered their times when the process was "
	 "killed"},
	{"recovered.kernels_unfinished", "kernels among the work without delivered times"},
	{"recovered.areas_damaged", "parts of the spool: damaged"},
	{"recovered.areas_unknown", "parts of the spool: in an unknown layout"},
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

#endif
