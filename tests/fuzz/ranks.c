/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the merge of several ranks of one job. The input is an exporter and its options (four
 * bytes), a byte for each rank, and steps of the job. Each step is a kind, the ranks whose logs
 * have it, how often it repeats, and how long it takes. So an input leaves out any part of a job.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "merging.h"
#include "tests/cli/merge/log_rows.h"

#define RANKS_MAX     4
#define COMMUNICATORS 4 /* 0: the log does not state it */
#define STREAMS	      2
#define KERNEL	      1	 /* shapes */
#define COLLECTIVES   11 /* shape of the first operation; the others follow */
#define DOMAIN	      100
#define STACK	      STACK_FORWARD

static const char *const operations[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll",
					 "Broadcast", "Reduce",	   "SendRecv"};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* How often a step repeats. One is special: such a log has no distances between collectives. */
static const unsigned repeats[] = {1, 1, 2, 3, 5, 8, 16, 32};

enum step {
	STEP_COLLECTIVE,
	STEP_COLLECTIVE_OF_OTHER_SIZE,
	STEP_JOIN, /* a communicator */
	STEP_KERNEL,
	STEP_UNFINISHED, /* a call of NCCL without its work */
	STEP_PAUSE,
	STEP_RAW, /* a row of any kind with any values */
	STEPS,
};

struct rank {
	struct log log;
	const char *path;
	uint64_t string_count;
	bool states_communicators;
};

static void open_rank(struct rank *rank, unsigned number, unsigned count, uint8_t how)
{
	struct xt_log_header header = {
		.pid = 4000 + number,
		.start_monotonic_ns = START_NS + number * MS,
		.start_realtime_ns = REALTIME_NS + START_NS,
		.log_id = number + 1,
	};
	char value[48];

	unlink(rank->path);
	open_log_as(&rank->log, rank->path, header, 1024, 1 << 14);
	snprintf(value, sizeof(value), "node%u", how & 3);
	put_meta(&rank->log, "host.name", value);
	put_meta(&rank->log, "process.exe", "/opt/job/train");
	snprintf(value, sizeof(value), "%u", how & 4 ? 0 : number);
	if (!(how & 8))
		put_meta(&rank->log, "env.RANK", value);
	snprintf(value, sizeof(value), "%u", how & 16 ? 9 : count);
	put_meta(&rank->log, "env.WORLD_SIZE", value);
	put_tables(&rank->log);
	put_stream(&rank->log, 2, 0, 1, 8);
	rank->string_count = 1000;
	for (size_t o = 0; o < OPERATIONS; o++) {
		snprintf(value, sizeof(value), "ncclDevKernel_%s_RING", operations[o]);
		put_shape(&rank->log, COLLECTIVES + o, value, 1);
	}
	put_string(&rank->log, DOMAIN, "NCCL");
	rank->states_communicators = !(how & 32);
	if (how & 64)
		put_switch(&rank->log, 0, true, 1);
}

static void put_range(struct rank *rank, enum xt_range_operation operation, uint64_t text,
		      uint64_t values)
{
	struct xt_table *table = row(&rank->log, XT_KIND_RANGE);

	for (unsigned c = XT_RANGE_KEY; c <= XT_RANGE_COLOR; c++)
		xt_table_put(table, c, 0);
	xt_table_put(table, XT_RANGE_OPERATION, operation);
	xt_table_put(table, XT_RANGE_THREAD, 1);
	xt_table_put(table, XT_RANGE_TIME_NS, rank->log.now_ns += 200);
	xt_table_put(table, XT_RANGE_DOMAIN, DOMAIN);
	xt_table_put(table, XT_RANGE_TEXT, text);
	xt_table_put(table, XT_RANGE_STACK, operation == XT_RANGE_PUSH ? STACK : 0);
	xt_table_put(table, XT_RANGE_VALUES, values);
	xt_table_end_row(table);
}

/* Puts the range of a call of NCCL around its launch, or around nothing. */
static void put_nccl_call(struct rank *rank, const char *function, const char *values,
			  uint64_t shape, uint64_t stream, uint64_t duration_ns)
{
	uint64_t text = ++rank->string_count, value = ++rank->string_count;

	if (rank->states_communicators) {
		put_string(&rank->log, text, function);
		put_string(&rank->log, value, values);
		put_range(rank, XT_RANGE_PUSH, text, value);
	}
	if (shape)
		launch(&rank->log, 1, STACK, stream, shape, duration_ns);
	else
		put_call(&rank->log, 1, API_LAUNCH, STACK, 0);
	rank->log.now_ns += 4000;
	if (rank->states_communicators)
		put_range(rank, XT_RANGE_POP, 0, 0);
}

struct step_values {
	enum step kind;
	unsigned operation, communicator, stream;
	uint64_t bytes, duration_ns;
};

static void put_step(struct rank *rank, unsigned number, const struct step_values *step)
{
	uint64_t bytes = step->bytes << (step->kind == STEP_COLLECTIVE_OF_OTHER_SIZE ? number : 0);
	char function[64], values[160];

	snprintf(function, sizeof(function), "nccl%s", operations[step->operation]);
	snprintf(values, sizeof(values),
		 "NCCL communicator ID=%u\nMessage size [bytes]=%llu\nNo. of ranks=%u\nRank=%u\n",
		 step->communicator, (unsigned long long)bytes, RANKS_MAX, number);
	if (step->kind == STEP_COLLECTIVE || step->kind == STEP_COLLECTIVE_OF_OTHER_SIZE)
		put_nccl_call(rank, function, values, COLLECTIVES + step->operation, step->stream,
			      step->duration_ns);
	else if (step->kind == STEP_JOIN)
		put_nccl_call(rank, "ncclCommInitRankConfig", values, KERNEL, step->stream,
			      step->duration_ns);
	else if (step->kind == STEP_UNFINISHED)
		put_nccl_call(rank, function, values, 0, 0, 0);
	else if (step->kind == STEP_KERNEL)
		launch(&rank->log, 1, STACK, step->stream, KERNEL, step->duration_ns);
	else
		rank->log.now_ns += step->duration_ns;
}

static void put_raw(struct log *log, struct feed *feed)
{
	uint8_t kind = feed_byte(feed);

	if (kind != XT_KIND_END && kind < XT_KIND_COUNT && xt_kind_specs[kind].name)
		fuzz_put_row(row(log, (enum xt_kind)kind), feed);
}

static void take_step(struct rank *ranks, unsigned count, struct feed *feed)
{
	uint8_t kind = feed_byte(feed), who = feed_byte(feed), repeat = feed_byte(feed);
	struct step_values step = {
		.kind = (enum step)(kind % STEPS),
		.operation = kind / STEPS % OPERATIONS,
		.communicator = who / 16 % COMMUNICATORS,
		.stream = 1 + who / 64 % STREAMS,
		.bytes = UINT64_C(1) << repeat / 8,
		.duration_ns = feed_number(feed) % (100 * MS),
	};

	for (unsigned r = 0; r < count; r++) {
		if (!(who & 1 << r))
			continue;
		if (step.kind == STEP_RAW)
			put_raw(&ranks[r].log, feed);
		for (unsigned n = 0; n < repeats[repeat % 8] && step.kind != STEP_RAW; n++)
			put_step(&ranks[r], r, &step);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct rank ranks[RANKS_MAX];
	struct feed feed = {data, data + bytes};
	struct merge_choice choice = merge_choose(&feed);
	unsigned count = choice.top & MERGE_MANY_LOGS ? 2 + choice.top % (RANKS_MAX - 1) : 2;
	const char *logs[RANKS_MAX];
	char name[32];

	for (unsigned r = 0; r < RANKS_MAX && !ranks[RANKS_MAX - 1].path; r++) {
		snprintf(name, sizeof(name), "rank%u.xtr", r);
		ranks[r].path = fuzz_path(name);
	}
	for (unsigned r = 0; r < count; r++) {
		logs[r] = ranks[r].path;
		open_rank(&ranks[r], r, count, feed_byte(&feed));
	}
	while (feed.at < feed.end)
		take_step(ranks, count, &feed);
	for (unsigned r = 0; r < count; r++)
		close_log(&ranks[r].log);
	merge_logs(choice, logs, count);
	return 0;
}
