/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices when another tool in the process starts or stops using CUPTI. The functions that a tool
 * calls first are hooked (symbol_hooks.h). Before the first one runs, cupti_owner.h releases CUPTI.
 * It takes CUPTI back once the tool has unsubscribed and wants no more records, or has finalised
 * it.
 *
 * With --no-yield, CUPTI refuses another subscriber. A tool that uses only records still gets
 * CUPTI, and recording ends.
 */
#ifndef XT_INJECT_CUPTI_HANDOFF_H
#define XT_INJECT_CUPTI_HANDOFF_H

/* Installs the hooks. Once, after cupti_owner_begin(). */
void cupti_handoff_begin(void);

/* In a forked child and at exit: disables the hooks. Async-signal-safe. */
void cupti_handoff_abandon(void);

#endif
