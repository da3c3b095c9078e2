/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/borrow.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "attach/interrupted_threads.h"
#include "attach/own_stack.h"
#include "attach/proc_status.h"
#include "attach/resume_state.h"
#include "attach/safe_stack.h"
#include "attach/stub.h"
#include "sampler/process_read.h"

#define USER_CODE_SEGMENT 0x33 /* of 64-bit code */
#define SYSCALL_BYTES	  2

#define GET_SYSCALL_USER_DISPATCH 0x4211 /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */

/*
 * Bytes kept free below the image for a handler's frame, with all registers, and for its calls. A
 * signal may come before the stub blocks it, and the C library has its own handler for setuid().
 */
#define HANDLER_BYTES	   32768
#define SIGNAL_FRAME_BYTES (getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : 16384)

/* Bit 0 is signal 1, as in the kernel. */
#define KERNEL_MASK_BYTES 8

struct borrowing {
	struct target *target;
	struct tracer *tracer;
	pid_t tid;
	const struct code_site *site;
	const struct address_map *map;
	const struct block_contents *contents;
	struct thread_state state;
	struct wait_restart restart;
	uint8_t image_bytes[RESUME_IMAGE_BYTES_MAX];
	struct resume_image image;
	struct why why;
};

static int read_state(struct borrowing *borrowing)
{
	struct thread_state *state = &borrowing->state;
	struct iovec extended = {state->extended, RESUME_EXTENDED_BYTES_MAX};

	if (ptrace(PTRACE_GETREGS, borrowing->tid, NULL, &state->registers))
		return tracer_refuse_errno(borrowing->tracer, "PTRACE_GETREGS");
	if (ptrace(PTRACE_GETREGSET, borrowing->tid, (void *)(uintptr_t)NT_X86_XSTATE, &extended))
		return tracer_refuse_errno(borrowing->tracer, "PTRACE_GETREGSET");
	if (ptrace(PTRACE_GETSIGMASK, borrowing->tid, (void *)(uintptr_t)KERNEL_MASK_BYTES,
		   &state->blocked))
		return tracer_refuse_errno(borrowing->tracer, "PTRACE_GETSIGMASK");
	state->extended_bytes = extended.iov_len;
	return 0;
}

/* The system call, and how it continues. */
static int check_call(struct borrowing *borrowing)
{
	static const uint8_t instruction[SYSCALL_BYTES] = {0x0f, 0x05};
	const struct user_regs_struct *registers = &borrowing->state.registers;
	const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
				       registers->r10, registers->r8,  registers->r9};
	uint8_t code[SYSCALL_BYTES];

	if ((int64_t)registers->orig_rax < 0)
		return refuse(&borrowing->why, -EAGAIN, "is not blocked in a system call");
	if (registers->cs != USER_CODE_SEGMENT ||
	    !process_memory_read(borrowing->target->pid, code, registers->rip - SYSCALL_BYTES,
				 sizeof(code)) ||
	    memcmp(code, instruction, sizeof(code)) != 0)
		return refuse(&borrowing->why, -EAGAIN, "did not use the instruction syscall");
	if (wait_call_rank((long)registers->orig_rax, arguments) == WAIT_UNFIT)
		return refuse(&borrowing->why, -EAGAIN,
			      "is blocked in system call %lld, which cannot be repeated exactly",
			      (long long)registers->orig_rax);
	borrowing->restart = wait_call_restart((long)registers->orig_rax, registers->rax);
	return 0;
}

/* Then system calls of the stub would be signals. Kernels before 6.4 do not tell. */
static bool dispatches_calls(pid_t tid)
{
	struct {
		uint64_t mode, selector, offset, bytes;
	} config = {0};

	return !ptrace((enum __ptrace_request)GET_SYSCALL_USER_DISPATCH, tid,
		       (void *)sizeof(config), &config) &&
	       config.mode;
}

/* If a signal waits, the kernel would run its handler before the stub. */
static int check_thread(const struct borrowing *borrowing)
{
	struct proc_status status;

	if (!proc_status_read(&status, borrowing->tid))
		return refuse(&borrowing->why, -EAGAIN, "has ended");
	if (!target_is_same(borrowing->target))
		return refuse(&borrowing->why, -ESRCH,
			      "it has ended, or has executed another program");
	if (!target_allows_thread(borrowing->target, &status, borrowing->why.text,
				  borrowing->why.bytes))
		return -EAGAIN;
	if (dispatches_calls(borrowing->tid))
		return refuse(&borrowing->why, -EAGAIN,
			      "handles its system calls itself (prctl "
			      "PR_SET_SYSCALL_USER_DISPATCH)");
	if (proc_status_deliverable(&status))
		return refuse(&borrowing->why, -EAGAIN, "gets a signal");
	return 0;
}

static int check_stack(const struct borrowing *borrowing)
{
	const struct user_regs_struct *from = &borrowing->state.registers;
	struct thread_registers registers = {.known = (1u << THREAD_REGISTERS) - 1};
	enum stack_safety safety;

	registers.value[THREAD_RIP] = from->rip;
	registers.value[THREAD_RSP] = from->rsp;
	registers.value[THREAD_RBP] = from->rbp;
	registers.value[THREAD_RBX] = from->rbx;
	registers.value[THREAD_R12] = from->r12;
	registers.value[THREAD_R13] = from->r13;
	registers.value[THREAD_R14] = from->r14;
	registers.value[THREAD_R15] = from->r15;
	safety = safe_stack_check(&borrowing->target->modules, borrowing->target->pid, &registers,
				  borrowing->why.text, borrowing->why.bytes);
	return safety == STACK_SAFE || safety == STACK_WAITS_FOR_LOCK ? 0 : -EAGAIN;
}

static int check_room(const struct borrowing *borrowing)
{
	static uint8_t bytes[RESUME_IMAGE_BYTES_MAX + HANDLER_BYTES + 65536];
	const struct user_regs_struct *registers = &borrowing->state.registers;
	const struct address_range *range = address_map_find(borrowing->map, registers->rsp);
	uint64_t lowest = 0, from;

	if (range && range->is_main_stack && borrowing->tid == borrowing->target->pid)
		lowest = range->start;
	else if (!own_stack_find(borrowing->target->pid, registers->fs_base, registers->rsp,
				 &lowest))
		return refuse(&borrowing->why, -EAGAIN,
			      "runs on a stack that is not the thread's own");
	from = borrowing->image.address - HANDLER_BYTES - SIGNAL_FRAME_BYTES;
	/* A guard that the program made inside its stack cannot be read. */
	if (from > registers->rsp || from < lowest || registers->rsp - from > sizeof(bytes) ||
	    !process_memory_read(borrowing->target->pid, bytes, from, registers->rsp - from))
		return refuse(&borrowing->why, -EAGAIN, "has too little stack left");
	return 0;
}

/* While the thread was chosen, the program may have stopped others. */
static int check_others(const struct borrowing *borrowing)
{
	char why[256];

	return interrupted_threads_find(borrowing->target, true, why, sizeof(why))
		       ? refuse(&borrowing->why, -EAGAIN, "waits while %s", why)
		       : 0;
}

static int make_image(struct borrowing *borrowing)
{
	uint64_t entry = borrowing->site->code + (uint64_t)(xt_stub_entry - xt_stub_begin);

	borrowing->image.bytes = borrowing->image_bytes;
	return resume_image_make(&borrowing->image, &borrowing->state, &borrowing->restart,
				 borrowing->contents->bytes, borrowing->contents->byte_count,
				 borrowing->site->block, entry, borrowing->why.text,
				 borrowing->why.bytes)
		       ? -EAGAIN
		       : 0;
}

/*
 * Writes, and reads back. Also works for code, whose mapping is read-only. Fails if another thread
 * has called exec(), which ends the stop and gives this id to another program.
 */
static int put(const struct borrowing *borrowing, uint64_t address, const uint8_t *bytes,
	       size_t byte_count)
{
	uint8_t check[RESUME_IMAGE_BYTES_MAX];

	for (size_t at = 0; at < byte_count; at += sizeof(long)) {
		size_t part = byte_count - at < sizeof(long) ? byte_count - at : sizeof(long);
		long word = 0;

		if (part < sizeof(long) &&
		    !process_memory_read(borrowing->target->pid, &word, address + at, sizeof(word)))
			return refuse(&borrowing->why, -EIO, "its memory cannot be read");
		memcpy(&word, bytes + at, part);
		if (ptrace(PTRACE_POKEDATA, borrowing->tid, (void *)(uintptr_t)(address + at),
			   (void *)word))
			return tracer_refuse_errno(borrowing->tracer, "PTRACE_POKEDATA");
	}
	if (!process_memory_read(borrowing->target->pid, check, address, byte_count) ||
	    memcmp(check, bytes, byte_count) != 0)
		return refuse(&borrowing->why, -EIO, "its memory cannot be written");
	return 0;
}

static int write_memory(struct borrowing *borrowing)
{
	bool is_written;
	int error = 0;

	/* Only now are others kept out. */
	if (!code_site_is_free(borrowing->site, borrowing->target->pid, &is_written))
		return refuse(&borrowing->why, -EAGAIN,
			      "lost the place of its code to another tool");
	if (!is_written)
		error = put(borrowing, borrowing->site->code, xt_stub_begin,
			    (size_t)(xt_stub_end - xt_stub_begin));
	return error ? error
		     : put(borrowing, borrowing->image.address, borrowing->image.bytes,
			   borrowing->image.byte_count);
}

static int prepare(struct borrowing *borrowing)
{
	int error = read_state(borrowing);

	if (!error)
		error = check_call(borrowing);
	if (!error)
		error = check_thread(borrowing);
	if (!error)
		error = check_stack(borrowing);
	if (!error)
		error = make_image(borrowing);
	if (!error)
		error = check_room(borrowing);
	if (!error)
		error = check_others(borrowing);
	return error ? error : write_memory(borrowing);
}

int borrow_thread(struct target *target, struct tracer *tracer, pid_t tid,
		  const struct code_site *site, const struct address_map *map,
		  const struct block_contents *contents, struct borrowed *borrowed)
{
	static struct borrowing borrowing;
	int error;

	borrowing = (struct borrowing){.target = target,
				       .tracer = tracer,
				       .tid = tid,
				       .site = site,
				       .map = map,
				       .contents = contents,
				       .why = tracer->why};
	error = tracer_stop(tracer, tid);
	if (error)
		return error;
	error = prepare(&borrowing);
	if (!error && ptrace(PTRACE_SETREGS, tid, NULL, &borrowing.image.registers))
		error = tracer_refuse_errno(tracer, "PTRACE_SETREGS");
	*borrowed = (struct borrowed){tid, borrowing.state.registers.rsp};
	if (error)
		tracer_undo_stop(tid);
	tracer_detach(tracer, tid);
	return error;
}
