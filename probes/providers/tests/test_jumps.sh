#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# In a function with an indirect jump a hook's call is told whose it is where the table of the jump is proven to be
# all that it goes by, and not where other ways lead to the call that only look like no ways: distances from
# elsewhere, a table of addresses, a number.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

# told WHAT NAME FLAG... - the body of f is stdin, its data $data; the call in it is told to be NAME's
told()
{
	local what=$1 name=$2 is

	shift 2
	{
		printf '\t.text\n'
		for function in g h; do
			printf '\t.type %s,@function\n%s:\tret\n\t.size %s,.-%s\n' $function{,,,}
		done
		printf '\t.globl f\n\t.type f,@function\nf:\tpush %%rbx\n'
		cat
		printf '\t.size f,.-f\n%s\n\t.section .note.GNU-stack,"",@progbits\n' "$data"
	} >"$dir/f.s"
	# shellcheck disable=SC2086 # CC may carry options
	if ! $CC "$@" "$dir/f.s" -o "$dir/f" 2>"$dir/errors"; then
		echo "$what: not linked: $(cat "$dir/errors")"
		return
	fi
	tried=yes
	is=$("$fastinst" list "$dir/f" | awk '$2 == "entry" { print $3 }')
	[ "$is" = "$name" ] || wrong "$what: of $is, not $name"
}

tried=
call='call __cyg_profile_func_enter@PLT
	pop %rbx
	ret'
table='	.section .rodata
	.balign 4
table:	.long .La-table, .Lb-table'

# By the number in %rax.
jump="lea table(%rip), %rcx
	movslq (%rcx,%rax,4), %rax
	add %rcx, %rax
	jmp *%rax
.La:	nop
.Lb:	lea h(%rip), %rdi
	$call"

data=$table
told "a table" h -shared <<END
	cmp \$1, %esi
	ja .Lb
	mov %esi, %eax
	$jump
END
told "a table that is not checked" f -shared <<END
	mov %rsi, %rax
	$jump
END
# stored WHAT NAME STORE [BETWEEN] - the number is checked in %esi, stored before, and read again
stored()
{
	told "$1" "$2" -shared <<END
	sub \$32, %rsp
	mov %esi, %ecx
	mov $3, 8(%rsp)
	sub \$1, %esi
	ja .Lb
	${4-}
	mov 8(%rsp), %rax
	$jump
END
}
stored "a number that was stored" h %rcx
stored "a number that was stored over" f %rcx "mov %edx, 12(%rsp)"
stored "a number of which half was stored" f %ecx
stored "another number that was stored" f %rdx

data='	.section .rodata
	.balign 4
distances: .long .La-.La, .Lb-.La'
told "distances from elsewhere" f -shared <<END
	lea h(%rip), %rdi
	lea .La(%rip), %rdx
	lea distances(%rip), %rcx
	movslq (%rcx,%rsi,4), %rax
	add %rdx, %rax
	jmp *%rax
.La:	nop
	lea g(%rip), %rdi
.Lb:	$call
END

data='	.section .rodata
	.balign 4
table:	.long .La-table, .Lgoto-table
	.section .data.rel.ro,"aw"
	.balign 8
addresses: .quad .La, .Lb'
told "a table and addresses" f -shared -Wl,-z,pack-relative-relocs <<END
	test %edx, %edx
	je .Lgoto
	lea table(%rip), %rcx
	movslq (%rcx,%rsi,4), %rax
	add %rcx, %rax
	jmp *%rax
.Lgoto:	lea h(%rip), %rdi
	lea addresses(%rip), %rcx
	jmp *(%rcx,%rsi,8)
.La:	nop
	lea g(%rip), %rdi
.Lb:	$call
END

data='	.data
	.balign 8
pointer: .quad .Lb'
told "a pointer" f -shared <<END
	lea h(%rip), %rdi
	test %edx, %edx
	je .La
	jmp *pointer(%rip)
.La:	lea g(%rip), %rdi
.Lb:	$call
END
data=
told "a function of another object" h -shared <<END
	lea h(%rip), %rdi
	test %edx, %edx
	je .La
	jmp *other@GOTPCREL(%rip)
.La:	$call
END

data='	.globl main
main:	ret
	.section .text.unlikely,"ax"
	.type f.cold,@function
f.cold:	nop
	jmp .Lback
	.size f.cold,.-f.cold'
told "a number" f -no-pie <<END
	test %edx, %edx
	je f.cold
.Lback:	mov \$h, %edi
	mov \$.Lb, %eax
	jmp *%rax
.La:	nop
	mov \$g, %edi
.Lb:	$call
END
[ -n "$tried" ] || skip "none could be tried"
exit $failed
