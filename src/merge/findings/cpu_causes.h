/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a sampled thread kept the GPU waiting, judged by the state of the thread and by the functions
 * and files on its stack. docs/FINDINGS.md lists the causes and how each can be wrong.
 */
#ifndef XT_MERGE_CPU_CAUSES_H
#define XT_MERGE_CPU_CAUSES_H

#include "idle/idle.h"
#include "merge/findings/rules.h"

struct idle_path;
struct run;

/* The rule that reports this path. Always one of the rules from RULE_CPU_FIRST on. */
enum rule cpu_cause(const struct run *run, const struct idle_path *path, enum idle_class class);

#endif
