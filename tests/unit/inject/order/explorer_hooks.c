/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that compilers call with -fsanitize=thread, in place of the sanitizer's. See
 * explorer.h. Their names and types are the compiler's interface.
 */
#include <stdatomic.h>
#include <string.h>

#include "explorer_memory.h"

#define THREAD_LOCAL_BYTES 4096

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_init(void)
{
}
void __tsan_func_entry(void *pc)
{
	(void)pc;
}
void __tsan_func_exit(void)
{
}

/*
 * errno and others. The threads under test share one thread of the system. Thread-local memory is
 * below the thread pointer on x86-64 and above it on aarch64.
 */
static bool is_thread_local(const void *place)
{
	uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();

	return (uintptr_t)place - (pointer - THREAD_LOCAL_BYTES) < 2 * THREAD_LOCAL_BYTES;
}

static void plain(const void *place, size_t bytes, bool is_write)
{
	if (!memory_is_active() || explorer_is_checking() || !explorer_thread() ||
	    is_thread_local(place))
		return;
	if (is_write)
		explorer_before_write();
	memory_plain(place, bytes, is_write);
}

#define PLAIN(name, bytes, is_write)                                                               \
	void __tsan_##name(void *place);                                                           \
	void __tsan_##name(void *place)                                                            \
	{                                                                                          \
		plain(place, bytes, is_write);                                                     \
	}
#define PLAIN_SIZE(bytes)                                                                          \
	PLAIN(read##bytes, bytes, false)                                                           \
	PLAIN(write##bytes, bytes, true)                                                           \
	PLAIN(unaligned_read##bytes, bytes, false)                                                 \
	PLAIN(unaligned_write##bytes, bytes, true)                                                 \
	PLAIN(volatile_read##bytes, bytes, false)                                                  \
	PLAIN(volatile_write##bytes, bytes, true)
PLAIN_SIZE(1)
PLAIN_SIZE(2)
PLAIN_SIZE(4)
PLAIN_SIZE(8)
PLAIN_SIZE(16)

void __tsan_read_range(void *place, size_t bytes);
void __tsan_write_range(void *place, size_t bytes);
void __tsan_read_range(void *place, size_t bytes)
{
	plain(place, bytes, false);
}
void __tsan_write_range(void *place, size_t bytes)
{
	plain(place, bytes, true);
}

/* In place of the C library's functions, whose accesses are not replaced by calls. */
void *explorer_memset(void *place, int value, size_t bytes);
void *explorer_memcpy(void *to, const void *from, size_t bytes);
void *explorer_memmove(void *to, const void *from, size_t bytes);
void *explorer_memset(void *place, int value, size_t bytes)
{
	plain(place, bytes, true);
	return memset(place, value, bytes);
}
void *explorer_memcpy(void *to, const void *from, size_t bytes)
{
	plain(from, bytes, false);
	plain(to, bytes, true);
	return memcpy(to, from, bytes);
}
void *explorer_memmove(void *to, const void *from, size_t bytes)
{
	plain(from, bytes, false);
	plain(to, bytes, true);
	return memmove(to, from, bytes);
}

/* False: not a thread under test, so the access is done as it is. */
static bool is_explored(void)
{
	return memory_is_active() && explorer_thread() && !explorer_is_checking();
}

static uint64_t add(uint64_t old, uint64_t operand)
{
	return old + operand;
}
static uint64_t subtract(uint64_t old, uint64_t operand)
{
	return old - operand;
}
static uint64_t and (uint64_t old, uint64_t operand)
{
	return old & operand;
}
static uint64_t or (uint64_t old, uint64_t operand)
{
	return old | operand;
}
static uint64_t replace(uint64_t old, uint64_t operand)
{
	(void)old;
	return operand;
}

#define CHANGE(bits, name, change)                                                                 \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile void *place, uint##bits##_t operand,  \
						    int order);                                    \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile void *place, uint##bits##_t operand,  \
						    int order)                                     \
	{                                                                                          \
		volatile uint##bits##_t *at = place;                                               \
		uint##bits##_t old = *at;                                                          \
                                                                                                   \
		if (!is_explored()) {                                                              \
			*at = (uint##bits##_t)change(old, operand);                                \
			return old;                                                                \
		}                                                                                  \
		explorer_before_write();                                                           \
		explorer_switch();                                                                 \
		return (uint##bits##_t)memory_change(place, bits / 8, change, operand, order);     \
	}

#define COMPARE(bits, name)                                                                        \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile void *place, void *expected,    \
							  uint##bits##_t wanted, int order,        \
							  int failure_order);                      \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile void *place, void *expected,    \
							  uint##bits##_t wanted, int order,        \
							  int failure_order)                       \
	{                                                                                          \
		volatile uint##bits##_t *at = place;                                               \
		uint##bits##_t *old = expected;                                                    \
		uint64_t value = *old;                                                             \
		bool is_equal = *at == *old;                                                       \
                                                                                                   \
		if (!is_explored()) {                                                              \
			*old = *at;                                                                \
			if (is_equal)                                                              \
				*at = wanted;                                                      \
			return is_equal;                                                           \
		}                                                                                  \
		explorer_before_write();                                                           \
		explorer_switch();                                                                 \
		is_equal = memory_compare_exchange(place, bits / 8, &value, wanted, order,         \
						   failure_order);                                 \
		*old = (uint##bits##_t)value;                                                      \
		return is_equal;                                                                   \
	}

/* Clang calls this form. */
#define COMPARE_VALUE(bits)                                                                        \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		volatile void *place, uint##bits##_t expected, uint##bits##_t wanted, int order,   \
		int failure_order);                                                                \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		volatile void *place, uint##bits##_t expected, uint##bits##_t wanted, int order,   \
		int failure_order)                                                                 \
	{                                                                                          \
		__tsan_atomic##bits##_compare_exchange_strong(place, &expected, wanted, order,     \
							      failure_order);                      \
		return expected;                                                                   \
	}

#define ATOMIC_SIZE(bits)                                                                          \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile void *place, int order);          \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile void *place, int order)           \
	{                                                                                          \
		if (!is_explored())                                                                \
			return *(const volatile uint##bits##_t *)place;                            \
		explorer_switch();                                                                 \
		return (uint##bits##_t)memory_load((volatile void *)place, bits / 8, order);       \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile void *place, uint##bits##_t value, int order);   \
	void __tsan_atomic##bits##_store(volatile void *place, uint##bits##_t value, int order)    \
	{                                                                                          \
		if (!is_explored()) {                                                              \
			*(volatile uint##bits##_t *)place = value;                                 \
			return;                                                                    \
		}                                                                                  \
		explorer_before_write();                                                           \
		explorer_switch();                                                                 \
		memory_store(place, bits / 8, value, order);                                       \
	}                                                                                          \
	CHANGE(bits, exchange, replace)                                                            \
	CHANGE(bits, fetch_add, add)                                                               \
	CHANGE(bits, fetch_sub, subtract)                                                          \
	CHANGE(bits, fetch_and, and)                                                               \
	CHANGE(bits, fetch_or, or)                                                                 \
	COMPARE(bits, strong)                                                                      \
	COMPARE(bits, weak)                                                                        \
	COMPARE_VALUE(bits)
ATOMIC_SIZE(8)
ATOMIC_SIZE(16)
ATOMIC_SIZE(32)
ATOMIC_SIZE(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	if (!is_explored())
		return;
	/* Other threads do not notice another fence. */
	if (order == memory_order_seq_cst)
		explorer_switch();
	memory_fence(order);
}
/* Threads are not signal handlers. */
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
