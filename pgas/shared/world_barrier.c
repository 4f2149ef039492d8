/* The world's barrier: see world_barrier.h. */
#define _GNU_SOURCE
#include "world_barrier.h"

#include <dlfcn.h>

static const struct ek_own_binding *own;

__attribute__((constructor)) static void find(void)
{
	own = dlsym(RTLD_DEFAULT, "ek_own_binding");
}

struct ek_shared_barrier *ek_shared_barrier_new(MPI_Comm comm)
{
	struct ek_shared_barrier *b = calloc(1, sizeof *b);
	if (b)
		b->comm = comm;
	return b;
}

static void begin(const struct ek_shared_barrier *b, struct ek_shared_caller by)
{
	if (by.function >= 0)
		own->begin(by.function, by.site, b->comm, MPI_PROC_NULL);
}

static void end(struct ek_shared_caller by)
{
	if (by.function >= 0)
		own->end();
}

static int notify(struct ek_shared_barrier *b, uint64_t value)
{
	b->sent[0] = value;
	b->sent[1] = ~value;
	return MPI_Iallreduce(b->sent, b->values, 2, MPI_UINT64_T, MPI_MAX, b->comm, &b->request);
}

int ek_shared_notify(struct ek_shared_barrier *b, uint64_t value, struct ek_shared_caller by)
{
	begin(b, by);
	int code = notify(b, value);
	if (by.function >= 0)
		b->notified = own->operation();
	end(by);
	return code;
}

int ek_shared_wait(struct ek_shared_barrier *b, struct ek_shared_caller by)
{
	begin(b, by);
	if (by.function >= 0)
		own->join(b->notified);
	int code = MPI_Wait(&b->request, MPI_STATUS_IGNORE);
	end(by);
	return code;
}

int ek_shared_barrier(struct ek_shared_barrier *b, uint64_t value, struct ek_shared_caller by)
{
	begin(b, by);
	int code = notify(b, value);
	if (code == MPI_SUCCESS)
		code = MPI_Wait(&b->request, MPI_STATUS_IGNORE);
	end(by);
	return code;
}
