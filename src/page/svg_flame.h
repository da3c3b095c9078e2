/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one SVG file, that needs nothing else: the width of a frame is what it weighs with all
 * that it calls. Each frame says its numbers in its title, so it can be read where scripts are off, as in
 * an image of a page; where they are on, frames can be zoomed into and searched for.
 *
 * What is written goes out piece by piece, in the order of the calls below.
 */
#ifndef XT_PAGE_SVG_FLAME_H
#define XT_PAGE_SVG_FLAME_H

#include <stddef.h>
#include <stdint.h>

struct svg_flame {
	void (*write)(void *context, const char *text, size_t length);
	void *context;
	uint32_t depth; /* of the deepest frame; the one for all has 0 */
};

struct svg_frame {
	uint32_t depth;
	double start, width; /* as parts of the whole */
	uint64_t value;	     /* its weight, as a number */
	const char *name;    /* not terminated */
	size_t name_length;
	size_t mark_length;  /* so much at its begin is not in the label */
	const char *numbers; /* lines for the title */
	const char *label;   /* behind the name, if there is room; NULL: nothing */
	const char *class;   /* of colours, as flame.css has them … */
	const char *fill;    /* … or a colour; NULL: that of the class */
};

/* legend: NULL, or pairs of a colour and a word, ended by a colour of NULL, left to right. */
void svg_flame_begin(const struct svg_flame *svg, const char *heading, const char *note,
		     const char *const (*legend)[2]);
void svg_flame_frame(const struct svg_flame *svg, const struct svg_frame *frame);
void svg_flame_end(const struct svg_flame *svg);

/* The style and the script, as they stand in svg/. */
const char *svg_style(size_t *length_out);
const char *svg_script(size_t *length_out);

#endif
