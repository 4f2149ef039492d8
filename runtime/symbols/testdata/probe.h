/* probe.h - functions that print where they were called from, and what the
 * caller expects to be found there. */
#ifndef PROBE_H
#define PROBE_H

#ifdef __cplusplus
extern "C" {
#endif

/* `inlined` lists the functions into which the calling one is copied, as
 * name:line, outwards; `more` is appended to it. */
int probe(const char *file, int line, const char *function, const char *inlined, const char *more);

/* The same, and ends the process. */
void probe_last(const char *file, int line, const char *function) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#define PROBE_STRING(x) #x
#define PROBE_TEXT(x) PROBE_STRING(x)
#define PROBE(function, inlined, more) probe(__FILE__, __LINE__, function, inlined, more)
#define HERE(function) function ":" PROBE_TEXT(__LINE__)

#endif
