/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/borrow.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/proc_status.h"
#include "attach/ptrace_refusal.h"
#include "attach/resume_state.h"
#include "attach/safe_stack.h"
#include "attach/stub.h"
#include "sampler/process_memory.h"
#include "sampler/thread_files.h"

#define STOP_TIMEOUT_MS	    1000
#define USER_CODE_SEGMENT   0x33 /* of 64-bit code */
#define SYSCALL_BYTES	    2
#define STACK_RESERVE_BYTES 8192 /* below the image, for a handler of setuid() */

/* Bit 0 is signal 1, as in the kernel. */
#define KERNEL_MASK_BYTES 8

struct borrowing {
	struct target *target;
	pid_t tid;
	const struct code_site *site;
	const struct address_map *map;
	const struct block_contents *contents;
	struct thread_state state;
	struct wait_restart restart;
	uint8_t code[4096];
	size_t code_bytes;
	uint8_t image_bytes[RESUME_IMAGE_BYTES_MAX];
	struct resume_image image;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct borrowing *borrowing,
							int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(borrowing->why, borrowing->why_bytes, format, args);
	va_end(args);
	return error;
}

/* A call of ptrace() has failed. */
static int refuse_ptrace(const struct borrowing *borrowing, const char *what)
{
	int error = errno;

	if (error == ESRCH)
		return refuse(borrowing, -EAGAIN, "has ended");
	return refuse(borrowing, -error, "%s: %s", what, strerror(error));
}

static int seize(const struct borrowing *borrowing)
{
	struct ptrace_facts facts;
	struct proc_status status;
	const char *state;

	if (!ptrace(PTRACE_SEIZE, borrowing->tid, NULL, NULL))
		return 0;
	if (errno != EPERM)
		return refuse_ptrace(borrowing, "PTRACE_SEIZE");
	if (!proc_status_read(&status, borrowing->tid))
		return refuse(borrowing, -EAGAIN, "has ended");
	state = proc_status_text(&status, "State");
	if (state && (*state == 'Z' || *state == 'X'))
		return refuse(borrowing, -EAGAIN, "has ended");
	if (proc_status_number(&status, "TracerPid", 0) > 0)
		return refuse(borrowing, -EAGAIN, "is traced by process %ld",
			      proc_status_number(&status, "TracerPid", 0));
	ptrace_facts_read(&facts, borrowing->target->pid);
	ptrace_refusal_explain(&facts, borrowing->why, borrowing->why_bytes);
	return -EPERM;
}

/* A thread that cannot be stopped can only be let go by the end of this process. */
static int wait_for_stop(const struct borrowing *borrowing)
{
	const struct timespec nap = {.tv_nsec = 100000};
	int status, got;

	for (int i = 0; i < STOP_TIMEOUT_MS * 10; i++) {
		got = waitpid(borrowing->tid, &status, __WALL | WNOHANG);
		if (got < 0 || (got && !WIFSTOPPED(status)))
			return refuse(borrowing, -EAGAIN, "has ended");
		if (got && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (got) {
			/* It was about to get this signal, or the process stops. */
			bool is_signal = !(status >> 16);

			ptrace(PTRACE_DETACH, borrowing->tid, NULL,
			       (void *)(intptr_t)(is_signal ? WSTOPSIG(status) : 0));
			return refuse(borrowing, -EAGAIN, "gets a signal");
		}
		nanosleep(&nap, NULL);
	}
	return refuse(borrowing, -ETIMEDOUT, "does not stop; is the process frozen?");
}

static int read_state(struct borrowing *borrowing)
{
	struct thread_state *state = &borrowing->state;
	struct iovec extended = {state->extended, RESUME_EXTENDED_BYTES_MAX};

	if (ptrace(PTRACE_GETREGS, borrowing->tid, NULL, &state->registers))
		return refuse_ptrace(borrowing, "PTRACE_GETREGS");
	if (ptrace(PTRACE_GETREGSET, borrowing->tid, (void *)(uintptr_t)NT_X86_XSTATE, &extended))
		return refuse_ptrace(borrowing, "PTRACE_GETREGSET");
	if (ptrace(PTRACE_GETSIGMASK, borrowing->tid, (void *)(uintptr_t)KERNEL_MASK_BYTES,
		   &state->blocked))
		return refuse_ptrace(borrowing, "PTRACE_GETSIGMASK");
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
		return refuse(borrowing, -EAGAIN, "is not blocked in a system call");
	if (registers->cs != USER_CODE_SEGMENT ||
	    !process_memory_read(borrowing->target->pid, code, registers->rip - SYSCALL_BYTES,
				 sizeof(code)) ||
	    memcmp(code, instruction, sizeof(code)) != 0)
		return refuse(borrowing, -EAGAIN, "did not use the instruction syscall");
	if (wait_call_rank((long)registers->orig_rax, arguments) == WAIT_UNFIT)
		return refuse(borrowing, -EAGAIN,
			      "is blocked in system call %lld, which cannot be repeated exactly",
			      (long long)registers->orig_rax);
	borrowing->restart = wait_call_restart((long)registers->orig_rax, registers->rax);
	return 0;
}

/* The kernel would run its handler before the stub. */
static int check_signals(const struct borrowing *borrowing)
{
	struct proc_status status;

	if (!proc_status_read(&status, borrowing->tid))
		return refuse(borrowing, -EAGAIN, "has ended");
	return proc_status_deliverable(&status) ? refuse(borrowing, -EAGAIN, "gets a signal") : 0;
}

static int check_stack(const struct borrowing *borrowing)
{
	const struct user_regs_struct *from = &borrowing->state.registers;
	struct thread_registers registers = {.known = (1u << THREAD_REGISTERS) - 1};

	registers.value[THREAD_RIP] = from->rip;
	registers.value[THREAD_RSP] = from->rsp;
	registers.value[THREAD_RBP] = from->rbp;
	registers.value[THREAD_RBX] = from->rbx;
	registers.value[THREAD_R12] = from->r12;
	registers.value[THREAD_R13] = from->r13;
	registers.value[THREAD_R14] = from->r14;
	registers.value[THREAD_R15] = from->r15;
	return safe_stack_check(&borrowing->target->modules, borrowing->target->pid, &registers,
				borrowing->why, borrowing->why_bytes) == STACK_SAFE
		       ? 0
		       : -EAGAIN;
}

/*
 * The C library's block of a thread, to which FS points, is at the upper end of the thread's own
 * stack. A coroutine runs elsewhere, and nothing tells where its stack ends.
 */
static int check_room(const struct borrowing *borrowing)
{
	const struct user_regs_struct *registers = &borrowing->state.registers;
	const struct address_range *range = address_map_find(borrowing->map, registers->rsp);
	bool is_own = range && (range->is_main_stack || (!range->is_file && !range->is_heap &&
							 registers->fs_base > registers->rsp &&
							 registers->fs_base < range->end));

	if (!is_own)
		return refuse(borrowing, -EAGAIN, "runs on a stack that is not the thread's own");
	if (borrowing->image.address < range->start + STACK_RESERVE_BYTES)
		return refuse(borrowing, -EAGAIN, "has too little stack left");
	return 0;
}

static void make_code(struct borrowing *borrowing)
{
	struct stub_header header = {
		.magic = STUB_MAGIC,
		.block = borrowing->site->block,
		.tid = (uint64_t)borrowing->tid,
		.resume = borrowing->state.registers.rip - SYSCALL_BYTES,
	};

	borrowing->code_bytes = (size_t)(xt_stub_end - xt_stub_begin);
	memcpy(borrowing->code, xt_stub_begin, borrowing->code_bytes);
	memcpy(borrowing->code, &header, sizeof(header));
}

static int make_image(struct borrowing *borrowing)
{
	uint64_t entry = borrowing->site->code + (uint64_t)(xt_stub_entry - xt_stub_begin);

	borrowing->image.bytes = borrowing->image_bytes;
	return resume_image_make(&borrowing->image, &borrowing->state, &borrowing->restart,
				 borrowing->contents->bytes, borrowing->contents->byte_count,
				 borrowing->site->block, entry, borrowing->why,
				 borrowing->why_bytes)
		       ? -EAGAIN
		       : 0;
}

/* For kernels whose proc_mem.force_override forbids to write code through /proc. */
static int poke(const struct borrowing *borrowing, uint64_t address, const uint8_t *bytes,
		size_t byte_count)
{
	for (size_t at = 0; at < byte_count; at += sizeof(long)) {
		size_t part = byte_count - at < sizeof(long) ? byte_count - at : sizeof(long);
		long word = 0;

		if (part < sizeof(long) &&
		    !process_memory_read(borrowing->target->pid, &word, address + at, sizeof(word)))
			return -EFAULT;
		memcpy(&word, bytes + at, part);
		if (ptrace(PTRACE_POKEDATA, borrowing->tid, (void *)(uintptr_t)(address + at),
			   (void *)word))
			return -errno;
	}
	return 0;
}

/* Writes, and reads back. Code is written although its mapping is read-only. */
static int put(const struct borrowing *borrowing, int memory, uint64_t address,
	       const uint8_t *bytes, size_t byte_count)
{
	uint8_t check[RESUME_IMAGE_BYTES_MAX];
	int error = 0;

	if (memory < 0 || pwrite(memory, bytes, byte_count, (off_t)address) != (ssize_t)byte_count)
		error = poke(borrowing, address, bytes, byte_count);
	if (error || !process_memory_read(borrowing->target->pid, check, address, byte_count) ||
	    memcmp(check, bytes, byte_count) != 0)
		return refuse(borrowing, -EIO, "its memory cannot be written%s%s",
			      error ? ": " : "", error ? strerror(-error) : "");
	return 0;
}

static int write_memory(struct borrowing *borrowing)
{
	char path[64];
	int memory, error;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", borrowing->target->pid,
		 borrowing->tid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	error = put(borrowing, memory, borrowing->site->code, borrowing->code,
		    borrowing->code_bytes);
	if (!error)
		error = put(borrowing, memory, borrowing->image.address, borrowing->image.bytes,
			    borrowing->image.byte_count);
	if (memory >= 0)
		close(memory);
	return error;
}

static int prepare(struct borrowing *borrowing)
{
	int error = read_state(borrowing);

	if (!error)
		error = check_call(borrowing);
	if (!error)
		error = check_signals(borrowing);
	if (!error)
		error = check_stack(borrowing);
	if (!error)
		error = make_image(borrowing);
	if (!error)
		error = check_room(borrowing);
	if (error)
		return error;
	make_code(borrowing);
	return write_memory(borrowing);
}

/*
 * Some calls return EINTR because of the stop alone. The kernel makes the call again instead if it
 * finds this error, unless a signal handler runs.
 */
static void undo_stop(const struct borrowing *borrowing)
{
	struct user_regs_struct registers = borrowing->state.registers;

	if (!wait_call_must_repeat((long)registers.orig_rax, registers.rax))
		return;
	registers.rax = (uint64_t)-WAIT_RESTARTS_UNLESS_HANDLED;
	ptrace(PTRACE_SETREGS, borrowing->tid, NULL, &registers);
}

int borrow_thread(struct target *target, pid_t tid, const struct code_site *site,
		  const struct address_map *map, const struct block_contents *contents, char *why,
		  size_t why_bytes)
{
	static struct borrowing borrowing;
	int error;

	borrowing = (struct borrowing){.target = target,
				       .tid = tid,
				       .site = site,
				       .map = map,
				       .contents = contents,
				       .why = why,
				       .why_bytes = why_bytes};
	error = seize(&borrowing);
	if (error)
		return error;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return refuse_ptrace(&borrowing, "PTRACE_INTERRUPT");
	error = wait_for_stop(&borrowing);
	if (error)
		return error;
	borrowing.state.registers.orig_rax = UINT64_MAX;
	error = prepare(&borrowing);
	if (!error && ptrace(PTRACE_SETREGS, tid, NULL, &borrowing.image.registers))
		error = refuse_ptrace(&borrowing, "PTRACE_SETREGS");
	if (error)
		undo_stop(&borrowing);
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return error;
}
