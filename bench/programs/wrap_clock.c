/* wrap_clock.c - a preload library that reads the clock before and after each
 * call and writes what it saw into a ring: the least that a tool which times
 * every call has to do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { RING_EVENTS = 8192 };

struct event {
	uint64_t stamp, enter, leave, site, function, reserved[3];
};

static struct event ring[RING_EVENTS];
static uint64_t head;

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A reader may follow the ring, so the stamp is stored last, with release. */
static inline void write_event(uint64_t function, uint64_t enter, void *site)
{
	struct event *e = &ring[head % RING_EVENTS];

	e->enter = enter;
	e->leave = now();
	e->site = (uintptr_t)site;
	e->function = function;
	__atomic_store_n(&e->stamp, ++head, __ATOMIC_RELEASE);
}

#define WRAP(number, function, parameters, arguments)                             \
	int function parameters                                                   \
	{                                                                         \
		FIND_NEXT(function, parameters)                                   \
		uint64_t enter = now();                                           \
		int error = next arguments;                                       \
		write_event(number, enter, __builtin_return_address(0));          \
		return error;                                                     \
	}

#include "wrap.h"
