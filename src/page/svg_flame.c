/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes SVG flame graphs, and embeds the files of svg/. XTRACE_SVG_PARTS is the path of that
 * folder.
 */
#include "page/svg_flame.h"

#include <stdbool.h>
#include <string.h>

#include "base/output.h"

/* Text that ends with a zero byte. */
#define PART(name, file)                                                                           \
	__asm__(".pushsection .rodata\n" name ":\n.incbin \"" XTRACE_SVG_PARTS "/" file            \
		"\"\n.byte 0\n.popsection\n")

PART("xtrace_svg_style", "flame.css");
PART("xtrace_svg_script", "flame.js");

/*
 * Not reached through the global offset table. There the assembler of aarch64 names a local label
 * as an offset in its section, and the linker has one entry for the whole section.
 */
#define HIDDEN __attribute__((visibility("hidden")))
extern const char xtrace_svg_style[] HIDDEN, xtrace_svg_script[] HIDDEN;

#define WIDTH	     1200.0
#define MARGIN	     10.0
#define HEAD	     58.0 /* height above the frames */
#define ROW	     17.0
#define COLUMN	     7.3 /* width of a character */
#define COLUMNS_MIN  3	 /* shorter labels are omitted */
#define PLACES_WIDTH (WIDTH - 2 * MARGIN)

/*
 * Escapes text for XML. Names contain no control characters. U+FFFE and U+FFFF, which XML forbids,
 * become U+FFFD.
 */
static void put_escaped(struct output *out, const char *text, size_t length)
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
			output_text(out, text + from, i - from);
			output_string(out, escapes[e].escape);
			from = i + bytes;
		}
	}
	output_text(out, text + from, length - from);
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
static void put_label(struct output *out, const struct svg_frame *frame, double width)
{
	const char *name = frame->name + frame->mark_length;
	size_t length = frame->name_length - frame->mark_length, seen = 0, i = 0;
	size_t columns = width > 4 ? (size_t)((width - 4) / COLUMN) : 0;

	if (columns < COLUMNS_MIN)
		return;
	if (columns_of(name, length) <= columns) {
		put_escaped(out, name, length);
		return;
	}
	while (i < length && seen < columns - 1) {
		i++;
		while (i < length && goes_on(name[i]))
			i++;
		seen++;
	}
	put_escaped(out, name, i);
	output_string(out, "\xe2\x80\xa6");
}

void svg_flame_begin(const struct svg_flame *svg, const char *heading, const char *note)
{
	double height = HEAD + (double)(svg->depth + 1) * ROW + MARGIN;
	struct output *out = svg->out;

	output_format(out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\">\n<title>",
		      WIDTH, height, WIDTH, height);
	put_escaped(out, heading, strlen(heading));
	output_string(out, "</title>\n<style>\n");
	output_string(out, xtrace_svg_style);
	output_format(out, "</style>\n<text class=\"heading\" x=\"%.0f\" y=\"24\">", MARGIN);
	put_escaped(out, heading, strlen(heading));
	output_format(out,
		      "</text>\n"
		      "<text class=\"button\" id=\"reset\" x=\"%.0f\" y=\"24\" "
		      "style=\"display:none\">reset</text>\n"
		      "<text class=\"button\" id=\"search\" x=\"%.0f\" y=\"24\" "
		      "style=\"display:none\">search</text>\n"
		      "<text class=\"note\" id=\"details\" x=\"%.0f\" y=\"46\">",
		      WIDTH - MARGIN - 120, WIDTH - MARGIN - 52, MARGIN);
	put_escaped(out, note, strlen(note));
	output_string(out, "</text>\n");
}

void svg_flame_frame(const struct svg_flame *svg, const struct svg_frame *frame)
{
	struct output *out = svg->out;
	double x = MARGIN + frame->start * PLACES_WIDTH;
	double width = frame->width * PLACES_WIDTH;
	double y = HEAD + (double)(svg->depth - frame->depth) * ROW;

	output_format(out, "<g class=\"frame %s\" data-depth=\"%u\" data-value=\"%llu\"><title>",
		      frame->class, frame->depth, (unsigned long long)frame->value);
	put_escaped(out, frame->name, frame->name_length);
	output_string(out, "\n");
	put_escaped(out, frame->numbers, strlen(frame->numbers));
	output_format(out,
		      "</title><rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%.0f\"/>"
		      "<text x=\"%.3f\" y=\"%.0f\">",
		      x, y, width, ROW - 1, x + 3, y + ROW - 5);
	put_label(out, frame, width);
	output_string(out, "</text></g>\n");
}

void svg_flame_end(const struct svg_flame *svg)
{
	output_string(svg->out, "<script><![CDATA[\n");
	output_string(svg->out, xtrace_svg_script);
	output_string(svg->out, "]]></script>\n</svg>\n");
}
