/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the kernel does not let this process trace another one of the same user, and what allows it.
 */
#ifndef XT_ATTACH_PTRACE_REFUSAL_H
#define XT_ATTACH_PTRACE_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The facts that the kernel's rules depend on (ptrace(2), "Ptrace access mode checking"). */
struct ptrace_facts {
	bool is_blocked;	     /* this process may trace nothing: a seccomp filter */
	bool is_undumpable;	     /* the process protects its memory */
	bool is_other_user_space;    /* it is in another user namespace */
	uint64_t extra_capabilities; /* that it has and this process lacks */
	bool is_capable;	     /* this process has CAP_SYS_PTRACE */
	int yama_scope;		     /* -1: no Yama */
};

void ptrace_facts_read(struct ptrace_facts *facts, pid_t pid);

/* One line, with a remedy. */
void ptrace_refusal_explain(const struct ptrace_facts *facts, char *why, size_t why_bytes);

#endif
