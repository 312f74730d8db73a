# SPDX-License-Identifier: MIT
# The experiment of "Living on the Edge" (PLDI 2016), section 8.1, as a list of cells: waits of 0 to
# 2400 ticks by 100, the four splits, N of 2 to 6. All in an order drawn once and for all: a drift
# of the machine does not look like an effect of the wait, and every stretch of the list, and every
# shard, is like every other.

# Park and Miller's generator: its products are whole numbers in every awk.
function below(n)
{
	state = state * 16807 % 2147483647
	return state % n
}

BEGIN {
	print "# The grid of \"Living on the Edge\" (PLDI 2016), section 8.1. Made by paper.awk."
	print "#"
	print "# What the text says: one patcher activates and deactivates a call site across a line;"
	print "# the split S is 1 to 4; N executors run it in a tight loop, N is 2 to 6, not counting"
	print "# the patcher; the wait is 0 to 2400 ticks by 100; a run ends when the call was toggled"
	print "# on and off 50 million times, or with a crash by SIGILL or SIGSEGV, which is a failure;"
	print "# each N and S is run 5 times, 100 runs for each wait."
	print "#"
	print "# Where it is silent, this is what is done here. Both waits are the same. Inactive is a"
	print "# 5-byte NOP (pair call-nop). 50 million are single changes, half of them on, half off."
	print "# Executors are spread over the CPUs as far as there are any beside the patcher's; with"
	print "# more of them all CPUs are shared. Between two toggles lies a rest: without one INT3"
	print "# stands on the site nearly all the time, and hardly any tear can be seen; see --rest in"
	print "# tmax-stress(1). A rest of 0 is the literal reading."
	for (n = 2; n <= 6; n++)
		for (split_at = 1; split_at <= 4; split_at++)
			for (wait = 0; wait <= 2400; wait += 100)
				line[count++] = "tmax stress --crossing line --pair call-nop" \
					" --protocol wait --oracle crash --split " split_at \
					" --executors " n " --first-wait " wait \
					" --second-wait " wait " --rest 2000 --toggles 50000000"
	state = 2016
	for (i = count - 1; i > 0; i--) {
		j = below(i + 1)
		swap = line[i]
		line[i] = line[j]
		line[j] = swap
	}
	for (i = 0; i < count; i++)
		print line[i]
}
