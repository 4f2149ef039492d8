package main

import (
	"os"
	"path/filepath"
)

// variant is one way to run a program: with a library preloaded, or without.
type variant struct {
	name    string
	preload string   // path of the library, empty for none
	env     []string // more environment for the ranks, NAME=VALUE
}

// alone is the program without any library, the other half of each pair.
var alone = variant{name: "no library"}

// evenkeelName is the variant that real programs are measured with.
const evenkeelName = "evenkeel"

// allVariants are those with a library, in the order in which tables show
// them. The peers of evenkeel are a library that passes calls on and one that
// reads the clock around each call: what any tool and what any timing tool
// costs.
func allVariants(build string) []variant {
	evenkeel := filepath.Join(build, "lib", "libevenkeel.so")
	return []variant{
		{name: "wrapper that does nothing", preload: filepath.Join(build, "bench", "libwrap_nothing.so")},
		{name: "two clock reads and a ring entry", preload: filepath.Join(build, "bench", "libwrap_clock.so")},
		{name: evenkeelName, preload: evenkeel},
		{name: "evenkeel, EVENKEEL_FAST=none", preload: evenkeel, env: []string{"EVENKEEL_FAST=none"}},
		{name: "evenkeel, EVENKEEL_FAST=none EVENKEEL_TIME=all", preload: evenkeel,
			env: []string{"EVENKEEL_FAST=none", "EVENKEEL_TIME=all"}},
	}
}

// builtVariants divides the variants into those whose library is there and
// those whose library is not.
func builtVariants(build string) (built, missing []variant) {
	for _, v := range allVariants(build) {
		if _, err := os.Stat(v.preload); err != nil {
			missing = append(missing, v)
			continue
		}
		built = append(built, v)
	}
	return built, missing
}
