# SPDX-License-Identifier: MIT
#
# Protocols: tears per change against what a change costs; the frontier.
#
#   gnuplot -d -c protocols.gp FORMAT OUTPUT DATA
#
# FORMAT is svg or png. DATA has rows: name, microseconds of a change, tears per change or the bound on them,
# whether some tore (0 or 1), whether it is at the frontier.

FORMAT = ARG1; OUTPUT = ARG2; DATA = ARG3
wide = 880.0; height = 420.0
load ARG0[1 : strlen(ARG0) - strlen("protocols.gp")] . "figure.gp"

stats DATA using 2 name "X" nooutput
stats DATA using 3 name "Y" nooutput
set logscale xy
set xrange [X_min * 0.6 : X_max * 3]
set yrange [Y_min * 0.4 : (Y_max * 2.5 < 1 ? Y_max * 2.5 : 1)]
eval tics_of("x", "1")
eval tics_of("y", "1")
set tmargin at screen from(14.0)
set bmargin at screen from(height - 58.0)
set xlabel "a change takes (us)" offset 0,0.3
set ylabel "tears per change, or the bound on them"
say(x) = x >= 100 ? sprintf("%.0f", x) : x < 0.001 ? sprintf("%.1e", x) : sprintf("%.3g", x)
told(name, us, p, torn) = sprintf("%s: %s%s tears per change, which takes %s us", name, \
	torn == 1 ? "" : "none tore, below ", say(p), say(us))
of(value, torn, want) = torn == want ? value : NaN
plot DATA using ($5 == 1 ? $2 : NaN):3 with points pointtype 6 pointsize 1.8 linewidth 1.4 linecolor rgb COLOUR[3], \
	DATA using 2:(of($3, $4, 1)) with points pointtype 7 pointsize 0.7 linecolor rgb COLOUR[2], \
	DATA using 2:(of($3, $4, 0)) with points pointtype 11 pointsize 0.8 linecolor rgb COLOUR[1], \
	DATA every 2 using 2:3:1 with labels offset 1,0.4 left font small noenhanced, \
	DATA every 2::1 using 2:3:1 with labels offset 1,-0.5 left font small noenhanced, \
	DATA using 2:3:(told(strcol(1), $2, $3, $4)) with labels hypertext point pointtype 7 pointsize 1 \
		linecolor rgb "#ff000000"
unset multiplot
unset output
