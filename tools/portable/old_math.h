/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file by tools/portable.sh. Debian 11's libm has newer versions of these
 * functions, which do not set errno. Use those that every glibc of x86-64 has.
 */
#ifdef __x86_64__
__asm__(".symver exp,exp@GLIBC_2.2.5\n"
	".symver exp2,exp2@GLIBC_2.2.5\n"
	".symver log,log@GLIBC_2.2.5\n"
	".symver log2,log2@GLIBC_2.2.5\n"
	".symver pow,pow@GLIBC_2.2.5");
#else
#error "name the oldest version of these functions on this architecture"
#endif
