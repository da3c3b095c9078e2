/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeds the files of svg/. XTRACE_SVG_PARTS is the path of that folder.
 */
#include "page/svg_flame.h"

#define PART(name, file)                                                                           \
	__asm__(".pushsection .rodata\n" name ":\n.incbin \"" XTRACE_SVG_PARTS "/" file            \
		"\"\n" name "_end:\n.byte 0\n.popsection\n")

PART("xtrace_svg_style", "flame.css");
PART("xtrace_svg_script", "flame.js");

/*
 * Not reached through the global offset table. There the assembler of aarch64 names a local label
 * as an offset in its section, and the linker has one entry for the whole section.
 */
#define HIDDEN __attribute__((visibility("hidden")))
extern const char xtrace_svg_style[] HIDDEN, xtrace_svg_style_end[] HIDDEN;
extern const char xtrace_svg_script[] HIDDEN, xtrace_svg_script_end[] HIDDEN;

const char *svg_style(size_t *length_out)
{
	*length_out = (size_t)(xtrace_svg_style_end - xtrace_svg_style);
	return xtrace_svg_style;
}

const char *svg_script(size_t *length_out)
{
	*length_out = (size_t)(xtrace_svg_script_end - xtrace_svg_script);
	return xtrace_svg_script;
}
