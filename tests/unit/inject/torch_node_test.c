/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads autograd nodes as memory: right ones, and ones whose memory is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/torch/torch_runtime.h"

struct counts {
	void *vtable;
	int32_t shared, weak;
};

/* Has PyTorch's layout. */
struct node {
	const void *vtable;
	struct node *weak_this;
	struct counts *weak_counts;
	uint64_t sequence, topological, has_parent, thread;
	pthread_mutex_t mutex;
	uint64_t edges[3];
	void *object;
};
_Static_assert(offsetof(struct node, sequence) == TORCH_NODE_SEQUENCE, "24");
_Static_assert(offsetof(struct node, thread) == TORCH_NODE_THREAD, "48");
_Static_assert(offsetof(struct node, edges) == TORCH_NODE_NEXT_EDGES, "edges");

static const struct {
	void *vtable;
	const char *name;
} type_info = {NULL, "N5torch8autograd9generated14AddmmBackward0E"};
static const struct {
	const void *type_info;
	void *functions[2];
} vtable = {&type_info, {NULL, NULL}};
static struct counts counts;
static struct node node;

static struct torch_shared_node make(void)
{
	counts = (struct counts){&counts, 2, 3};
	node = (struct node){.vtable = vtable.functions,
			     .weak_this = &node,
			     .weak_counts = &counts,
			     .sequence = 12,
			     .topological = 3,
			     .thread = 1,
			     .edges = {0x1000, 0x1000 + 2 * TORCH_EDGE_BYTES, 0x1060}};
	return (struct torch_shared_node){(uintptr_t)&node, (uintptr_t)&counts};
}

static void reads_node(void **state)
{
	struct torch_shared_node shared = make();
	struct torch_node_names names;
	struct torch_node_key key;

	(void)state;
	assert_true(torch_node_check(&shared));
	assert_int_equal(torch_node_read(shared.node, &key), 12);
	assert_int_equal(key.thread, 1);
	assert_int_equal(key.python_type, 0);
	assert_true(torch_node_name(shared.node, &names));
	assert_string_equal(names.type, type_info.name);
	assert_string_equal(names.class_name, "");
	node.sequence = TORCH_NO_SEQUENCE;
	assert_true(torch_node_check(&shared));
	torch_node_read(shared.node, &key);
	assert_int_equal(key.thread, 0); /* the number of its thread means nothing */
}

/* Returns the reference, but never the last one. */
static void releases_one_reference(void **state)
{
	struct torch_shared_node shared = make();

	(void)state;
	torch_node_release(&shared);
	assert_int_equal(counts.shared, 1);
	torch_node_release(&shared);
	assert_int_equal(counts.shared, 1);
	torch_node_release(&(struct torch_shared_node){0});
}

static void rejects_other_memory(void **state)
{
	struct torch_shared_node shared;
	uint8_t *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const struct {
		size_t offset;
		uint64_t value;
	} wrong[] = {
		{offsetof(struct node, weak_this), 0},
		{offsetof(struct node, weak_counts), 8},
		{offsetof(struct node, sequence), UINT64_C(1) << 50},
		{offsetof(struct node, topological), UINT64_MAX},
		{offsetof(struct node, has_parent), 7},
		{offsetof(struct node, thread), UINT64_C(1) << 40},
		{offsetof(struct node, edges) + 8, 0},
		{offsetof(struct node, edges) + 8, 0x1001},
		{offsetof(struct node, edges) + 16, UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		shared = make();
		memcpy((uint8_t *)&node + wrong[i].offset, &wrong[i].value, 8);
		assert_false(torch_node_check(&shared));
	}
	shared = make();
	counts.shared = 0;
	assert_false(torch_node_check(&shared));
	munmap(gone, 4096);
	shared = make();
	shared.node = (uintptr_t)gone;
	assert_false(torch_node_check(&shared));
	shared = make();
	shared.control = (uintptr_t)gone;
	assert_false(torch_node_check(&shared));
	shared = make();
	shared.node += 1;
	assert_false(torch_node_check(&shared));
}

static void rejects_types_without_a_name(void **state)
{
	static const char *const names[] = {"", "with space", "\xff", NULL};
	struct torch_shared_node shared = make();
	struct torch_node_names read;
	struct {
		void *vtable;
		const char *name;
	} info = {NULL, NULL};
	const void *table[2] = {&info, NULL};

	(void)state;
	node.vtable = &table[1];
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		info.name = names[i];
		assert_false(torch_node_name(shared.node, &read));
	}
	info.name = "*6MyNode"; /* a type without linkage */
	assert_true(torch_node_name(shared.node, &read));
	assert_string_equal(read.type, "6MyNode");
	node.vtable = (void *)4096;
	assert_false(torch_node_name(shared.node, &read));
}

/* After several wrong nodes, the tracer stops reading them, and says so once. */
static void gives_up_on_an_unknown_layout(void **state)
{
	static const struct torch_runtime runtime;
	struct torch_shared_node shared = {8, 8};

	(void)state;
	torch_runtime = &runtime;
	for (int i = 0; i < 100; i++)
		torch_node_check(&shared);
	assert_null(torch_now());
	assert_true(torch_has_given_up());
	assert_false(torch_has_given_up());
	assert_string_equal(torch_info()->why_not, "its autograd nodes have an unknown layout");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_node),
		cmocka_unit_test(releases_one_reference),
		cmocka_unit_test(rejects_other_memory),
		cmocka_unit_test(rejects_types_without_a_name),
		cmocka_unit_test(gives_up_on_an_unknown_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
