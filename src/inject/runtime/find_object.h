/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of glibc's _dl_find_object(), for headers older than glibc 2.35. A build against an
 * older glibc still uses the function if the traced program's glibc has it: callers look it up.
 */
#ifndef XT_INJECT_FIND_OBJECT_H
#define XT_INJECT_FIND_OBJECT_H

#include <dlfcn.h>
#include <link.h>

#ifndef DLFO_STRUCT_HAS_EH_DBASE
struct dl_find_object {
	unsigned long long dlfo_flags;
	void *dlfo_map_start; /* of the module's mapping */
	void *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame; /* the module's .eh_frame_hdr */
	unsigned long long reserved[7];
};
#endif

#endif
