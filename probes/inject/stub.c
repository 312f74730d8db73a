/* SPDX-License-Identifier: MIT */
/*
 * The code that is put into a process.
 *
 * stub_call runs in a thread that was interrupted: it makes the letter and its stack writable, has
 * the C library make another thread, and traps. To register for membarrier(2), which the library
 * that is loaded will, takes the kernel many milliseconds once there are two threads, and none
 * before: so it is done here where the thread is alone. That one loads the library, calls its entry
 * function, waits until the tracer has read what came of it, and ends by munmap(), which returns to
 * the C library: nothing of this stays.
 */
#include "probes/inject/letter.h"

#include <assert.h>
#include <stddef.h>

#define AT(field, offset)                                                                          \
	static_assert(offsetof(struct letter, field) == (offset), "the stub finds it there")
AT(create, LETTER_CREATE);
AT(detach, LETTER_DETACH);
AT(dlopen, LETTER_DLOPEN);
AT(dlsym, LETTER_DLSYM);
AT(dlerror, LETTER_DLERROR);
AT(munmap, LETTER_MUNMAP);
AT(error_location, LETTER_ERRNO);
AT(thread, LETTER_THREAD);
AT(start, LETTER_START);
AT(length, LETTER_LEN);
AT(pause, LETTER_PAUSE);
AT(created, LETTER_CREATED);
AT(result, LETTER_RESULT);
AT(done, LETTER_DONE);
AT(read, LETTER_READ);
AT(alone, LETTER_ALONE);
AT(error, LETTER_ERROR);
AT(entry, LETTER_ENTRY);
AT(text, LETTER_TEXT);
AT(library, LETTER_LIBRARY);
static_assert(sizeof(struct letter) == 4096, "one page");

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* clang-format off */
asm(".pushsection .rodata\n"
    ".globl stub_start, stub_call, stub_called, stub_end\n"
    ".hidden stub_start, stub_call, stub_called, stub_end\n"
    "stub_start:\n"
    "stub_call:\n"
    "	mov $10, %eax\n" /* mprotect */
    "	mov %rbx, %rdi\n"
    "	mov " TEXT(LETTER_LEN) "(%rbx), %rsi\n"
    "	sub $4096, %rsi\n"
    "	mov $3, %edx\n"
    "	syscall\n"
    "	test %eax, %eax\n"
    "	jnz 3f\n"
    "	cmpl $0, " TEXT(LETTER_ALONE) "(%rbx)\n"
    "	je 2f\n"
    ".irp command,64,16\n" /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, and without */
    "	mov $324, %eax\n" /* membarrier */
    "	mov $\\command, %edi\n"
    "	xor %esi, %esi\n"
    "	xor %edx, %edx\n"
    "	syscall\n"
    ".endr\n"
    "2:\n"
    "	call *" TEXT(LETTER_ERRNO) "(%rbx)\n"
    "	mov %rax, %r12\n"
    "	mov (%rax), %r13d\n"
    "	lea " TEXT(LETTER_THREAD) "(%rbx), %rdi\n"
    "	xor %esi, %esi\n"
    "	lea 10f(%rip), %rdx\n"
    "	mov %rbx, %rcx\n"
    "	call *" TEXT(LETTER_CREATE) "(%rbx)\n"
    "	mov %eax, " TEXT(LETTER_CREATED) "(%rbx)\n"
    "	mov %r13d, (%r12)\n"
    "	int3\n"
    "stub_called:\n"
    "	hlt\n"
    "3:	int3\n"
    "	hlt\n"

    /* The thread. Its own address is where the C library has it for x86-64. */
    "10:	endbr64\n"
    "	push %rbx\n"
    "	push %r12\n"
    "	sub $8, %rsp\n"
    "	mov %rdi, %rbx\n"
    "	mov %fs:16, %rdi\n"
    "	call *" TEXT(LETTER_DETACH) "(%rbx)\n"
    "	lea " TEXT(LETTER_LIBRARY) "(%rbx), %rdi\n"
    "	mov $2, %esi\n" /* RTLD_NOW */
    "	call *" TEXT(LETTER_DLOPEN) "(%rbx)\n"
    "	test %rax, %rax\n"
    "	jz 11f\n"
    "	mov %rax, %rdi\n"
    "	lea " TEXT(LETTER_ENTRY) "(%rbx), %rsi\n"
    "	call *" TEXT(LETTER_DLSYM) "(%rbx)\n"
    "	test %rax, %rax\n"
    "	jz 11f\n"
    "	lea " TEXT(LETTER_TEXT) "(%rbx), %rdi\n"
    "	call *%rax\n"
    "	mov %eax, " TEXT(LETTER_RESULT) "(%rbx)\n"
    "	jmp 13f\n"
    "11:	call *" TEXT(LETTER_DLERROR) "(%rbx)\n"
    "	movl $-8, " TEXT(LETTER_RESULT) "(%rbx)\n" /* -ENOEXEC */
    "	test %rax, %rax\n"
    "	jz 13f\n"
    "	mov %rax, %rsi\n"
    "	lea " TEXT(LETTER_ERROR) "(%rbx), %rdi\n"
    "	mov $251, %ecx\n"
    "12:	lodsb\n"
    "	stosb\n"
    "	test %al, %al\n"
    "	loopnz 12b\n"
    "13:	movl $1, " TEXT(LETTER_DONE) "(%rbx)\n"
    "	mov $5000, %r12d\n"
    "14:	cmpl $0, " TEXT(LETTER_READ) "(%rbx)\n"
    "	jne 15f\n"
    "	mov $35, %eax\n" /* nanosleep */
    "	lea " TEXT(LETTER_PAUSE) "(%rbx), %rdi\n"
    "	xor %esi, %esi\n"
    "	syscall\n"
    "	dec %r12d\n"
    "	jnz 14b\n"
    "15:	mov " TEXT(LETTER_START) "(%rbx), %rdi\n"
    "	mov " TEXT(LETTER_LEN) "(%rbx), %rsi\n"
    "	mov " TEXT(LETTER_MUNMAP) "(%rbx), %rax\n"
    "	add $8, %rsp\n"
    "	pop %r12\n"
    "	pop %rbx\n"
    "	jmp *%rax\n"
    "stub_end:\n"
    ".popsection\n");
/* clang-format on */
