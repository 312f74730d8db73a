# SPDX-License-Identifier: MIT
# What the engines share: . prepare.sh
# shellcheck shell=bash

# prepare DIR ARGUMENTS... - make the folder of a campaign, with a copy of the list of cells, which an
# editor cannot change between two parts. Sets $folder, $list (its name there, or nothing) and $arguments,
# in which it stands for the list.
prepare()
{
	local given='' previous=''

	mkdir -p -- "$1"
	folder=$(realpath -- "$1")
	shift
	arguments=()
	for argument; do
		if [ "$previous" = --list ]; then
			given=$argument
			argument=./${given##*/}
		elif [[ $argument = --list=* ]]; then
			given=${argument#--list=}
			argument=--list=./${given##*/}
		fi
		previous=$argument
		arguments+=("$argument")
	done
	list=${given##*/}
	[ -n "$list" ] || return 0
	if [ -e "$folder/$list" ]; then
		if ! cmp -s -- "$given" "$folder/$list"; then
			echo "$given has changed since this campaign began: take another folder than $folder" >&2
			return 64
		fi
	else
		cp -- "$given" "$folder/"
	fi
}
