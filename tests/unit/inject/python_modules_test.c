/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of modules, from objects of CPython 3.12 in memory of the test, whole and damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/python/python_modules.h"

#define MEMORY_BYTES 16384
#define PAGE_BYTES   4096
#define OBJECT_BYTES 512
#define READY	     (UINT64_C(1) << 12)
#define HAS_DICT     (UINT64_C(1) << 4)
#define STATE_ASCII  0xe4 /* a compact ASCII string */

/* Objects, each of OBJECT_BYTES. */
enum object {
	TYPE_TYPE = 1,
	TYPE_DICT,
	TYPE_STR,
	TYPE_MODEL,
	TYPE_NAMES,
	STR_MODULES,
	STR_LAYERS,
	MODEL,
	CHILD,
	ATTRIBUTES,
	ATTRIBUTE_KEYS,
	CHILDREN,
	CHILDREN_KEYS,
	OBJECTS,
};

static uint8_t *memory;
static struct python_runtime python;
static struct python_walk walk;

static uintptr_t at(enum object object)
{
	return (uintptr_t)memory + object * OBJECT_BYTES + 64; /* words may precede an object */
}

static void put(enum object object, int offset, uint64_t value)
{
	memcpy((void *)(at(object) + (uintptr_t)(intptr_t)offset), &value, sizeof(value));
}

static void put_class(enum object class, const char *name, unsigned name_place, uint64_t flags)
{
	char *text = (char *)at(TYPE_NAMES) + name_place * 16;

	strcpy(text, name);
	put(class, 8, at(TYPE_TYPE));
	put(class, 24, (uintptr_t)text);
	put(class, 32, 64);
	put(class, 168, READY | flags);
}

static void put_string(enum object string, const char *text)
{
	put(string, 8, at(TYPE_STR));
	put(string, 16, strlen(text));
	put(string, 24, 0x1234500 + string); /* hash */
	put(string, 32, STATE_ASCII);
	strcpy((char *)at(string) + 40, text);
}

/* A dict with one entry. */
static void put_dict(enum object dict, enum object keys, enum object key, enum object value)
{
	put(dict, 8, at(TYPE_DICT));
	put(dict, 16, 1);
	put(dict, 32, at(keys));
	put(keys, 0, 1);
	put(keys, 8, 3 | 3 << 8 | 1 << 16); /* 8 places of one byte, keys are strings */
	put(keys, 24, 1);
	put(keys, 40, at(key));
	put(keys, 48, at(value));
}

/* Model(layers=Model()) */
static int make_objects(void **unused)
{
	const uint64_t of_str = 1 << 28, of_dict = 1 << 29, of_class = UINT64_C(1) << 31;
	char why[128];

	(void)unused;
	memset(memory, 0, MEMORY_BYTES);
	put_class(TYPE_TYPE, "type", 0, of_class);
	put_class(TYPE_DICT, "dict", 1, of_dict);
	put_class(TYPE_STR, "str", 2, of_str);
	put_class(TYPE_MODEL, "Model", 3, HAS_DICT);
	put_string(STR_MODULES, "_modules");
	put_string(STR_LAYERS, "layers");
	put(MODEL, 8, at(TYPE_MODEL));
	put(CHILD, 8, at(TYPE_MODEL));
	put(MODEL, -24, at(ATTRIBUTES));
	put_dict(ATTRIBUTES, ATTRIBUTE_KEYS, STR_MODULES, CHILDREN);
	put_dict(CHILDREN, CHILDREN_KEYS, STR_LAYERS, CHILD);
	return python_layout_find(PYTHON_VERSION(3, 12), NULL, &python.layout, why, sizeof(why));
}

static int map_memory(void **unused)
{
	(void)unused;
	memory = mmap(NULL, MEMORY_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_Static_assert(OBJECTS * OBJECT_BYTES + 64 <= MEMORY_BYTES, "there is room for all");
	return memory == MAP_FAILED || mprotect(memory + MEMORY_BYTES, PAGE_BYTES, PROT_NONE) != 0;
}

/* Walks two frames, innermost first: calls of the child and of the model. */
static void walk_modules(void)
{
	python_walk_none(&walk);
	walk.python = &python;
	walk.frame_count = 2;
	walk.frames[0] = walk.frames[1] = (struct xt_python_frame){.line = 1};
	walk.called[0] = (struct python_called){.object = at(CHILD)};
	walk.called[1] = (struct python_called){.object = at(MODEL), .step = 1};
	walk.called_frames[0] = 0;
	walk.called_frames[1] = 1;
	walk.called_count = 2;
	python_modules_add(&walk);
}

/* The name of the n-th module, from the outermost on. */
static const char *nth_name(uint32_t module)
{
	const struct xt_python_code *code = (const void *)walk.code_part;
	static char name[PYTHON_NAME_BYTES_MAX + 1];

	for (uint32_t i = 0; i < module; i++)
		code = (const void *)(code->text + ((code->name_bytes + 7u) & ~7u));
	assert_in_range(code->name_bytes, 1, PYTHON_NAME_BYTES_MAX);
	memcpy(name, code->text, code->name_bytes);
	name[code->name_bytes] = '\0';
	return name;
}

static const char *name_of(uint32_t module)
{
	assert_int_equal(walk.frame_count, 4);
	assert_int_equal(walk.code_count, 2);
	return nth_name(module);
}

static void names_module_by_its_entry(void **unused)
{
	(void)unused;
	walk_modules();
	assert_string_equal(name_of(0), "[module] Model");
	assert_string_equal(name_of(1), "[module] layers");
	/* Outside the frames that call them. */
	assert_int_equal(walk.frames[1].code, 1);
	assert_int_equal(walk.frames[1].line, 0);
	assert_int_equal(walk.frames[3].code, 0);
	assert_true(walk.inputs_complete && walk.input_count > 10);
	assert_int_equal(walk.called[0].left, 2);
	assert_int_equal(walk.called[1].left, 1);
}

/* Each word that a name was read from is an input: a change of it changes an input. */
static void makes_inputs_of_all_it_read(void **unused)
{
	static const struct {
		enum object object;
		int offset;
	} words[] = {{MODEL, 8},	   {MODEL, -24},	{ATTRIBUTES, 32},
		     {ATTRIBUTES, 40},	   {ATTRIBUTE_KEYS, 8}, {ATTRIBUTE_KEYS, 40},
		     {ATTRIBUTE_KEYS, 48}, {CHILDREN, 8},	{CHILDREN, 32},
		     {CHILDREN_KEYS, 8},   {CHILDREN_KEYS, 40}, {CHILDREN_KEYS, 48},
		     {STR_LAYERS, 24},	   {TYPE_MODEL, 24}};

	(void)unused;
	walk_modules();
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		uint64_t *word =
			(uint64_t *)(at(words[w].object) + (uintptr_t)(intptr_t)words[w].offset);
		uint32_t changed = 0;

		*word ^= 4;
		for (uint32_t i = 0; i < walk.input_count; i++)
			changed += (*walk.inputs[i].word & walk.inputs[i].mask) !=
				   walk.inputs[i].value;
		*word ^= 4;
		assert_true(changed);
	}
}

static void shows_class_if_damaged(void **unused)
{
	const struct {
		enum object object;
		int offset;
		uint64_t value;
	} rows[] = {
		{CHILDREN_KEYS, 48, at(MODEL)},			      /* another module */
		{CHILDREN_KEYS, 24, 0},				      /* no entries */
		{CHILDREN_KEYS, 24, 1 << 20},			      /* more than there is room */
		{CHILDREN_KEYS, 8, 61 | 3 << 8 | 1 << 16},	      /* too large */
		{CHILDREN_KEYS, 8, 3 | 60 << 8 | 1 << 16},	      /* entries far away */
		{CHILDREN_KEYS, 8, 3 | 3 << 8 | 7 << 16},	      /* unknown kind */
		{CHILDREN_KEYS, 40, at(MODEL)},			      /* the key is no string */
		{CHILDREN_KEYS, 40, 8},				      /* not readable */
		{CHILDREN, 8, at(TYPE_STR)},			      /* no dict */
		{CHILDREN, 32, (uintptr_t)memory + MEMORY_BYTES},     /* not readable */
		{CHILDREN, 32, (uintptr_t)memory + MEMORY_BYTES - 8}, /* readable in part */
		{CHILDREN, 32, at(CHILDREN_KEYS) + 1},		      /* not aligned */
		{STR_LAYERS, 16, UINT64_MAX},			      /* too long */
		{STR_LAYERS, 24, UINT64_MAX},			      /* no hash */
		{STR_LAYERS, 32, 0},				      /* of no kind */
		{ATTRIBUTES, 32, 0},
		{MODEL, -24, 0},
		{MODEL, -24, 1}, /* values of a class that has no keys */
		{TYPE_MODEL, 168, READY},
		{STR_MODULES, 40, 0x1111},
	};

	(void)unused;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		make_objects(NULL);
		put(rows[r].object, rows[r].offset, rows[r].value);
		walk_modules();
		assert_string_equal(name_of(0), "[module] Model");
		assert_string_equal(name_of(1), "[module] <Model>");
	}
}

static void marks_unreadable_module_as_unknown(void **unused)
{
	(void)unused;
	put(TYPE_MODEL, 24, 16);
	walk_modules();
	assert_string_equal(name_of(0), "[module] <unknown>");
	make_objects(NULL);
	put(CHILD, 8, at(TYPE_TYPE) + 8); /* no class */
	put(CHILDREN_KEYS, 48, 0);
	walk_modules();
	assert_string_equal(name_of(1), "[module] <unknown>");
}

/* Random words: no crash, and no name that the objects do not have. */
static void tolerates_random_damage(void **unused)
{
	uint32_t named = 0;

	(void)unused;
	srandom(1);
	for (int round = 0; round < 3000; round++) {
		uint64_t values[] = {(uint64_t)random() << 32 | (uint64_t)random(),
				     (uint64_t)random() % 64, at((enum object)(random() % OBJECTS)),
				     (uintptr_t)memory + MEMORY_BYTES - (uint64_t)random() % 64};

		make_objects(NULL);
		for (long i = random() % 3; i >= 0; i--)
			put((enum object)(random() % OBJECTS), (int)(random() % 24) * 8 - 32,
			    values[random() % 4]);
		walk_modules();
		assert_memory_equal(name_of(0), "[module] ", 9);
		assert_memory_equal(name_of(1), "[module] ", 9);
		named += !strcmp(name_of(1), "[module] layers");
	}
	assert_in_range(named, 500, 2999);
}

/* Modules that are no children of each other, of a class with a long name. */
static void cuts_long_paths(void **unused)
{
	const uint32_t count = 20, name_bytes = 200;
	uint32_t cut = 0;

	(void)unused;
	memset((char *)at(TYPE_NAMES), 'M', name_bytes);
	put(TYPE_MODEL, 24, at(TYPE_NAMES));
	put(CHILDREN_KEYS, 48, 0);
	python_walk_none(&walk);
	walk.python = &python;
	walk.frame_count = walk.called_count = count;
	for (uint32_t i = 0; i < count; i++) {
		walk.called[i] = (struct python_called){.object = at(i % 2 ? CHILD : MODEL)};
		walk.called_frames[i] = (uint16_t)i;
	}
	python_modules_add(&walk);
	assert_int_equal(walk.frame_count, 2 * count);
	assert_int_equal(walk.code_count, count);
	for (uint32_t i = 1; i < count; i++) {
		const char *name = nth_name(i);

		assert_in_range(strlen(name), name_bytes, PYTHON_NAME_BYTES_MAX);
		assert_int_equal(name[strlen(name) - 1], '>');
		cut += !strncmp(name, "[module] <...>.<MM", 18);
	}
	assert_int_equal(cut, count - 6);
}

/* Walks for modules get two seconds, and one in 50 after the first one. */
static void stops_if_modules_cost_too_much(void **unused)
{
	const uint64_t second = 1000000000, start = 77 * second;

	(void)unused;
	python_modules_wanted = python_modules_limited = true;
	python_modules_spend(start, second);
	python_modules_spend(start + second, second);
	assert_true(python_modules_wanted);
	python_modules_spend(start + 501 * second, 10 * second);
	assert_true(python_modules_wanted);
	assert_false(python_modules_gave_up());
	python_modules_spend(start + 502 * second, second);
	assert_false(python_modules_wanted);
	assert_true(python_modules_gave_up());
	python_modules_spend(start + 503 * second, second);
	assert_false(python_modules_gave_up());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_module_by_its_entry, make_objects),
		cmocka_unit_test_setup(makes_inputs_of_all_it_read, make_objects),
		cmocka_unit_test_setup(shows_class_if_damaged, make_objects),
		cmocka_unit_test_setup(marks_unreadable_module_as_unknown, make_objects),
		cmocka_unit_test_setup(tolerates_random_damage, make_objects),
		cmocka_unit_test_setup(cuts_long_paths, make_objects),
		cmocka_unit_test(stops_if_modules_cost_too_much),
	};

	return cmocka_run_group_tests(tests, map_memory, NULL);
}
