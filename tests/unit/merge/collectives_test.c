/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of collectives, and the calls of NCCL in the ranges of a log.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/write/writer.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"

#define ROWS_MAX   64
#define TEXT_BYTES 16384
#define COMM	   "NCCL communicator ID"
#define SIZE	   "Message size [bytes]"

static void recognises_kernels_and_operations(void **state)
{
	static const struct {
		const char *name;
		bool is_kernel;
		enum collective_operation operation;
	} cases[] = {
		{"ncclDevKernel_AllReduce_Sum_f32_RING_LL", true, COLLECTIVE_ALL_REDUCE},
		{"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		 true, COLLECTIVE_ALL_REDUCE},
		{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true,
		 COLLECTIVE_ALL_GATHER},
		{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", true, COLLECTIVE_REDUCE_SCATTER},
		{"ncclDevKernel_Reduce_Sum_f32_RING_LL", true, COLLECTIVE_REDUCE},
		{"ncclDevKernel_Broadcast_RING_LL", true, COLLECTIVE_BROADCAST},
		{"ncclDevKernel_SendRecv", true, COLLECTIVE_SEND_RECV},
		{"ncclDevKernel_Generic_4", true, COLLECTIVE_UNKNOWN},
		{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", true,
		 COLLECTIVE_ALL_REDUCE},
		{"ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32", true, COLLECTIVE_ALL_REDUCE},
		{"ncclSymkDevKernel_AllGather_LL", true, COLLECTIVE_ALL_GATHER},
		{"void (anonymous namespace)::one_shot_all_reduce_kernel<float>(float*)", true,
		 COLLECTIVE_ALL_REDUCE},
		{"multimem_one_shot_reduce_kernel", true, COLLECTIVE_REDUCE},
		{"void vllm::cross_device_reduce_2stage<half, 4>(RankData*)", true,
		 COLLECTIVE_ALL_REDUCE},
		{"_ZN4vllm26cross_device_reduce_1stageI6__halfLi2EEEvPNS_8RankDataE", true,
		 COLLECTIVE_ALL_REDUCE},
		/* These are none, even if a type or another function has such a name. */
		{"gemm(ncclDevKernel_AllReduce*)", false, COLLECTIVE_ALL_REDUCE},
		{"_Z4gemm29ncclDevKernel_AllReduce_Args", false, COLLECTIVE_ALL_REDUCE},
		{"reduce_kernel", false, COLLECTIVE_UNKNOWN},
		{"my_ncclDevKernel_AllReduce", false, COLLECTIVE_ALL_REDUCE},
		{"_Z", false, COLLECTIVE_UNKNOWN},
		{"_Z99999999999999999999ncclDevKernel_", false, COLLECTIVE_UNKNOWN},
		{"_ZN13ncclDevKernel", false, COLLECTIVE_UNKNOWN},
		{"", false, COLLECTIVE_UNKNOWN},
		/* Functions of NCCL. */
		{"ncclAllReduce", false, COLLECTIVE_ALL_REDUCE},
		{"ncclAllGather", false, COLLECTIVE_ALL_GATHER},
		{"ncclReduceScatter", false, COLLECTIVE_REDUCE_SCATTER},
		{"ncclAlltoAll", false, COLLECTIVE_ALL_TO_ALL},
		{"ncclBroadcast", false, COLLECTIVE_BROADCAST},
		{"ncclBcast", false, COLLECTIVE_BROADCAST},
		{"ncclReduce", false, COLLECTIVE_REDUCE},
		{"ncclSend", false, COLLECTIVE_SEND_RECV},
		{"ncclRecv", false, COLLECTIVE_SEND_RECV},
		{"ncclGroupStart", false, COLLECTIVE_UNKNOWN},
		{"ncclCommInitRankConfig", false, COLLECTIVE_UNKNOWN},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		size_t length = strlen(cases[c].name);

		if (is_collective_kernel(cases[c].name, length) != cases[c].is_kernel ||
		    collective_operation(cases[c].name, length) != cases[c].operation)
			fail_msg("%s", cases[c].name);
	}
}

static void reads_no_further_than_the_name(void **state)
{
	static const char name[] = "ncclDevKernel_AllReduce_Sum";
	char *exact = malloc(sizeof(name)), vast[1000];

	(void)state;
	assert_non_null(exact);
	for (size_t length = 0; length < sizeof(name); length++) {
		/* A sanitizer would notice a read beyond the copy. */
		char *copy = malloc(length + 1);

		assert_non_null(copy);
		memcpy(copy, name, length);
		copy[length] = '(';
		assert_int_equal(is_collective_kernel(copy, length),
				 length >= strlen("ncclDevKernel_"));
		assert_int_equal(collective_operation(copy, length),
				 length >= strlen("ncclDevKernel_AllReduce") ? COLLECTIVE_ALL_REDUCE
									     : COLLECTIVE_UNKNOWN);
		free(copy);
	}
	memset(vast, 'x', sizeof(vast));
	memcpy(vast + sizeof(vast) - 9, "allreduce", 9);
	assert_int_equal(collective_operation(vast, sizeof(vast)), COLLECTIVE_UNKNOWN);
	free(exact);
}

/* A log with ranges, in the order in which they are added. */
struct fixture {
	char path[64];
	struct xt_writer *writer;
	struct xt_table strings, ranges;
	uint64_t string_count;
	struct model *model;
};

static uint64_t text(struct fixture *f, const char *value)
{
	if (!value || !value[0])
		return 0;
	xt_table_put(&f->strings, XT_STRING_ID, ++f->string_count);
	xt_table_put_bytes(&f->strings, XT_STRING_TEXT, value, strlen(value));
	xt_table_end_row(&f->strings);
	return f->string_count;
}

static void begin(struct fixture *f)
{
	struct xt_log_header header = {.pid = 1, .log_id = 1, .start_monotonic_ns = 1};

	*f = (struct fixture){0};
	strcpy(f->path, "/tmp/xtrace-collectives.XXXXXX");
	close(mkstemp(f->path));
	unlink(f->path);
	assert_int_equal(xt_writer_create(f->path, &header, &f->writer), 0);
	assert_int_equal(xt_table_init(&f->strings, XT_KIND_STRING, ROWS_MAX, TEXT_BYTES), 0);
	assert_int_equal(xt_table_init(&f->ranges, XT_KIND_RANGE, ROWS_MAX, 0), 0);
	assert_int_equal(text(f, "NCCL"), 1);
	assert_int_equal(text(f, "other"), 2);
}

static void add(struct fixture *f, enum xt_range_operation operation, uint64_t thread,
		uint64_t time_ns, uint64_t domain, const char *name, const char *values)
{
	for (unsigned column = XT_RANGE_OPERATION; column <= XT_RANGE_VALUES; column++)
		xt_table_put(&f->ranges, column, 0);
	xt_table_put(&f->ranges, XT_RANGE_OPERATION, operation);
	xt_table_put(&f->ranges, XT_RANGE_THREAD, thread);
	xt_table_put(&f->ranges, XT_RANGE_TIME_NS, time_ns);
	xt_table_put(&f->ranges, XT_RANGE_DOMAIN, domain);
	xt_table_put(&f->ranges, XT_RANGE_TEXT, text(f, name));
	xt_table_put(&f->ranges, XT_RANGE_VALUES, text(f, values));
	xt_table_end_row(&f->ranges);
}

static void push(struct fixture *f, uint64_t thread, uint64_t time_ns, const char *name,
		 const char *values)
{
	add(f, XT_RANGE_PUSH, thread, time_ns, 1, name, values);
}

static void pop(struct fixture *f, uint64_t thread, uint64_t time_ns, const char *values)
{
	add(f, XT_RANGE_POP, thread, time_ns, 1, NULL, values);
}

/* Writes the log and loads its model. */
static const struct collective_calls *load(struct fixture *f)
{
	struct xt_reader *reader;

	assert_int_equal(xt_writer_add(f->writer, &f->strings), 0);
	assert_int_equal(xt_writer_add(f->writer, &f->ranges), 0);
	assert_int_equal(xt_writer_add_end(f->writer), 0);
	assert_int_equal(xt_writer_flush(f->writer), 0);
	xt_writer_close(f->writer);
	xt_table_free(&f->strings);
	xt_table_free(&f->ranges);
	reader = inputs_open(f->path, &(struct report){.quiet = true});
	assert_non_null(reader);
	assert_int_equal(model_load(&f->model, reader), 0);
	xt_reader_close(reader);
	unlink(f->path);
	return &f->model->collective_calls;
}

/* The communicator of the call in a thread at a time; 0: there is none. */
static uint64_t at(const struct collective_calls *calls, uint32_t thread, uint64_t time_ns)
{
	const struct collective_call *call = collective_calls_at(calls, thread, time_ns);

	return call ? call->communicator : 0;
}

static void reads_payloads_of_pushes_and_pops(void **state)
{
	const struct collective_calls *calls;
	const struct collective_call *call;
	struct fixture f;

	(void)state;
	begin(&f);
	push(&f, 1, 10, "ncclAllReduce",
	     COMM "=18446744073709551615\n" SIZE "=4096\nReduction operation=Sum");
	pop(&f, 1, 20, NULL);
	push(&f, 1, 30, "ncclBroadcast", NULL);
	pop(&f, 1, 40, COMM "=7\n" SIZE "=64\nRoot=3");
	/* Both have values: the later ones count. */
	push(&f, 1, 50, "ncclReduce", COMM "=7\n" SIZE "=1");
	pop(&f, 1, 60, SIZE "=2\nRoot=0");
	calls = load(&f);
	assert_int_equal(calls->count, 3);
	call = collective_calls_at(calls, 1, 10);
	assert_true(call && call->communicator == UINT64_MAX && call->bytes == 4096);
	assert_int_equal(call->operation, COLLECTIVE_ALL_REDUCE);
	assert_int_equal(call->root, UINT32_MAX);
	assert_int_equal(call->end_ns, 20);
	assert_ptr_equal(collective_calls_at(calls, 1, 20), call);
	assert_null(collective_calls_at(calls, 1, 9));
	assert_null(collective_calls_at(calls, 1, 21));
	call = collective_calls_at(calls, 1, 35);
	assert_true(call && call->communicator == 7 && call->bytes == 64 && call->root == 3);
	call = collective_calls_at(calls, 1, 55);
	assert_true(call && call->bytes == 2 && call->root == 0);
	model_free(f.model);
}

static void finds_the_innermost_call_of_a_thread(void **state)
{
	const struct collective_calls *calls;
	struct fixture f;

	(void)state;
	begin(&f);
	push(&f, 1, 10, "ncclAllReduce", COMM "=1");
	push(&f, 2, 12, "ncclAllGather", COMM "=9");
	push(&f, 1, 20, "ncclGroupStart", NULL);
	push(&f, 1, 30, "ncclBroadcast", COMM "=2");
	pop(&f, 1, 40, NULL);
	pop(&f, 1, 50, NULL);
	pop(&f, 2, 55, NULL);
	pop(&f, 1, 60, NULL);
	/* Ranges of other domains and other kinds do not end calls. */
	push(&f, 1, 70, "ncclAllGather", COMM "=3");
	add(&f, XT_RANGE_PUSH, 1, 72, 2, "ncclAllGather", COMM "=4");
	add(&f, XT_RANGE_POP, 1, 74, 2, NULL, NULL);
	add(&f, XT_RANGE_START, 1, 75, 1, "ncclAllGather", COMM "=5");
	add(&f, XT_RANGE_END, 1, 76, 1, NULL, NULL);
	add(&f, XT_RANGE_MARK, 1, 77, 1, "ncclAllGather", COMM "=6");
	add(&f, XT_RANGE_PUSH, 1, 78, 0, "ncclAllGather", COMM "=8");
	pop(&f, 1, 80, NULL);
	calls = load(&f);
	assert_int_equal(calls->count, 4);
	assert_int_equal(at(calls, 1, 15), 1);
	assert_int_equal(at(calls, 1, 25), 1);
	assert_int_equal(at(calls, 1, 35), 2);
	assert_int_equal(at(calls, 1, 45), 1);
	assert_int_equal(at(calls, 1, 60), 1);
	assert_int_equal(at(calls, 1, 65), 0);
	assert_int_equal(at(calls, 1, 73), 3);
	assert_int_equal(at(calls, 1, 79), 3);
	assert_int_equal(at(calls, 1, 81), 0);
	assert_int_equal(at(calls, 2, 11), 0);
	assert_int_equal(at(calls, 2, 35), 9);
	assert_int_equal(at(calls, 3, 35), 0);
	model_free(f.model);
}

static void keeps_calls_that_never_return(void **state)
{
	const struct collective_calls *calls;
	struct fixture f;

	(void)state;
	begin(&f);
	pop(&f, 2, 5, COMM "=4"); /* its begin is not in the log */
	push(&f, 1, 10, "ncclAllReduce", COMM "=1");
	pop(&f, 1, 20, NULL);
	push(&f, 1, 30, "ncclAllReduce", COMM "=2");
	push(&f, 2, 40, "ncclAllReduce", COMM "=3");
	pop(&f, 2, 50, NULL);
	calls = load(&f);
	assert_int_equal(calls->count, 3);
	assert_int_equal(at(calls, 1, UINT64_MAX), 2);
	assert_int_equal(collective_calls_at(calls, 1, 30)->end_ns, UINT64_MAX);
	/* The open call of thread 1 does not reach into thread 2. */
	assert_int_equal(at(calls, 2, 45), 3);
	assert_int_equal(at(calls, 2, 51), 0);
	assert_int_equal(at(calls, 2, 5), 0);
	model_free(f.model);
}

static void learns_the_ranks_of_communicators(void **state)
{
	const struct collective_calls *calls;
	struct fixture f;

	(void)state;
	begin(&f);
	push(&f, 1, 10, "ncclCommInitRankConfig", NULL);
	pop(&f, 1, 20, COMM "=77\nNo. of ranks=8\nRank=5\nCUDA device=1");
	push(&f, 1, 30, "ncclCommInitRankConfig", COMM "=78\nNo. of ranks=8"); /* no rank */
	pop(&f, 1, 40, NULL);
	push(&f, 1, 50, "ncclCommInitRankConfig", "No. of ranks=8\nRank=5"); /* no number */
	pop(&f, 1, 60, NULL);
	calls = load(&f);
	assert_int_equal(calls->count, 0); /* these are no collectives */
	assert_int_equal(calls->joined.count, 1);
	assert_int_equal(calls->joined.list[0].communicator, 77);
	assert_int_equal(calls->joined.list[0].rank, 5);
	assert_int_equal(calls->joined.list[0].rank_count, 8);
	model_free(f.model);
}

static void treats_impossible_values_as_unknown(void **state)
{
	static const char *const values[] = {
		"-5", "abc", "", "99999999999999999999999999999999", "18446744073709551616",
		"0x", "1e9",
	};
	const struct collective_calls *calls;
	struct fixture f;
	char payload[200];

	(void)state;
	begin(&f);
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		snprintf(payload, sizeof(payload), COMM "=5\n" SIZE "=%s\nRoot=%s", values[v],
			 values[v]);
		push(&f, 1, 10 * v + 10, "ncclReduce", payload);
		pop(&f, 1, 10 * v + 11, NULL);
	}
	push(&f, 2, 10, "ncclReduce", COMM "=-5");
	pop(&f, 2, 11, NULL);
	push(&f, 2, 12, "ncclReduce", COMM "=5\nRoot=4294967299"); /* not 3 */
	pop(&f, 2, 13, NULL);
	push(&f, 2, 14, "ncclCommInitRankConfig", COMM "=5\nNo. of ranks=4294967298\nRank=1");
	pop(&f, 2, 15, NULL);
	push(&f, 2, 16, "ncclCommInitRankConfig", COMM "=5\nNo. of ranks=2\nRank=2");
	pop(&f, 2, 17, NULL);
	push(&f, 2, 18, "ncclReduce", "=\n\n\n==5\n" COMM "\n" COMM "=6");
	pop(&f, 2, 19, NULL);
	calls = load(&f);
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		const struct collective_call *call = collective_calls_at(calls, 1, 10 * v + 10);

		if (!call || call->bytes || call->root != UINT32_MAX)
			fail_msg("'%s' counts as a number", values[v]);
	}
	assert_int_equal(at(calls, 2, 10), 0);
	assert_int_equal(collective_calls_at(calls, 2, 12)->root, UINT32_MAX);
	assert_int_equal(calls->joined.count, 0);
	assert_int_equal(at(calls, 2, 18), 6);
	model_free(f.model);
}

/* The outermost eight of nested calls are kept. The others end with the right one. */
static void survives_deep_nesting(void **state)
{
	const struct collective_calls *calls;
	struct fixture f;
	char payload[64];

	(void)state;
	begin(&f);
	for (uint64_t depth = 1; depth <= 12; depth++) {
		snprintf(payload, sizeof(payload), COMM "=%d", (int)depth);
		push(&f, 1, 10 * depth, "ncclAllReduce", payload);
	}
	for (uint64_t depth = 12; depth >= 1; depth--)
		pop(&f, 1, 300 - 10 * depth, NULL);
	push(&f, 1, 400, "ncclAllReduce", COMM "=20");
	pop(&f, 1, 410, NULL);
	calls = load(&f);
	assert_int_equal(at(calls, 1, 45), 4);
	assert_int_equal(at(calls, 1, 285), 1);
	assert_int_equal(at(calls, 1, 295), 0);
	assert_int_equal(at(calls, 1, 405), 20);
	assert_int_equal(at(calls, 1, 415), 0);
	model_free(f.model);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(recognises_kernels_and_operations),
		cmocka_unit_test(reads_no_further_than_the_name),
		cmocka_unit_test(reads_payloads_of_pushes_and_pops),
		cmocka_unit_test(finds_the_innermost_call_of_a_thread),
		cmocka_unit_test(keeps_calls_that_never_return),
		cmocka_unit_test(learns_the_ranks_of_communicators),
		cmocka_unit_test(treats_impossible_values_as_unknown),
		cmocka_unit_test(survives_deep_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
