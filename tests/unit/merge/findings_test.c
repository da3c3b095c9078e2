/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of findings: sums by callsite with extreme numbers, options, and who owns a source
 * file.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge/findings/findings.h"
#include "merge/findings/finding.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/kernels.h"

/* Callsites of a log with one stack and one thread, in which every function launches. */
struct fixture {
	struct model model;
	struct threads threads;
	struct api apis[CALLSITES_APIS_MAX * 2];
	struct stack stacks[2];
	struct thread thread[2];
	struct stream streams[2];
	uint8_t states[CALLSITES_APIS_MAX * 2];
	struct callsites callsites;
};

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	names_init(&f->model.names);
	for (size_t a = 0; a < CALLSITES_APIS_MAX * 2; a++)
		f->apis[a].class = XT_API_LAUNCH;
	f->model.apis.rows = f->apis;
	f->model.apis.count = CALLSITES_APIS_MAX * 2;
	f->model.stacks.rows = f->stacks;
	f->model.stacks.count = 2;
	f->model.threads.rows = f->thread;
	f->model.threads.count = 2;
	f->model.streams.rows = f->streams;
	f->model.streams.count = 2;
	f->threads.states = f->states;
	callsites_init(&f->callsites, &f->model, &f->threads);
}

static void end(struct fixture *f)
{
	callsites_free(&f->callsites);
	names_free(&f->model.names);
}

static void run(struct fixture *f, bool is_kernel, uint64_t start_ns, uint64_t end_ns)
{
	static const struct owner owner = {.stack = 1};
	const struct idle_work work = {.stream = 1, .has_call = true};
	struct stretch stretch = {.is_kernel = is_kernel,
				  .start_ns = start_ns,
				  .end_ns = end_ns,
				  .work = &work,
				  .call.callsite = 1,
				  .owner = &owner};

	callsites_add_work(&f->callsites, &stretch);
}

static void call(struct fixture *f, uint32_t thread, uint16_t api, uint64_t self_ns)
{
	struct launch call = {.stack = 1, .thread = thread, .api = api, .enter_ns = 1};

	callsites_add_call(&f->callsites, &call, self_ns, 0);
}

/* Sums saturate. Events out of order never reduce a sum. */
static void saturates_impossible_numbers(void **state)
{
	struct aggregate none = {0};
	struct fixture f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 3; i++)
		call(&f, 1, 1, UINT64_MAX - 1);
	assert_int_equal(f.callsites.list[1].time_ns, UINT64_MAX);
	run(&f, false, 50, 60);
	run(&f, true, 0, 100);
	assert_true(f.callsites.devices[0].kernel_union.ns > f.callsites.devices[0].work_union.ns);
	run(&f, true, 1, UINT64_MAX);
	run(&f, true, 2, UINT64_MAX);
	assert_int_equal(f.callsites.devices[0].kernel_ns, UINT64_MAX);
	callsites_finish(&f.callsites, &none, 0);
	assert_int_equal(scale_ns(UINT64_MAX, UINT64_MAX - 1, UINT64_MAX), UINT64_MAX - 1);
	assert_int_equal(scale_ns(7, 3, 2), 7);
	assert_int_equal(scale_ns(7, 0, 0), 7);
	end(&f);
}

/* A stack that calls many functions, and a line that many threads run. */
static void bounds_tables(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (uint16_t a = 0; a < CALLSITES_APIS_MAX * 2; a++)
		call(&f, 1, a, 1);
	assert_int_equal(f.callsites.count, CALLSITES_APIS_MAX + 1);
	end(&f);
}

/* Each thread has its own history at a line that several threads run. */
static void separates_threads(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 10; i++) {
		call(&f, 0, 1, 1);
		call(&f, 1, 1, 1);
	}
	assert_int_equal(f.callsites.list[1].after_work_count, 18);
	assert_int_equal(f.callsites.list[1].threads, 3);
	end(&f);
}

static void accepts_shapes_of_any_size(void **state)
{
	static const uint32_t most[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
	static const uint32_t usual[3] = {8, 2, 0};

	(void)state;
	assert_int_equal(shape_product(most), UINT64_MAX);
	assert_int_equal(shape_product(usual), 16);
	assert_int_equal(shape_share(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(shape_share(1000, 0.25), 250);
}

static void parses_finding_options(void **state)
{
	static const char *const wrong[] = {"-5",  "-1e3", "nan", "-nan", "inf", "-inf",
					    "101", "5%",   "",	  " 5",	  "1e9", "Off"};
	double shares[RULES] = {0};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "sync-idle=%s", wrong[i]);
		assert_int_equal(finding_parse(shares, text), -EINVAL);
	}
	assert_int_equal(finding_parse(shares, "sync-idle=2.5"), 0);
	assert_true(shares[RULE_SYNC_IDLE] == 2.5);
	assert_int_equal(finding_parse(shares, "all=100"), 0);
	assert_int_equal(finding_parse(shares, "gpu-idle=off"), 0);
	assert_true(shares[RULE_GPU_IDLE] < 0 && shares[RULE_SYNC_IDLE] == 100);
}

static void recognises_library_files(void **state)
{
	static const char *const libraries[] = {
		"/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h",
		"/usr/local/cuda-12.4/include/cooperative_groups.h",
		"/opt/conda/targets/sbsa-linux/include/cuda_runtime_api.h",
		"/opt/cuda/include/thrust/for_each.h",
		"/u/cccl/thrust/thrust/system/cuda/detail/parallel_for.h",
		"/u/build/_deps/cccl-src/cub/cub/device/device_reduce.cuh",
		"/opt/nvidia/include/cub/cub.cuh",
		"/usr/include/c++/12/bits/std_function.h",
		"/usr/lib/python3.11/threading.py",
		"/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
		"/tmp/torchinductor_root/5k/c5kp.py",
		"/tmp/tmpxft_0000/axpy.cudafe1.stub.c",
		"<string>",
	};
	static const char *const own[] = {
		"/u/train.py",	  "/u/src/step.cu", "/u/include/cuda_helpers.h",
		"/u/cub/a.cpp",	  "main.c",	    "/u/targets/run.cc",
		"/u/thrust/x.cu",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		assert_true(file_is_library(libraries[i]));
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_false(file_is_library(own[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(saturates_impossible_numbers),
		cmocka_unit_test(bounds_tables),
		cmocka_unit_test(separates_threads),
		cmocka_unit_test(accepts_shapes_of_any_size),
		cmocka_unit_test(parses_finding_options),
		cmocka_unit_test(recognises_library_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
