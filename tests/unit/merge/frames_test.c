/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths from stacks: trimmed frames, kept frames, and the name of the call.
 */
#include "merge/findings/finding.h"
#include "merge/sums/reading.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/naming/frames.h"

#define FRAMES_MAX 16

/* A frame is "module:function". No function: unnamed. No module: outside all modules. */
struct sample {
	const char *what;
	const char *frames[FRAMES_MAX]; /* innermost first */
	uint32_t flags;
	const char *path; /* root first, then the name of the API function */
};

#define DRIVER	"/usr/lib/libcuda.so.580.1:"
#define PROGRAM "/opt/app/app:"
#define LIBC	"/usr/lib/libc.so.6:"
#define CUDART	"/opt/app/libcudart.so.12:"

static const struct sample samples[] = {
	{"driver API",
	 {DRIVER, DRIVER "cuLaunchKernel", PROGRAM "f", PROGRAM "main"},
	 0,
	 "main;f;cuLaunchKernel"},
	{"tracer and CUPTI",
	 {"/x/libxtrace_inject.so:a", "/x/libcupti.so.12:b", DRIVER, PROGRAM "main"},
	 0,
	 "main;cuLaunchKernel"},
	{"runtime library",
	 {DRIVER, CUDART, CUDART "cudaLaunchKernel", PROGRAM "main"},
	 0,
	 "main;cudaLaunchKernel"},
	{"runtime library without names",
	 {DRIVER, CUDART, CUDART, PROGRAM "main"},
	 0,
	 "main;cuLaunchKernel"},
	{"nested runtime functions: outermost wins",
	 {DRIVER, CUDART "cudaLaunchKernelExC_ptsz", CUDART "__cudaLaunchKernel_v13000",
	  PROGRAM "main"},
	 0,
	 "main;cudaLaunchKernel"},
	{"static runtime",
	 {DRIVER, PROGRAM "libcudart_static_12ab", PROGRAM "__cudart123",
	  PROGRAM "cudaLaunchKernel_ptsz", PROGRAM "main"},
	 0,
	 "main;cudaLaunchKernel"},
	{"static runtime, internals without names",
	 {DRIVER, PROGRAM, PROGRAM, PROGRAM "cudaGraphLaunch", PROGRAM "main"},
	 0,
	 "main;cudaGraphLaunch"},
	{"unnamed frames of the program stay",
	 {DRIVER, PROGRAM, "/opt/app/other.so:cudaLaunchKernel", PROGRAM "main"},
	 0,
	 "main;cudaLaunchKernel;app+0x10;cuLaunchKernel"},
	{"nvcc's glue",
	 {DRIVER, CUDART "cudaLaunchKernel",
	  PROGRAM "_ZL25__cudaLaunchKernel_helperP9CUkern_st4dim3S1_PPvmP11CUstream_st",
	  PROGRAM "_Z23__device_stub__Z4kernPfPf", PROGRAM "_Z4kernPf", PROGRAM "main"},
	 0,
	 "main;kern;cudaLaunchKernel"},
	{"a program's own cudaX",
	 {DRIVER, PROGRAM "cudaify", PROGRAM "cudaWorker", PROGRAM "main"},
	 0,
	 "main;cudaWorker;cudaify;cuLaunchKernel"},
	{"start of the main thread",
	 {DRIVER, PROGRAM "main", LIBC "__libc_start_call_main",
	  LIBC "__libc_start_main@@GLIBC_2.34", PROGRAM "_start"},
	 0,
	 "main;cuLaunchKernel"},
	{"start of a thread, libc stripped",
	 {DRIVER, PROGRAM "work", LIBC, LIBC},
	 0,
	 "work;cuLaunchKernel"},
	{"start of a thread",
	 {DRIVER, PROGRAM "work", LIBC "start_thread", LIBC "clone3"},
	 0,
	 "work;cuLaunchKernel"},
	{"libc in between stays",
	 {DRIVER, PROGRAM "f", LIBC, PROGRAM "main", LIBC},
	 0,
	 "main;libc.so.6+0x10;f;cuLaunchKernel"},
	{"stubs",
	 {DRIVER, PROGRAM "cuLaunchKernel@plt", PROGRAM "f", PROGRAM "@plt", PROGRAM "main"},
	 0,
	 "main;f;cuLaunchKernel"},
	{"truncated", {DRIVER, PROGRAM "f"}, XT_STACK_TRUNCATED, "[truncated];f;cuLaunchKernel"},
	{"outside all modules", {DRIVER, "", PROGRAM "main"}, 0, "main;[unknown];cuLaunchKernel"},
	{"only driver frames", {DRIVER, DRIVER}, 0, "cuLaunchKernel"},
	{"no frames", {NULL}, XT_STACK_TRUNCATED, "[truncated];cuLaunchKernel"},
	{"C++ without parameters, clones with their function",
	 {DRIVER, PROGRAM "_ZN2ns1C3runIiEEvT_.constprop.0.isra.0", PROGRAM "main.cold"},
	 0,
	 "main;ns::C::run<int>;cuLaunchKernel"},
	{"Rust",
	 {DRIVER, PROGRAM "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"},
	 0,
	 "core::fmt::Formatter::pad;cuLaunchKernel"},
	{"hostile names", {DRIVER, PROGRAM "a;b\nc"}, 0, "a:b_c;cuLaunchKernel"},
	{"deleted files",
	 {DRIVER, "/tmp/x.so (deleted):"},
	 0,
	 "x.so (deleted)+0x10;cuLaunchKernel"},
};
#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

static uint32_t intern(struct names *names, const char *text, size_t length)
{
	uint32_t name = names_intern(names, text, length);

	assert_true(name != NAME_FAILED);
	return name;
}

/* A model with one stack, from the frames of a sample. Each frame has its own module. */
struct fixture {
	struct model model;
	struct addresses addresses;
	struct stack stacks[2];
	struct module modules[FRAMES_MAX + 1];
	struct api apis[2];
	struct address list[FRAMES_MAX];
	uint32_t by_frame[FRAMES_MAX];
};

static uint32_t module_of(struct fixture *f, const char *path, size_t length)
{
	uint32_t name = intern(&f->model.names, path, length), m;

	for (m = 1; m < f->model.modules.count; m++)
		if (f->modules[m].path == name)
			return m;
	f->modules[m] = (struct module){.id = m, .path = name, .bias = m << 20};
	f->model.modules.count++;
	return m;
}

static void make_fixture(struct fixture *f, const struct sample *sample)
{
	uint32_t count = 0;

	memset(f, 0, sizeof(*f));
	names_init(&f->model.names);
	f->model.modules.rows = f->modules;
	f->model.modules.count = 1;
	f->apis[1].name = intern(&f->model.names, "cuLaunchKernel_ptsz", 19);
	f->model.apis.rows = f->apis;
	f->model.apis.count = 2;
	for (; count < FRAMES_MAX && sample->frames[count]; count++) {
		const char *frame = sample->frames[count], *colon = strchr(frame, ':');
		struct address *address = &f->list[count];

		f->by_frame[count] = count;
		if (!colon)
			continue;
		address->module = module_of(f, frame, (size_t)(colon - frame));
		address->frame = f->modules[address->module].bias + 0x10;
		address->name = intern(&f->model.names, colon + 1, strlen(colon + 1));
	}
	f->stacks[1] = (struct stack){.frame_count = count, .flags = sample->flags, .seen_ns = 1};
	f->model.stacks.rows = f->stacks;
	f->model.stacks.count = 2;
	f->addresses = (struct addresses){.list = f->list, .count = count, .by_frame = f->by_frame};
}

static void print_path(const struct paths *paths, uint32_t node, char *out, size_t out_bytes)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity);

	out[0] = '\0';
	for (int d = 0; d < depth; d++) {
		strncat(out, names_text(&paths->names, paths->nodes[chain[d]].name, NULL),
			out_bytes - strlen(out) - 1);
		strncat(out, d + 1 < depth ? ";" : "", out_bytes - strlen(out) - 1);
	}
	free(chain);
}

static void trims_stacks(void **state)
{
	static struct fixture f;

	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		struct demangle_cache cache = {0};
		struct file_names files = {0};
		struct frames frames;
		struct paths paths;
		char path[512];
		uint32_t node;

		make_fixture(&f, &samples[i]);
		paths_init(&paths);
		cache.mangled = &f.model.names;
		cache.shown = &paths.names;
		frames_build(&frames, &f.model, &f.addresses, &(struct frame_style){0}, &cache,
			     &files, &paths, PATH_ROOT);
		assert_true(frames_has_stack(&frames, 1));
		assert_false(frames_has_stack(&frames, 0));
		assert_false(frames_has_stack(&frames, 2));
		node = paths_child(&paths, frames.nodes[1], frames_api_name(&frames, 1, 1));
		print_path(&paths, node, path, sizeof(path));
		print_message("%s\n", samples[i].what);
		assert_string_equal(path, samples[i].path);
		frames_free(&frames);
		demangle_cache_free(&cache);
		file_names_free(&files);
		paths_free(&paths);
		names_free(&f.model.names);
	}
}

/* Adds lines of relative paths to the two inner frames: a function inlined into the first one. */
static void add_places(struct fixture *f, struct place places[3])
{
	places[0] = (struct place){.function = intern(&f->model.names, "inlined", 7),
				   .file = intern(&f->model.names, "pack/in.cpp", 11),
				   .line = 7};
	places[1] = (struct place){.file = intern(&f->model.names, "pack/core.cpp", 13), .line = 8};
	places[2] = (struct place){.file = intern(&f->model.names, "step.cpp", 8), .line = 9};
	f->list[1].place_count = 2;
	f->list[2].first_place = 2;
	f->list[2].place_count = 1;
	f->addresses.places.list = places;
	f->addresses.places.count = 3;
}

static void counts_no_lines_of_packages_as_own(void **state)
{
	static const struct {
		struct sample sample;
		uint32_t line; /* to look at */
	} cases[] = {
		{{.frames = {DRIVER "cuLaunchKernel", "/v/site-packages/pack/core.so:launch",
			     PROGRAM "step"}},
		 9},
		{{.frames = {DRIVER "cuLaunchKernel", "/opt/app/core.so:launch", PROGRAM "step"}},
		 7},
	};
	static struct fixture f;
	static struct settings settings = {.frames = {.inlines = true, .lines = true}};
	static struct run run = {.settings = &settings};
	static struct reading reading = {.run = &run, .model = &f.model};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct demangle_cache cache = {0};
		struct file_names files = {0};
		struct finding_place place = {0};
		struct place places[3];
		bool is_own = cases[i].line == 7;

		make_fixture(&f, &cases[i].sample);
		add_places(&f, places);
		paths_init(&run.paths);
		cache.mangled = &f.model.names;
		cache.shown = &run.paths.names;
		frames_build(&reading.frames, &f.model, &f.addresses, &settings.frames, &cache,
			     &files, &run.paths, PATH_ROOT);
		reading.process.frames = &reading.frames;
		finding_add_stack(&reading, 1, &place);
		assert_int_equal(place.frame_count, 3);
		assert_int_equal(place.at.line, cases[i].line);
		assert_true(paths_is_user_code(&run.paths, place.frames[0].name));
		for (size_t n = 1; n < 3; n++)
			assert_int_equal(paths_is_user_code(&run.paths, place.frames[n].name),
					 is_own);
		free(place.frames);
		frames_free(&reading.frames);
		demangle_cache_free(&cache);
		file_names_free(&files);
		paths_free(&run.paths);
		names_free(&f.model.names);
	}
}

#define LIBPYTHON "/usr/lib/libpython3.12.so.1.0:"
#define PYTHON	  "/usr/bin/python3.11:"

/* How many frames are shown if the third one runs Python. */
static const struct {
	struct sample sample;
	uint32_t end;
} with_python[] = {
	{{"an interpreter's own program",
	  {DRIVER, PYTHON "PyObject_Call", PYTHON "_PyEval_EvalFrameDefault", PYTHON "Py_BytesMain",
	   LIBC "__libc_start_main", PYTHON "_start"},
	  0,
	  ""},
	 3},
	{{"a program with an interpreter's library",
	  {DRIVER, LIBPYTHON "PyObject_Call", LIBPYTHON "_PyEval_EvalFrameDefault",
	   LIBPYTHON "PyRun_SimpleFile", PROGRAM "simulate", PROGRAM "main"},
	  0,
	  ""},
	 6},
	{{"a program with an interpreter in it",
	  {DRIVER, PROGRAM "PyObject_Call", PROGRAM "_PyEval_EvalFrameDefault",
	   PROGRAM "PyRun_SimpleFile", PROGRAM "simulate", PROGRAM "main"},
	  0,
	  ""},
	 6},
	{{"a thread of an interpreter's library",
	  {DRIVER, LIBPYTHON "PyObject_Call", LIBPYTHON "_PyEval_EvalFrameDefault",
	   LIBPYTHON "thread_run", LIBC "start_thread", LIBC "clone3"},
	  0,
	  ""},
	 3},
	{{"a program that is only called a little like one",
	  {DRIVER, LIBPYTHON "PyObject_Call", LIBPYTHON "_PyEval_EvalFrameDefault",
	   "/opt/python3app:main"},
	  0,
	  ""},
	 4},
};

static void trims_start_of_interpreter(void **state)
{
	static struct fixture f;
	struct python_place place = {.frame = 1, .place = 2};

	(void)state;
	for (size_t i = 0; i < sizeof(with_python) / sizeof(with_python[0]); i++) {
		struct frame_roles roles;
		uint32_t first, end, api;

		make_fixture(&f, &with_python[i].sample);
		f.model.python.list = &place;
		f.model.python.count = f.stacks[1].python_count = 1;
		frame_roles_find(&roles, &f.model, &f.addresses);
		print_message("%s\n", with_python[i].sample.what);
		frame_roles_trim(&roles, &f.stacks[1], f.by_frame, true, &first, &end, &api);
		assert_int_equal(first, 1);
		assert_int_equal(end, with_python[i].end);
		frame_roles_free(&roles);
		names_free(&f.model.names);
	}
}

static void recognises_interpreters_by_name(void **state)
{
	static const struct {
		const char *frame;
		bool is_interpreter;
	} files[] = {
		{"/usr/bin/python:", true},
		{"/usr/bin/python3:", true},
		{"/usr/bin/python3.12:f", true},
		{"/usr/bin/python3.13t:", true},
		{"/usr/bin/python3.11 (deleted):", true},
		{"/usr/lib/libpython3.so:", true},
		{"/usr/lib/libpython3.12.so.1.0:", true},
		{"/usr/lib/libpython3.14td.so.1.0:", true},
		{"/opt/python3app:", false},
		{"/opt/libpython3_bridge.so:", false},
		{"/opt/python3.11-wrapper:", false},
		{"/opt/pythonic:", false},
		{"/opt/app:py::f:/a.py", false},
		{":py::f:/a.py", true}, /* in no module */
		{":f", false},
	};
	static struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct sample sample = {.frames = {files[i].frame}};

		make_fixture(&f, &sample);
		if (files[i].frame[0] == ':')
			f.list[0].module = 0;
		assert_int_equal(frame_is_of_interpreter(&f.model, &f.list[0]),
				 files[i].is_interpreter);
		names_free(&f.model.names);
	}
}

/* A name that demangles to gigabytes is shown mangled, in finite time. */
static void leaves_exploding_names_mangled(void **state)
{
	struct demangle_cache cache = {0};
	struct names mangled, shown;
	char name[512] = "_Z1f";
	uint32_t result;
	size_t length;

	(void)state;
	/* Each argument type is a pair of the one before, so each doubles the text. */
	strcat(name, "St4pairIiiE");
	for (const char *last = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"; *last; last++) {
		char more[32];

		snprintf(more, sizeof(more), "S_IS%c_S%c_E", *last, *last);
		strcat(name, more);
	}
	names_init(&mangled);
	names_init(&shown);
	cache.mangled = &mangled;
	cache.shown = &shown;
	result = demangle(&cache, intern(&mangled, name, strlen(name)), DEMANGLE_FULL);
	assert_true(result != NAME_FAILED);
	names_text(&shown, result, &length);
	assert_int_equal(length, strlen(name));
	demangle_cache_free(&cache);
	names_free(&mangled);
	names_free(&shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trims_stacks),
		cmocka_unit_test(counts_no_lines_of_packages_as_own),
		cmocka_unit_test(trims_start_of_interpreter),
		cmocka_unit_test(recognises_interpreters_by_name),
		cmocka_unit_test(leaves_exploding_names_mangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
