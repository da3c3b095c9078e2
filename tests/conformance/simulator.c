/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks properties that only the simulated GPU has. The ground truth agrees with the activity
 * records, timelines keep CUDA's order, forks are safe, and faults can be injected.
 *
 * 	simulator NAME	runs one scenario in a child process that has not loaded CUDA yet
 *
 * XTRACE_CUPTI names the simulated libcupti. Exit status: 0 pass, 1 fail, 2 usage.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulator.h"

#define LINE_BYTES 256

char truth_path[64];
char records_path[64];

bool simulator_start(void)
{
	const char *path = getenv("XTRACE_CUPTI");

	expect(path);
	expect(!driver_open());
	expect(!client_open(path));
	expect(!driver_start());
	return true;
}

int run_in_child(bool (*part)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		exit(part() ? 0 : 1);
	return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

bool passes_in_child(bool (*part)(void))
{
	int status = run_in_child(part);

	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

/* --- ground truth --- */

static int thread_total;
static _Atomic int failed_count;

static void *launch_randomly(void *seed)
{
	unsigned int state = (unsigned int)(uintptr_t)seed;
	CUstream streams[4] = {NULL, CU_STREAM_PER_THREAD};

	if (driver.cuCtxSetCurrent(driver.context) || driver.cuStreamCreate(&streams[2], 0) ||
	    driver.cuStreamCreate(&streams[3], CU_STREAM_NON_BLOCKING))
		failed_count++;
	for (int i = 0; i < 3000; i++) {
		CUstream stream = streams[rand_r(&state) % 4];

		if (rand_r(&state) % 3 ? launch_empty(stream) : launch_spin(stream, 100))
			failed_count++;
		if (i % 1000 == 999)
			driver.cuStreamSynchronize(stream);
	}
	return NULL;
}

static bool replay_a_graph(void)
{
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	expect(!driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	expect(!driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < 20; i++)
		expect(!launch_empty(stream));
	expect(!driver.cuStreamEndCapture(stream, &graph));
	expect(!driver.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 50; i++)
		expect(!driver.cuGraphLaunch(exec, stream));
	expect(!driver.cuGraphExecDestroy(exec));
	expect(!driver.cuGraphDestroy(graph));
	return true;
}

bool write_kernels(FILE *file)
{
	expect(file);
	for (size_t i = 0; i < client_kernel_count(); i++) {
		const struct cupti_activity_kernel *record = &client_kernel(i)->record;

		fprintf(file, "kernel %u %u %u %u %llu %llu %llu %s\n", record->correlation_id,
			record->device_id, record->context_id, record->stream_id,
			(unsigned long long)record->start_ns, (unsigned long long)record->end_ns,
			(unsigned long long)record->graph_node_id, client_kernel(i)->name);
	}
	expect(!fclose(file));
	return true;
}

static bool run_traced(void)
{
	pthread_t threads[8];

	setenv("XTRACE_SIMGPU_TRUTH", truth_path, 1);
	setenv("XTRACE_SIMGPU_KERNEL_NS", "100:20000", 1);
	expect(simulator_start());
	client_set_buffer_bytes(256 << 10);
	for (int i = 0; i < thread_total; i++)
		expect(!pthread_create(&threads[i], NULL, launch_randomly,
				       (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < thread_total; i++)
		expect(!pthread_join(threads[i], NULL));
	expect(!failed_count);
	expect(replay_a_graph());
	client_settle();
	return write_kernels(fopen(records_path, "w"));
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct lines {
	char **line;
	size_t count;
};

static void free_lines(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->line[i]);
	free(lines->line);
}

/* The lines of a file that begin with a word, sorted. */
static struct lines read_lines(const char *path, const char *word)
{
	struct lines lines = {.line = calloc(65536, sizeof(char *))};
	char line[LINE_BYTES];
	FILE *file = fopen(path, "r");

	while (lines.line && file && lines.count < 65536 && fgets(line, sizeof(line), file))
		if (!strncmp(line, word, strlen(word)))
			lines.line[lines.count++] = strdup(line);
	if (file)
		fclose(file);
	if (lines.line)
		qsort(lines.line, lines.count, sizeof(char *), compare_lines);
	return lines;
}

size_t count_lines(const char *path, const char *word)
{
	struct lines lines = read_lines(path, word);

	free_lines(&lines);
	return lines.count;
}

static bool lines_agree(const struct lines *a, const struct lines *b)
{
	expect(a->count == b->count);
	for (size_t i = 0; i < a->count; i++)
		expect(!strcmp(a->line[i], b->line[i]));
	return true;
}

bool files_agree(const char *word)
{
	struct lines truth = read_lines(truth_path, word);
	struct lines records = read_lines(records_path, word);
	bool do_agree = lines_agree(&truth, &records);

	free_lines(&truth);
	free_lines(&records);
	return do_agree;
}

static bool truth_agrees(int threads)
{
	size_t kernel_count = (size_t)threads * 3000 + 50 * 20;
	char end_line[LINE_BYTES];

	thread_total = threads;
	expect(passes_in_child(run_traced));
	expect(files_agree("kernel "));
	expect(count_lines(truth_path, "kernel ") == kernel_count);
	expect(count_lines(truth_path, "launch ") == (size_t)threads * 3000 + 20 + 50);
	snprintf(end_line, sizeof(end_line), "end %zu\n", kernel_count);
	expect(count_lines(truth_path, end_line) == 1);
	return true;
}

static bool truth_of_one_thread(void)
{
	return truth_agrees(1);
}

static bool truth_of_two_threads(void)
{
	return truth_agrees(2);
}

static bool truth_of_eight_threads(void)
{
	return truth_agrees(8);
}

/* --- order --- */

static const struct cupti_activity_kernel *record_of_launch(size_t index)
{
	const struct note *enter =
		find_note(XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel,
			  XT_CUPTI_API_ENTER, index);
	const struct kernel_note *kernel = enter ? find_kernel(enter->correlation_id) : NULL;

	return kernel ? &kernel->record : NULL;
}

static bool keeps_stream_order(void)
{
	CUstream blocking;
	CUstream free_running;
	CUevent event;

	setenv("XTRACE_SIMGPU_KERNEL_NS", "3000000:3000000", 1);
	expect(simulator_start());
	expect(!driver.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	expect(!driver.cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	expect(!driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	client_clear();
	expect(!launch_empty(blocking));     /* 0 */
	expect(!launch_empty(free_running)); /* 1: beside 0 */
	expect(!launch_empty(NULL));	     /* 2: after 0, beside 1 */
	expect(!launch_empty(blocking));     /* 3: after 2 */
	expect(!driver.cuEventRecord(event, blocking));
	expect(!driver.cuStreamWaitEvent(free_running, event, 0));
	expect(!launch_empty(free_running)); /* 4: after 3 */
	client_settle();
	expect(client_kernel_count() == 5);
	expect(record_of_launch(1)->start_ns < record_of_launch(0)->end_ns);
	expect(record_of_launch(2)->start_ns >= record_of_launch(0)->end_ns);
	expect(record_of_launch(3)->start_ns >= record_of_launch(2)->end_ns);
	expect(record_of_launch(4)->start_ns >= record_of_launch(3)->end_ns);
	for (size_t i = 0; i < 5; i++)
		expect(record_of_launch(i)->end_ns - record_of_launch(i)->start_ns == 3000000);
	expect(!driver.cuEventDestroy_v2(event));
	return true;
}

static bool timelines_keep_order(void)
{
	return passes_in_child(keeps_stream_order);
}

/* --- fork --- */

static bool child_is_refused(void)
{
	void *subscriber;

	expect(driver.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
	expect(launch_empty(NULL) == CUDA_ERROR_NOT_INITIALIZED);
	expect(cupti.cuptiSubscribe(&subscriber, NULL, NULL) == XT_CUPTI_ERROR_NOT_INITIALIZED);
	expect(cupti.cuptiActivityFlushAll(1) == XT_CUPTI_ERROR_NOT_INITIALIZED);
	return true;
}

static bool forks_after_init(void)
{
	setenv("XTRACE_SIMGPU_TRUTH", truth_path, 1);
	expect(simulator_start());
	expect(!launch_empty(NULL));
	expect(passes_in_child(child_is_refused));
	expect(access(truth_path, F_OK)); /* the child wrote no file */
	client_clear();
	expect(!launch_empty(NULL));
	client_settle();
	expect(client_kernel_count() == 1);
	return true;
}

static bool loads_and_uses(void)
{
	expect(!driver_start());
	expect(!launch_empty(NULL));
	expect(!driver.cuCtxSynchronize());
	return true;
}

static bool forks_before_init(void)
{
	expect(!driver_open());
	expect(passes_in_child(loads_and_uses));
	return passes_in_child(loads_and_uses);
}

static bool fork_is_survived(void)
{
	expect(passes_in_child(forks_after_init));
	expect(count_lines(truth_path, "kernel ") == 2);
	return passes_in_child(forks_before_init);
}

/* --- calls from callbacks --- */

static void call_back_into_the_driver(void *userdata, uint32_t domain, uint32_t cbid,
				      const void *data)
{
	(void)domain;
	(void)cbid;
	(void)data;
	*(CUresult *)userdata = driver.cuCtxSynchronize();
}

static bool calls_from_a_callback(void)
{
	CUresult result = CUDA_SUCCESS;

	setenv("XTRACE_SIMGPU_TRUTH", truth_path, 1);
	expect(simulator_start());
	expect(!cupti.cuptiUnsubscribe(cupti.subscriber));
	expect(!cupti.cuptiSubscribe(&cupti.subscriber, call_back_into_the_driver, &result));
	client_enable(XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, true);
	expect(!launch_empty(NULL));
	expect(result != CUDA_SUCCESS);
	return true;
}

static bool violation_is_written_down(void)
{
	expect(passes_in_child(calls_from_a_callback));
	expect(count_lines(truth_path, "violation ") == 2);
	return true;
}

/* --- faults --- */

static bool launch_some(int count)
{
	client_clear();
	for (int i = 0; i < count; i++)
		expect(!launch_empty(NULL));
	client_settle();
	return true;
}

static bool gives_zero_times(void)
{
	size_t zero_count = 0;

	setenv("XTRACE_SIMGPU_FAULT", "zero_times:4", 1);
	expect(simulator_start());
	expect(launch_some(100));
	for (size_t i = 0; i < client_kernel_count(); i++)
		zero_count +=
			!client_kernel(i)->record.start_ns && !client_kernel(i)->record.end_ns;
	expect(client_kernel_count() == 100 && zero_count == 25);
	return true;
}

static bool gives_reversed_times(void)
{
	setenv("XTRACE_SIMGPU_FAULT", "reversed_times", 1);
	expect(simulator_start());
	expect(launch_some(10));
	expect(client_kernel_count() == 10);
	for (size_t i = 0; i < 10; i++)
		expect(client_kernel(i)->record.start_ns > client_kernel(i)->record.end_ns);
	return true;
}

static bool drops_records(void)
{
	size_t dropped = 0;

	setenv("XTRACE_SIMGPU_FAULT", "drop_records:10", 1);
	expect(simulator_start());
	expect(launch_some(100));
	expect(client_kernel_count() == 90);
	expect(!cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	expect(dropped == 10);
	return true;
}

static bool loses_buffers(void)
{
	setenv("XTRACE_SIMGPU_FAULT", "lost_buffers", 1);
	expect(simulator_start());
	expect(launch_some(10));
	expect(client_kernel_count() == 0);
	expect(client_buffers().requested_count > 0 && !client_buffers().completed_count);
	return true;
}

static bool gives_buffers_late(void)
{
	setenv("XTRACE_SIMGPU_FAULT", "late_buffers:300", 1);
	expect(simulator_start());
	expect(launch_some(10));
	expect(client_kernel_count() == 0);
	usleep(400000);
	client_take_kernels();
	expect(client_kernel_count() == 10);
	return true;
}

static bool fails_by_name(void)
{
	setenv("XTRACE_SIMGPU_FAULT", "fail:cuptiActivityEnable,version:7", 1);
	uint32_t version = 0;

	expect(!driver_open());
	expect(client_open(getenv("XTRACE_CUPTI")));
	expect(cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_KERNEL) == XT_CUPTI_ERROR_UNKNOWN);
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_KERNEL));
	expect(!cupti.cuptiGetVersion(&version) && version == 7);
	return true;
}

static bool fails_the_second_call(void)
{
	uint64_t now_ns;

	setenv("XTRACE_SIMGPU_FAULT", "nth_fail:2,subscriber_taken", 1);
	expect(!driver_open());
	expect(client_open(
		getenv("XTRACE_CUPTI"))); /* the first call fails: there is a subscriber */
	expect(cupti.cuptiGetTimestamp(&now_ns) == XT_CUPTI_ERROR_UNKNOWN);
	expect(!cupti.cuptiGetTimestamp(&now_ns));
	return true;
}

static void *flush(void *is_over)
{
	cupti.cuptiActivityFlushAll(0);
	*(_Atomic bool *)is_over = true;
	return NULL;
}

static bool hangs_in_flush(void)
{
	static _Atomic bool is_over;
	pthread_t thread;

	setenv("XTRACE_SIMGPU_FAULT", "hang_flush", 1);
	expect(simulator_start());
	expect(!launch_empty(NULL));
	expect(!pthread_create(&thread, NULL, flush, (void *)&is_over));
	usleep(300000);
	expect(!is_over);
	return true;
}

static bool faults_strike(void)
{
	static bool (*const parts[])(void) = {
		gives_zero_times,   gives_reversed_times, drops_records,	 loses_buffers,
		gives_buffers_late, fails_by_name,	  fails_the_second_call, hangs_in_flush,
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		expect(passes_in_child(parts[i]));
	return true;
}

static const struct check scenarios[] = {
	{"truth_of_one_thread", truth_of_one_thread},
	{"truth_of_two_threads", truth_of_two_threads},
	{"truth_of_eight_threads", truth_of_eight_threads},
	{"timelines_keep_order", timelines_keep_order},
	{"fork_is_survived", fork_is_survived},
	{"truth_of_bodies", truth_of_bodies},
	{"truth_of_whole_graphs", truth_of_whole_graphs},
	{"device_records_are_limited", device_records_are_limited},
	{"unprepared_graph_trace_crashes", unprepared_graph_trace_crashes},
	{"violation_is_written_down", violation_is_written_down},
	{"faults_strike", faults_strike},
};

int main(int argc, char **argv)
{
	snprintf(truth_path, sizeof(truth_path), "/tmp/xtrace-truth.%d", getpid());
	snprintf(records_path, sizeof(records_path), "/tmp/xtrace-records.%d", getpid());
	for (size_t i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		bool has_passed;

		if (strcmp(scenarios[i].name, argv[1]))
			continue;
		has_passed = scenarios[i].run();
		printf("%s %s\n", has_passed ? "PASS" : "FAIL", scenarios[i].name);
		unlink(truth_path);
		unlink(records_path);
		return has_passed ? 0 : 1;
	}
	fprintf(stderr, "usage: %s NAME\nscenarios:\n", argv[0]);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		fprintf(stderr, "  %s\n", scenarios[i].name);
	return 2;
}
