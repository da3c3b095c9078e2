/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind's names for this processor, and where struct caller_regs has its registers.
 *
 * UNWIND_SIGNAL_IS_FOR_NEXT: unw_is_signal_frame() reports whether the frame is a signal handler's
 * return code, rather than the frame that was interrupted.
 * UNWIND_READS_CODE: libunwind reads two words of code at the frame's address to find that out.
 * They are not inputs of the walk: code changes only when a library is loaded.
 * UNWIND_RETURN: the register with the address of a frame that made a call. On aarch64 it has no
 * value if libunwind guessed, because the frame had no unwind information.
 * UNWIND_HAS_SIGNATURES: return addresses may be signed; see signed_returns.h.
 */
#ifndef XT_INJECT_UNWIND_MACHINE_H
#define XT_INJECT_UNWIND_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "inject/runtime/machine.h"

#define SLOT(member) (offsetof(struct caller_regs, member) + 1) /* 0: not known */

#if defined(__x86_64__)
#include <libunwind-x86_64.h>

#define LIBUNWIND_NAME		  "libunwind-x86_64.so.8"
#define LIBUNWIND_FUNCTION(name)  "_Ux86_64_" name
#define UNWIND_IP		  UNW_X86_64_RIP
#define UNWIND_SP		  UNW_X86_64_RSP
#define UNWIND_RETURN		  UNW_X86_64_RIP
#define UNWIND_SIGNAL_IS_FOR_NEXT false
#define UNWIND_READS_CODE	  false
#define UNWIND_HAS_SIGNATURES	  false

static const uint8_t register_slots[] = {
	[UNW_X86_64_RBX] = SLOT(rbx),	    [UNW_X86_64_RBP] = SLOT(rbp),
	[UNW_X86_64_R12] = SLOT(r12),	    [UNW_X86_64_R13] = SLOT(r13),
	[UNW_X86_64_R14] = SLOT(r14),	    [UNW_X86_64_R15] = SLOT(r15),
	[UNWIND_IP] = SLOT(return_address),
};
#else
#include <libunwind-aarch64.h>

#define LIBUNWIND_NAME		  "libunwind-aarch64.so.8"
#define LIBUNWIND_FUNCTION(name)  "_Uaarch64_" name
#define UNWIND_IP		  UNW_AARCH64_PC
#define UNWIND_SP		  UNW_AARCH64_SP
#define UNWIND_RETURN		  UNW_AARCH64_X30
#define UNWIND_SIGNAL_IS_FOR_NEXT true
#define UNWIND_READS_CODE	  true
#define UNWIND_HAS_SIGNATURES	  true

static const uint8_t register_slots[] = {
	[UNW_AARCH64_X19] = SLOT(x19), [UNW_AARCH64_X20] = SLOT(x20),
	[UNW_AARCH64_X21] = SLOT(x21), [UNW_AARCH64_X22] = SLOT(x22),
	[UNW_AARCH64_X23] = SLOT(x23), [UNW_AARCH64_X24] = SLOT(x24),
	[UNW_AARCH64_X25] = SLOT(x25), [UNW_AARCH64_X26] = SLOT(x26),
	[UNW_AARCH64_X27] = SLOT(x27), [UNW_AARCH64_X28] = SLOT(x28),
	[UNW_AARCH64_X29] = SLOT(x29), [UNWIND_IP] = SLOT(return_address),
};
#endif

#undef SLOT

#endif
