/* SPDX-License-Identifier: Apache-2.0 */
/* A static program without a C library, which waits until it is killed. */
	.globl _start
_start:
	movl $34, %eax /* pause */
	syscall
	jmp _start
	.section .note.GNU-stack, "", @progbits
