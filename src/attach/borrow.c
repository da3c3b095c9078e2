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
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "sampler/process_read.h"

#define STOP_TIMEOUT_MS 1000
#define EVENT_SHIFT	8 /* of PTRACE_EVENT_* beside a signal */

/*
 * The tracer is a thread of this program that makes all calls of ptrace(): its end, also by
 * SIGKILL, lets go all that it holds. While it works, it also holds the main thread of the process,
 * without stopping it. The kernel allows one tracer for a thread, so this keeps a second xtrace
 * attach out, also one that sees the process under another id.
 */
enum stop_kind {
	STOP_NONE,
	STOP_BY_INTERRUPT,
	STOP_BY_SIGNAL, /* it is about to get this signal */
	STOP_OF_PROCESS,
	STOP_ENDED,
};

/* The last call of ptrace() has failed. Returns as tracer_stop() does. */
static int tracer_refuse_errno(const struct tracer *tracer, const char *call)
{
	int error = errno;

	if (error == ESRCH)
		return refuse(&tracer->why, -EAGAIN, "has ended");
	return refuse(&tracer->why, -error, "%s: %s", call, strerror(error));
}

static int seize(const struct tracer *tracer, pid_t tid)
{
	struct ptrace_facts facts;
	struct proc_status status;
	char by[32] = "another container";
	const char *state;

	if (!ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return 0;
	if (errno != EPERM)
		return tracer_refuse_errno(tracer, "PTRACE_SEIZE");
	if (!proc_status_read(&status, tid))
		return refuse(&tracer->why, -EAGAIN, "has ended");
	state = proc_status_text(&status, "State");
	if (state && (*state == 'Z' || *state == 'X'))
		return refuse(&tracer->why, -EAGAIN, "has ended");
	ptrace_facts_read(&facts, tracer->pid);
	if (facts.is_blocked) {
		ptrace_refusal_explain(&facts, &tracer->why);
		return -EPERM;
	}
	/* Its memory was readable, so ptrace is allowed. A tracer in another container has id 0. */
	if (proc_status_number(&status, "TracerPid", 0) > 0)
		snprintf(by, sizeof(by), "process %ld",
			 proc_status_number(&status, "TracerPid", 0));
	return refuse(&tracer->why, -EAGAIN, "cannot be borrowed while %s traces %s", by,
		      tid == tracer->pid ? "the main thread" : "it");
}

/*
 * The stop stays in the kernel's queue. If this program is killed now, the kernel delivers the
 * signal.
 */
static enum stop_kind look_at_stop(pid_t tid, int *signal)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL))
		return STOP_ENDED;
	if (!info.si_pid)
		return STOP_NONE;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return STOP_ENDED;
	*signal = info.si_status & ((1 << EVENT_SHIFT) - 1);
	if (info.si_status >> EVENT_SHIFT != PTRACE_EVENT_STOP)
		return STOP_BY_SIGNAL;
	return *signal == SIGTRAP ? STOP_BY_INTERRUPT : STOP_OF_PROCESS;
}

/*
 * Some calls return EINTR because of the stop alone. The kernel makes the call again instead if it
 * finds this error, unless a signal handler runs.
 */
static void tracer_undo_stop(pid_t tid)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) ||
	    !wait_call_must_repeat((long)registers.orig_rax, registers.rax))
		return;
	registers.rax = (uint64_t)-WAIT_RESTARTS_UNLESS_HANDLED;
	ptrace(PTRACE_SETREGS, tid, NULL, &registers);
}

/* Lets a stopped thread go, with this signal; 0: none. */
static void detach(struct tracer *tracer, pid_t tid, int signal)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
	if (tid == tracer->pid)
		tracer->holds_main = false;
}

/*
 * A traced thread gets signals that the program ignores, too, so they interrupt its call. A thread
 * that cannot be stopped is let go by the end of the tracer.
 */
static int wait_for_stop(struct tracer *tracer, pid_t tid)
{
	const struct timespec nap = {.tv_nsec = 100000};
	int signal = 0;

	for (int i = 0; i < STOP_TIMEOUT_MS * 10; i++) {
		enum stop_kind kind = look_at_stop(tid, &signal);

		if (kind == STOP_BY_INTERRUPT)
			return 0;
		if (kind == STOP_ENDED)
			return refuse(&tracer->why, -EAGAIN, "has ended");
		if (kind != STOP_NONE) {
			tracer_undo_stop(tid);
			detach(tracer, tid, kind == STOP_BY_SIGNAL ? signal : 0);
			return refuse(&tracer->why, -EAGAIN, "gets a signal");
		}
		nanosleep(&nap, NULL);
	}
	tracer->is_stuck = true;
	return refuse(&tracer->why, -EAGAIN, "does not stop; is the process frozen?");
}

/*
 * Holds the main thread, and stops thread tid. Returns 0; -EAGAIN with why if another thread, or
 * the same one later, may do; another -errno with why if that is hopeless. On errors, the thread
 * continues as before.
 */
static int tracer_stop(struct tracer *tracer, pid_t tid)
{
	int error = 0;

	if (!tracer->holds_main) {
		error = seize(tracer, tracer->pid);
		tracer->holds_main = !error;
	}
	if (!error && tid != tracer->pid)
		error = seize(tracer, tid);
	if (error)
		return error;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return tracer_refuse_errno(tracer, "PTRACE_INTERRUPT");
	return wait_for_stop(tracer, tid);
}

void tracer_end(struct tracer *tracer)
{
	int signal = 0;

	/* The kernel would deliver the signal as well, but leave the EINTR. */
	if (tracer->holds_main && look_at_stop(tracer->pid, &signal) == STOP_BY_SIGNAL) {
		tracer_undo_stop(tracer->pid);
		detach(tracer, tracer->pid, signal);
	}
}

/*
 * The data to write below the stack of the borrowed thread: the stub's block, and the state to
 * return to, in the kernel's form of a signal frame. x86-64.
 */
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

static int check_extended(const struct thread_state *state, const struct why *why)
{
	uint64_t in_use = 0;

	if (!learn_frame_form() || state->extended_bytes < frame_words.state_bytes ||
	    frame_words.state_bytes < XSTATE_BV_OFFSET + sizeof(in_use))
		return refuse(why, -ENOTSUP, "has registers of an unknown form");
	memcpy(&in_use, state->extended + XSTATE_BV_OFFSET, sizeof(in_use));
	if (in_use & ~frame_words.features)
		return refuse(why, -ENOTSUP, "uses %s",
			      in_use & AMX_DATA ? "AMX tiles" : "registers of an unknown kind");
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
		      size_t content_bytes, uint64_t block, uint64_t entry, const struct why *why)
{
	uint64_t top = state->registers.rsp - STUB_RETURN_BYTES, extended, context, data;
	uint64_t call = state->registers.rip - SYSCALL_BYTES;
	int error = check_extended(state, why);

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

#define USER_CODE_SEGMENT 0x33 /* of 64-bit code */

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
static int check_thread(struct borrowing *borrowing)
{
	struct proc_status status;

	if (!proc_status_read(&status, borrowing->tid))
		return refuse(&borrowing->why, -EAGAIN, "has ended");
	if (!target_is_same(borrowing->target))
		return refuse(&borrowing->why, -ESRCH,
			      "it has ended, or has executed another program");
	if (!target_allows_thread(borrowing->target, &status, &borrowing->why))
		return -EAGAIN;
	if (dispatches_calls(borrowing->tid))
		return refuse(&borrowing->why, -EAGAIN,
			      "handles its system calls itself (prctl "
			      "PR_SET_SYSCALL_USER_DISPATCH)");
	if (proc_status_deliverable(&status))
		return refuse(&borrowing->why, -EAGAIN, "gets a signal");
	return 0;
}

static int check_stack(struct borrowing *borrowing)
{
	const struct user_regs_struct *from = &borrowing->state.registers;
	const struct thread_registers registers = {.known = (1u << THREAD_REGISTERS) - 1,
						   .value = {[THREAD_RIP] = from->rip,
							     [THREAD_RSP] = from->rsp,
							     [THREAD_RBP] = from->rbp,
							     [THREAD_RBX] = from->rbx,
							     [THREAD_R12] = from->r12,
							     [THREAD_R13] = from->r13,
							     [THREAD_R14] = from->r14,
							     [THREAD_R15] = from->r15}};
	enum stack_safety safety;

	safety = safe_stack_check(&borrowing->target->modules, borrowing->target->pid, &registers,
				  &borrowing->why);
	return safety == STACK_SAFE || safety == STACK_WAITS_FOR_LOCK ? 0 : -EAGAIN;
}

static int check_room(struct borrowing *borrowing)
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
static int check_others(struct borrowing *borrowing)
{
	char text[256];

	return interrupted_threads_find(borrowing->target, true, &(struct why){text, sizeof(text)})
		       ? refuse(&borrowing->why, -EAGAIN, "waits while %s", text)
		       : 0;
}

static int make_image(struct borrowing *borrowing)
{
	uint64_t entry = borrowing->site->code + (uint64_t)(xt_stub_entry - xt_stub_begin);

	borrowing->image.bytes = borrowing->image_bytes;
	return resume_image_make(&borrowing->image, &borrowing->state, &borrowing->restart,
				 borrowing->contents->bytes, borrowing->contents->byte_count,
				 borrowing->site->block, entry, &borrowing->why)
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

/* In an order in which each step may rely on those before it. */
static int (*const steps[])(struct borrowing *) = {
	read_state, check_call, check_thread, check_stack,
	make_image, check_room, check_others, write_memory,
};

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
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !error; i++)
		error = steps[i](&borrowing);
	if (!error && ptrace(PTRACE_SETREGS, tid, NULL, &borrowing.image.registers))
		error = tracer_refuse_errno(tracer, "PTRACE_SETREGS");
	*borrowed = (struct borrowed){tid, borrowing.state.registers.rsp};
	if (error)
		tracer_undo_stop(tid);
	detach(tracer, tid, 0);
	return error;
}
