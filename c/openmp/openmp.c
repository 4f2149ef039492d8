/* openmp.c - libevenkeel-openmp.so: parallel regions of OpenMP that use the cores
 * that other ranks lend (EVENKEEL_LEND).
 *
 * Code that GCC compiled begins a parallel region by a function of libgomp. Ours
 * come first and ask for as many threads more as there are cores lent at that
 * moment, unless the program itself says how many threads it wants there
 * (num_threads), or the region is inside another one. omp_get_max_threads tells the
 * most that there may ever be, for programs that have a place for each thread;
 * where one has asked that before MPI_Init, when we did not know, its teams stay as
 * they are.
 *
 * A library of its own, which is preloaded where it is wanted: a program may bring
 * several libgomps by dlopen, and a definition of ours would stand before them all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* Of libevenkeel.so: see evenkeel.h. */
extern int ek_lent_cores(void) __attribute__((weak));
extern int ek_lendable_cores(void) __attribute__((weak));

static bool sized_early; /* the program has asked for the most threads when that was not known */

/* What is defined behind us, or by a library that the caller brought with it. */
static void *behind(const char *name, void *caller)
{
	Dl_info info;
	void *found = dlsym(RTLD_NEXT, name), *library;
	if (!found && dladdr(caller, &info) && (library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD))) {
		found = dlsym(library, name);
		dlclose(library);
	}
	if (!found) {
		fprintf(stderr, "evenkeel: libevenkeel-openmp.so finds no %s behind it; start the program without it\n", name);
		abort();
	}
	return found;
}

#define NEXT(name)                                                                                        \
	({                                                                                                \
		static __typeof__(name) *next;                                                            \
		if (!__atomic_load_n(&next, __ATOMIC_RELAXED))                                            \
			__atomic_store_n(&next, (__typeof__(name) *)behind(#name, __builtin_return_address(0)), \
			                 __ATOMIC_RELAXED);                                               \
		next;                                                                                     \
	})

EXPORT int omp_get_max_threads(void);
EXPORT int omp_get_max_threads_(void);

static int own_threads(void)
{
	static int (*next)(void);
	if (!next)
		next = (int (*)(void))dlsym(RTLD_NEXT, "omp_get_max_threads");
	return next ? next() : 1;
}

/* The team of a region for which the program wants `threads`, 0: as many as usual. */
static unsigned team(unsigned threads)
{
	static int (*inside)(void);
	int lent;
	if (threads || sized_early || !ek_lent_cores || (lent = ek_lent_cores()) == 0)
		return threads;
	if (!inside)
		inside = (int (*)(void))dlsym(RTLD_NEXT, "omp_in_parallel");
	return inside && inside() ? threads : (unsigned)(own_threads() + lent);
}

int omp_get_max_threads(void)
{
	int lendable = ek_lendable_cores ? ek_lendable_cores() : 0;
	if (!lendable)
		sized_early = true;
	return own_threads() + (sized_early ? 0 : lendable);
}

int omp_get_max_threads_(void)
{
	return omp_get_max_threads();
}

typedef void body(void *);

EXPORT void GOMP_parallel(body *call, void *data, unsigned threads, unsigned flags);
void GOMP_parallel(body *call, void *data, unsigned threads, unsigned flags)
{
	NEXT(GOMP_parallel)(call, data, team(threads), flags);
}

EXPORT unsigned GOMP_parallel_reductions(body *call, void *data, unsigned threads, unsigned flags);
unsigned GOMP_parallel_reductions(body *call, void *data, unsigned threads, unsigned flags)
{
	return NEXT(GOMP_parallel_reductions)(call, data, team(threads), flags);
}

EXPORT void GOMP_parallel_sections(body *call, void *data, unsigned threads, unsigned count, unsigned flags);
void GOMP_parallel_sections(body *call, void *data, unsigned threads, unsigned count, unsigned flags)
{
	NEXT(GOMP_parallel_sections)(call, data, team(threads), count, flags);
}

/* A parallel loop of that schedule, with the size of its chunks or without. */
#define LOOP(name)                                                                                                     \
	EXPORT void name(body *call, void *data, unsigned threads, long start, long end, long step, long chunk, unsigned flags); \
	void name(body *call, void *data, unsigned threads, long start, long end, long step, long chunk, unsigned flags) \
	{                                                                                                              \
		NEXT(name)(call, data, team(threads), start, end, step, chunk, flags);                                 \
	}
#define LOOP_OF_RUNTIME(name)                                                                                \
	EXPORT void name(body *call, void *data, unsigned threads, long start, long end, long step, unsigned flags); \
	void name(body *call, void *data, unsigned threads, long start, long end, long step, unsigned flags) \
	{                                                                                                    \
		NEXT(name)(call, data, team(threads), start, end, step, flags);                              \
	}
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_OF_RUNTIME(GOMP_parallel_loop_runtime)
LOOP_OF_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_OF_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
