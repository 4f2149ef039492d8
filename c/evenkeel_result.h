/* evenkeel_result.h - what the functions of evenkeel.h return. */
#ifndef EVENKEEL_RESULT_H
#define EVENKEEL_RESULT_H

/* What the functions return; ek_strerror says it in words. */
enum ek_result {
	EK_OK = 0,
	EK_INACTIVE = 1, /* before MPI_Init, after MPI_Finalize, with EVENKEEL_ENABLE=0, or no room; of a hook: waits spin */
	/* Of partitions and split jobs. The calls that are collective return the same
	 * on all ranks, whichever rank it went wrong on. */
	EK_REFUSED = 2,     /* arguments that make no sense, or differ between ranks, or one too many of their kind */
	EK_NO_MEMORY = 3,   /* on some rank; nothing has changed */
	EK_HOOK_FAILED = 4, /* a function of the program's said so; nothing has changed */
	EK_NO_HISTORY = 5,  /* it is not known when the ranks came to the end of the cycle */
	EK_MPI_FAILED = 6   /* MPI returned an error */
};

/* Of shared objects (evenkeel_shared.h); ek_upc_error says which object and
 * thread. Nothing was written or read. */
enum ek_upc_result {
	EK_UPC_LAYOUT = 64, /* threads, block, elements or bytes of an array that can't be */
	EK_UPC_RANGE,       /* elements that the array has not, or a thread that there is not */
	EK_UPC_POINTER,     /* a pointer to none of the elements, or two into different arrays */
	EK_UPC_TYPE,        /* the elements are of another size, or the object is of another kind */
	EK_UPC_NO_OBJECT,   /* there never was such an object */
	EK_UPC_FREED,       /* the object was freed before, or let go of */
	EK_UPC_NO_MEMORY,   /* there is no room in the shared heap, or in the directory */
	EK_UPC_HELD,        /* the lock is held already */
	EK_UPC_NOT_HELD,    /* the thread does not hold the lock */
	EK_UPC_UNEQUAL,     /* the threads gave a collective call different arguments, or one of them failed in it */
	EK_UPC_BARRIER,     /* notify, wait or something collective in the wrong order, or different values at a barrier */
	EK_UPC_OPERATION,   /* no such operation, type or flag */
	EK_UPC_ENDED,       /* the world has ended, or never began */
	EK_UPC_LOST         /* a thread died that held the lock, or waited for it: nobody gets it any more */
};

#endif
