/* SPDX-License-Identifier: Apache-2.0 */
#include "rank_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EPOCH_NS	1750000000000000000ull
#define CLOCK_PAIRS	12
#define CLOCK_JITTER_NS 10000.0
#define FIRST_PID	4000
#define GRAPH		(1ull << 32)
#define GRAPH_EXEC	(2ull << 32)
#define SYMBOL_BYTES	0x100
#define THREADS		2
#define TORN_BYTES	40

/* Modules, in the order of their addresses. */
enum { PROGRAM = 1, LIBTORCH, LIBNCCL, LIBCUDA, MODULES_END };
#define module_address(module) (0x10000000ull * (module))

static const struct {
	uint64_t class;
	const char *name;
	uint64_t id;
} apis[RANK_API_COUNT] = {
	[RANK_LAUNCH] = {XT_API_LAUNCH, "cuLaunchKernel", 1 << 16 | 307},
	[RANK_COPY] = {XT_API_COPY, "cuMemcpyHtoDAsync_v2", 1 << 16 | 278},
	[RANK_GRAPH_LAUNCH] = {XT_API_GRAPH_LAUNCH, "cuGraphLaunch", 1 << 16 | 514},
	[RANK_WAIT] = {XT_API_SYNC, "cuStreamSynchronize", 1 << 16 | 126},
};

#define TORCH "/usr/lib/python3/dist-packages/torch/"

/*
 * Call paths: a line of step() in train.py, a function that it calls, a library below. Native
 * programs have the native function instead.
 */
static const struct {
	uint32_t step_line;
	const char *function, *file;
	uint32_t line;
	const char *library_function, *library_file;
	uint32_t library_line;
	const char *native, *kernel;
} places[PLACE_COUNT] = {
	[PLACE_INIT] = {21, NULL, NULL, 0, "broadcast", TORCH "distributed/distributed_c10d.py",
			2421, "init_weights", NULL},
	[PLACE_LOAD] = {31, "load", "/opt/job/dataset.py", 88, NULL, NULL, 0, "load_batch", NULL},
	[PLACE_NORM] = {33, "norm", "/opt/job/model.py", 22, "layer_norm", TORCH "nn/functional.py",
			2543, "norm", "layer_norm_kernel"},
	[PLACE_ATTENTION] = {33, "attention", "/opt/job/model.py", 41,
			     "scaled_dot_product_attention", TORCH "nn/functional.py", 5501,
			     "attention", "flash_forward_kernel"},
	[PLACE_MLP] = {33, "mlp", "/opt/job/model.py", 57, "forward", TORCH "nn/modules/linear.py",
		       116, "mlp", "gemm_forward_kernel"},
	[PLACE_TENSOR_REDUCE] = {33, "reduce_activations", "/opt/job/parallel.py", 14, "all_reduce",
				 TORCH "distributed/distributed_c10d.py", 2501,
				 "reduce_activations", NULL},
	[PLACE_GATHER] = {33, NULL, NULL, 0, "all_gather_into_tensor",
			  TORCH "distributed/distributed_c10d.py", 3400, "gather_weights", NULL},
	[PLACE_LOSS] = {34, NULL, NULL, 0, "cross_entropy", TORCH "nn/functional.py", 3104,
			"compute_loss", "nll_loss_kernel"},
	[PLACE_BACKWARD_MLP] = {36, "mlp_backward", "/opt/job/model.py", 71, NULL, NULL, 0,
				"mlp_backward", "gemm_backward_kernel"},
	[PLACE_BACKWARD_ATTENTION] = {36, "attention_backward", "/opt/job/model.py", 95, NULL, NULL,
				      0, "attention_backward", "flash_backward_kernel"},
	[PLACE_GRADIENTS] = {36, "reduce_gradients", "/opt/job/parallel.py", 32, "all_reduce",
			     TORCH "distributed/distributed_c10d.py", 2501, "reduce_gradients",
			     NULL},
	[PLACE_CLIP] = {38, NULL, NULL, 0, "all_reduce", TORCH "distributed/distributed_c10d.py",
			2501, "clip_gradients", NULL},
	[PLACE_OPTIMIZER] = {40, NULL, NULL, 0, "step", TORCH "optim/adamw.py", 220,
			     "update_weights", "multi_tensor_adam_kernel"},
	[PLACE_METRICS] = {42, "log_metrics", "/opt/job/metrics.py", 9, "reduce",
			   TORCH "distributed/distributed_c10d.py", 2600, "log_metrics", NULL},
	[PLACE_SYNC] = {43, NULL, NULL, 0, NULL, NULL, 0, "wait_for_step", NULL},
};

static const struct {
	const char *name, *kernel, *detail;
} collectives[COLLECTIVE_COUNT] = {
	[ALL_REDUCE] = {"AllReduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
			"Reduction operation=Sum"},
	[ALL_GATHER] = {"AllGather", "ncclDevKernel_AllGather_RING_LL", NULL},
	[REDUCE_SCATTER] = {"ReduceScatter", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
			    "Reduction operation=Sum"},
	[BROADCAST] = {"Broadcast", "ncclDevKernel_Broadcast_RING_LL", "Root=0"},
	[REDUCE] = {"Reduce", "ncclDevKernel_Reduce_Sum_f32_RING_LL",
		    "Root=0\nReduction operation=Sum"},
};

const char *collective_name(enum collective collective)
{
	return collectives[collective].name;
}

enum collective launched_collective(const struct job *job, uint32_t op, bool is_fault)
{
	enum collective collective = job->ops[op].collective;

	if (!is_fault || job->fault != FAULT_OPERATION)
		return collective;
	return collective == ALL_REDUCE ? ALL_GATHER : ALL_REDUCE;
}

uint64_t launched_bytes(const struct job *job, uint32_t op, bool is_fault)
{
	return job->ops[op].bytes * (is_fault && job->fault == FAULT_BYTES ? 2 : 1);
}

void place_frame(const struct job *job, enum place place, char *out, size_t bytes)
{
	const char *file = places[place].file ? strrchr(places[place].file, '/') + 1 : "train.py";

	if (!job->has_python)
		snprintf(out, bytes, "%s", places[place].native);
	else if (places[place].function)
		snprintf(out, bytes, "%s (%s:%u)", places[place].function, file,
			 places[place].line);
	else
		snprintf(out, bytes, "step (%s:%u)", file, places[place].step_line);
}

static uint64_t monotonic_ns(const struct rank_log *log, uint64_t true_ns)
{
	const struct host *host = &log->job->hosts[job_host_of(log->job, log->rank)];

	return host->boot_ns + true_ns +
	       (uint64_t)(int64_t)llround((double)true_ns * host->drift_ppm * 1e-6);
}

/* As if the two clocks were not read at the same moment. */
static uint64_t realtime_ns(struct rank_log *log, uint64_t true_ns)
{
	const struct host *host = &log->job->hosts[job_host_of(log->job, log->rank)];
	double jitter_ns = uniform(&log->random, -CLOCK_JITTER_NS, CLOCK_JITTER_NS);

	return monotonic_ns(log, true_ns) - host->boot_ns + EPOCH_NS + (uint64_t)host->offset_ns +
	       (uint64_t)(int64_t)jitter_ns;
}

/* PyTorch runs the backward pass in a thread of its own. */
static uint64_t thread_of(const struct rank_log *log, enum place place)
{
	bool is_backward = place == PLACE_BACKWARD_MLP || place == PLACE_BACKWARD_ATTENTION ||
			   place == PLACE_GRADIENTS;

	return log->job->has_python && is_backward ? 2 : 1;
}

static uint64_t new_string(struct rank_log *log, const char *text)
{
	put_string(&log->log, ++log->string_count, text);
	return log->string_count;
}

/* Shapes are first, so that their ids are those of their names. */
static uint64_t new_shape(struct rank_log *log, const char *name)
{
	put_shape(&log->log, ++log->string_count, name, 132);
	return log->string_count;
}

static uint64_t python_frame(struct rank_log *log, const char *function, const char *file,
			     uint32_t line)
{
	uint64_t name_id = new_string(log, function), file_id = new_string(log, file);
	struct xt_table *table = row(&log->log, XT_KIND_PYTHON_FRAME);

	xt_table_put(table, XT_PYTHON_FRAME_ID, ++log->frame_count);
	xt_table_put(table, XT_PYTHON_FRAME_NAME, name_id);
	xt_table_put(table, XT_PYTHON_FRAME_FILE, file_id);
	xt_table_put(table, XT_PYTHON_FRAME_LINE, line);
	xt_table_put(table, XT_PYTHON_FRAME_FIRST_LINE, line);
	xt_table_end_row(table);
	return log->frame_count;
}

static void put_module(struct rank_log *log, uint64_t id, const char *path)
{
	struct xt_table *table = row(&log->log, XT_KIND_MODULE);

	xt_table_put(table, XT_MODULE_ID, id);
	xt_table_put(table, XT_MODULE_LOAD_NS, monotonic_ns(log, 0));
	xt_table_put(table, XT_MODULE_START, module_address(id));
	xt_table_put(table, XT_MODULE_END, module_address(id) + 0x100000);
	xt_table_put(table, XT_MODULE_BIAS, module_address(id));
	put_text(table, XT_MODULE_PATH, path);
	xt_table_end_row(table);
}

static void put_code(struct rank_log *log)
{
	static const char *const interpreter[] = {"main", "_PyEval_EvalFrameDefault"};
	static const char *const trainer[] = {"main", "train_step"};
	bool has_python = log->job->has_python;

	put_module(log, PROGRAM, has_python ? "/usr/bin/python3.11" : "/opt/job/trainer");
	put_module(log, LIBTORCH, "/opt/job/lib/libtorch_cuda.so");
	put_module(log, LIBNCCL, "/opt/job/lib/libnccl.so.2");
	put_module(log, LIBCUDA, "/usr/lib/libcuda.so.1");
	for (uint64_t f = 0; f < 2; f++)
		put_symbol(&log->log, PROGRAM, SYMBOL_BYTES * f,
			   (has_python ? interpreter : trainer)[f]);
	for (uint64_t p = 0; p < PLACE_COUNT && !has_python; p++)
		put_symbol(&log->log, PROGRAM, SYMBOL_BYTES * (2 + p), places[p].native);
	put_meta(&log->log, "symbols.embedded", "1");
}

/* The stack of a place has the id 1 + place. */
static void put_place(struct rank_log *log, enum place place, uint64_t outer)
{
	uint64_t frames[5], python[4], where[4];
	size_t count = 0, python_count = 0;
	struct xt_table *table;

	frames[count++] = module_address(LIBCUDA) + 0x10;
	if (!log->job->has_python)
		frames[count++] = module_address(PROGRAM) + SYMBOL_BYTES * (2 + place) + 0x10;
	frames[count++] = module_address(PROGRAM) + SYMBOL_BYTES + 0x10;
	if (log->job->has_python) {
		if (places[place].library_function)
			python[python_count++] = python_frame(log, places[place].library_function,
							      places[place].library_file,
							      places[place].library_line);
		if (places[place].function)
			python[python_count++] =
				python_frame(log, places[place].function, places[place].file,
					     places[place].line);
		python[python_count++] =
			python_frame(log, "step", "/opt/job/train.py", places[place].step_line);
		python[python_count++] = outer;
	}
	for (size_t p = 0; p < python_count; p++)
		where[p] = count - 1;
	frames[count++] = module_address(PROGRAM) + 0x10;
	table = row(&log->log, XT_KIND_STACK);
	xt_table_put(table, XT_STACK_ID, 1 + place);
	xt_table_put(table, XT_STACK_FLAGS, 0);
	xt_table_put(table, XT_STACK_SEEN_NS, monotonic_ns(log, log->start_ns));
	xt_table_put_list(table, XT_STACK_FRAMES, frames, count);
	xt_table_put_list(table, XT_STACK_PYTHON, python, python_count);
	xt_table_put_list(table, XT_STACK_PLACES, where, python_count);
	xt_table_end_row(table);
}

static void put_process(struct rank_log *log, uint32_t pid)
{
	const struct job *job = log->job;
	uint32_t host = job_host_of(job, log->rank) + job->first_host;
	uint64_t identity = job->seed * 1000 + job->first_host;
	static const char *const keys[] = {"host.name",
					   "host.boot",
					   "process.identity",
					   "process.id",
					   "process.pid_namespace",
					   "env.RANK",
					   "env.LOCAL_RANK",
					   "env.WORLD_SIZE",
					   "env.SLURM_JOB_ID"};
	char values[sizeof(keys) / sizeof(keys[0])][64];

	snprintf(values[0], 64, "node%u", host);
	snprintf(values[1], 64, "%08x-0000-4000-8000-%012x", host, (unsigned)job->seed);
	snprintf(values[2], 64, "%016llx%016x", (unsigned long long)next_random(&identity),
		 log->rank);
	snprintf(values[3], 64, "%u", pid);
	snprintf(values[4], 64, "4026531836");
	snprintf(values[5], 64, "%u", job->first_rank + log->rank);
	snprintf(values[6], 64, "%u", job_local_rank(job, log->rank));
	snprintf(values[7], 64, "%u", job->rank_count);
	snprintf(values[8], 64, "%u", 4000 + job->first_host);
	for (size_t r = 0; r < sizeof(keys) / sizeof(keys[0]); r++)
		put_meta(&log->log, keys[r], values[r]);
	put_meta(&log->log, "process.exe",
		 job->has_python ? "/usr/bin/python3.11" : "/opt/job/trainer");
	put_meta(&log->log, "process.cmdline",
		 job->has_python ? "/usr/bin/python3.11 /opt/job/train.py" : "/opt/job/trainer");
}

static void put_gpu(struct rank_log *log)
{
	uint64_t device = job_local_rank(log->job, log->rank);
	struct xt_table *table;
	char key[64], name[128];

	snprintf(key, sizeof(key), "gpu.%llu.name", (unsigned long long)device);
	put_meta(&log->log, key, "Test GPU");
	for (uint64_t s = 0; s < STREAM_COUNT; s++)
		put_stream(&log->log, 1 + s, device, 1, 7 + 6 * s);
	for (uint64_t p = 0; p < PLACE_COUNT; p++)
		if (places[p].kernel)
			log->place_shapes[p] = new_shape(log, places[p].kernel);
	for (uint64_t c = 0; c < COLLECTIVE_COUNT; c++) {
		snprintf(name, sizeof(name), "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE",
			 strlen(collectives[c].kernel), collectives[c].kernel);
		log->collective_shapes[c] = new_shape(log, name);
	}
	table = row(&log->log, XT_KIND_COPY_SHAPE);
	xt_table_put(table, XT_COPY_SHAPE_ID, 1);
	xt_table_put(table, XT_COPY_SHAPE_KIND, 1);
	xt_table_put(table, XT_COPY_SHAPE_SOURCE, 2);
	xt_table_put(table, XT_COPY_SHAPE_DESTINATION, 3);
	xt_table_put(table, XT_COPY_SHAPE_ASYNC, 1);
	xt_table_end_row(table);
	for (size_t a = 0; a < RANK_API_COUNT; a++)
		put_api(&log->log, apis[a].id, apis[a].name, apis[a].class);
}

static void put_payloads(struct rank_log *log)
{
	const struct job *job = log->job;
	char text[256];

	log->domain = new_string(log, "NCCL");
	log->init_range = new_string(log, "ncclCommInitRankConfig");
	for (size_t c = 0; c < COLLECTIVE_COUNT; c++) {
		snprintf(text, sizeof(text), "nccl%s", collectives[c].name);
		log->ranges[c] = new_string(log, text);
	}
	for (enum group g = WORLD; g < (job->layout == LAYOUT_TENSOR ? GROUP_COUNT : 1); g++) {
		const struct communicator *c = job_communicator(job, g, log->rank);

		snprintf(text, sizeof(text),
			 "NCCL communicator ID=%llu\nNo. of ranks=%u\nRank=%u\nCUDA device=%u\n",
			 (unsigned long long)c->id, c->count, (log->rank - c->first) / c->stride,
			 job_local_rank(job, log->rank));
		log->init_values[g] = new_string(log, text);
	}
	for (uint32_t o = 0; o < 2 * job->op_count; o++) {
		const struct op *op = &job->ops[o / 2];
		enum collective collective = launched_collective(job, o / 2, o % 2);
		const char *detail = collectives[collective].detail;

		if (op->kind != OP_COLLECTIVE)
			continue;
		snprintf(text, sizeof(text),
			 "NCCL communicator ID=%llu\nMessage size [bytes]=%llu\n%s%s",
			 (unsigned long long)job_communicator(job, op->group, log->rank)->id,
			 (unsigned long long)launched_bytes(job, o / 2, o % 2),
			 detail ? detail : "", detail ? "\n" : "");
		log->op_values[o / 2][o % 2] = new_string(log, text);
	}
}

static void put_threads(struct rank_log *log, uint32_t pid, uint64_t start_ns)
{
	for (uint32_t t = 0; t < THREADS; t++) {
		struct xt_table *table = row(&log->log, XT_KIND_THREAD);

		xt_table_put(table, XT_THREAD_ID, 1 + t);
		xt_table_put(table, XT_THREAD_TID, pid + t * 1000);
		put_text(table, XT_THREAD_NAME, t ? "pt_autograd_0" : "trainer");
		xt_table_put(table, XT_THREAD_START_NS, start_ns);
		xt_table_end_row(table);
	}
}

/* Notes that the file has all rows of calls before that time, and no others. */
static void note_cut(struct rank_log *log, uint64_t until_ns)
{
	log->cut_bytes = xt_writer_file_bytes(log->log.writer);
	log->until_ns = until_ns;
	memcpy(log->cut_row_counts, log->log.row_counts, sizeof(log->cut_row_counts));
}

void rank_log_path(const struct job *job, uint32_t rank, const char *folder, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/node%u.%u.xtr", folder,
		 job_host_of(job, rank) + job->first_host, FIRST_PID + job_local_rank(job, rank));
}

void rank_log_open(struct rank_log *log, const struct job *job, uint32_t rank, const char *folder,
		   uint64_t start_ns, uint32_t row_capacity)
{
	uint32_t pid = FIRST_PID + job_local_rank(job, rank);
	struct xt_log_header header;
	uint64_t outer;

	*log = (struct rank_log){.job = job, .rank = rank, .start_ns = start_ns, .is_open = true};
	log->random = job->seed * 7919 + rank;
	header = (struct xt_log_header){
		.pid = pid,
		.start_monotonic_ns = monotonic_ns(log, start_ns),
		.start_realtime_ns = realtime_ns(log, start_ns),
		.log_id = next_random(&log->random),
	};
	rank_log_path(job, rank, folder, log->path);
	open_log_as(&log->log, log->path, header, row_capacity, 1 << 16);
	put_process(log, pid);
	put_threads(log, pid, header.start_monotonic_ns);
	put_gpu(log);
	put_payloads(log);
	put_code(log);
	outer = job->has_python ? python_frame(log, "main", "/opt/job/train.py", 66) : 0;
	for (enum place p = 0; p < PLACE_COUNT; p++)
		put_place(log, p, outer);
	flush_all(&log->log);
	note_cut(log, start_ns);
}

/* Writes all tables before a call when one is nearly full, as the tracer does. */
static void make_room(struct rank_log *log, uint64_t enter_ns)
{
	static const enum xt_kind kinds[] = {XT_KIND_CALL, XT_KIND_KERNEL, XT_KIND_RANGE};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (log->log.tables[kinds[k]].row_count + 4 >
		    log->log.tables[kinds[k]].row_capacity) {
			flush_all(&log->log);
			if (log->until_ns == log->start_ns)
				note_cut(log, enter_ns);
			return;
		}
}

/* Damages the log: the file ends within a chunk, after its first events. */
static void cut_off(struct rank_log *log)
{
	must(truncate(log->path, (off_t)log->cut_bytes + TORN_BYTES) ? -errno : 0);
	memcpy(log->log.row_counts, log->cut_row_counts, sizeof(log->cut_row_counts));
}

void rank_log_close(struct rank_log *log, uint64_t end_ns)
{
	uint64_t span_ns = end_ns > log->start_ns ? end_ns - log->start_ns : 0;

	if (!log->is_open)
		return;
	for (uint64_t p = 0; p < CLOCK_PAIRS; p++) {
		uint64_t now_ns = log->start_ns + span_ns * p / (CLOCK_PAIRS - 1);
		struct xt_table *table = row(&log->log, XT_KIND_CLOCK);

		xt_table_put(table, XT_CLOCK_MONOTONIC_NS, monotonic_ns(log, now_ns));
		xt_table_put(table, XT_CLOCK_REALTIME_NS, realtime_ns(log, now_ns));
		xt_table_end_row(table);
	}
	put_account(&log->log, "threads.seen", THREADS);
	if (log->unfinished_count)
		put_account(&log->log, "recovered.kernels_unfinished", log->unfinished_count);
	close_log(&log->log);
	if (log->job->fault == FAULT_DAMAGED && log->rank == log->job->guilty)
		cut_off(log);
	else
		log->until_ns = UINT64_MAX;
}

void rank_log_call(struct rank_log *log, enum rank_api api, enum place place, uint64_t correlation,
		   uint64_t enter_ns, uint64_t exit_ns)
{
	struct xt_table *table;
	uint64_t from_ns = monotonic_ns(log, enter_ns);

	if (!log->is_open || enter_ns < log->start_ns)
		return;
	make_room(log, enter_ns);
	table = row(&log->log, XT_KIND_CALL);
	xt_table_put(table, XT_CALL_THREAD, thread_of(log, place));
	xt_table_put(table, XT_CALL_API, apis[api].id);
	xt_table_put(table, XT_CALL_CORRELATION, correlation);
	xt_table_put(table, XT_CALL_STACK, 1 + place);
	xt_table_put(table, XT_CALL_ENTER_NS, from_ns);
	xt_table_put(table, XT_CALL_DURATION_NS, monotonic_ns(log, exit_ns) - from_ns);
	xt_table_put(table, XT_CALL_RESULT, 0);
	xt_table_put(table, XT_CALL_GRAPH_EXEC, api == RANK_GRAPH_LAUNCH ? GRAPH_EXEC >> 32 : 0);
	xt_table_end_row(table);
}

/* text, values: string ids; 0 in a pop without payload. */
static void put_range(struct rank_log *log, enum xt_range_operation operation, uint64_t time_ns,
		      uint64_t text, enum place place, uint64_t values)
{
	struct xt_table *table = row(&log->log, XT_KIND_RANGE);

	for (unsigned c = XT_RANGE_KEY; c <= XT_RANGE_COLOR; c++)
		xt_table_put(table, c, 0);
	xt_table_put(table, XT_RANGE_OPERATION, operation);
	xt_table_put(table, XT_RANGE_THREAD, thread_of(log, place));
	xt_table_put(table, XT_RANGE_TIME_NS, monotonic_ns(log, time_ns));
	xt_table_put(table, XT_RANGE_DOMAIN, log->domain);
	xt_table_put(table, XT_RANGE_TEXT, text);
	xt_table_put(table, XT_RANGE_STACK, operation == XT_RANGE_PUSH ? 1 + place : 0);
	xt_table_put(table, XT_RANGE_VALUES, values);
	xt_table_end_row(table);
}

/* NCCL attaches the payload of this range to its end. */
void rank_log_init(struct rank_log *log, enum group group, uint64_t push_ns, uint64_t pop_ns)
{
	if (!log->is_open || push_ns < log->start_ns || !log->job->has_payloads)
		return;
	put_range(log, XT_RANGE_PUSH, push_ns, log->init_range, PLACE_INIT, 0);
	put_range(log, XT_RANGE_POP, pop_ns, 0, PLACE_INIT, log->init_values[group]);
}

void rank_log_launch(struct rank_log *log, const struct launch *launch)
{
	const struct op *op = &log->job->ops[launch->op];
	bool has_range = op->kind == OP_COLLECTIVE && log->job->has_payloads && log->is_open &&
			 launch->enter_ns >= log->start_ns;

	if (launch->is_replayed)
		return;
	if (has_range)
		put_range(log, XT_RANGE_PUSH, launch->enter_ns - 300,
			  log->ranges[launched_collective(log->job, launch->op, launch->is_fault)],
			  op->place, log->op_values[launch->op][launch->is_fault]);
	rank_log_call(log, op->kind == OP_COPY ? RANK_COPY : RANK_LAUNCH, op->place,
		      launch->correlation, launch->enter_ns, launch->exit_ns);
	if (has_range)
		put_range(log, XT_RANGE_POP, launch->exit_ns + 100, 0, op->place, 0);
}

void rank_log_work(struct rank_log *log, const struct launch *launch)
{
	const struct op *op = &log->job->ops[launch->op];
	enum collective collective = launched_collective(log->job, launch->op, launch->is_fault);
	uint64_t start_ns = monotonic_ns(log, launch->start_ns);
	uint64_t duration_ns = monotonic_ns(log, launch->end_ns) - start_ns;
	uint64_t node = launch->is_replayed ? GRAPH_EXEC + launch->op + 1 : 0;
	struct xt_table *table;

	if (!log->is_open || launch->enter_ns < log->start_ns)
		return;
	if (op->kind != OP_COPY) {
		put_kernel(&log->log, launch->correlation, 1 + op->stream,
			   op->kind == OP_KERNEL ? log->place_shapes[op->place]
						 : log->collective_shapes[collective],
			   start_ns, duration_ns, node);
		return;
	}
	table = row(&log->log, XT_KIND_COPY);
	xt_table_put(table, XT_COPY_CORRELATION, launch->correlation);
	xt_table_put(table, XT_COPY_STREAM, 1 + op->stream);
	xt_table_put(table, XT_COPY_SHAPE, 1);
	xt_table_put(table, XT_COPY_START_NS, start_ns);
	xt_table_put(table, XT_COPY_DURATION_NS, duration_ns);
	xt_table_put(table, XT_COPY_GRAPH_NODE, 0);
	xt_table_put(table, XT_COPY_BYTES, 1 << 20);
	xt_table_end_row(table);
}

void rank_log_capture(struct rank_log *log, const struct launch *launch)
{
	rank_log_launch(log, launch);
	for (uint64_t clone = 0; clone < 2 && log->is_open; clone++) {
		struct xt_table *table = row(&log->log, XT_KIND_GRAPH_NODE);

		xt_table_put(table, XT_GRAPH_NODE_ID,
			     (clone ? GRAPH_EXEC : GRAPH) + launch->op + 1);
		xt_table_put(table, XT_GRAPH_NODE_ORIGIN, clone ? GRAPH + launch->op + 1 : 0);
		xt_table_put(table, XT_GRAPH_NODE_STACK,
			     clone ? 0 : 1 + (uint64_t)log->job->ops[launch->op].place);
		xt_table_put(table, XT_GRAPH_NODE_TIME_NS,
			     monotonic_ns(log, launch->exit_ns + 200 * clone));
		xt_table_put(table, XT_GRAPH_NODE_TYPE, 0);
		xt_table_put(table, XT_GRAPH_NODE_THREAD,
			     thread_of(log, log->job->ops[launch->op].place));
		xt_table_end_row(table);
	}
}
