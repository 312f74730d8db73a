# SPDX-License-Identifier: MIT
# Follows every branch of the code that may not be patched (sys.h: NOPATCH), and tells which
# leave it. For test_own_code.sh.
#
# usage: awk -v allowed='FUNCTION...' -v symbols=FILE -v linked=0 -f own_code.awk LISTING
#	LISTING	objdump -dr --no-show-raw-insn -j patchcore_nopatch
#	symbols	objdump -t of the same files
#	linked	1: no relocations, the file is linked
#	allowed	functions whose indirect calls have been looked at
#
# One line for each branch that leads elsewhere; for each function outside whose address is
# taken, since it may be called by that; and for each function allowed that makes no indirect
# call. The last line counts. Exit status: 0 none leaves, 1 some do or there is no code.

# The name without what a compiler puts behind those of copies that it makes.
function plain(name)
{
	sub(/\.(constprop|isra|part|cold|localalias|lto_priv)[.0-9]*$/, "", name)
	return name
}

function offend(what)
{
	printf "%s%s+: %s\n", file == "" ? "" : file ": ", fn, what
	offences++
}

# A branch that no relocation has given another target leads to where it says.
function settle()
{
	if (target != "")
		led[++leads] = file SUBSEP target SUBSEP fn SUBSEP insn
	target = ""
}

# Of all members; local names are each member's own.
function note_symbol(   global, owner, name)
{
	# 0000000000000000 g     F patchcore_nopatch	0000000000000010 .hidden name
	if (match($0, /:[ ]+file format/)) {
		member = linked ? "" : substr($0, 1, RSTART - 1)
		return
	}
	if ($0 !~ /^[0-9a-f]+ /)
		return
	global = substr($0, length($1) + 2, 1) != "l"
	owner = global ? "" : member
	name = $NF
	if (index($0, " patchcore_nopatch\t"))
		ours[owner SUBSEP name] = 1
	else if ($0 ~ / F \.text[^\t]*\t/ || $0 ~ / d +\.text[^\t]*\t/)
		code[owner SUBSEP name] = 1
	if (!index($0, "*UND*"))
		defined[name] = 1
}

function is_ours(name)
{
	return name == "patchcore_nopatch" || ((file SUBSEP name) in ours) || (("" SUBSEP name) in ours)
}

function is_code(name)
{
	return ((file SUBSEP name) in code) || (("" SUBSEP name) in code)
}

# An operand that is an address, not a jump: of another function, or of one of another object?
function note_address(name)
{
	sub(/[-+]0x[0-9a-f]+$/, "", name)
	if (is_code(name) || (!linked && !(name in defined) && name !~ /^_GLOBAL_OFFSET_TABLE_$|^\./))
		offend("takes the address of " name)
}

BEGIN {
	n = split(allowed, word, " ")
	for (i = 1; i <= n; i++)
		may[word[i]] = 1
	while (symbols != "" && (getline < symbols) > 0)
		note_symbol()
}

/:[ ]+file format/ {
	settle()
	file = linked ? "" : $0
	sub(/:[ ]+file format.*/, "", file)
	next
}

/^[0-9a-f]+ <.*>:$/ {
	settle()
	fn = $2
	sub(/^</, "", fn)
	sub(/>:$/, "", fn)
	fn = plain(fn)
	functions++
	next
}

# 	15: R_X86_64_PLT32	memcpy-0x4
/^[ \t]+[0-9a-f]+: R_X86_64_/ {
	name = $3
	sub(/[-+]0x[0-9a-f]+$/, "", name)
	if (branch && !is_ours(name))
		offend(insn " " name)
	else if (!branch)
		note_address(name)
	target = ""
	branch = 0
	next
}

#     1139:	call   1030 <memcpy@plt>
/^[ ]*[0-9a-f]+:\t/ {
	settle()
	at = $1
	sub(/:$/, "", at)
	starts[file SUBSEP at] = 1
	instructions++
	branch = 0
	i = 2
	while ($i ~ /^(notrack|bnd|lock|repz?|repnz|data16|addr32|cs|ds|es|ss|rex(\..*)?)$/)
		i++
	insn = $i
	if (insn !~ /^(call|jmp|j[a-z]+|loop[a-z]*|xbegin|ljmp|lcall)[a-z]*(,p[nt])?$/) {
		if (linked && match($0, /# [0-9a-f]+ <[^>]*>/))
			taken[++takes] = substr($0, RSTART + 2, RLENGTH - 3) SUBSEP fn
		next
	}
	branch = 1
	if ($(i + 1) !~ /^\*/) {
		target = $(i + 1)
		to = $(i + 2)
		insn = insn " " to
		next
	}
	if (fn in may)
		used[fn] = 1
	else
		offend(insn " " $(i + 1) ", which nothing says the target of")
	next
}

END {
	settle()
	for (i = 1; i <= leads; i++) {
		split(led[i], part, SUBSEP)
		if ((part[1] SUBSEP part[2]) in starts)
			continue
		file = part[1]
		fn = part[3]
		offend(part[4])
	}
	# <fn> of the text may have a namesake in the section.
	for (i = 1; i <= takes; i++) {
		split(taken[i], part, SUBSEP)
		at = name = part[1]
		sub(/ .*/, "", at)
		sub(/.*</, "", name)
		fn = part[2]
		if (!(("" SUBSEP at) in starts))
			note_address(name)
	}
	for (name in may)
		if (!(name in used)) {
			printf "%s: allowed an indirect call, and makes none\n", name
			offences++
		}
	printf "%d functions, %d instructions, %d branches leave\n", functions, instructions, offences
	exit offences > 0 || functions == 0
}
