/* evenkeel.h - what a C or C++ program may ask of evenkeel.
 *
 * Link with `pkg-config --libs evenkeel` before MPI (mpicc adds MPI last by
 * itself). A program so linked is recorded without any preload.
 */
#ifndef EVENKEEL_H
#define EVENKEEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return; ek_strerror says it in words. */
enum ek_result {
	EK_OK = 0,
	EK_INACTIVE = 1, /* before MPI_Init, after MPI_Finalize, with EVENKEEL_ENABLE=0, or no room */
	EK_INVALID = 2   /* an argument that makes no sense, or one too many of its kind */
};

/* Begins a region: what the program does until the matching end is reported
 * under this name (at most 47 characters, copied). Regions nest up to 63 deep;
 * there are at most 254 different ones. For the whole process: to be called
 * from one thread. About 50 ns. */
int ek_region_begin(const char *name);

/* Ends the innermost open region. */
int ek_region_end(void);

/* Registers housekeeping that is to be done while this rank waits in MPI: under
 * EVENKEEL_WAIT=adaptive or sleep, once in a wait that can be expected to last
 * for `declared_us` microseconds yet, hook(argument) is called by the thread that
 * waits. `name` (at most 47 characters, copied) is for messages. The hook must not
 * call MPI nor leave by a jump. One that returns other than 0, or that takes
 * longer than declared for the third time, is dropped with a line on stderr; it may
 * be registered anew. To register the same hook and argument again changes what
 * was declared. At most 16. EK_INACTIVE: waits spin, so it would never be called. */
int ek_idle_hook(const char *name, int (*hook)(void *argument), void *argument, long declared_us);

/* Takes it back; EK_INVALID if it is not registered (any more). It may be running
 * in another thread for the last time. */
int ek_idle_unhook(int (*hook)(void *argument), void *argument);

/* How many cores of other ranks this one has been lent at this moment
 * (EVENKEEL_LEND), and how many it may be lent at most: for programs with threads of
 * their own. They may be taken back at any time: its threads then share the
 * rank's cores. */
int ek_lent_cores(void);
int ek_lendable_cores(void);

/* A sentence for a result; never null. */
const char *ek_strerror(int result);

#ifdef __cplusplus
}
#endif

#endif
