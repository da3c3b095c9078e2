/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/resume_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "attach/stub.h"

#define EXTENDED_ALIGN	 64
#define STACK_ALIGN	 16
#define SYSCALL_BYTES	 2
#define XSTATE_BV_OFFSET 512 /* of the features in use, in the extended state */

/* Words of the legacy area that the kernel leaves to software (arch/x86/include/uapi/asm). */
#define SOFTWARE_OFFSET 464
#define FP_MAGIC1	0x46505853u
#define FP_MAGIC2	0x46505845u
struct software_words {
	uint32_t magic1, extended_bytes; /* with the second magic */
	uint64_t features;
	uint32_t state_bytes;
};

/* uc_flags: the extended state is there, SS is restored as it is. */
#define UC_FLAGS UINT64_C(7)

#define AMX_DATA (UINT64_C(1) << 18)

_Static_assert(offsetof(ucontext_t, uc_link) == STUB_UC_LINK, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]) == STUB_UC_RAX, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]) == STUB_UC_RSP, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == STUB_UC_RIP, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_EFL]) == STUB_UC_FLAGS, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_mcontext.fpregs) == STUB_UC_FPSTATE, "kernel ABI");
_Static_assert(offsetof(ucontext_t, uc_sigmask) == STUB_UC_MASK, "kernel ABI");
_Static_assert(STUB_FP_FEATURES == SOFTWARE_OFFSET + offsetof(struct software_words, features),
	       "kernel ABI");

static struct software_words frame_words; /* of this kernel's signal frames */

static void take_words(int number, siginfo_t *info, void *context)
{
	const ucontext_t *state = context;

	(void)number, (void)info;
	memcpy(&frame_words, (const char *)state->uc_mcontext.fpregs + SOFTWARE_OFFSET,
	       sizeof(frame_words));
}

/* The kernel accepts its own sizes only, so they are taken from a signal of this process. */
static bool learn_frame_form(void)
{
	struct sigaction action = {.sa_sigaction = take_words, .sa_flags = SA_SIGINFO}, before;
	sigset_t one, mask;

	if (frame_words.magic1)
		return true;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	sigaction(SIGUSR2, &action, &before);
	sigprocmask(SIG_UNBLOCK, &one, &mask);
	raise(SIGUSR2);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGUSR2, &before, NULL);
	return frame_words.magic1 == FP_MAGIC1;
}

static int check_extended(const struct thread_state *state, char *why, size_t why_bytes)
{
	uint64_t in_use = 0;

	if (!learn_frame_form() || state->extended_bytes < frame_words.state_bytes ||
	    frame_words.state_bytes < XSTATE_BV_OFFSET + sizeof(in_use)) {
		snprintf(why, why_bytes, "has registers of an unknown form");
		return -ENOTSUP;
	}
	memcpy(&in_use, state->extended + XSTATE_BV_OFFSET, sizeof(in_use));
	if (in_use & ~frame_words.features) {
		snprintf(why, why_bytes, "uses %s",
			 in_use & AMX_DATA ? "AMX tiles" : "registers of an unknown kind");
		return -ENOTSUP;
	}
	return 0;
}

/* The second magic is where the kernel expects it: behind the state of the thread. */
static void put_extended(uint8_t *to, const struct thread_state *state)
{
	const uint32_t magic2 = FP_MAGIC2;

	memset(to, 0, state->extended_bytes + sizeof(magic2));
	memcpy(to, state->extended, frame_words.state_bytes);
	memcpy(to + SOFTWARE_OFFSET, &frame_words, sizeof(frame_words));
	memcpy(to + frame_words.state_bytes, &magic2, sizeof(magic2));
	/* A thread that has used AMX has a larger one. */
	memcpy(to + state->extended_bytes, &magic2, sizeof(magic2));
}

static void put_registers(uint8_t *to, const struct thread_state *state,
			  const struct wait_restart *restart, uint64_t extended)
{
	const struct user_regs_struct *from = &state->registers;
	bool repeats = restart->kind != STUB_RESTART_NONE;
	const struct {
		int number;
		uint64_t value;
	} values[] = {
		{REG_R8, from->r8},
		{REG_R9, from->r9},
		{REG_R10, from->r10},
		{REG_R11, from->r11},
		{REG_R12, from->r12},
		{REG_R13, from->r13},
		{REG_R14, from->r14},
		{REG_R15, from->r15},
		{REG_RDI, from->rdi},
		{REG_RSI, from->rsi},
		{REG_RBP, from->rbp},
		{REG_RBX, from->rbx},
		{REG_RDX, from->rdx},
		{REG_RCX, from->rcx},
		{REG_RSP, from->rsp},
		{REG_RAX, restart->result},
		{REG_RIP, from->rip - (repeats ? SYSCALL_BYTES : 0)},
		{REG_EFL, from->eflags},
		{REG_CSGSFS, from->cs | from->gs << 16 | from->fs << 32 | from->ss << 48},
	};
	ucontext_t context;

	memset(&context, 0, sizeof(context));
	context.uc_flags = UC_FLAGS;
	context.uc_link = (void *)(uintptr_t)(from->rsp - STUB_RETURN_BYTES);
	/* The kernel ignores this error, so the thread keeps its signal stack. */
	context.uc_stack.ss_flags = -1;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		context.uc_mcontext.gregs[values[i].number] = (greg_t)values[i].value;
	context.uc_mcontext.fpregs = (void *)(uintptr_t)extended;
	memcpy((uint8_t *)&context + STUB_UC_MASK, &state->blocked, sizeof(state->blocked));
	memcpy(to, &context, STUB_UC_BYTES);
}

int resume_image_make(struct resume_image *image, const struct thread_state *state,
		      const struct wait_restart *restart, const void *contents,
		      size_t content_bytes, uint64_t block, uint64_t entry, char *why,
		      size_t why_bytes)
{
	uint64_t top = state->registers.rsp - STUB_RETURN_BYTES, extended, context, data;
	uint64_t call = state->registers.rip - SYSCALL_BYTES;
	int error = check_extended(state, why, why_bytes);

	if (error)
		return error;
	extended =
		(top - state->extended_bytes - sizeof(uint32_t)) & ~(uint64_t)(EXTENDED_ALIGN - 1);
	context = (extended - STUB_UC_BYTES) & ~(uint64_t)(STACK_ALIGN - 1);
	/* The stub uses the red zone below the context. */
	data = (context - STUB_RED_ZONE_BYTES - content_bytes) & ~(uint64_t)(STACK_ALIGN - 1);
	image->address = data;
	image->byte_count = top + sizeof(call) - data;
	memset(image->bytes, 0, image->byte_count);
	memcpy(image->bytes, contents, content_bytes);
	put_registers(image->bytes + (context - data), state, restart, extended);
	put_extended(image->bytes + (extended - data), state);
	memcpy(image->bytes + (top - data), &call, sizeof(call));
	image->registers = state->registers;
	image->registers.r12 = block;
	image->registers.r13 = data;
	image->registers.r14 = context;
	image->registers.r15 = content_bytes;
	image->registers.rbx = (uint64_t)restart->kind;
	image->registers.rsp = data;
	image->registers.rip = entry;
	image->registers.rax = 0;
	image->registers.orig_rax = UINT64_MAX; /* the kernel restarts nothing */
	return 0;
}
