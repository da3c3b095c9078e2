/* SPDX-License-Identifier: Apache-2.0 */
/* Ascending orders for qsort() and bsearch(), medians, and other small helpers. */
#ifndef XT_LOG_COMPARE_H
#define XT_LOG_COMPARE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As qsort() wants it. Several orders are chained by "?:". */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#define DEFINE_COMPARE(name, type)                                                                 \
	static inline int name(const void *a, const void *b)                                       \
	{                                                                                          \
		type x = *(const type *)a, y = *(const type *)b;                                   \
                                                                                                   \
		return ORDER(x, y);                                                                \
	}

DEFINE_COMPARE(compare_u32, uint32_t)
DEFINE_COMPARE(compare_u64, uint64_t)
DEFINE_COMPARE(compare_doubles, double)
#undef DEFINE_COMPARE

/*
 * Defines such an order by members of a struct. The first that differs decides:
 *
 *	COMPARE_BY(compare_rows, struct row, DOWN(total_ns) UP(name))
 */
#define COMPARE_BY(name, type, steps)                                                              \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		const type *x = a, *y = b;                                                         \
                                                                                                   \
		steps return 0;                                                                    \
	}
/*
 * The same for indexes of an array of such structs, which is the context of qsort_r(). Equal ones
 * keep their order in that array.
 */
#define COMPARE_INDEXES_BY(name, type, steps)                                                      \
	static int name(const void *a, const void *b, void *rows)                                  \
	{                                                                                          \
		const type *x = (const type *)rows + *(const uint32_t *)a;                         \
		const type *y = (const type *)rows + *(const uint32_t *)b;                         \
                                                                                                   \
		steps return ORDER(x, y);                                                          \
	}
#define UP(member)                                                                                 \
	if (x->member != y->member)                                                                \
		return x->member < y->member ? -1 : 1;
#define UP_TEXT(member)                                                                            \
	if (strcmp(x->member, y->member))                                                          \
		return strcmp(x->member, y->member);
#define DOWN(member)                                                                               \
	if (x->member != y->member)                                                                \
		return x->member > y->member ? -1 : 1;

/* Sorts an array, which may be NULL if it is empty. qsort() must not get NULL. */
#define SORT(list, count, compare) sort_rows((list), (count), sizeof(*(list)), (compare))
static inline void sort_rows(void *list, size_t count, size_t row_bytes,
			     int (*compare)(const void *, const void *))
{
	if (count)
		qsort(list, count, row_bytes, compare);
}

/* The same of qsort_r() and bsearch(). */
#define SORT_BY(list, count, compare, context)                                                     \
	((count) ? qsort_r((list), (count), sizeof(*(list)), (compare), (context)) : (void)0)
#define SEARCH(key, list, count, compare)                                                          \
	((count) ? bsearch((key), (list), (count), sizeof(*(list)), (compare)) : NULL)

/*
 * Binary search: the first i from `from` up to `end` for which is_before is false, or end. It must
 * be true up to there, and false from there on.
 */
#define FIRST_NOT(i, from, end, is_before)                                                         \
	({                                                                                         \
		__typeof__((end) + 0) low_ = (from), high_ = (end);                                \
                                                                                                   \
		while (low_ < high_) {                                                             \
			__typeof__(low_) i = low_ + (high_ - low_) / 2;                            \
                                                                                                   \
			if (is_before)                                                             \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

/* Sorts the list. NAN if it is empty. */
static inline double median(double *list, size_t count)
{
	qsort(list, count, sizeof(*list), compare_doubles);
	if (!count)
		return NAN;
	return count % 2 ? list[count / 2] : (list[count / 2 - 1] + list[count / 2]) / 2.0;
}

struct weighted_value {
	double value, weight; /* in this order */
};

/* Sorts the list. NAN if it is empty. */
static inline double weighted_median(struct weighted_value *list, size_t count)
{
	double sum = 0.0, below = 0.0;

	qsort(list, count, sizeof(*list), compare_doubles); /* of the first member */
	for (size_t i = 0; i < count; i++)
		sum += list[i].weight;
	for (size_t i = 0; i < count; i++) {
		below += list[i].weight;
		if (below >= sum / 2.0)
			return list[i].value;
	}
	return NAN;
}

/* The smaller or larger one of two numbers, in their common type. If one is NAN, the first. */
#define smaller(a, b)                                                                              \
	({                                                                                         \
		__typeof__(1 ? (a) : (b)) a_ = (a), b_ = (b);                                      \
                                                                                                   \
		b_ < a_ ? b_ : a_;                                                                 \
	})
#define larger(a, b)                                                                               \
	({                                                                                         \
		__typeof__(1 ? (a) : (b)) a_ = (a), b_ = (b);                                      \
                                                                                                   \
		b_ > a_ ? b_ : a_;                                                                 \
	})

static inline bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static inline bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* Whether a file name has this ending, and something before it. */
static inline bool has_ending(const char *name, const char *ending)
{
	return strlen(name) > strlen(ending) && ends_with(name, ending);
}

/* Whether the text begins with one of the texts of an array. */
#define BEGINS_WITH_ANY(text, starts)                                                              \
	begins_with_any((text), (starts), sizeof(starts) / sizeof((starts)[0]))
static inline bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (begins_with(text, starts[i]))
			return true;
	return false;
}

static inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
