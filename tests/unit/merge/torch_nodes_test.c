/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of autograd nodes, and which functions create them.
 */
#include "unit.h"

#include "merge/naming/joined_paths.h"

#define GENERATED(length, name) "N5torch8autograd9generated" #length name "E"
#define OPERATOR(length, name)	"_ZN2at4_ops" #length name "4callERKNS_6TensorES4_RKN3c106ScalarES8_"

static void shortens_types_of_nodes(void **state)
{
	static const struct {
		const char *type, *class_name, *label;
	} cases[] = {
		{GENERATED(14, "AddmmBackward0"), "", "AddmmBackward0"},
		{"N5torch8autograd14AccumulateGradE", "", "AccumulateGrad"},
		{"N5torch8autograd6PyNodeE", "SquareBackward", "SquareBackward"},
		{"N5torch8autograd7CppNodeI6SquareEE", "", "CppNode<Square>"},
		{"N5torch8autograd7CppNodeIN3app6SquareEEE", "", "CppNode<Square>"},
		{"6MyNode", "", "MyNode"},
		{"", "", ""},
		{"N5torch99shortE", "", "torch"},
	};
	char label[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		torch_node_label(cases[i].type, cases[i].class_name, label, sizeof(label));
		assert_string_equal(label, cases[i].label);
	}
}

static void matches_operators_by_whole_words(void **state)
{
	static const struct {
		const char *type, *function;
		bool is_made;
	} cases[] = {
		{GENERATED(14, "AddmmBackward0"), OPERATOR(5, "addmm"), true},
		{GENERATED(12, "AddBackward0"), OPERATOR(10, "add_Tensor"), true},
		{GENERATED(12, "AddBackward0"), OPERATOR(11, "add__Tensor"), true},
		{GENERATED(12, "AddBackward0"), OPERATOR(5, "addmm"), false},
		{GENERATED(14, "AddmmBackward0"), OPERATOR(10, "add_Tensor"), false},
		{GENERATED(24, "NativeLayerNormBackward0"), OPERATOR(17, "native_layer_norm"),
		 true},
		{GENERATED(19, "LogSoftmaxBackward0"), OPERATOR(12, "_log_softmax"), true},
		{GENERATED(16, "NllLossBackward0"), OPERATOR(16, "nll_loss_forward"), true},
		{GENERATED(14, "SliceBackward0"), OPERATOR(9, "gt_Scalar"), false},
		{GENERATED(13, "CopyBackwards"), OPERATOR(5, "copy_"), true},
		{"N5torch8autograd14AccumulateGradE", OPERATOR(10, "add_Tensor"), false},
		{"N5torch8autograd9CopySlicesE", OPERATOR(5, "copy_"), false},
		{GENERATED(14, "AddmmBackward0"), "_ZN2at6native5addmmEv", false},
		{GENERATED(14, "AddmmBackward0"), "_ZN2at4_ops", false},
		{GENERATED(14, "AddmmBackward0"), "_ZN2at4_ops500addmm", false},
		{"", OPERATOR(5, "addmm"), false},
		{"N5torch8autograd7CppNodeI6SquareEE", "_ZN6Square7forwardEv", true},
		{"N5torch8autograd7CppNodeI6SquareEE", "_ZN6Circle7forwardEv", false},
		{"N5torch8autograd7CppNodeIN3app6SquareEEE", "_ZN3app6Square7forwardEv", true},
		{"N5torch8autograd7CppNodeI6SquareEE",
		 "_ZN5torch8autograd7CppNodeI6SquareE5applyEv", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (torch_node_is_made_by(cases[i].type, cases[i].function) != cases[i].is_made)
			fail_msg("%s made by %s: not %d", cases[i].type, cases[i].function,
				 cases[i].is_made);
}

static void matches_forward_of_the_same_class(void **state)
{
	(void)state;
	assert_true(torch_class_is_made_by("SquareBackward", "Square.forward"));
	assert_true(torch_class_is_made_by("SquareBackward", "make.<locals>.Square.forward"));
	assert_true(torch_class_is_made_by("SquareBackward", "forward")); /* up to Python 3.10 */
	assert_false(torch_class_is_made_by("SquareBackward", "TheSquare.forward"));
	assert_false(torch_class_is_made_by("SquareBackward", "Circle.forward"));
	assert_false(torch_class_is_made_by("SquareBackward", "Square.backward"));
	assert_false(torch_class_is_made_by("Backward", ".forward"));
	assert_false(torch_class_is_made_by("", "forward"));
	assert_false(torch_class_is_made_by("SquareBackward", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shortens_types_of_nodes),
		cmocka_unit_test(matches_operators_by_whole_words),
		cmocka_unit_test(matches_forward_of_the_same_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
