/* SPDX-License-Identifier: MIT */
/*
 * The code that is put into a process.
 *
 * cave_start makes a system call in a thread that was interrupted, and stub_call runs in it next:
 * see inject.c. Where there is no tracer any more, the thread goes on as it was, by cave_back.
 *
 * The other thread, at 10, loads the library, calls its entry function, waits until the tracer has
 * read what came of it, and ends by munmap(), which returns to the C library: nothing of this
 * stays. Unless the tracer was killed: the first thread may still be in there.
 */
#include "agent/launch/target.h"

#include <assert.h>
#include <stddef.h>

static_assert(sizeof(struct letter) == 4096, "one page");
static_assert(CAVE_MASK + sizeof(struct cave_state) <= CAVE_SIZE, "all of it");

#define AT(field)   [field] "i"(offsetof(struct letter, field))
#define CALL(field) [field] "i"(offsetof(struct letter, call.field))

/* Never called: for its operands, which code outside of functions has none of. */
__attribute__((used)) static void assemble(void)
{
	/* clang-format off */
	asm(".pushsection .rodata\n"
    ".globl stub_start, stub_call, stub_end, cave_start, cave_back, cave_end\n"
    ".hidden stub_start, stub_call, stub_end, cave_start, cave_back, cave_end\n"

    /* No flag is changed, and no stack used. */
    "cave_start:\n"
    "	syscall\n"
    "cave_back:\n"
    "	mov $14, %%eax\n" /* rt_sigprocmask */
    "	mov $2, %%edi\n"
    "	lea 9f(%%rip), %%rsi\n"
    "	mov $0, %%edx\n"
    "	mov $8, %%r10d\n"
    "	syscall\n"
    "	mov 9f+8(%%rip), %%rax\n"
    "	mov 9f+16(%%rip), %%rdi\n"
    "	mov 9f+24(%%rip), %%rsi\n"
    "	mov 9f+32(%%rip), %%rdx\n"
    "	mov 9f+40(%%rip), %%rcx\n"
    "	mov 9f+48(%%rip), %%r8\n"
    "	mov 9f+56(%%rip), %%r9\n"
    "	mov 9f+64(%%rip), %%r10\n"
    "	mov 9f+72(%%rip), %%r11\n"
    "	jmp *9f+80(%%rip)\n"
    ".org cave_start + %c[cave_mask]\n"
    "9:\n"
    "cave_end:\n"

    "stub_start:\n"
    "stub_call:\n"
    "	mov $10, %%eax\n" /* mprotect */
    "	mov %%rbx, %%rdi\n"
    "	mov %c[length](%%rbx), %%rsi\n"
    "	sub $4096, %%rsi\n"
    "	mov $3, %%edx\n"
    "	syscall\n"
    "	test %%eax, %%eax\n"
    "	jnz 5f\n"
    "	push %%r12\n"
    "	push %%r13\n"
    "	mov $-1, %%eax\n"
    "	mov $-1, %%edx\n"
    "	xsave64 %c[vectors](%%rbx)\n"
    "	call *%c[error_location](%%rbx)\n"
    "	mov %%rax, %%r12\n"
    "	mov (%%rax), %%r13d\n"
    "	lea %c[thread](%%rbx), %%rdi\n"
    "	xor %%esi, %%esi\n"
    "	lea 10f(%%rip), %%rdx\n"
    "	mov %%rbx, %%rcx\n"
    "	call *%c[create](%%rbx)\n"
    "	mov %%eax, %c[created](%%rbx)\n"
    "	mov %%r13d, (%%r12)\n"
    "	pop %%r13\n"
    "	pop %%r12\n"
    "	mov $-1, %%eax\n"
    "	mov $-1, %%edx\n"
    "	xrstor64 %c[vectors](%%rbx)\n"
    "	movl $1, %c[called](%%rbx)\n"
    /* Not nanosleep(), which changes how the kernel goes on with the thread's own. */
    "5:	mov $271, %%eax\n" /* ppoll */
    "	xor %%edi, %%edi\n"
    "	xor %%esi, %%esi\n"
    "	lea %c[give_up](%%rbx), %%rdx\n"
    "	xor %%r10d, %%r10d\n"
    "	syscall\n"
    "	mov %c[cave](%%rbx), %%rax\n"
    "	lea %c[back](%%rbx), %%rsp\n"
    "	popfq\n"
    "	pop %%rbx\n"
    "	pop %%rsp\n"
    "	jmp *%%rax\n"

    /* The thread. Its own address is where the C library has it for x86-64. */
    "10:	endbr64\n"
    "	push %%rbx\n"
    "	push %%r12\n"
    "	push %%r13\n"
    "	mov %%rdi, %%rbx\n"
    "	mov %%fs:16, %%rdi\n"
    "	call *%c[detach](%%rbx)\n"
    "	lea %c[library](%%rbx), %%rdi\n"
    "	mov $2, %%esi\n" /* RTLD_NOW */
    "	call *%c[dlopen](%%rbx)\n"
    "	mov %%rax, %%r13\n"
    "	test %%rax, %%rax\n"
    "	jz 11f\n"
    "4:	mov %%r13, %%rdi\n"
    "	lea %c[entry](%%rbx), %%rsi\n"
    "	call *%c[dlsym](%%rbx)\n"
    "	test %%rax, %%rax\n"
    "	jz 11f\n"
    "	lea %c[text](%%rbx), %%rdi\n"
    "	call *%%rax\n"
    "	mov %%eax, %c[result](%%rbx)\n"
    "	jmp 13f\n"
    "11:	call *%c[dlerror](%%rbx)\n"
    "	movl $-8, %c[result](%%rbx)\n" /* -ENOEXEC */
    "	mov %%rax, %c[error](%%rbx)\n"
    "13:	movl $1, %c[done](%%rbx)\n"
    "	mov $10000, %%r12d\n"
    "14:	xor %%eax, %%eax\n"
    "	xchg %%eax, %c[read](%%rbx)\n"
    "	cmp $2, %%eax\n" /* LETTER_AGAIN */
    "	je 4b\n"
    "	test %%eax, %%eax\n"
    "	jne 15f\n"
    "	mov $35, %%eax\n" /* nanosleep */
    "	lea %c[pause](%%rbx), %%rdi\n"
    "	xor %%esi, %%esi\n"
    "	syscall\n"
    "	dec %%r12d\n"
    "	jnz 14b\n"
    "	pop %%r13\n"
    "	pop %%r12\n"
    "	pop %%rbx\n"
    "	ret\n"
    "15:	decl %c[closes](%%rbx)\n"
    "	js 16f\n"
    "	mov %%r13, %%rdi\n"
    "	call *%c[dlclose](%%rbx)\n"
    "	jmp 15b\n"
    "16:	mov %c[start](%%rbx), %%rdi\n"
    "	mov %c[length](%%rbx), %%rsi\n"
    "	mov %c[munmap](%%rbx), %%rax\n"
    "	pop %%r13\n"
    "	pop %%r12\n"
    "	pop %%rbx\n"
    "	jmp *%%rax\n"
    "stub_end:\n"
    ".popsection\n"
    :
    : CALL(create), CALL(detach), CALL(dlopen), CALL(dlsym), CALL(dlerror), CALL(dlclose), CALL(munmap),
      CALL(error_location),
      AT(thread), AT(start), AT(length), AT(pause), AT(give_up), AT(back), AT(created), AT(called), AT(result),
      AT(done), AT(read), AT(closes), AT(error), AT(entry), AT(text), AT(library),
      [cave] "i"(offsetof(struct letter, back.cave)), [vectors] "i"(sizeof(struct letter)), [cave_mask] "i"(CAVE_MASK));
}
/* clang-format on */
