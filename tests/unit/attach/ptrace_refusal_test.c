/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reason and the remedy for each rule of the kernel, also for those that do not hold here.
 */
#include <errno.h>
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

#include "attach/target.h"

/* Emulates a machine with this scope, on which this process has no capability. */
static const char *emulated_scope;

ssize_t __real_proc_file_read(const char *path, char *text, size_t text_bytes);
ssize_t __wrap_proc_file_read(const char *path, char *text, size_t text_bytes);
long __real_ptrace(int request, pid_t pid, void *address, void *data);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data);

ssize_t __wrap_proc_file_read(const char *path, char *text, size_t text_bytes)
{
	ssize_t bytes;

	if (emulated_scope && strstr(path, "ptrace_scope"))
		return snprintf(text, text_bytes, "%s\n", emulated_scope);
	bytes = __real_proc_file_read(path, text, text_bytes);
	if (emulated_scope && bytes > 0 && strstr(text, "CapEff:"))
		memcpy(strstr(text, "CapEff:") + 8, "0000000000000000", 16);
	return bytes;
}

long __wrap_ptrace(int request, pid_t pid, void *address, void *data)
{
	if (!emulated_scope)
		return __real_ptrace(request, pid, address, data);
	errno = EPERM;
	return -1;
}

static void names_the_rule_and_the_remedy(void **unused)
{
	static const struct {
		struct ptrace_facts facts;
		const char *reason, *remedy;
	} cases[] = {
		{{.is_blocked = true, .yama_scope = 1}, "seccomp", "--cap-add SYS_PTRACE"},
		{{.is_undumpable = true, .yama_scope = -1},
		 "PR_SET_DUMPABLE",
		 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"},
		{{.is_undumpable = true, .is_capable = true, .yama_scope = -1},
		 "PR_SET_DUMPABLE",
		 "); let the program set"},
		{{.is_other_user_space = true, .yama_scope = -1}, "user namespace", "inside"},
		{{.yama_scope = 1}, "ptrace_scope is 1", "kernel.yama.ptrace_scope=0"},
		{{.is_blocked = true, .yama_scope = 2, .is_capable = true}, "seccomp", "--cap-add"},
		{{.yama_scope = 1, .is_capable = true},
		 "security module",
		 "outside of this container"},
		{{.is_capable = true, .extra_capabilities = 1 << 24},
		 "security module",
		 "lacks (CAP_SYS_RESOURCE)"},
		{{.yama_scope = 2}, "ptrace_scope is 2", "kernel.yama.ptrace_scope=0"},
		{{.yama_scope = 3}, "ptrace_scope is 3", "xtrace record --armed"},
		{{.extra_capabilities = (1ull << 12) + (1ull << 40) + (1ull << 63)},
		 "lacks (CAP_NET_ADMIN, CAP_CHECKPOINT_RESTORE, 63)",
		 "with CAP_SYS_PTRACE"},
		{{.yama_scope = 0}, "security module", "--cap-add SYS_PTRACE"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char why[512];

		ptrace_refusal_explain(&cases[i].facts, &(struct why){why, sizeof(why)});
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

/* Under Yama's scopes 2 and 3, a child may not ask to be traced either. */
static void names_a_scope_that_forbids_all_tracing(void **unused)
{
	static const char *const scopes[] = {"2", "3"};

	(void)unused;
	for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
		struct ptrace_facts facts;
		char why[512], reason[32];

		emulated_scope = scopes[i];
		ptrace_facts_read(&facts, getpid());
		emulated_scope = NULL;
		ptrace_refusal_explain(&facts, &(struct why){why, sizeof(why)});
		snprintf(reason, sizeof(reason), "ptrace_scope is %s", scopes[i]);
		assert_non_null(strstr(why, reason));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_rule_and_the_remedy),
		cmocka_unit_test(names_a_scope_that_forbids_all_tracing),
		cmocka_unit_test(sees_a_process_that_protects_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
