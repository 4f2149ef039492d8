package mpi

/*
#define _GNU_SOURCE
#include <dlfcn.h>
#include "calls.h"

void (*ek_tell)(const void *address);

static int ek_find_tell(void)
{
    *(void **)&ek_tell = dlsym(RTLD_DEFAULT, "ek_call_from");
    return ek_tell != 0;
}
*/
import "C"

import "evenkeel/mpi/caller"

// tells is set if evenkeel was preloaded: it is told from which places of the program the calls of
// this package come, and would take all for the package's own otherwise.
var tells bool

func findTell() { tells = C.ek_find_tell() != 0 }

// place returns the program's place that called a function of this package, for MPI calls that evenkeel
// records; 0 if nobody wants to know. up says how many functions of this package lie between the
// program and the one that calls place: none of these may be inlined. If another of evenkeel's
// packages called, it is where the program called that.
//
//go:noinline
func place(up int) C.uintptr_t {
	if !tells {
		return 0
	}
	return C.uintptr_t(caller.Program(up + 1))
}
