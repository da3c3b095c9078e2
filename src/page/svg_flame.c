/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes SVG flame graphs, and embeds the files of svg/. XTRACE_SVG_PARTS is the path of that
 * folder.
 */
#include "page/svg_flame.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static const char *svg_style(size_t *length_out)
{
	*length_out = (size_t)(xtrace_svg_style_end - xtrace_svg_style);
	return xtrace_svg_style;
}

static const char *svg_script(size_t *length_out)
{
	*length_out = (size_t)(xtrace_svg_script_end - xtrace_svg_script);
	return xtrace_svg_script;
}

#define WIDTH	     1200.0
#define MARGIN	     10.0
#define HEAD	     58.0 /* height above the frames */
#define ROW	     17.0
#define COLUMN	     7.3 /* width of a character */
#define COLUMNS_MIN  3	 /* shorter labels are omitted */
#define PLACES_WIDTH (WIDTH - 2 * MARGIN)
#define PIECE_BYTES  1024

static void put(const struct svg_flame *svg, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes numbers and short strings. */
static void put(const struct svg_flame *svg, const char *format, ...)
{
	char text[PIECE_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	svg->write(svg->context, text,
		   (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

static void put_plain(const struct svg_flame *svg, const char *text)
{
	svg->write(svg->context, text, strlen(text));
}

/*
 * Escapes text for XML. Names contain no control characters. U+FFFE and U+FFFF, which XML forbids,
 * become U+FFFD.
 */
static void put_escaped(const struct svg_flame *svg, const char *text, size_t length)
{
	static const struct {
		const char *text;
		const char *escape;
	} escapes[] = {{"&", "&amp;"},
		       {"<", "&lt;"},
		       {">", "&gt;"},
		       {"\"", "&quot;"},
		       {"'", "&#39;"},
		       {"\xef\xbf\xbe", "\xef\xbf\xbd"},
		       {"\xef\xbf\xbf", "\xef\xbf\xbd"}};
	size_t from = 0;

	for (size_t i = 0; i < length; i++) {
		for (size_t e = 0; e < sizeof(escapes) / sizeof(escapes[0]); e++) {
			size_t bytes = strlen(escapes[e].text);

			if (bytes > length - i || memcmp(&text[i], escapes[e].text, bytes))
				continue;
			svg->write(svg->context, text + from, i - from);
			put_plain(svg, escapes[e].escape);
			from = i + bytes;
		}
	}
	svg->write(svg->context, text + from, length - from);
}

static bool goes_on(char byte)
{
	return ((uint8_t)byte & 0xc0) == 0x80;
}

static size_t columns_of(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += !goes_on(text[i]);
	return columns;
}

/* Writes as much of a name as fits in a frame of that width. */
static void put_label(const struct svg_flame *svg, const struct svg_frame *frame, double width)
{
	const char *name = frame->name + frame->mark_length;
	size_t length = frame->name_length - frame->mark_length, seen = 0, i = 0;
	size_t columns = width > 4 ? (size_t)((width - 4) / COLUMN) : 0;

	if (columns < COLUMNS_MIN)
		return;
	if (columns_of(name, length) <= columns) {
		put_escaped(svg, name, length);
		return;
	}
	while (i < length && seen < columns - 1) {
		i++;
		while (i < length && goes_on(name[i]))
			i++;
		seen++;
	}
	put_escaped(svg, name, i);
	put_plain(svg, "\xe2\x80\xa6");
}

void svg_flame_begin(const struct svg_flame *svg, const char *heading, const char *note)
{
	double height = HEAD + (double)(svg->depth + 1) * ROW + MARGIN;
	size_t length;
	const char *style = svg_style(&length);

	put(svg,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
	    "viewBox=\"0 0 %.0f %.0f\">\n<title>",
	    WIDTH, height, WIDTH, height);
	put_escaped(svg, heading, strlen(heading));
	put_plain(svg, "</title>\n<style>\n");
	svg->write(svg->context, style, length);
	put(svg, "</style>\n<text class=\"heading\" x=\"%.0f\" y=\"24\">", MARGIN);
	put_escaped(svg, heading, strlen(heading));
	put(svg,
	    "</text>\n"
	    "<text class=\"button\" id=\"reset\" x=\"%.0f\" y=\"24\" "
	    "style=\"display:none\">reset</text>\n"
	    "<text class=\"button\" id=\"search\" x=\"%.0f\" y=\"24\" "
	    "style=\"display:none\">search</text>\n"
	    "<text class=\"note\" id=\"details\" x=\"%.0f\" y=\"46\">",
	    WIDTH - MARGIN - 120, WIDTH - MARGIN - 52, MARGIN);
	put_escaped(svg, note, strlen(note));
	put_plain(svg, "</text>\n");
}

void svg_flame_frame(const struct svg_flame *svg, const struct svg_frame *frame)
{
	double x = MARGIN + frame->start * PLACES_WIDTH;
	double width = frame->width * PLACES_WIDTH;
	double y = HEAD + (double)(svg->depth - frame->depth) * ROW;

	put(svg, "<g class=\"frame %s\" data-depth=\"%u\" data-value=\"%llu\"><title>",
	    frame->class, frame->depth, (unsigned long long)frame->value);
	put_escaped(svg, frame->name, frame->name_length);
	put_plain(svg, "\n");
	put_escaped(svg, frame->numbers, strlen(frame->numbers));
	put(svg,
	    "</title><rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%.0f\"/>"
	    "<text x=\"%.3f\" y=\"%.0f\">",
	    x, y, width, ROW - 1, x + 3, y + ROW - 5);
	put_label(svg, frame, width);
	put_plain(svg, "</text></g>\n");
}

void svg_flame_end(const struct svg_flame *svg)
{
	size_t length;
	const char *script = svg_script(&length);

	put_plain(svg, "<script><![CDATA[\n");
	svg->write(svg->context, script, length);
	put_plain(svg, "]]></script>\n</svg>\n");
}
