/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame sizes from code: prologues that are understood, and all that must be refused because RSP
 * could differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sampler/frame_size.h"

#define CALL	 "\xe8\x00\x00\x00\x00"
#define PROLOGUE "\x55\x48\x89\xe5"		/* push %rbp; mov %rsp,%rbp */
#define SAVE	 "\x53"				/* push %rbx */
#define SUBTRACT "\x48\x83\xec\x28"		/* sub $40,%rsp */
#define EPILOGUE "\x48\x83\xc4\x28\x5b\x5d\xc3" /* add $40,%rsp; pop %rbx; pop %rbp; ret */
#define LEAVE	 "\xc9\xc3"

/* The code is split at the instruction pointer. */
#define SIZE_AFTER(before, after)                                                                  \
	frame_size_find((const uint8_t *)before after, sizeof(before after) - 1,                   \
			sizeof(before) - 1, false)
#define SIZE_AT(before, after)                                                                     \
	frame_size_find((const uint8_t *)before after, sizeof(before after) - 1,                   \
			sizeof(before) - 1, true)

static void adds_up_prologue(void **unused)
{
	(void)unused;
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL, "\x5d\xc3"), 16);
	assert_int_equal(SIZE_AFTER(PROLOGUE SAVE SUBTRACT CALL, EPILOGUE), 64);
	/* endbr64; lea -8(%rbp),%rsp instead of the addition */
	assert_int_equal(SIZE_AFTER("\xf3\x0f\x1e\xfa" PROLOGUE SAVE SUBTRACT CALL,
				    "\x48\x8d\x65\xf8\x5b\x5d\xc3"),
			 64);
	/* push %r15 */
	assert_int_equal(SIZE_AFTER(PROLOGUE "\x41\x57" SUBTRACT CALL, LEAVE), 64);
	/* sub $0x1000,%rsp */
	assert_int_equal(SIZE_AFTER(PROLOGUE "\x48\x81\xec\x00\x10\x00\x00" CALL, LEAVE), 4112);
	/* add $-128,%rsp */
	assert_int_equal(SIZE_AFTER(PROLOGUE "\x48\x83\xc4\x80" CALL, LEAVE), 144);
	/* clang: push %rax */
	assert_int_equal(SIZE_AFTER(PROLOGUE SAVE "\x50" CALL, "\x48\x83\xc4\x08\x5b\x5d\xc3"), 32);
	/* A call that does not return ends the function. */
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL, ""), 56);
	/* An early exit before the prologue: test %edi,%edi; je; ret */
	assert_int_equal(SIZE_AFTER("\x85\xff\x74\x01\xc3" PROLOGUE SUBTRACT CALL, LEAVE), 56);
	/* A second part after an epilogue. */
	assert_int_equal(SIZE_AFTER(PROLOGUE SAVE SUBTRACT CALL EPILOGUE CALL, "\xeb\xf0"), 64);
}

static void follows_pushed_arguments(void **unused)
{
	(void)unused;
	/* sub $8,%rsp; push $0; call; add $16,%rsp */
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL "\x48\x83\xec\x08\x6a\x00" CALL,
				    "\x48\x83\xc4\x10" LEAVE),
			 72);
	/* The same, seen from the calls before and after. */
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL,
				    "\x48\x83\xec\x08\x6a\x00" CALL "\x58\x59" CALL LEAVE),
			 56);
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL "\x48\x83\xec\x08\x6a\x00" CALL
							   "\x58\x59" CALL,
				    LEAVE),
			 56);
	/* A call between the pushes, a jump, and a call that left its arguments there. */
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL "\x6a\x00" CALL,
				    "\x6a\x00" CALL "\x58\x59" LEAVE),
			 FRAME_SIZE_UNKNOWN);
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL, "\x6a\x00\xeb\x00" CALL "\x58" LEAVE),
			 FRAME_SIZE_UNKNOWN);
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL "\x6a\x00" CALL CALL, LEAVE),
			 FRAME_SIZE_UNKNOWN);
}

static void refuses_changing_stack(void **unused)
{
	(void)unused;
	/* alloca: sub %rax,%rsp */
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT "\x48\x29\xc4" CALL, LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE SUBTRACT CALL "\x48\x29\xc4" CALL, LEAVE), 0);
	/* realigned: and $-64,%rsp */
	assert_int_equal(SIZE_AFTER(PROLOGUE "\x48\x83\xe4\xc0" CALL, LEAVE), 0);
	/* lea 8(%rsp),%r10; and $-64,%rsp; push -8(%r10) before the frame */
	assert_int_equal(
		SIZE_AFTER("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xc0\x41\xff\x72\xf8" PROLOGUE CALL,
			   LEAVE),
		0);
	/* mov %rax,%rsp; xchg %rax,%rsp; push %rdi for an argument; pushfq */
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL "\x48\x89\xc4" CALL, LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL "\x48\x94" CALL, LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE "\x57\x57" CALL, "\x48\x83\xc4\x10" LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL "\x9c" CALL, LEAVE), 0);
}

static void refuses_other_code(void **unused)
{
	(void)unused;
	/* No frame pointer; a function's cold part; nothing; an unknown opcode; cut off. */
	assert_int_equal(SIZE_AFTER(SUBTRACT CALL, "\x48\x83\xc4\x28\xc3"), 0);
	assert_int_equal(SIZE_AFTER(CALL, LEAVE), 0);
	assert_int_equal(SIZE_AFTER("", ""), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL, "\x06" LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL, LEAVE "\xe8\x00"), 0);
	/* The pointer is within an instruction, or follows no call. */
	assert_int_equal(SIZE_AFTER(PROLOGUE "\xe8\x00", "\x00\x00\x00" LEAVE), 0);
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL "\x90", LEAVE), 0);
	/* ret $8 */
	assert_int_equal(SIZE_AFTER(PROLOGUE CALL, "\x5d\xc2\x08\x00"), 0);
}

static void knows_where_thread_stopped(void **unused)
{
	(void)unused;
	assert_int_equal(SIZE_AT(PROLOGUE SAVE SUBTRACT "\x0f\x05", EPILOGUE), 64);
	assert_int_equal(SIZE_AT(PROLOGUE SAVE SUBTRACT CALL "\x90", EPILOGUE), 64);
	/* In the prologue and the epilogue, and with arguments on the stack. */
	assert_int_equal(SIZE_AT(PROLOGUE SAVE, SUBTRACT CALL EPILOGUE), 0);
	assert_int_equal(SIZE_AT("\x55", "\x48\x89\xe5" CALL LEAVE), 0);
	assert_int_equal(SIZE_AT(PROLOGUE SAVE SUBTRACT CALL "\x48\x83\xc4\x28", "\x5b\x5d\xc3"),
			 0);
	assert_int_equal(SIZE_AT(PROLOGUE SUBTRACT CALL "\x6a\x00", CALL "\x58" LEAVE), 0);
}

static void recognises_calls(void **unused)
{
	static const char *const calls[] = {
		"\x90\x90\x90" CALL,
		"\x90\x90\x90\x90\x90\x90\xff\xd0", /* call *%rax */
		"\x90\x90\x90\x90\x90\x41\xff\xd3", /* call *%r11 */
		"\x90\x90\xff\x15\x10\x20\x30\x40", /* call *x(%rip) */
		"\x90\x90\x90\x90\x90\xff\x50\x18", /* call *24(%rax) */
		"\x90\xff\x94\xc1\x10\x20\x30\x40", /* call *x(%rcx,%rax,8) */
		"\x90\x90\x90\x90\x90\x3e\xff\xd2", /* notrack call *%rdx */
	};
	static const char *const others[] = {
		"\x90\x90\x90\x90\x90\x90\x90\x90", /* nop */
		"\x90\x90\x90\x90\x90\x90\xff\xe0", /* jmp *%rax */
		"\x90\x90\x90\xe9\x00\x00\x00\x00", /* jmp */
		"\x90\x90\x90\x90\xe8\x00\x00\x00", /* cut off */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		assert_true(frame_size_ends_with_call((const uint8_t *)calls[i], 8));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(frame_size_ends_with_call((const uint8_t *)others[i], 8));
}

static void decodes_lengths(void **unused)
{
	static const struct {
		const char *code;
		uint8_t length;
	} cases[] = {
		{"\x90", 1},
		{"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 9},	  /* nopw */
		{"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10}, /* movabs */
		{"\x66\x81\x38\x01\x02", 5},			  /* cmpw $x,(%rax) */
		{"\xf6\x05\x00\x00\x00\x00\x01", 7},		  /* testb $1,x(%rip) */
		{"\xf7\xd8", 2},				  /* neg %eax */
		{"\xc5\xf8\x77", 3},				  /* vzeroupper */
		{"\xc4\xe3\x7d\x39\xc1\x01", 6},		  /* vextracti128 */
		{"\x62\xf1\x7c\x48\x10\x40\x01", 7},		  /* vmovups 64(%rax),%zmm0 */
		{"\x0f\x0b", 2},				  /* ud2 */
		{"\x66\x48\xe8\x00\x00\x00\x00", 7},		  /* call to __tls_get_addr */
	};
	struct instruction instruction;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *code = (const uint8_t *)cases[i].code;

		assert_true(instruction_decode(&instruction, code, cases[i].length));
		assert_int_equal(instruction.length, cases[i].length);
		for (size_t bytes = 0; bytes < cases[i].length; bytes++)
			assert_false(instruction_decode(&instruction, code, bytes));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_up_prologue),
		cmocka_unit_test(follows_pushed_arguments),
		cmocka_unit_test(refuses_changing_stack),
		cmocka_unit_test(refuses_other_code),
		cmocka_unit_test(knows_where_thread_stopped),
		cmocka_unit_test(recognises_calls),
		cmocka_unit_test(decodes_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
