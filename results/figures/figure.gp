# SPDX-License-Identifier: MIT
#
# What all figures have in common. A script sets FORMAT (svg or png), OUTPUT and height, in pixels, and
# loads this. One column of panels is as wide as a small screen, so that it can be read there; a script
# that sets wide itself has panels side by side.

if (!exists("wide")) { wide = 440.0 }
if (FORMAT eq "svg") {
	set terminal svg size wide,height font "sans,12" background "white"
} else {
	set terminal pngcairo size 2 * wide,2 * height font "sans,9" fontscale 2 linewidth 2 \
		pointscale 2 background "white"
}
# The fonts of labels, which are scaled otherwise.
normal = FORMAT eq "svg" ? ",12" : ",9"
small = FORMAT eq "svg" ? ",11" : ",8"
set output OUTPUT
set multiplot

array COLOUR[5] = [0x0072b2, 0xd55e00, 0x009e73, 0xaa4499, 0x202020]
array POINT[5] = [7, 5, 9, 13, 3]
set border 3 linecolor "#404040"
set tics out nomirror
set grid xtics ytics linecolor "#dddddd" linewidth 1
set bars small
set lmargin at screen 80.0 / wide
set rmargin at screen 1 - 18.0 / wide
unset key
set key noautotitle

# Panel p of so many pixels, below so many: set tmargin/bmargin at screen from(...)
from(pixels) = 1 - pixels / height
# place_panel: LEFT, RIGHT, TOP and BOTTOM of panel p, of so many in a row, below so many pixels.
place_panel(p, columns, below, high) = (LEFT = (440.0 * ((p - 1) % columns) + 80) / wide, \
	RIGHT = (440.0 * ((p - 1) % columns) + 422) / wide, \
	TOP = from(below + floor((p - 1) / columns) * high + 24.0), \
	BOTTOM = from(below + (floor((p - 1) / columns) + 1) * high - 42.0), 1)
panel_text(crossing) = crossing == 64 ? "line crossing (64 bytes)" \
	: crossing == 4096 ? "page crossing (4096 bytes)" \
	: crossing == 0 ? "no crossing (inside 8 bytes)" : sprintf("crossing of %d bytes", crossing)
# Numbers as everywhere else: 0.001, 30000, 1e5.
tic_text(step, decade) = decade >= -3 && decade < 5 ? sprintf("%g", step * 10.0 ** decade) \
	: sprintf("%de%d", step, decade)
# eval tics_of("y", "1 3"): at so many times each power of ten
tics_of(axis, steps) = sprintf("set %stics (); do for [d = -18 : 15] { do for [step in '%s'] \
	{ set %stics add (tic_text(int(step), d) int(step) * 10.0 ** d) } }", axis, steps, axis)

# At most so much: 1, 2 or 5 times a power of ten.
nice(x) = (power = 10.0 ** floor(log10(x)), power * (x >= 5 * power ? 5 : x >= 2 * power ? 2 : 1))

# Times of an axis: TIME ticks are one of UNIT, 0 if the rate of the TSC is not known.
set_time(ticks) = (TIME = ticks > 0 ? ticks : 1, UNIT = ticks > 0 ? "us" : "ticks", 1)

# What is told where the pointer rests on a point; it is drawn as nothing.
HOVER = "with labels hypertext point pointtype 7 pointsize 1 linecolor rgb '#ff000000'"
say(x) = x == 0 ? "0" : x >= 1e5 || x < 0.001 ? sprintf("%.1e", x) : x >= 100 ? sprintf("%.0f", x) \
	: sprintf("%.3g", x)

# An axis of waits is linear near 0, where the short ones lie, and logarithmic far from it.
knee = 300.0
scaled(x) = asinh(x / knee)
unscaled(t) = knee * sinh(t)
