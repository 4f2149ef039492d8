/* wrap_nothing.c - a preload library that passes each call on: what standing
 * between a program and MPI costs by itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define WRAP(number, function, parameters, arguments)                             \
	int function parameters                                                   \
	{                                                                         \
		FIND_NEXT(function, parameters)                                   \
		return next arguments;                                            \
	}

#include "wrap.h"
