/* SPDX-License-Identifier: MIT */
/* A system call that a signal has ended, made to begin anew by the registers that it left. */
#include <errno.h>

#include "patchcore/merge/others.h"

/* The number of the system call that is made at end, or -1. 24 bytes can be read in front of it. */
NOPATCH static int call_number(const uint8_t *end)
{
	/* MOV n(%rsp), to arguments: the C library may have had something else to do before. */
	for (int i = 0; i < 3 && end[-4] == 0x8b && (end[-3] & 0xc7) == 0x44 && end[-2] == 0x24;
	     i++)
		end -= end[-5] >> 4 == 4 ? 5 : 4;
	/* XOR %eax, %eax, or MOV to it */
	if (end[-2] == 0x31 && end[-1] == 0xc0)
		return 0;
	return end[-5] == 0xb8 && !end[-2] && !end[-1] ? end[-4] | end[-3] << 8 : -1;
}

NOPATCH void others_restart_call(greg_t *gregs)
{
	uint8_t code[26] = { 0 };
	int number;

	/* SYSCALL leaves in rcx where it goes on. */
	if (gregs[REG_RAX] != -EINTR || gregs[REG_RCX] != gregs[REG_RIP])
		return;
	sys_transfer(SYS_process_vm_readv, (uintptr_t)gregs[REG_RIP] - sizeof(code), code,
		     sizeof(code));
	number = call_number(code + 24);
	/* These two have done their work even so. */
	if (code[24] != 0x0f || code[25] != 0x05 || number < 0 || number == SYS_close ||
	    number == SYS_connect)
		return;
	gregs[REG_RAX] = number;
	gregs[REG_RIP] -= 2;
}
