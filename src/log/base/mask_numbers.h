/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ranges without their numbers. Any thread. */
#ifndef XT_LOG_MASK_NUMBERS_H
#define XT_LOG_MASK_NUMBERS_H

#include <ctype.h>

/* Replaces each number by one "#", in place: "step 12" and "step 7" become "step #". */
static inline void xt_mask_numbers(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (!isdigit((unsigned char)*from))
			*to++ = *from;
		else if (to == text || to[-1] != '#')
			*to++ = '#';
	}
	*to = '\0';
}

#endif
