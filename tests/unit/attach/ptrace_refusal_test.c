/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reason and the remedy for each rule of the kernel, also for those that do not hold here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/ptrace_refusal.h"

static void names_the_rule_and_the_remedy(void **unused)
{
	static const struct {
		struct ptrace_facts facts;
		const char *reason, *remedy;
	} cases[] = {
		{{.is_blocked = true, .yama_scope = 1}, "seccomp", "--cap-add SYS_PTRACE"},
		{{.is_undumpable = true, .yama_scope = -1}, "PR_SET_DUMPABLE", "CAP_SYS_PTRACE"},
		{{.is_other_user_space = true, .yama_scope = -1}, "user namespace", "inside"},
		{{.yama_scope = 1}, "ptrace_scope is 1", "kernel.yama.ptrace_scope=0"},
		{{.yama_scope = 2}, "ptrace_scope is 2", "kernel.yama.ptrace_scope=0"},
		{{.yama_scope = 3}, "ptrace_scope is 3", "xtrace record --armed"},
		{{.yama_scope = 0, .extra_capabilities = 1 << 12}, "0x1000", "CAP_SYS_PTRACE"},
		{{.yama_scope = 0}, "security module", "--cap-add SYS_PTRACE"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char why[512];

		ptrace_refusal_explain(&cases[i].facts, why, sizeof(why));
		assert_non_null(strstr(why, cases[i].reason));
		assert_non_null(strstr(why, cases[i].remedy));
	}
}

static void sees_a_process_that_protects_itself(void **unused)
{
	struct ptrace_facts facts;
	int ends[2];
	pid_t child;
	char byte;

	(void)unused;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		/* Files of root's processes belong to root either way. */
		if (!getuid() && setuid(65534))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 0);
		(void)!write(ends[1], "x", 1);
		pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	ptrace_facts_read(&facts, child);
	assert_true(facts.is_undumpable);
	assert_false(facts.is_other_user_space);
	ptrace_facts_read(&facts, getpid());
	assert_false(facts.is_undumpable);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_rule_and_the_remedy),
		cmocka_unit_test(sees_a_process_that_protects_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
