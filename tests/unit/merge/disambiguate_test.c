/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that share a name: which are the same, and how the others are qualified.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/naming/unique_names.h"

#define FUNCTIONS_MAX 6

/* One function each, at its own address. A case is one log. */
static const struct {
	const char *what;
	struct {
		const char *name, *module, *build;
		uint64_t start;
		const char *file; /* NULL: unknown */
		const char *qualifier;
	} functions[FUNCTIONS_MAX];
} cases[] = {
	{"one function", {{"f", "/a.so", "1", 16, NULL, ""}}},
	{"two modules",
	 {{"f", "/a.so", "1", 16, NULL, "/a.so"}, {"f", "/b.so", "2", 16, NULL, "/b.so"}}},
	{"two files",
	 {{"f", "/a.so", "1", 16, "/x.c", "/x.c"}, {"f", "/a.so", "1", 32, "/y.c", "/y.c"}}},
	{"one header", {{"f", "/a.so", "1", 16, "/x.h", ""}, {"f", "/b.so", "2", 32, "/x.h", ""}}},
	{"a template",
	 {{"_Z1fIiEvT_", "/a.so", "1", 16, NULL, ""}, {"_Z1fIiEvT_", "/b.so", "2", 32, NULL, ""}}},
	{"a template from two copies of its header",
	 {{"_Z1fIiEvT_", "/a.so", "1", 16, "/usr/x.h", ""},
	  {"_Z1fIiEvT_", "/b.so", "2", 32, "/usr/local/x.h", ""},
	  {"_Z1fIiEvT_", "/c.so", "3", 32, NULL, ""}}},
	{"C++ entry points of plugins",
	 {{"_ZN6plugin3runEv", "/a.so", "1", 16, "/a.cc", "/a.cc"},
	  {"_ZN6plugin3runEv", "/b.so", "2", 32, "/b.cc", "/b.cc"}}},
	{"static in a namespace",
	 {{"_ZN2nsL3barEv", "/a.so", "1", 16, NULL, "/a.so"},
	  {"_ZN2nsL3barEv", "/b.so", "2", 16, NULL, "/b.so"}}},
	{"a lambda in a static function",
	 {{"_ZZL1fvENKUlvE_clEv", "/a.so", "1", 16, NULL, "/a.so"},
	  {"_ZZL1fvENKUlvE_clEv", "/b.so", "2", 16, NULL, "/b.so"}}},
	{"two in one module, a third elsewhere",
	 {{"f", "/a.so", "1", 16, NULL, "/a.so+0x10"},
	  {"f", "/a.so", "1", 32, NULL, "/a.so+0x20"},
	  {"f", "/b.so", "2", 16, NULL, "/b.so"}}},
	{"two functions of a program built with LTO",
	 {{"f.lto_priv.0", "/a", "1", 16, NULL, "/a+0x10"},
	  {"f.lto_priv.1", "/a", "1", 32, NULL, "/a+0x20"}}},
	{"parts of one function",
	 {{"f", "/a", "1", 16, NULL, ""},
	  {"f.cold", "/a", "1", 32, NULL, ""},
	  {"f.part.0", "/a", "1", 48, NULL, ""}}},
	{"a clone in one module, the function in another",
	 {{"f", "/a.so", "1", 16, NULL, "/a.so"},
	  {"f.constprop.0", "/b.so", "2", 32, NULL, "/b.so"}}},
	{"a rebuilt plugin",
	 {{"f", "/a.so", "1", 16, NULL, ""}, {"f", "/a.so", "2", 32, NULL, ""}}},
	{"a function with a file at some addresses",
	 {{"f", "/a.so", "1", 16, NULL, "/x.c"},
	  {"f", "/a.so", "1", 16, "/x.c", "/x.c"},
	  {"f", "/b.so", "2", 16, "/y.c", "/y.c"}}},
	{"generated code", {{"f", NULL, "", 16, NULL, ""}, {"f", NULL, "", 32, NULL, ""}}},
};

static uint32_t intern_text(struct model *model, const char *text)
{
	return text ? names_intern(&model->names, text, strlen(text)) : NAME_EMPTY;
}

static void try_case(size_t c)
{
	struct module modules[FUNCTIONS_MAX + 1] = {{0}};
	struct address list[FUNCTIONS_MAX] = {{0}};
	struct place places[FUNCTIONS_MAX] = {{0}};
	struct addresses addresses = {.list = list, .places.list = places};
	struct model model = {.modules = {.rows = modules, .count = FUNCTIONS_MAX + 1}};
	struct name_qualifier *qualifiers;

	names_init(&model.names);
	for (uint32_t f = 0; f < FUNCTIONS_MAX && cases[c].functions[f].name; f++) {
		modules[f + 1].path = intern_text(&model, cases[c].functions[f].module);
		modules[f + 1].build_id = intern_text(&model, cases[c].functions[f].build);
		places[f].file = intern_text(&model, cases[c].functions[f].file);
		list[f] = (struct address){
			.module = cases[c].functions[f].module ? f + 1 : 0,
			.name = intern_text(&model, cases[c].functions[f].name),
			.start = cases[c].functions[f].start,
			.first_place = f,
			.place_count = places[f].file != NAME_EMPTY,
		};
		addresses.count++;
	}
	qualifiers = disambiguate_functions(&model, &addresses);
	assert_non_null(qualifiers);
	for (uint32_t f = 0; f < addresses.count; f++) {
		char qualifier[64], start[24] = "";

		if (qualifiers[f].has_address)
			snprintf(start, sizeof(start), "+0x%llx",
				 (unsigned long long)list[f].start);
		snprintf(qualifier, sizeof(qualifier), "%s%s",
			 names_text(&model.names, qualifiers[f].path, NULL), start);
		print_message("%s: %s\n", cases[c].what, qualifier);
		assert_string_equal(qualifier, cases[c].functions[f].qualifier);
	}
	free(qualifiers);
	names_free(&model.names);
}

static void qualifies_functions_with_equal_names(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		try_case(c);
}

/* Names from compilers, with the linkage that nm shows. */
static const struct {
	const char *name;
	bool is_global;
} linkages[] = {
	{"main", false},
	{"_Z4funcv", true},
	{"_ZL2s0v", false},
	{"_ZN2nsL3barEv", false},
	{"_ZN2nsL3barEv.constprop.0", false},
	{"_ZN2nsL4tbarIiEEiT_", false},
	{"_ZNK2nsL2nlMUliE_clEi", false},
	{"_ZNKUlvE_clEv", false},
	{"_ZN12_GLOBAL__N_13barEv", false},
	{"_ZSt4sortIN12_GLOBAL__N_13barEEvT_", false},
	{"_Z4viafIXadL_ZN2nsL3barEvEEEiv", false},
	{"_Z4viafIXadL_ZN2ns3barEvEEEiv", true},
	{"_Z2enIL2E31EEiv", true},
	{"_Z2enILN2ns1eE0EEiv", true},
	{"_Z3negILln5EEiv", true},
	{"_ZZ4mainENKUlvE_clEv", false},
	{"_ZZ4main", true},
	{"_ZSt7forwardIRKZ4run2EUliE0_EOT_RNSt16remove_referenceIS3_E4typeE", false},
	{"_ZZL2s0vENKUliE_clEi", false},
	{"_ZZN2nsL3staEiENKUliE_clEi", false},
	{"_ZZN2ns2In2stEvEN1L2goEv", true},
	{"_ZZN3in24infnEiENKUliE_clEi", true},
	{"_ZZZN3in24infnEiENKUliE_clEiENKUliE_clEi", true},
	{"_ZNK3$_4clEi", false},
	{"_ZN1ApLERKS_", true},
	{"_ZN1AC2ILi3EEEv", true},
	{"_ZThn16_N1A3runEv", true},
	{"_ZNSt8functionIFiiEED1Ev", true},
	{"_Z2pkIJiiEEDTszfp_EDpRAT_3_i", true},
	{"_RNvCs1234_7mycrate3foo", true},
	{"_Z999999999999999999999f", true},
	{"_ZN", true},
	{"_Z", true},
	{"", false},
};

static void detects_linkage_from_mangled_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(linkages) / sizeof(linkages[0]); i++) {
		print_message("%s\n", linkages[i].name);
		assert_int_equal(mangled_linkage_is_global(linkages[i].name),
				 linkages[i].is_global);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qualifies_functions_with_equal_names),
		cmocka_unit_test(detects_linkage_from_mangled_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
