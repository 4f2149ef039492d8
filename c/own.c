#include "own.h"

#include <string.h>

#include "own_binding.h"

void ek_own_begin(struct ek_own *own, struct ek_caller by, uint64_t handle, int rank, uintptr_t frame)
{
	own->begun = handle != EK_NO_HANDLE &&
	             ek_begin(&own->call, by.function, ek_collective[by.function], handle, rank, by.site, frame);
}

void ek_own_end(struct ek_own *own)
{
	if (!own->begun)
		return;
	if (ek_leave(&own->call))
		ek_record(&own->call, 0, 0);
	ek_end(&own->call);
}

/* ---- for Go's functions: own_binding.h --------------------------------------- */

/* What the thread has open, and how many deep. */
static __thread struct {
	struct ek_own own;
	unsigned depth;
} bound __attribute__((tls_model("initial-exec")));

static int function(const char *name)
{
	for (int i = 0; i < EK_FUNCTIONS; i++)
		if (ek_own_names[i] && strcmp(ek_own_names[i], name) == 0)
			return i;
	return -1;
}

static void begin(int function, uintptr_t site, MPI_Comm comm, int rank)
{
	if (bound.depth++ > 0)
		return;
	ek_own_begin(&bound.own, (struct ek_caller){site, (uint16_t)function}, EK_C_KEY(comm), rank, EK_FRAME);
	/* What is called meanwhile comes by ways of its own into C, and may begin no deeper on the stack. */
	if (bound.own.begun)
		ek_self.frame = UINTPTR_MAX;
}

static void end(void)
{
	if (--bound.depth == 0)
		ek_own_end(&bound.own);
}

static struct ek_own_operation operation(void)
{
	const struct ek_call *call = &bound.own.call;
	return bound.own.begun ? (struct ek_own_operation){call->comm, call->sequence} : (struct ek_own_operation){0, 0};
}

static void join(struct ek_own_operation operation)
{
	if (bound.own.begun && operation.comm)
		ek_join(&bound.own.call, operation.comm, operation.sequence);
}

EK_EXPORT const struct ek_own_binding ek_own_binding = {
	.size = sizeof ek_own_binding, .function = function, .begin = begin, .end = end, .operation = operation, .join = join,
};
