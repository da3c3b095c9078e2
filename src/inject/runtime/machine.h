/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the code in the traced program's threads that depend on the processor. Each
 * machine_ARCHITECTURE.h defines the same names.
 *
 * struct caller_regs: the callee-saved registers at a call, then return_address.
 *
 * TRAMPOLINE(section, name, body) defines the function `name` in a section. It takes up to four
 * integer arguments and returns an integer or nothing. It stores the callee-saved registers as
 * struct caller_regs, then calls `body` with the same arguments and a pointer to that struct as the
 * fifth. A stack walk can thus start in the caller with exact registers, and the stack cache can
 * compare them like other stack words. `body` is a function with external linkage and hidden
 * visibility.
 *
 * SWITCH_STACK(name) defines void name(void *top, void (*work)(void *), void *argument), which
 * calls work(argument) on the stack that ends at `top`.
 *
 * machine_pthread_self() is pthread_self(), on the hot path.
 */
#ifndef XT_INJECT_MACHINE_H
#define XT_INJECT_MACHINE_H

#if defined(__x86_64__)
#include "inject/runtime/machine_x86_64.h"
#elif defined(__aarch64__)
#include "inject/runtime/machine_aarch64.h"
#else
#error "xtrace runs on x86-64 and aarch64"
#endif

#endif
