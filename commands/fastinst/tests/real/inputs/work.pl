# SPDX-License-Identifier: MIT
# What "measure" has perl do: calls, strings, hashes, sorting, patterns, closures.
{
	use strict;
	use integer;

	my $state = 1;
	my $draw = sub {
		$state = ($state * 1103515245 + 12345) & 0x7fffffff;
		return ($state >> 16) % $_[0];
	};
	my $fib;
	$fib = sub { $_[0] < 2 ? $_[0] : $fib->($_[0] - 1) + $fib->($_[0] - 2) };
	print $fib->(20), "\n";
	undef $fib;

	my @words = map { sprintf "%x-%d", $draw->(65536), $_ } 1 .. 50000;
	my %sum;
	for my $word (@words) {
		$sum{ substr $1, 0, 2 } += length $word if $word =~ /^([0-9a-f]+)-/;
	}
	print join(" ", map { "$_=$sum{$_}" } sort keys %sum), "\n";

	my @sorted = sort { length $a <=> length $b || $a cmp $b } @words;
	print "$sorted[0] $sorted[-1]\n";
	my $text = join " ", @sorted;
	my $n = () = $text =~ /\b(?:[0-9]+|[a-f]+)-/g;
	(my $other = $text) =~ s/(\d)(\d)/$2$1/g;
	print $n, " ", length $other, " ", unpack("%32C*", $other), "\n";
}
