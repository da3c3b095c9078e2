/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeds the page template. XTRACE_HTML_TEMPLATE is its path, if the build made one.
 */
#include "page/template.h"

#ifdef XTRACE_HTML_TEMPLATE
__asm__(".pushsection .rodata\n"
	"xtrace_html_template:\n"
	".incbin \"" XTRACE_HTML_TEMPLATE "\"\n"
	"xtrace_html_template_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char xtrace_html_template[] __attribute__((visibility("hidden")));
extern const char xtrace_html_template_end[] __attribute__((visibility("hidden")));

const char *page_template(size_t *length_out)
{
	*length_out = (size_t)(xtrace_html_template_end - xtrace_html_template);
	return xtrace_html_template;
}
#else
const char *page_template(size_t *length_out)
{
	*length_out = 0;
	return NULL;
}
#endif
