#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Pages are short: what a user reads has 20,000 words together, 2,500 a page, 90 a paragraph, and tells no history; a page of the
# laboratory has 1,200, a question, a method and an answer, and is installed once. Words are those of wc.
set -euo pipefail
export LC_ALL=C

top=$(realpath "${srcdir:-.}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# paragraphs PAGE - of each paragraph and list item: its first line and how many words it has. Tables, code and comments are none.
paragraphs()
{
	awk '
		function finish() { if (words) print from, words; words = 0 }
		/^```/ { finish(); fenced = !fenced; next }
		fenced || /^    / || /^\|/ || /^<!--/ || /^#/ || /^!\[/ || NF == 0 { finish(); next }
		/^([-*]|[0-9]+\.) / { finish() }
		{ if (!words) from = NR; words += NF }
		END { finish() }' "$1"
}

# faults FOLDER - what is too long, or missing, line by line
faults()
{
	local page words listed sum=0

	for page in "$1"/README.md "$1"/docs/*.md; do
		words=$(wc -w <"$page") sum=$((sum + words))
		[ "$words" -le 2500 ] || echo "$page has $words words, more than 2500"
		paragraphs "$page" | awk -v page="$page" '$2 > 90 { print page ":" $1 ": a paragraph of " $2 " words, more than 90" }'
		grep -nHoiE '\b(since then|an earlier (version|form)|no longer|used to be|was once)\b' "$page" || true
	done
	[ "$sum" -le 20000 ] || echo "the pages for users have $sum words, more than 20000"
	for page in "$1"/docs/lab/*.md; do
		words=$(wc -w <"$page")
		[ "$words" -le 1200 ] || echo "$page has $words words, more than 1200"
		listed=$(grep -cwF "docs/lab/${page##*/}" "$1/docs/local.mk" || true)
		[ "$listed" = 1 ] || echo "$page is listed $listed times in docs/local.mk"
		[ "${page##*/}" = README.md ] && continue
		grep -qE '\b20[0-9]{2}\b' "$page" || echo "$page has no date"
		for part in Question Method Answer; do
			grep -q "^\*\*$part\.\*\* " "$page" || echo "$page has no $part"
		done
	done
}

# --- damaged copies are seen ---

# sees WORDS FILE TEXT - a copy with this text at the end of that file
sees()
{
	rm -rf "$dir/copy"
	mkdir -p "$dir/copy/docs/lab"
	cp "$top/README.md" "$dir/copy"
	cp "$top"/docs/*.md "$top/docs/local.mk" "$dir/copy/docs"
	cp "$top"/docs/lab/*.md "$dir/copy/docs/lab"
	chmod -R u+w "$dir/copy"
	printf '\n%s\n' "$3" >>"$dir/copy/$2"
	faults "$dir/copy" >"$dir/faults"
	grep -q -- "$1" "$dir/faults" || {
		echo "FAILED: not seen: $1"
		exit 1
	}
}

words() # NUMBER
{
	printf 'word %.0s' $(seq "$1")
}

sees 'a paragraph of 91 words' docs/start.md "$(words 91)"
sees 'a paragraph of 92 words' docs/start.md "- $(words 91)"
sees 'start.md has .* more than 2500' docs/start.md "$(words 2500)"
sees 'have .* words, more than 20000' docs/start.md "$(words 20000)"
sees 'tail.md has .* more than 1200' docs/lab/tail.md "$(words 1200)"
sees 'short.md has no date' docs/lab/short.md '**Question.** Why?'
sees 'short.md has no Answer' docs/lab/short.md '**Question.** Why?'
sees 'tail.md is listed 2 times' docs/local.mk 'docs/lab/tail.md'
sees 'short.md is listed 0 times' docs/lab/short.md '**Question.** Why?'
sees 'since then' docs/start.md 'It is so since then.'

faults "$top" >"$dir/faults"
cat "$dir/faults"
[ ! -s "$dir/faults" ]
