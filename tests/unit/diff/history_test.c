/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points, drift and causes in seeded histories whose truth is known.
 *
 * usage: test_diff_history [HISTORIES]: search this many histories of 1,000 runs for false changes
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/history/groups.h"
#include "diff/history/movements.h"

#define PATHS		300
#define SERIES		400
#define NOISE		0.01
#define STEP		0.03
#define DRIFT		0.001
#define LATER_RUNS	10
#define DRIFT_RUNS	30
#define FALSE_RUNS	1000
#define GPU_TIME	"gpu-time"
#define PLACE_WITHIN	2
#define ZIPF_FIRST	4
#define CAUSE_HISTORIES 20 /* for each one that is searched for false changes */
#define CAUSE_PLACE	40
#define CAUSE_WITHIN	10
#define COMMON_NOISE	0.005
#define GATE_RUNS	200
#define GATE_NEWEST	20

static unsigned long long false_histories = 3;

/* A sequence of random numbers (splitmix64). */
static uint64_t random_state;

static double uniform(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

static double gaussian(void)
{
	return sqrt(-2.0 * log(uniform())) * cos(2.0 * M_PI * uniform());
}

/* Student's t with 3 degrees of freedom and the variance 1. */
static double heavy(void)
{
	double square = 0.0;

	for (int i = 0; i < 3; i++) {
		double x = gaussian();

		square += x * x;
	}
	return gaussian() / sqrt(square);
}

/* Describes a synthetic history. Fields that are 0 have no effect. */
struct model {
	size_t runs, paths;
	uint64_t seed;
	double (*noise)(void); /* NULL: Gaussian */
	double noise_part;     /* of NOISE; 0: all of it */
	double step;	       /* of path 0, relative */
	size_t step_place;
	double drift; /* of path 0, per run, relative */
	size_t all_place;
	double all;	    /* step of all paths */
	double all_part;    /* of the paths that respond to it; 0: all */
	double all_spread;  /* standard deviation of their response to it, relative */
	double common;	    /* standard deviation of a factor that all paths of a run share */
	double share;	    /* of path 0 in the total */
	const char *driver; /* from driver_place on */
	size_t driver_place;
	size_t count_place; /* path 0 is called twice as often */
	size_t rename_place;
};

/* A number of a path that is the same in all runs. */
static double path_gaussian(const struct model *m, size_t path)
{
	uint64_t state = random_state;
	double result;

	random_state = m->seed * 7919 + path * 104729;
	result = gaussian();
	random_state = state;
	return result;
}

/* Few paths cause most of the GPU time, as in real programs. */
static double path_cost(const struct model *m, size_t path)
{
	double rest = 0.0;

	if (!m->share)
		return 1000.0 + 10.0 * (double)path;
	for (size_t p = 1; p < m->paths; p++)
		rest += 1.0 / (double)(p + ZIPF_FIRST);
	return path ? (1.0 - m->share) / rest / (double)(path + ZIPF_FIRST) : m->share;
}

static double path_value(const struct model *m, size_t path, size_t run)
{
	double value = path_cost(m, path);

	if (path == 0 && m->step_place && run >= m->step_place)
		value *= 1.0 + m->step;
	if (path == 0)
		value *= 1.0 + m->drift * (double)run;
	if (m->all_place && run >= m->all_place &&
	    (!m->all_part || 0.5 * erfc(path_gaussian(m, path + 1000)) < m->all_part))
		value *= 1.0 + m->all * (1.0 + m->all_spread * path_gaussian(m, path));
	if (path == 0 && m->count_place && run >= m->count_place)
		value *= 2.0;
	return value * exp(NOISE * (m->noise_part ? m->noise_part : 1.0) *
			   (m->noise ? m->noise() : gaussian()));
}

static void set_properties(struct history_point *point, const struct model *m, size_t run)
{
	point->properties[PROPERTY_PROGRAM] = "train";
	point->properties[PROPERTY_GPU] = "GPU";
	point->properties[PROPERTY_HOST] = "host";
	point->properties[PROPERTY_DRIVER] =
		m->driver && run >= m->driver_place ? m->driver : "12000";
}

static void add_run(struct history *h, const struct model *m, size_t run)
{
	char id[ID_BYTES], key[96];
	struct history_point *point;
	double sum = 0.0, common = m->common ? exp(m->common * gaussian()) : 1.0;

	snprintf(id, sizeof(id), "%016zx", run);
	point = history_add_point(h, id);
	point->values = arena_alloc(h->memory, (m->paths + 2) * sizeof(*point->values));
	point->time_ns = (run + 1) * UINT64_C(3600000000000);
	point->is_used = true;
	set_properties(point, m, run);
	history_row_at(h, LEVEL_TOTAL, GPU_TIME, GPU_TIME);
	for (size_t p = 0; p < m->paths + (m->rename_place > 0); p++) {
		bool is_renamed = m->rename_place && run >= m->rename_place;
		/* The last path is path 0 under its new name. */
		size_t path = p == m->paths ? 0 : p;
		long row;

		snprintf(key, sizeof(key), "main;train;layer;%s_%zu;kernel_%zu",
			 p == m->paths ? "renamed" : "path", path, path);
		row = history_row_at(h, LEVEL_PATH, key, key);
		point->values[row] = (struct history_value){.value = NAN};
		if (m->rename_place && path == 0 && is_renamed != (p == m->paths))
			continue;
		point->values[row] = (struct history_value){
			common * path_value(m, path, run),
			path == 0 && m->count_place && run >= m->count_place ? 2.0 : 1.0};
		sum += point->values[row].value;
	}
	point->values[0] = (struct history_value){sum, 1.0};
	point->value_count = m->paths + 1 + (m->rename_place > 0);
}

/* A history and what was found in it. */
struct found {
	struct history history;
	struct groups groups;
	struct group_result result;
};

static void search(struct found *f, const struct model *m)
{
	random_state = m->seed * 1000003;
	history_init(&f->history);
	for (size_t run = 0; run < m->runs; run++)
		add_run(&f->history, m, run);
	groups_make(&f->groups, &f->history);
	assert_int_equal(f->groups.count, 1);
	group_result_make(&f->result, &f->history, &f->groups.list[0]);
}

static void release(struct found *f)
{
	group_result_free(&f->result);
	groups_free(&f->groups);
	history_free(&f->history);
}

/* The first step of path 0, or NULL. */
static const struct history_finding *find_step(const struct found *f)
{
	for (size_t i = 0; i < f->result.detection.finding_count; i++) {
		const struct history_finding *finding = &f->result.detection.findings[i];
		const struct history_row *row = finding_row(&f->result, finding);

		if (!finding->is_drift && row->level == LEVEL_PATH && strstr(row->key, "kernel_0"))
			return finding;
	}
	return NULL;
}

static bool has_step(const struct model *m)
{
	struct found f;
	const struct history_finding *finding;
	bool is_found;

	search(&f, m);
	finding = find_step(&f);
	is_found = finding && finding->place + PLACE_WITHIN >= m->step_place &&
		   finding->place <= m->step_place + PLACE_WITHIN;
	release(&f);
	return is_found;
}

static bool has_worse(const struct model *m, bool only_drift)
{
	struct found f;
	bool is_found = false;

	search(&f, m);
	for (size_t i = 0; i < f.result.movement_count; i++)
		is_found |= f.result.movements[i].is_worse &&
			    (f.result.movements[i].is_drift || !only_drift);
	release(&f);
	return is_found;
}

static bool has_movement(const struct model *m)
{
	return has_worse(m, false);
}

static bool has_drift(const struct model *m)
{
	return has_worse(m, true);
}

/* Prints and checks the share of seeded histories in which something was found. */
static void expect_share(const char *what, const struct model *model,
			 bool (*is_found)(const struct model *), double least)
{
	struct model m = *model;
	unsigned count = 0;

	for (unsigned seed = 0; seed < SERIES; seed++) {
		m.seed = seed + 1;
		count += is_found(&m);
	}
	printf("%s: %u of %u\n", what, count, SERIES);
	if (count < least * SERIES)
		fail_msg("%s: found in %u of %u histories", what, count, SERIES);
}

static void locates_step_after_ten_runs(void **state)
{
	struct model m = {.runs = 40 + LATER_RUNS, .paths = 1, .step = STEP, .step_place = 40};

	(void)state;
	expect_share("3 % step, 1 path", &m, has_step, 0.95);
	m.step = -STEP;
	expect_share("-3 % step, 1 path", &m, has_step, 0.95);
	m.step = STEP;
	m.paths = PATHS;
	expect_share("3 % step, 300 paths", &m, has_step, 0.95);
}

static void finds_drift_within_thirty_runs(void **state)
{
	struct model m = {.runs = DRIFT_RUNS, .paths = 1, .drift = DRIFT};

	(void)state;
	expect_share("0.1 % drift, 1 % noise", &m, has_movement, 0.95);
	expect_share("the same, called a drift", &m, has_drift, 0.9);
	m.noise_part = 0.8;
	expect_share("0.1 % drift, 0.8 % noise", &m, has_movement, 0.98);
	m.noise_part = 0.5;
	expect_share("0.1 % drift, 0.5 % noise", &m, has_movement, 1.0);
}

/* A step down in the middle of a slow drift. */
static void finds_step_within_drift(void **state)
{
	struct model m = {.runs = 100, .paths = 1, .drift = DRIFT, .step = -0.05, .step_place = 50};

	(void)state;
	expect_share("-5 % step within 0.1 % drift", &m, has_step, 0.9);
}

/* Counts false findings of 300 paths over 1,000 runs. */
static void count_false(double (*noise)(void), size_t *steps, size_t *drifts)
{
	*steps = *drifts = 0;
	for (unsigned seed = 0; seed < false_histories; seed++) {
		struct model m = {
			.runs = FALSE_RUNS, .paths = PATHS, .seed = 7000 + seed, .noise = noise};
		struct found f;

		search(&f, &m);
		for (size_t i = 0; i < f.result.detection.finding_count; i++) {
			bool is_drift = f.result.detection.findings[i].is_drift;

			*drifts += is_drift;
			*steps += !is_drift;
		}
		release(&f);
	}
}

static void finds_no_change_in_noise(void **state)
{
	static const struct {
		const char *name;
		double (*noise)(void);
	} noises[] = {{"Gaussian", gaussian}, {"heavy tails", heavy}};

	(void)state;
	for (int n = 0; n < 2; n++) {
		size_t steps, drifts;

		count_false(noises[n].noise, &steps, &drifts);
		printf("%s: %zu false changes, %zu false drifts in %llu histories of %d runs\n",
		       noises[n].name, steps, drifts, false_histories, FALSE_RUNS);
		assert_true(steps <= false_histories);
	}
}

static const struct movement *only_movement(const struct found *f)
{
	assert_int_equal(f->result.movement_count, 1);
	return &f->result.movements[0];
}

static void names_the_cause(void **state)
{
	static const struct {
		struct model model;
		enum movement_cause cause;
		bool is_worse;
	} cases[] = {
		{{.step = 0.1, .step_place = 25}, CAUSE_REAL, true},
		{{.step = -0.1, .step_place = 25}, CAUSE_REAL, false},
		{{.all = 0.1, .all_place = 25}, CAUSE_HARDWARE, true},
		{{.all = 0.1, .all_place = 25, .driver = "13000", .driver_place = 25},
		 CAUSE_HARDWARE,
		 true},
		{{.count_place = 25}, CAUSE_REAL, true},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct model m = cases[c].model;
		struct found f;

		m.runs = 50;
		m.paths = 20;
		m.seed = 11 + c;
		search(&f, &m);
		assert_int_equal(only_movement(&f)->cause, cases[c].cause);
		assert_int_equal(only_movement(&f)->is_worse, cases[c].is_worse);
		assert_in_range(only_movement(&f)->place, 25 - PLACE_WITHIN, 25 + PLACE_WITHIN);
		assert_int_equal(group_result_fails(&f.result, 30),
				 cases[c].cause == CAUSE_REAL && cases[c].is_worse);
		release(&f);
	}
}

static double between(double low, double high)
{
	return low * pow(high / low, uniform());
}

/* All paths move by 0.3 to 3 %. */
static void draw_common_shift(struct model *m)
{
	m->all = between(0.003, 0.03) * (uniform() < 0.5 ? -1.0 : 1.0);
	m->all_place = CAUSE_PLACE;
}

/* The same, but the paths do not respond alike. */
static void draw_uneven_shift(struct model *m)
{
	draw_common_shift(m);
	m->all_spread = 0.3;
}

/* A path that causes 30 to 60 % of the GPU time changes by 0.5 to 20 %. */
static void draw_dominant_change(struct model *m)
{
	m->share = between(0.3, 0.6);
	m->step = between(0.005, 0.2) * (uniform() < 0.5 ? -1.0 : 1.0);
	m->step_place = CAUSE_PLACE;
}

/* A fifth to two thirds of the paths change alike. */
static void draw_change_of_some(struct model *m)
{
	draw_common_shift(m);
	m->all_part = between(0.2, 0.67);
}

/* The same on a machine whose speed varies. */
static void draw_dominant_change_in_common_noise(struct model *m)
{
	draw_dominant_change(m);
	m->common = COMMON_NOISE;
}

static const struct movement *nearest_step(const struct found *f)
{
	const struct movement *best = NULL;

	for (size_t i = 0; i < f->result.movement_count; i++) {
		const struct movement *movement = &f->result.movements[i];

		if (!movement->is_drift && movement->place + CAUSE_WITHIN >= CAUSE_PLACE &&
		    movement->place <= CAUSE_PLACE + CAUSE_WITHIN &&
		    (!best || labs((long)movement->place - CAUSE_PLACE) <
				      labs((long)best->place - CAUSE_PLACE)))
			best = movement;
	}
	return best;
}

static void classifies_small_changes(void **state)
{
	static const struct {
		const char *what;
		void (*draw)(struct model *m);
		enum movement_cause cause;
		double least;
	} kinds[] = {
		{"common shift", draw_common_shift, CAUSE_HARDWARE, 0.95},
		{"common shift, uneven", draw_uneven_shift, CAUSE_HARDWARE, 0.9},
		{"change of a dominant path", draw_dominant_change, CAUSE_REAL, 0.99},
		{"the same in common noise", draw_dominant_change_in_common_noise, CAUSE_REAL,
		 0.98},
		{"change of some paths", draw_change_of_some, CAUSE_REAL, 0.85},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		unsigned count = 0, right = 0;

		for (unsigned seed = 0; seed < CAUSE_HISTORIES * false_histories; seed++) {
			struct model m = {.seed = 20000 + seed, .share = 0.15};
			const struct movement *movement;
			struct found f;

			random_state = m.seed;
			m.paths = (size_t)between(10, 100);
			m.runs = CAUSE_PLACE + (size_t)between(10, 40);
			m.noise_part = between(0.2, 1.0);
			kinds[k].draw(&m);
			search(&f, &m);
			movement = nearest_step(&f);
			count += movement != NULL;
			right += movement && movement->cause == kinds[k].cause;
			release(&f);
		}
		printf("%s: %s in %u of %u\n", kinds[k].what, cause_specs[kinds[k].cause].word,
		       right, count);
		if (right < kinds[k].least * count)
			fail_msg("%s: %u of %u", kinds[k].what, right, count);
	}
}

/* Counts the calls with --fail that fail, one after each run, though nothing changed. */
static void gate_passes_in_common_noise(void **state)
{
	unsigned long long histories = 1 + false_histories / 2;
	size_t failed = 0;

	(void)state;
	for (unsigned seed = 0; seed < histories; seed++) {
		struct model m = {
			.seed = 40000 + seed, .paths = 20, .share = 0.15, .common = COMMON_NOISE};
		struct found f = {0};

		random_state = m.seed * 1000003;
		m.noise_part = between(0.2, 1.0);
		history_init(&f.history);
		for (size_t run = 0; run < GATE_RUNS; run++) {
			add_run(&f.history, &m, run);
			groups_make(&f.groups, &f.history);
			group_result_make(&f.result, &f.history, &f.groups.list[0]);
			failed += group_result_fails(&f.result, GATE_NEWEST);
			group_result_free(&f.result);
			groups_free(&f.groups);
		}
		history_free(&f.history);
	}
	printf("--fail in common noise: %zu of %llu calls\n", failed, histories * GATE_RUNS);
	assert_true(failed * 1000 <= histories * GATE_RUNS);
}

static void marks_short_excursion_as_noise(void **state)
{
	struct found f;
	struct model m = {.runs = 60, .paths = 20, .seed = 3};

	(void)state;
	random_state = 6;
	history_init(&f.history);
	for (size_t run = 0; run < m.runs; run++) {
		m.step = run >= 30 && run < 35 ? 0.2 : 0.0;
		m.step_place = 1;
		add_run(&f.history, &m, run);
	}
	groups_make(&f.groups, &f.history);
	group_result_make(&f.result, &f.history, &f.groups.list[0]);
	assert_int_equal(f.result.movement_count, 2);
	assert_int_equal(f.result.movements[0].cause, CAUSE_NOISE);
	assert_int_equal(f.result.movements[1].cause, CAUSE_NOISE);
	assert_false(group_result_fails(&f.result, 60));
	release(&f);
}

static void follows_renamed_path(void **state)
{
	struct model m = {.runs = 50, .paths = 20, .seed = 4, .rename_place = 25};
	struct found f;

	(void)state;
	search(&f, &m);
	assert_int_equal(f.groups.list[0].rename_count, 1);
	assert_int_equal(f.result.movement_count, 0);
	release(&f);
}

static void names_changed_arguments_only(void **state)
{
	static const struct {
		const char *before, *after, *change;
	} cases[] = {
		{"train --dim 256 --fast", "train --dim 384 --fast", "--dim 256 -> 384"},
		{"train --dim 256 -b 8", "train --dim 384 -b 16", "--dim 256 -> 384, -b 8 -> 16"},
		{"train --dim=256", "train --dim=384", "--dim=256 -> --dim=384"},
		{"train a.txt", "train b.txt", "a.txt -> b.txt"},
		{"train --fast", "train --slow", "--fast -> --slow"},
		{"train --dim 1", "train --big --dim 1", "--big added"},
		{"train --dim 1 --big", "train --dim 1", "--big removed"},
		{"train x y", "train z", "x y -> z"},
		{"", "train", "train added"},
		{"train", "", "train removed"},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		assert_string_equal(arguments_change(cases[c].before, cases[c].after),
				    cases[c].change);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locates_step_after_ten_runs),
		cmocka_unit_test(finds_drift_within_thirty_runs),
		cmocka_unit_test(finds_step_within_drift),
		cmocka_unit_test(finds_no_change_in_noise),
		cmocka_unit_test(names_the_cause),
		cmocka_unit_test(classifies_small_changes),
		cmocka_unit_test(gate_passes_in_common_noise),
		cmocka_unit_test(marks_short_excursion_as_noise),
		cmocka_unit_test(follows_renamed_path),
		cmocka_unit_test(names_changed_arguments_only),
	};

	if (argc > 1)
		false_histories = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
