/* SPDX-License-Identifier: MIT */
/*
 * A page for browsers: what JSON has, and a script that draws it. Nothing is fetched.
 */
#include "probes/profile/write/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
	"<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>\n"
	"<meta name=viewport content='width=device-width, initial-scale=1'>\n"
	"<title>fastinst profile</title>\n<style>\n"
	":root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --pale: #59636e; --line: "
	"#d1d9e0; --bar: #2f7d4f; --warn: #9a5b00 }\n"
	"@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e6e8ea; --pale: "
	"#9aa4ae; --line: #394047; --bar: #4cab74; --warn: #e0a040 } }\n"
	"body { background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, "
	"sans-serif; "
	"margin: 0 auto; max-width: 70rem; padding: 1rem }\n"
	"h1 { font-size: 1.25rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem }\n"
	"dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem } dt { color: "
	"var(--pale) } dd { margin: 0 }\n"
	"table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid "
	"var(--line); padding: .25rem .4rem; text-align: left; vertical-align: top }\n"
	".number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }\n"
	".bar { background: var(--bar); height: .35rem; margin-top: .2rem } .why { color: "
	"var(--warn) } .pale { color: var(--pale) }\n"
	".name { overflow-wrap: anywhere }\n"
	"#flame { position: relative; overflow: hidden } #flame button { position: absolute; "
	"box-sizing: border-box; "
	"height: 1.5rem; border: 1px solid var(--paper); color: #14171a; font: 12px/1.3rem "
	"system-ui, "
	"sans-serif; padding: 0 .25rem; text-align: left; overflow: hidden; text-overflow: "
	"ellipsis; "
	"white-space: nowrap; cursor: pointer }\n"
	"input { font: inherit; width: 100%; box-sizing: border-box; padding: .3rem; margin: .5rem "
	"0 "
	"}\n"
	"</style>\n<h1></h1>\n<dl></dl>\n<h2>Who calls whom</h2>\n<p class=pale>Two frames deep: "
	"width is <span id=what></span>. Press one to see it alone, again for all.</p>\n<div "
	"id=flame></div>\n"
	"<p id=shown class=pale></p>\n<h2>Functions</h2>\n<input type=search aria-label='part of a "
	"name' placeholder='part of a name'>\n<table><thead><tr><th>function<th "
	"class=number>calls, 95 % interval</thead><tbody></tbody></table>\n<p id=rest "
	"class=pale></p>\n<script id=profile type=application/json>\n";

static const char tail[] =
	"</script>\n<script>\n"
	"'use strict'\n"
	"const profile = JSON.parse(document.getElementById('profile').textContent)\n"
	"const at = (query) => document.querySelector(query), MOST = 300\n"
	"const put = (parent, tag, text, name) => { const e = document.createElement(tag)\n"
	"  e.textContent = text ?? ''; if (name) e.className = name; parent.append(e); return e }\n"
	"const whole = (n) => Math.round(n).toLocaleString('en')\n"
	"const share = (n) => (100 * n).toFixed(2) + ' %'\n"
	"const q = profile.quality, called = profile.functions.filter(f => f.calls > 0)\n"
	"const timed = profile.functions.some(f => f.times?.timed > 0)\n"
	"const weight = (s) => timed ? s.seconds : s.calls\n"
	"const amount = (n) => timed ? n.toPrecision(3) + ' s' : whole(n) + ' calls'\n"
	"at('#what').textContent = timed ? 'self time' : 'calls'\n"
	"document.title = profile.program; at('h1').textContent = 'Calls in ' + "
	"profile.program\nfor (const [name, value] of [['time', q.seconds.toFixed(2) + ' s'], "
	"['functions called', "
	"whole(called.length)],\n"
	"  ['with an interval in doubt', whole(called.filter(f => f.problem).length)],\n"
	"  ['epochs', whole(q.epochs)], ['cost, own measure', share(q.cost) + ' of CPU time, "
	"budget ' "
	"+ share(q.budget)],\n"
	"  ['callers not kept', whole(q.lost)], ['functions with exits that can be seen', "
	"whole(q.exits)],\n"
	"  ['calls left without an exit', whole(q.torn)], ['calls that went on for too long to be "
	"timed', whole(q.cut)], ['functions refused', whole(q.refused)], "
	"['processes', whole(q.processes)]]) {\n"
	"  put(at('dl'), 'dt', name); put(at('dl'), 'dd', value) }\n"
	"const root = { calls: 0, below: new Map() }\n"
	"for (const s of profile.stacks) { let node = root; root.calls += weight(s)\n"
	"  for (const f of s.frames) {\n"
	"    if (!node.below.has(f)) node.below.set(f, { f, calls: 0, below: new Map(), above: "
	"node "
	"})\n"
	"    node = node.below.get(f); node.calls += weight(s) } }\n"
	"let top_ = root\n"
	"const colour = (f) => `hsl(${f * 137.5 % 360} 55% 72%)`\n"
	"const draw = () => { const flame = at('#flame'); flame.textContent = ''; let deepest = 0\n"
	"  const box = (node, left, width, row) => { if (!(width >= 0.15)) return\n"
	"    if (node.f !== undefined) { const f = profile.functions[node.f], b = put(flame, "
	"'button', "
	"f.name)\n"
	"      b.style.cssText = `left:${left}%;width:${width}%;top:${row * "
	"1.5}rem;background:${colour(node.f)}`\n"
	"      b.title = `${f.name}: ${amount(node.calls)}, ${share(node.calls / "
	"root.calls)}`\n"
	"      b.onfocus = b.onmouseenter = () => { at('#shown').textContent = b.title }\n"
	"      b.onclick = () => { top_ = top_ === node ? root : node; draw() }\n"
	"      deepest = Math.max(deepest, ++row) }\n"
	"    for (const next of [...node.below.values()].sort((a, b) => b.calls - a.calls)) {\n"
	"      const part = width * next.calls / node.calls; box(next, left, part, row); left += "
	"part "
	"} }\n"
	"  box(top_, 0, 100, 0); flame.style.height = deepest * 1.5 + 'rem' }\n"
	"draw()\n"
	"if (timed) for (const name of ['self s', 'total s']) put(at('thead tr'), 'th', name, "
	"'number')\n"
	"const bar = (f) => timed ? f.times?.self.seconds ?? 0 : f.calls\n"
	"const seconds = (f, what) => f.times?.timed > 0 ? f.times[what].seconds.toFixed(4) : ''\n"
	"const list = () => { const wish = at('input').value.toLowerCase(), body = at('tbody')\n"
	"  const found = called.filter(f => f.name.toLowerCase().includes(wish)); body.textContent "
	"= "
	"''\n"
	"  for (const f of found.slice(0, MOST)) { const row = put(body, 'tr'), cell = put(row, "
	"'td', "
	"f.name, 'name')\n"
	"    const exact = f.low === f.high, told = (n) => whole(exact ? n : n.toPrecision(3))\n"
	"    const between = exact ? 'exact' : `${told(f.low)} to ${told(f.high)}`\n"
	"    if (f.problem) put(cell, 'div', f.problem, 'why')\n"
	"    put(cell, 'div', '', 'bar').style.width = 100 * bar(f) / bar(called[0]) + '%'\n"
	"    put(put(row, 'td', told(f.calls), 'number'), 'div', between, 'pale')\n"
	"    if (f.times?.problem) put(cell, 'div', 'time: ' + f.times.problem, 'why')\n"
	"    if (timed) for (const what of ['self', 'total']) { const c = put(row, 'td', "
	"seconds(f, what), 'number')\n"
	"      if (f.times) c.title = `95 %: ${f.times[what].low.toPrecision(3)} to "
	"${f.times[what].high.toPrecision(3)} s` } }\n"
	"  at('#rest').textContent = found.length > MOST ? `${whole(found.length - MOST)} more: "
	"name "
	"a part of one.` : '' }\n"
	"at('input').oninput = list; list()\n"
	"</script>\n";

/* A name may hold what ends a script. */
static void put_json(const char *json, FILE *out)
{
	for (; *json; json++) {
		if (*json == '<')
			fputs("\\u003c", out);
		else
			fputc(*json, out);
	}
}

int write_page(const struct profile *profile, FILE *out)
{
	char *json = NULL;
	size_t len;
	FILE *memory = open_memstream(&json, &len);
	int ret = memory ? write_json(profile, memory) : -ENOMEM;

	if (memory)
		fclose(memory);
	if (!ret) {
		fputs(head, out);
		put_json(json, out);
		fputs(tail, out);
	}
	free(json);
	return ferror(out) ? -EIO : ret;
}
