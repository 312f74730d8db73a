# SPDX-License-Identifier: MIT
# Makes a shell's completion of the tables of options.
#
# usage: PROGRAM completion | awk -v file=PROGRAM|_PROGRAM -f completion.awk
#	file	PROGRAM: for bash; _PROGRAM: for zsh. As the shells want them called
#
# Fields of a line, apart by tabs: command, option, argument, words, help. Without a command it
# names one, and tells what it does; without an option it is of operands.
BEGIN {
	FS = OFS = "\t"
	quote = "'"
	program = file
	sub(/^_/, "", program)
}

# What an argument is called tells whether it is a file.
function files(argument)
{
	return argument ~ /FILE|DIR|FOLDER|DB|JOURNAL|EVIDENCE|PREFIX|PROGRAM/
}

# A text in zsh's specifications, inside single quotes.
function plain(text)
{
	gsub(/\\/, "\\\\", text)
	gsub(/\[/, "\\[", text)
	gsub(/\]/, "\\]", text)
	gsub(/:/, "\\:", text)
	gsub(quote, quote "\\" quote quote, text)
	return text
}

function zsh_action(argument, words)
{
	if (words != "")
		return ":" plain(argument) ":(" words ")"
	return ":" plain(argument) ":" (files(argument) ? "_files" : " ")
}

$1 == "" {
	name[++commands] = $2
	about[$2] = $5
	next
}

# Help names the default once more. What operands are called, and options in front, are no words.
function once(words,   n, i, word, seen, all)
{
	n = split(words, word, " ")
	for (i = 1; i <= n; i++)
		if (word[i] ~ /^[a-z0-9]/ && !seen[word[i]]++)
			all = all (all == "" ? "" : " ") word[i]
	return all
}

# An action of a command, such as "fleet report", is completed like a command.
$1 ~ / / && !($1 in actions_of) {
	action[++actions] = $1
	actions_of[$1] = $1
	sub(/ .*/, "", actions_of[$1])
	has_actions[actions_of[$1]] = 1
}

# A value that may be left out is not a word of its own.
{
	$4 = once($4)
	if ($3 ~ /^\[=/)
		$3 = ""
}

$2 == "" {
	operands[$1] = zsh_action($3, $4)
	operand_words[$1] = $4
	operand_files[$1] = files($3)
	next
}

{
	options[$1] = options[$1] " " $2
	specs[$1] = specs[$1] " \\\n\t\t\t" quote $2 "[" plain($5) "]" ($3 == "" ? "" : zsh_action($3, $4)) quote
	if ($3 == "")
		next
	if ($1 in actions_of)
		next
	reply = $4 != "" ? "words=" quote $4 quote : files($3) ? "files=1" : ":"
	values = values "\t" $1 ":" $2 ") " reply "; options= ;;\n"
}

function bash(   i, c, all)
{
	for (i = 1; i <= commands; i++)
		all = all name[i] " "
	print "# bash completion of " program ", made of its tables of options"
	print "_" program "()\n{"
	print "\tlocal cur=${COMP_WORDS[COMP_CWORD]} options= words= files="
	print ""
	print "\tif [ \"$COMP_CWORD\" = 1 ] || [ \"$COMP_CWORD:${COMP_WORDS[1]}\" = 2:help ]; then"
	print "\t\toptions='--help --version' words='" all "'"
	print "\t\t[ \"$COMP_CWORD\" = 2 ] || words+=help"
	print "\tfi"
	print "\tcase ${COMP_WORDS[1]} in"
	for (i = 1; i <= commands; i++) {
		c = name[i]
		printf "\t%s) options='%s --help' words='%s' files=%s ;;\n", c, substr(options[c], 2),
			operand_words[c], operand_files[c] && !has_actions[c] ? 1 : ""
	}
	print "\tesac"
	if (actions) {
		print "\t[ \"$COMP_CWORD\" -le 2 ] || case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in"
		for (i = 1; i <= actions; i++)
			printf "\t\"%s\") options='%s --help' words= files=1 ;;\n", action[i],
				substr(options[action[i]], 2)
		print "\tesac"
	}
	print "\tcase ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in"
	printf "%s", values
	print "\tesac"
	print "\tCOMPREPLY=()"
	print "\tcase $cur in"
	print "\t-*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\") ;;"
	print "\t*)"
	print "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")"
	print "\t\tif [ -n \"$files\" ]; then"
	print "\t\t\tcompopt -o filenames 2>/dev/null"
	print "\t\t\tmapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$cur\")"
	print "\t\tfi ;;"
	print "\tesac\n}"
	print "complete -F _" program " " program
}

function zsh_case(c, pattern, which)
{
	gsub(/ /, "\\ ", pattern)
	printf "\t%s)\n\t\t_arguments%s \\\n\t\t\t'--help[print its options]'", pattern, specs[c]
	if (c in operands)
		printf " \\\n\t\t\t%s%s%s%s", quote, which, operands[c], quote
	print "\n\t\t;;"
}

function zsh(   i)
{
	print "#compdef " program
	print "# Made of the tables of options of " program "."
	print "_" program "()\n{"
	print "\tlocal -a commands"
	print "\tcommands=("
	for (i = 1; i <= commands; i++)
		print "\t\t" quote name[i] ":" plain(about[name[i]]) quote
	print "\t\t'help:the options of a command'"
	print "\t)"
	print "\tif (( CURRENT == 2 )) || [[ $CURRENT$words[2] == 3help ]]; then"
	print "\t\t_describe command commands"
	print "\t\treturn"
	print "\tfi"
	print "\tshift words"
	print "\t(( CURRENT-- ))"
	print "\tcase \"$words[1]${${words[2,CURRENT-1]}:+ $words[2]}\" in"
	for (i = 1; i <= actions; i++)
		zsh_case(action[i], action[i], "*")
	for (i = 1; i <= commands; i++)
		zsh_case(name[i], name[i] "*", has_actions[name[i]] ? "1" : "*")
	print "\tesac\n}"
	print "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_" program " \"$@\"\nfi"
}

END {
	if (!commands)
		exit 1
	if (file != program)
		zsh()
	else
		bash()
}
