package gmac

import "golang.org/x/sys/cpu"

// fast says whether hash can be called.
var fast = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VPCLMULQDQ

// hash takes so many chunks into a GHASH sum.
//
//go:noescape
func hash(sum *[block]byte, powers *[chunk]byte, data *byte, chunks int)
