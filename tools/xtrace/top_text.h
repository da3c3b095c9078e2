/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the figures of xtrace top as lines of a terminal, or as JSON.
 */
#ifndef XTRACE_TOP_TEXT_H
#define XTRACE_TOP_TEXT_H

#include <stdio.h>

#include "top_figures.h"

struct top_view {
	unsigned columns, lines; /* of the terminal; lines 0: no limit */
	bool is_screen;		 /* with escape sequences, and a line about keys */
	bool is_paused, is_typing;
	const char *filter; /* shown are only names that contain it; "": all */
};

void top_text(FILE *out, const struct top_figures *top, const struct top_view *view);

/* Returns text to free(), or NULL if out of memory. */
char *top_json(const struct top_figures *top, const char *filter);

#endif
