/* evenkeel_result.h - what the functions of evenkeel.h return. */
#ifndef EVENKEEL_RESULT_H
#define EVENKEEL_RESULT_H

/* What the functions return; ek_strerror says it in words. */
enum ek_result {
	EK_OK = 0,
	EK_INACTIVE = 1, /* before MPI_Init, after MPI_Finalize, with EVENKEEL_ENABLE=0, or no room */
	/* Of partitions and split jobs. The calls that are collective return the same
	 * on all ranks, whichever rank it went wrong on. */
	EK_REFUSED = 2,     /* arguments that make no sense, or differ between ranks, or one too many of their kind */
	EK_NO_MEMORY = 3,   /* on some rank; nothing has changed */
	EK_HOOK_FAILED = 4, /* a function of the program's said so; nothing has changed */
	EK_NO_HISTORY = 5,  /* it is not known when the ranks came to the end of the cycle */
	EK_MPI_FAILED = 6   /* MPI returned an error */
};

#endif
