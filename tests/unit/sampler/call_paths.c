/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls functions with all kinds of frames in an order that a seed determines.
 */
#include "call_paths.h"

#include <alloca.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NOINLINE    static __attribute__((noinline))

static _Thread_local volatile int sink;
/* For functions that libc calls. */
static _Thread_local struct call_path *current_path;
static _Thread_local unsigned current_seed;
static _Thread_local int current_depth;

NOINLINE void descend(struct call_path *path, unsigned seed, int depth);

/* Calls the next function, or ends the path in the caller's frame, without RBP being saved. */
#define GO_ON(path, seed, depth)                                                                   \
	do {                                                                                       \
		if ((depth) == 0 && (path)->leaf) {                                                \
			(path)->bottom(path);                                                      \
			(path)->leaf((path)->word, FUTEX_WAIT, 0, 0);                              \
		} else {                                                                           \
			descend(path, seed, depth);                                                \
		}                                                                                  \
	} while (0)

NOINLINE long pass_many(struct call_path *path, unsigned seed, int depth, long a, long b, long c,
			long d, long e, long f)
{
	GO_ON(path, seed, depth);
	return a + b * c - d + e * f;
}

/* Its arguments are on the stack during the call. */
NOINLINE long push_arguments(struct call_path *path, unsigned seed, int depth)
{
	long value;

	if (depth == 0 && path->leaf) {
		path->bottom(path);
		return path->leaf_many(path->word, FUTEX_WAIT, 0, 0, depth, seed, seed, depth,
				       sink);
	}
	value = pass_many(path, seed, depth, seed, depth, 3, 4, 5, sink);
	return value + seed;
}

NOINLINE void grow_frame(struct call_path *path, unsigned seed, int depth)
{
	volatile char *memory = alloca((seed & 0xff) + 16);

	memory[0] = 1;
	GO_ON(path, seed * 3, depth);
	sink += memory[0];
}

NOINLINE void realign(struct call_path *path, unsigned seed, int depth)
{
	volatile char aligned[64] __attribute__((aligned(64)));

	aligned[0] = 1;
	GO_ON(path, seed ^ 0x55, depth);
	sink += aligned[0];
}

NOINLINE void use_large_frame(struct call_path *path, unsigned seed, int depth)
{
	char memory[3000];

	snprintf(memory, sizeof(memory), "%u", seed);
	GO_ON(path, seed + 7, depth);
	sink += memory[0];
}

static int compare(const void *a, const void *b)
{
	if (current_path) {
		struct call_path *path = current_path;

		current_path = NULL;
		GO_ON(path, current_seed, current_depth);
	}
	return *(const int *)a - *(const int *)b;
}

NOINLINE void go_through_libc(struct call_path *path, unsigned seed, int depth)
{
	int numbers[] = {3, 2, 1};

	current_path = path;
	current_seed = seed + 11;
	current_depth = depth;
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	sink += numbers[0];
}

NOINLINE unsigned keep_registers(struct call_path *path, unsigned seed, int depth)
{
	unsigned a = seed * 3, b = seed ^ 5, c = seed + depth, d = seed << 3, e = a ^ b;

	for (int i = 0; i < (depth & 1) + 1; i++) {
		if (i == 0)
			GO_ON(path, seed + 13, depth);
		a += b;
		b ^= c + d;
		e -= a;
	}
	return a + b + c + d + e;
}

NOINLINE __attribute__((noreturn)) void never_return(struct call_path *path, unsigned seed,
						     int depth, jmp_buf *end)
{
	GO_ON(path, seed + 17, depth);
	longjmp(*end, 1);
}

NOINLINE void call_noreturn(struct call_path *path, unsigned seed, int depth)
{
	jmp_buf end;

	if (!setjmp(end))
		never_return(path, seed, depth, &end);
	sink++;
}

static void on_signal(int number)
{
	struct call_path *path = current_path;

	(void)number;
	current_path = NULL;
	GO_ON(path, current_seed, current_depth);
	sink++;
}

NOINLINE void raise_signal(struct call_path *path, unsigned seed, int depth)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER}, old;

	current_path = path;
	current_seed = seed + 19;
	current_depth = depth;
	sigaction(SIGUSR1, &action, &old);
	raise(SIGUSR1);
	sink++;
}

/* Has a short way without a frame, which compilers may place before the prologue. */
NOINLINE int exit_early(struct call_path *path, unsigned seed, int depth)
{
	int numbers[8];

	if (depth < 0)
		return sink;
	for (int i = 0; i < 8; i++)
		numbers[i] = (int)seed + i;
	GO_ON(path, seed + 23, depth);
	return numbers[seed & 7] + sink;
}

/* Blocks in a frame of this variant, without libc. */
NOINLINE void block_here(const struct call_path *path, uint32_t *word)
{
	register long timeout __asm__("r10") = 0;
	volatile char memory[40];
	long result;

	memory[0] = 1;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(SYS_futex), "D"(word), "S"(FUTEX_WAIT), "d"(0), "r"(timeout)
			 : "rcx", "r11", "memory");
	sink += memory[0] + (int)result + (path != NULL);
}

NOINLINE uint64_t mix(uint64_t a, const char *text)
{
	char copy[48];

	snprintf(copy, sizeof(copy), "%s%d", text, (int)a & 63);
	return a * 31 + strlen(copy);
}

NOINLINE uint64_t spin_here(uint64_t rounds)
{
	uint64_t value = 1;

	for (uint64_t i = 0; i < rounds; i++) {
		volatile char *memory = alloca((i & 1) * 16 + 16);
		int numbers[] = {5, (int)i, 3};

		memory[0] = 1;
		value = mix(value + (uint64_t)memory[0], "text");
		qsort(numbers, 3, sizeof(numbers[0]), compare);
		if ((i & 15) == 15)
			break;
	}
	return value;
}

static void descend(struct call_path *path, unsigned seed, int depth)
{
	if (depth == 0) {
		path->bottom(path);
		sink++;
		return;
	}
	depth--;
	switch ((seed >> (3 * (depth % 8))) % CALL_PATH_KINDS) {
	case 0:
		sink += (int)push_arguments(path, seed, depth);
		break;
	case 1:
		grow_frame(path, seed, depth);
		break;
	case 2:
		realign(path, seed, depth);
		break;
	case 3:
		use_large_frame(path, seed, depth);
		break;
	case 4:
		go_through_libc(path, seed, depth);
		break;
	case 5:
		sink += (int)keep_registers(path, seed, depth);
		break;
	case 6:
		call_noreturn(path, seed, depth);
		break;
	case 7:
		if (seed & 1) {
			raise_signal(path, seed, depth);
			break;
		}
		/* fall through */
	default:
		sink += exit_early(path, seed, depth);
	}
	sink++;
}

void JOIN(call_paths_, VARIANT)(struct call_path *path, unsigned seed)
{
	path->block = block_here;
	path->spin = spin_here;
	descend(path, seed * 2654435u, 3 + (int)(seed % 7));
	sink++;
}
