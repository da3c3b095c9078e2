/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios with conditional graphs that would end the context or the process on a real GPU, or
 * that need the ground truth.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "simulator.h"

enum { DEFAULT_BYTES = 8 << 20, DEFAULT_RECORDS = 349524, FEW_BYTES = 65536, FEW_RECORDS = 2729 };

static CUstream stream;

static bool start(void)
{
	setenv("XTRACE_SIMGPU_KERNEL_NS", "100:200", 1);
	expect(simulator_start());
	expect(!driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	client_clear();
	return true;
}

/* Instantiates a loop over one kernel. */
static bool make_loop(unsigned int iterations, CUgraphExec *exec)
{
	CUgraphNode tip = NULL, inner = NULL;
	CUgraph graph, *body;

	expect(!driver.cuGraphCreate(&graph, 0));
	body = add_condition(graph, &tip, CU_GRAPH_COND_TYPE_WHILE, 1, iterations, NULL);
	expect(body && add_kernel(*body, &inner, 1));
	expect(!driver.cuGraphInstantiateWithFlags(exec, graph, 0));
	return true;
}

enum { OUTER = 3, INNER = 4, NESTED_KERNELS = 1 + OUTER * (1 + INNER * 1) + 1 };

/* Instantiates a loop that has a kernel, a loop and a choice in its body, between two kernels. */
static bool make_nested(CUgraphExec *exec)
{
	CUgraphNode tip = NULL, body_tip = NULL, inner_tip = NULL;
	CUgraph graph, *body, *inner, *choice;

	expect(!driver.cuGraphCreate(&graph, 0));
	expect(add_kernel(graph, &tip, 1));
	body = add_condition(graph, &tip, CU_GRAPH_COND_TYPE_WHILE, 1, OUTER, NULL);
	expect(body && add_kernel(graph, &tip, 1) && add_kernel(*body, &body_tip, 1));
	inner = add_condition(*body, &body_tip, CU_GRAPH_COND_TYPE_WHILE, 1, INNER, NULL);
	expect(inner);
	choice = add_condition(*inner, &inner_tip, CU_GRAPH_COND_TYPE_SWITCH, 3, 1, NULL);
	expect(choice);
	for (int i = 0; i < 3; i++) {
		CUgraphNode choice_tip = NULL;

		for (int j = 0; j < (i == 1 ? 1 : 2); j++)
			expect(add_kernel(choice[i], &choice_tip, 1));
	}
	expect(!driver.cuGraphInstantiateWithFlags(exec, graph, 0));
	return true;
}

/* --- ground truth --- */

static bool replays_nodes(void)
{
	CUgraphExec exec;

	setenv("XTRACE_SIMGPU_TRUTH", truth_path, 1);
	expect(start() && make_nested(&exec));
	for (int i = 0; i < 10; i++)
		expect(!driver.cuGraphLaunch(exec, stream));
	client_settle();
	return write_kernels(fopen(records_path, "w"));
}

bool truth_of_bodies(void)
{
	expect(passes_in_child(replays_nodes));
	expect(files_agree("kernel "));
	expect(count_lines(truth_path, "kernel ") == 10 * NESTED_KERNELS);
	expect(count_lines(truth_path, "graph ") == 10);
	return true;
}

static bool replays_whole_graphs(void)
{
	FILE *file = fopen(records_path, "w");
	CUgraphExec exec;

	setenv("XTRACE_SIMGPU_TRUTH", truth_path, 1);
	expect(file && start());
	client_gate(XT_CUPTI_ACTIVITY_GRAPH_TRACE, true);
	expect(make_nested(&exec));
	for (int i = 0; i < 10; i++)
		expect(!driver.cuGraphLaunch(exec, stream));
	client_settle();
	expect(client_kernel_count() == 0);
	for (size_t i = 0; i < client_graph_count(); i++) {
		const struct cupti_activity_graph_trace *record = client_graph(i);

		fprintf(file, "graph %u %u %u %u %llu %llu %u %d 1\n", record->correlation_id,
			record->device_id, record->context_id, record->stream_id,
			(unsigned long long)record->start_ns, (unsigned long long)record->end_ns,
			record->graph_id, NESTED_KERNELS);
	}
	expect(!fclose(file));
	return true;
}

bool truth_of_whole_graphs(void)
{
	expect(passes_in_child(replays_whole_graphs));
	expect(files_agree("graph "));
	expect(count_lines(truth_path, "kernel ") == 10 * NESTED_KERNELS);
	expect(count_lines(truth_path, "graph ") == 10);
	return true;
}

/* --- the limit of device-side records --- */

static bool launch(CUgraphExec exec, CUresult expected)
{
	client_clear();
	expect(!driver.cuGraphLaunch(exec, stream));
	expect(driver.cuStreamSynchronize(stream) == expected);
	return true;
}

/* Fills the memory for device-side records in one launch, and writes one more in another. */
static bool fails_after(unsigned int records)
{
	CUgraphExec full, one;
	CUcontext other;

	expect(make_loop(records, &full) && make_loop(1, &one));
	expect(launch(full, CUDA_SUCCESS));
	expect(launch(one, CUDA_ERROR_ILLEGAL_ADDRESS));
	client_settle();
	expect(client_kernel_count() == 1);
	expect(!client_kernel(0)->record.start_ns && !client_kernel(0)->record.end_ns);
	expect(launch_empty(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
	expect(driver.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
	expect(!driver.cuCtxCreate_v2(&other, 0, 0));
	expect(!launch_empty(NULL) && !driver.cuCtxSynchronize());
	return true;
}

static bool fails_at_the_default(void)
{
	size_t bytes = 0, size = sizeof(bytes);

	expect(start());
	expect(!cupti.cuptiActivityGetAttribute(XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS,
						&size, &bytes));
	expect(bytes == DEFAULT_BYTES);
	return fails_after(DEFAULT_RECORDS);
}

/* The size must be set before the context exists. */
static bool start_with_few(void)
{
	size_t bytes = FEW_BYTES, size = sizeof(bytes);

	expect(!driver_open() && !client_open(getenv("XTRACE_CUPTI")));
	expect(!cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS,
						&size, &bytes));
	expect(!driver_start());
	expect(!driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return true;
}

static bool fails_at_a_set_limit(void)
{
	expect(start_with_few());
	return fails_after(FEW_RECORDS);
}

static bool fails_by_the_sum(void)
{
	CUgraphExec exec;

	expect(start_with_few() && make_loop(FEW_RECORDS / 4, &exec));
	for (int i = 0; i < 4; i++)
		expect(launch(exec, CUDA_SUCCESS));
	return launch(exec, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Two ways to launch a loop that has more iterations than records would fit. */
static bool stays_safe(void)
{
	CUgraphExec traced, prepared;

	expect(start_with_few());
	client_gate(XT_CUPTI_ACTIVITY_GRAPH_TRACE, true);
	expect(make_loop(2 * FEW_RECORDS, &traced));
	expect(launch(traced, CUDA_SUCCESS));
	client_gate(XT_CUPTI_ACTIVITY_INVALID, false);
	expect(make_loop(2 * FEW_RECORDS, &prepared));
	client_gate(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL, false);
	expect(launch(prepared, CUDA_SUCCESS));
	client_gate(XT_CUPTI_ACTIVITY_INVALID, false);
	return fails_after(FEW_RECORDS);
}

bool device_records_are_limited(void)
{
	static bool (*const parts[])(void) = {fails_at_the_default, fails_at_a_set_limit,
					      fails_by_the_sum, stays_safe};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		expect(passes_in_child(parts[i]));
	return true;
}

static bool traces_unprepared_graph(void)
{
	CUgraphExec exec;

	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	expect(start() && make_loop(1, &exec));
	client_gate(XT_CUPTI_ACTIVITY_GRAPH_TRACE, true);
	return launch(exec, CUDA_SUCCESS);
}

bool unprepared_graph_trace_crashes(void)
{
	int status = run_in_child(traces_unprepared_graph);

	expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	return true;
}
