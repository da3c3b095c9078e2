/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a flame graph as one self-contained SVG file. A frame's width is its weight including
 * callees.
 *
 * Each frame shows its numbers in its title, so the file is readable without scripts, for example
 * as an image. With scripts, frames can be zoomed and searched.
 *
 * The functions below are called in their order.
 */
#ifndef XT_PAGE_SVG_FLAME_H
#define XT_PAGE_SVG_FLAME_H

#include <stddef.h>
#include <stdint.h>

struct output;

struct svg_flame {
	struct output *out;
	uint32_t depth; /* of the deepest frame; the root frame has depth 0 */
};

struct svg_frame {
	uint32_t depth;
	double start, width; /* as fractions of the total */
	uint64_t value;	     /* weight */
	const char *name;    /* not terminated */
	size_t name_length;
	size_t mark_length;  /* length of a name prefix that the label omits */
	const char *numbers; /* lines of the title */
	const char *class;   /* classes of flame.css, which set the colour */
};

void svg_flame_begin(const struct svg_flame *svg, const char *heading, const char *note);
void svg_flame_frame(const struct svg_flame *svg, const struct svg_frame *frame);
void svg_flame_end(const struct svg_flame *svg);

#endif
