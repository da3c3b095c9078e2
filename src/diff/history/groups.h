/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of a history that can be compared: of one program on one machine, in their order.
 */
#ifndef XT_DIFF_HISTORY_GROUPS_H
#define XT_DIFF_HISTORY_GROUPS_H

#include "diff/history/history.h"

#define ROW_NONE SIZE_MAX

/* Why values differ. */
enum movement_cause {
	CAUSE_REAL,	/* the program */
	CAUSE_METHOD,	/* iterations, arguments, versions */
	CAUSE_HARDWARE, /* machine or driver */
	CAUSE_NOISE,	/* a short excursion */
	CAUSES
};

struct property_spec {
	const char *name;
	enum movement_cause cause; /* CAUSE_REAL: differences make separate groups */
	double tolerance;	   /* > 0: a number, and the relative difference that is allowed */
};
extern const struct property_spec property_specs[PROPERTIES];

/* A point from which on a property differs. */
struct group_break {
	size_t place;
	enum property property;
};

struct history_group {
	char *name;	/* "train.py on NVIDIA H200" */
	size_t *points; /* indices in history->points.list, oldest first */
	size_t count;
	struct group_break *breaks; /* ascending */
	size_t break_count, break_capacity;
	size_t rename_count;
	size_t *renamed_to;   /* by row: its next name, or ROW_NONE */
	uint8_t *is_new_name; /* by row: it continues another one */
};

/* The value of a row at a point of the group, under any of its names. */
struct history_value group_value(const struct history *history, const struct history_group *group,
				 size_t row, size_t place);

/* The label of a point, or else its commit, the file or directory of it alone, or its time. */
const char *point_label(const struct history_point *point);

static inline const struct history_point *
group_point(const struct history *history, const struct history_group *group, size_t place)
{
	return &history->points.list[group->points[place]];
}

struct groups {
	LIST(struct history_group);
};

/*
 * Orders the used points: by commit if git knows it, else by start time. Adds notes about
 * duplicates, clocks, gaps, machines and renamed paths. Free it with groups_free().
 */
void groups_make(struct groups *groups, struct history *history);
void groups_free(struct groups *groups);

#endif
