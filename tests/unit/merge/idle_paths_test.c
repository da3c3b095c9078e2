/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of a GPU by what the CPU did: whatever the samples, each cause keeps its time.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/sums/idle_paths.h"
#include "merge/sums/timeline.h"

#define PERIOD_NS  UINT64_C(10000000)
#define OWN_PID	   100
#define OTHER_PID  200
#define SAMPLE_MAX 400

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* A traced process with two threads, and another process. Both have a CPU log. */
struct fixture {
	struct input traced, inputs[2];
	struct model *model, *models[2];
	struct thread rows[3];
	struct cpu_log list[2];
	struct cpu_logs logs;
	struct threads threads;
	struct aggregate aggregate;
	struct idle_paths paths;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){.traced.header.pid = OWN_PID};
	f->rows[1].tid = OWN_PID;
	f->rows[2].tid = OWN_PID + 1;
	f->model = calloc(1, sizeof(*f->model));
	assert_non_null(f->model);
	f->model->threads.rows = f->rows;
	f->model->threads.count = 3;
	f->threads.count = 3;
	f->threads.timelines = calloc(3, sizeof(*f->threads.timelines));
	assert_non_null(f->threads.timelines);
	for (size_t l = 0; l < 2; l++) {
		f->models[l] = calloc(1, sizeof(*f->models[l]));
		assert_non_null(f->models[l]);
		f->inputs[l].header.pid = l ? OTHER_PID : OWN_PID;
		f->inputs[l].first = l;
		f->list[l] = (struct cpu_log){
			.input = &f->inputs[l], .model = f->models[l], .period_ns = PERIOD_NS};
	}
	f->logs = (struct cpu_logs){f->list, 2};
}

static void add(struct fixture *f, size_t log, const struct cpu_sample *sample)
{
	struct cpu_samples *samples = &f->models[log]->cpu_samples;

	if (!samples->list)
		samples->list = calloc(SAMPLE_MAX, sizeof(*samples->list));
	assert_non_null(samples->list);
	assert_true(samples->count < SAMPLE_MAX);
	samples->list[samples->count++] = *sample;
}

static void sort(struct fixture *f)
{
	for (size_t l = 0; l < 2; l++)
		cpu_samples_sort(&f->models[l]->cpu_samples, 7500000);
	idle_paths_begin(&f->paths, &f->logs, &f->traced, f->model, &f->threads, &f->aggregate);
}

static void add_gap(struct fixture *f, uint64_t from_ns, uint64_t until_ns, uint64_t enter_ns,
		    uint32_t thread, const uint64_t pieces_ns[IDLE_CLASSES])
{
	const struct owner owner = {.leaf = LEAF_IDLE, .stack = 1};
	const struct idle_work work = {.start_ns = until_ns,
				       .has_call = true,
				       .enter_ns = enter_ns,
				       .thread = &f->threads.timelines[thread]};

	idle_paths_add(&f->paths, &owner, from_ns, &work, pieces_ns);
}

/* The idle time of a class, with any path (-1), or with one of these. */
static uint64_t idle_of(const struct fixture *f, enum idle_class class, int64_t path)
{
	uint64_t ns = 0;

	for (uint32_t t = 0; t < f->aggregate.count; t++) {
		const struct total *total = &f->aggregate.entries[t];

		if (IDLE_WHAT_CLASS(total->owner.what) == class &&
		    (path < 0 || IDLE_WHAT_PATH(total->owner.what) == path))
			ns += total->weights[WEIGHT_GPU_IDLE];
	}
	return ns;
}

static void end(struct fixture *f)
{
	idle_paths_free(&f->paths);
	aggregate_free(&f->aggregate);
	for (size_t l = 0; l < 2; l++) {
		cpu_samples_free(&f->models[l]->cpu_samples);
		free(f->models[l]);
	}
	free(f->threads.timelines);
	free(f->model);
}

static void divides_a_long_gap(void **state)
{
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_SUBMITTED] = 40000000};
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, 0,
	    &(struct cpu_sample){15000000, 15000000, .tid = OWN_PID, .stack = 1, .state = 1});
	add(&f, 0,
	    &(struct cpu_sample){25000000, 25000000, .tid = OWN_PID, .stack = 2, .state = 1});
	sort(&f);
	add_gap(&f, 10000000, 50000000, 50000000, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	/* From 10 to 17.5 ms, from there to 32.5 ms. */
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_FIRST), 7500000);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_FIRST + 1), 15000000);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_UNSAMPLED), 17500000);
	assert_int_equal(f.paths.long_ns, 40000000);
	assert_int_equal(f.paths.long_covered_ns, 22500000);
	end(&f);
}

/* From 10 ms on: running without a stack, a lock without a stack, nothing known, a stack. */
static void counts_paths_that_tell_something_as_covered(void **state)
{
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_SUBMITTED] = 80000000};
	static const struct cpu_sample samples[] = {
		{20000000, 30000000, .tid = OWN_PID, .state = XT_CPU_RUNNING},
		{40000000, 50000000, .tid = OWN_PID, .state = XT_CPU_LOCK},
		{60000000, 70000000, .tid = OWN_PID, .state = XT_CPU_UNKNOWN},
		{80000000, 90000000, .tid = OWN_PID, .stack = 1, .state = XT_CPU_RUNNING},
	};
	const int64_t running = IDLE_PATH_FIRST, lock = IDLE_PATH_FIRST + 1;
	struct fixture f;

	(void)state;
	begin(&f);
	for (size_t s = 0; s < sizeof(samples) / sizeof(*samples); s++) {
		struct cpu_sample sample = samples[s];

		sample.weight_ns = 20000000;
		add(&f, 0, &sample);
	}
	sort(&f);
	add_gap(&f, 10000000, 90000000, 90000000, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	assert_int_equal(f.paths.keys.count, 3);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, running), 20000000);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, lock), 20000000);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_UNSAMPLED), 20000000);
	assert_false(idle_paths_explain(&f.paths, IDLE_PATH_UNSAMPLED));
	assert_false(idle_paths_explain(&f.paths, (uint32_t)running));
	assert_true(idle_paths_explain(&f.paths, (uint32_t)lock));
	assert_int_equal(f.paths.long_covered_ns, 40000000);
	end(&f);
}

static void follows_a_wait_to_another_process(void **state)
{
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_SUBMITTED] = 40000000};
	const struct idle_path *path;
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, 0,
	    &(struct cpu_sample){5000000, 60000000, .tid = OWN_PID, .stack = 1,
				 .state = XT_CPU_PROCESS, .wait_pid = OTHER_PID, .wait_tid = 7});
	add(&f, 1, &(struct cpu_sample){5000000, 60000000, .tid = 7, .stack = 9, .state = 3});
	sort(&f);
	add_gap(&f, 10000000, 50000000, 50000000, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	assert_int_equal(f.paths.keys.count, 1);
	path = idle_paths_get(&f.paths, IDLE_PATH_FIRST);
	assert_true(path->has_other);
	assert_int_equal(path->other.log, 1);
	assert_int_equal(path->other.stack, 9);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_FIRST), 40000000);
	end(&f);
}

static void leaves_time_of_the_gpu_alone(void **state)
{
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_STARTED] = 40000000};
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, 0,
	    &(struct cpu_sample){15000000, 15000000, .tid = OWN_PID, .stack = 1, .state = 1});
	sort(&f);
	add_gap(&f, 10000000, 50000000, 5000000, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	assert_int_equal(idle_of(&f, IDLE_NOT_STARTED, IDLE_PATH_NONE), 40000000);
	assert_int_equal(f.paths.keys.count, 0);
	end(&f);
}

static void add_random_samples(struct fixture *f)
{
	uint64_t count = draw(SAMPLE_MAX);

	for (uint64_t s = 0; s < count; s++) {
		uint64_t first_ns = draw(1000 * PERIOD_NS);

		add(f, draw(2),
		    &(struct cpu_sample){
			    first_ns,
			    first_ns + (draw(2) ? 0 : draw(20 * PERIOD_NS)),
			    .tid = OWN_PID + (uint32_t)draw(3),
			    .stack = (uint32_t)draw(4),
			    .state = (uint8_t)draw(XT_CPU_STATES),
			    .wait_pid = draw(2) ? OWN_PID : OTHER_PID,
			    .wait_tid = draw(2) ? 0 : OWN_PID + (uint32_t)draw(3),
		    });
	}
}

/* Also with samples that overlap, which no sampler writes. */
static void keeps_the_time_of_each_class(void **state)
{
	(void)state;
	for (uint64_t run = 1; run <= 300; run++) {
		uint64_t wanted_ns[IDLE_CLASSES] = {0}, now_ns = 0;
		struct fixture f;

		seed = run;
		begin(&f);
		add_random_samples(&f);
		sort(&f);
		for (int gap = 0; gap < 100; gap++) {
			uint64_t pieces_ns[IDLE_CLASSES] = {0}, from_ns = now_ns + draw(PERIOD_NS);

			now_ns = from_ns;
			for (int p = 0; p < 3; p++) {
				uint64_t class = draw(IDLE_CLASSES), ns = draw(8 * PERIOD_NS);

				ns = draw(2) ? ns : ns % PERIOD_NS;
				pieces_ns[class] += ns;
				wanted_ns[class] += ns;
				now_ns += ns;
			}
			add_gap(&f, from_ns, now_ns, from_ns + draw(now_ns - from_ns + 1000),
				(uint32_t)draw(3), pieces_ns);
		}
		idle_paths_finish(&f.paths, NULL, NULL);
		for (int class = 0; class < IDLE_CLASSES; class ++)
			assert_int_equal(idle_of(&f, (enum idle_class) class, -1),
					 wanted_ns[class]);
		assert_true(f.paths.long_covered_ns <= f.paths.long_ns);
		end(&f);
	}
}

/* Without clipping, the sum of the covers is 16 times 2^60, which is 0 in 64 bits. */
static void survives_covers_whose_sum_overflows(void **state)
{
	const uint64_t gap_ns = UINT64_C(1) << 60;
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_SUBMITTED] = gap_ns};
	struct fixture f;

	(void)state;
	begin(&f);
	for (uint64_t i = 0; i < 16; i++)
		add(&f, 0,
		    &(struct cpu_sample){i, UINT64_C(1) << 62, .tid = OWN_PID, .stack = 1,
					 .state = XT_CPU_RUNNING});
	sort(&f);
	add_gap(&f, 100, 100 + gap_ns, 100 + gap_ns, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, -1), gap_ns);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, IDLE_PATH_FIRST), gap_ns);
	end(&f);
}

/* A log with such a period is not accepted, but the division must not depend on that. */
static void survives_weights_whose_sum_overflows(void **state)
{
	const uint64_t pieces_ns[IDLE_CLASSES] = {[IDLE_NOT_SUBMITTED] = 1000};
	struct fixture f;

	(void)state;
	begin(&f);
	f.list[0].period_ns = UINT64_C(1) << 61;
	for (uint64_t i = 0; i < 4; i++)
		add(&f, 0,
		    &(struct cpu_sample){1000 + i, 1000 + i, UINT64_C(1) << 62, .tid = OWN_PID,
					 .stack = 1, .state = XT_CPU_RUNNING});
	sort(&f);
	add_gap(&f, 1000, 2000, 2000, 1, pieces_ns);
	idle_paths_finish(&f.paths, NULL, NULL);
	assert_int_equal(idle_of(&f, IDLE_NOT_SUBMITTED, -1), 1000);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(divides_a_long_gap),
		cmocka_unit_test(counts_paths_that_tell_something_as_covered),
		cmocka_unit_test(follows_a_wait_to_another_process),
		cmocka_unit_test(leaves_time_of_the_gpu_alone),
		cmocka_unit_test(keeps_the_time_of_each_class),
		cmocka_unit_test(survives_covers_whose_sum_overflows),
		cmocka_unit_test(survives_weights_whose_sum_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
