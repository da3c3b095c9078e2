/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/sums/settings.h"

#define COST_MIN_NS  1000000 /* cheaper findings are never reported */
#define ALL_RULES    "all"
#define USAGE_BYTES  1024
#define CPU_ESTIMATE "time the GPU is idle while the CPU does this"

/* docs/FINDINGS.md defines the rules and says how each can be wrong. */
const struct rule_spec rule_specs[RULES] = {
	[RULE_API_ERRORS] = {"api-errors", 0, "calls fail", "time in the failed calls",
			     "Check the result of the call and find out why it fails. Later calls "
			     "run without its effect.",
			     .is_error = true, .is_thread_time = true},
	[RULE_MODULE_LOADS] = {"module-loads", 5, "code is loaded while the program runs",
			       "time in the loading calls",
			       "Load each module once before the loop and keep it. For PTX, enable "
			       "the driver's compilation cache or ship code compiled for the GPU.",
			       .is_thread_time = true},
	[RULE_ALLOC_LOOP] = {"alloc-loop", 5, "memory is allocated in a loop",
			     "time in the allocating and freeing calls",
			     "Allocate once before the loop and reuse the memory, or use a "
			     "stream-ordered pool (cudaMallocAsync).",
			     .is_thread_time = true},
	[RULE_SMALL_COPIES] =
		{"small-copies", 5, "many small copies",
		 "time of the copies except the first of each sequence",
		 "Gather the pieces in one buffer of pinned memory and copy it in one call.",
		 .is_thread_time = true},
	[RULE_PAGEABLE_ASYNC] = {"pageable-async", 10, "copies of pageable memory",
				 "time the calls block their thread",
				 "Use pinned memory (cudaMallocHost, cudaHostRegister; PyTorch: "
				 "pin_memory=True and non_blocking=True).",
				 .is_thread_time = true},
	[RULE_LOW_BANDWIDTH] = {"low-bandwidth", 10, "slow copies", "time beyond a copy at 25 GB/s",
				NULL},
	[RULE_SYNC_IDLE] = {"sync-idle", 10, "waits leave the GPU idle",
			    "time the GPU is idle around the waits",
			    "Launch the next work before waiting, wait for an event instead of all "
			    "work, or read results less often (PyTorch: .item(), .cpu(), print()).",
			    .is_about_idle = true},
	[RULE_SHORT_KERNELS] = {"short-kernels", 15, "kernels too short",
				"time the GPU waits for these launches",
				"Fuse kernels, give each one more work, or replay them as a CUDA "
				"graph (PyTorch: torch.compile, torch.cuda.graph).",
				.is_about_idle = true},
	[RULE_SERIAL_STREAMS] = {"serial-streams", 15, "streams do not overlap",
				 "time kernels wait for other streams",
				 "Launch nothing into the default stream in between, or create "
				 "non-blocking streams (cudaStreamNonBlocking). Wait for events "
				 "only where the data requires it."},
	[RULE_STREAM_IMBALANCE] = {"stream-imbalance", 15, "one stream has most of the work",
				   "time of the busiest stream beyond the mean",
				   "Give each stream the same amount of work, or assign work as "
				   "streams become free."},
	[RULE_DEVICE_IMBALANCE] = {"device-imbalance", 15, "one device has most of the work",
				   "time of the busiest device beyond the mean",
				   "Give each GPU the same amount of work."},
	[RULE_SMALL_GRIDS] = {"small-grids", 15, "kernels too small for the GPU",
			      "time a full GPU would save, at most",
			      "Launch more blocks, of 128 threads or more, or run several such "
			      "kernels concurrently in streams."},
	[RULE_COPY_SHARE] =
		{"copy-share", 20, "copies while no kernel runs", "time with copies but no kernel",
		 "Split the work and copy the next part in another stream, from pinned memory, "
		 "while a kernel processes the current part. Or keep the data on the GPU."},
	[RULE_GPU_IDLE] = {"gpu-idle", 25, "the GPU is idle",
			   "idle time of this kind, without the longest gaps", NULL,
			   .is_about_idle = true},
	[RULE_HANG] = {"hang", 0, "the job hangs",
		       "time since the first rank entered a collective that never ends", NULL,
		       .is_urgent = true},
	[RULE_LATE_RANK] = {"late-rank", 5, "ranks wait for each other",
			    "time that the ranks lose in collectives, on average", NULL},
	[RULE_DATA_LOADING] =
		{"data-loading", 10, "data loading", CPU_ESTIMATE,
		 "Load in more worker processes (PyTorch: num_workers, persistent_workers, "
		 "prefetch_factor), copy from pinned memory with non_blocking=True, and move "
		 "decoding and collation out of the training loop.",
		 .why = "data is loaded"},
	[RULE_JIT] = {"jit-compile", 10, "compilation", CPU_ESTIMATE,
		      "Compile before the loop and keep the cache between runs (PyTorch: "
		      "TORCHINDUCTOR_CACHE_DIR; Triton: TRITON_CACHE_DIR). Avoid shapes that "
		      "change and make PyTorch compile again.",
		      .why = "code is compiled or tuned"},
	[RULE_IMPORTS] = {"imports", 10, "imports", CPU_ESTIMATE,
			  "Import before the loop, not inside functions that it calls.",
			  .why = "modules are imported"},
	[RULE_BLOCKING_IO] =
		{"blocking-io", 10, "files, logging or checkpoints", CPU_ESTIMATE,
		 "Write from another thread or process, write less often, or copy to host memory "
		 "and save asynchronously (PyTorch: torch.distributed.checkpoint.async_save).",
		 .why = "the CPU reads or writes files"},
	[RULE_RANK_WAIT] = {"rank-wait", 10, "waits for other ranks", CPU_ESTIMATE,
			    "Compare the logs of all ranks: one of them may be late. Overlap the "
			    "exchange with GPU work (MPI_Iallreduce; PyTorch: async_op=True).",
			    .why = "the CPU waits for other ranks, or exchanges data with them"},
	[RULE_GIL] =
		{"gil", 10, "Python's lock", CPU_ESTIMATE,
		 "Move the other thread's work to a process, or into code that releases the lock.",
		 .why = "another thread holds Python's interpreter lock"},
	[RULE_CPU_SHORTAGE] = {"cpu-shortage", 10, "no free CPU", CPU_ESTIMATE,
			       "Check that the process may use enough CPUs (taskset, the CPU limit "
			       "of its cgroup or container). Use fewer DataLoader workers or "
			       "threads (num_workers, OMP_NUM_THREADS, torch.set_num_threads()).",
			       .why = "no CPU is free for a thread"},
	[RULE_HOST_MEMORY] = {"host-memory", 10, "host memory", CPU_ESTIMATE,
			      "Reuse buffers, or allocate them once and in pinned memory. Page "
			      "faults when libraries are first used happen once.",
			      .why = "the CPU allocates memory or uses it for the first time"},
	[RULE_HOST_WAIT] = {"host-wait", 10, "the launching thread waits", CPU_ESTIMATE,
			    "Look at the thread or process that it waits for.",
			    .why = "the launching thread waits"},
	[RULE_PYTHON_OVERHEAD] = {"python-overhead", 10, "Python between launches", CPU_ESTIMATE,
				  "Launch fewer and larger kernels: torch.compile, CUDA graphs, "
				  "fused optimisers (fused=True), or larger batches.",
				  .why = "Python runs between launches"},
	[RULE_HOST_CODE] = {"host-code", 10, "other CPU code", CPU_ESTIMATE,
			    "Move this code to another thread, or run it while the GPU is busy.",
			    .why = "the CPU runs other code"},
};

const char *finding_usage(void)
{
	static char text[USAGE_BYTES];
	size_t length = (size_t)snprintf(text, sizeof(text),
					 "a rule, '=' and a share of the active time from 0 to "
					 "100, or off; the rules are all,");

	for (int rule = 0; rule < RULES && length < sizeof(text); rule++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   rule ? ", " : " ", rule_specs[rule].name);
	return text;
}

/* True if the name means this rule. The name is not terminated. */
static bool name_matches(int rule, const char *name, size_t length)
{
	const char *own = rule_specs[rule].name;

	return (length == strlen(ALL_RULES) && !memcmp(name, ALL_RULES, length)) ||
	       (length == strlen(own) && !memcmp(name, own, length));
}

int finding_parse(double shares[RULES], const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	double share;
	char *end;
	int meant = 0;

	if (!equals)
		return -EINVAL;
	share = strtod(equals + 1, &end);
	if (!strcmp(equals + 1, "off"))
		share = -1;
	else if (equals[1] < '0' || equals[1] > '9' || *end || !(share <= 100))
		return -EINVAL;
	for (int rule = 0; rule < RULES; rule++) {
		if (!name_matches(rule, text, length))
			continue;
		shares[rule] = share == 0 ? 1e-9 : share;
		meant++;
	}
	return meant ? 0 : -EINVAL;
}

bool rule_reaches(enum rule rule, double share, uint64_t cost_ns, uint64_t whole_ns)
{
	return rule_specs[rule].is_error || rule_specs[rule].is_urgent ||
	       (cost_ns >= COST_MIN_NS && (double)cost_ns * 100 >= (double)whole_ns * share);
}

bool rule_reports(const struct settings *settings, enum rule rule, uint64_t cost_ns,
		  uint64_t whole_ns)
{
	double share = settings->finding_shares[rule];

	return share >= 0 && rule_reaches(rule, share ? share : rule_specs[rule].share_percent,
					  cost_ns, whole_ns);
}
