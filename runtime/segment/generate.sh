#!/bin/sh
# Makes the Go types of the node segment from c/segment.h, on stdout, with
# Go's spelling of names.
set -eu
cd "$(dirname "$0")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
go tool cgo -objdir "$made" -godefs -- -I../../c layout_cgo.go |
	sed -e 's,^// cgo .*-godefs.*,// Made by generate.sh from c/segment.h.,' \
		-e 's/\(Clock\|clock\)_\(anchor\|sync\)/\1_\2/' \
		-e 's/_Ctype_struct_ek_clock_anchor/ClockAnchor/' \
		-e 's/_Ctype_struct_ek_clock_sync/ClockSync/' \
		-e 's/\(\b[A-Z][a-z]*\)_\([a-z]\)/\1\u\2/g' -e 's/_\([a-z]\)/\u\1/g' |
	gofmt
