#include "datatype.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "convertor.h"
#include "record.h"
#include "typemap.h"

/* So many programs that a free slot is near each home. They take at most so much
 * memory, one and all. */
enum { SLOTS = 1 << EK_DATATYPE_BITS, MOST = SLOTS / 4 * 3 };
static const size_t most_memory = 64u << 20, most_memory_in_all = 512u << 20;

struct ek_datatype_slot ek_datatypes[SLOTS];
unsigned ek_datatype_furthest;
bool ek_datatype_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over changes of the table, and these: */
static int programs;
static size_t memory;
static int keyval;

/* ---- the table ----------------------------------------------------------- */

static bool insert(uintptr_t type, const struct ek_datatype *program)
{
	uint64_t home = ek_datatype_home(type);
	unsigned beyond = 0;
	if (programs == MOST || program->memory.used > most_memory_in_all - memory)
		return false;
	while (ek_datatypes[(home + beyond) % SLOTS].type)
		beyond++;
	struct ek_datatype_slot *slot = &ek_datatypes[(home + beyond) % SLOTS];
	programs++;
	memory += program->memory.used;
	if (beyond > ek_datatype_furthest)
		EK_STORE(ek_datatype_furthest, beyond);
	EK_STORE(slot->program, program);
	EK_PUBLISH(slot->type, type);
	return true;
}

/* Nobody is executing the program: the datatype is no more. */
static void remove_slot(struct ek_datatype_slot *slot)
{
	struct ek_datatype *program = (struct ek_datatype *)slot->program;
	programs--;
	memory -= program->memory.used;
	EK_STORE(slot->type, 0);
	ek_dgsp_forget(&program->memory);
	free(program);
}

/* ---- programs ------------------------------------------------------------ */

static int not_copied(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *flag)
{
	(void)type, (void)key, (void)extra, (void)value, (void)copy;
	*flag = 0;
	return MPI_SUCCESS;
}

static int destroyed(MPI_Datatype type, int key, void *value, void *extra)
{
	(void)key, (void)value, (void)extra;
	pthread_mutex_lock(&lock);
	struct ek_datatype_slot *slot = ek_datatype_slot_of(type);
	if (slot)
		remove_slot(slot);
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

/* Whether MPI just copies the bytes: that can't be done better. */
static bool contiguous(const struct ek_dgsp_run *run)
{
	return !run->type || (run->type->kind == EK_DGSP_BLOCK && run->type->size == run->extent);
}

static bool keep(MPI_Datatype type, struct ek_datatype *program)
{
	pthread_mutex_lock(&lock);
	bool kept = !ek_datatype_slot_of(type) && insert((uintptr_t)type, program);
	pthread_mutex_unlock(&lock);
	return kept;
}

void ek_datatype_compile(MPI_Datatype type)
{
	struct ek_datatype *program;
	if (!ek_datatype_open || ek_datatype_find(type) || !(program = calloc(1, sizeof *program)))
		return;
	program->memory.limit = most_memory;
	bool made = ek_typemap_program(&program->memory, type, &program->run), left = made && contiguous(&program->run);
	if (made && !left && ek_mpi.Type_set_attr(type, keyval, program) == MPI_SUCCESS && keep(type, program)) {
		ek_count(EK_FAST_TYPES, 1);
		return;
	}
	if (!left)
		ek_count(EK_FAST_TYPES_PLAIN, 1);
	ek_dgsp_forget(&program->memory);
	free(program);
}

void ek_datatype_start(void)
{
	if (!(ek.settings.fast & EK_FAST_DATATYPE) ||
	    ek_mpi.Type_create_keyval(not_copied, destroyed, &keyval, 0) != MPI_SUCCESS)
		return;
	ek_datatype_open = true;
	if (!ek_convertor_proven())
		ek_datatype_finish();
	for (int i = EK_FAST_TYPES; i <= EK_FAST_UNPACKED_BYTES; i++)
		EK_STORE(ek.rank->fast[i], 0); /* the proof is not to be counted */
}

/* What has begun goes on in the same way, so programs stay. */
void ek_datatype_finish(void)
{
	if (!ek_datatype_open)
		return;
	ek_datatype_open = false;
	ek_mpi.Type_free_keyval(&keyval);
}

/* ---- the wrappers -------------------------------------------------------- */

static void committed(MPI_Datatype type)
{
	int kept = errno;
	ek_datatype_compile(type);
	errno = kept;
}

EK_EXPORT int MPI_Type_commit(MPI_Datatype *datatype)
{
	ek_next_resolve();
	int result = ek_next.MPI_Type_commit(datatype);
	if (result == MPI_SUCCESS && ek_datatype_open)
		committed(*datatype);
	return result;
}

/* The copy of a committed datatype is committed. */
EK_EXPORT int MPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	ek_next_resolve();
	int result = ek_next.MPI_Type_dup(oldtype, newtype);
	if (result == MPI_SUCCESS && ek_datatype_open && ek_datatype_find(oldtype))
		committed(*newtype);
	return result;
}

#define FORTRAN_COMMIT(symbol)                                              \
	EK_EXPORT void symbol(MPI_Fint *datatype, MPI_Fint *ierror)         \
	{                                                                   \
		ek_next_resolve();                                          \
		EK_NEXT(symbol)(datatype, ierror);                          \
		if (ek_datatype_open && ek_succeeded(ierror))               \
			committed(ek_mpi.Type_f2c(*datatype));              \
	}
FORTRAN_COMMIT(mpi_type_commit_)
FORTRAN_COMMIT(mpi_type_commit_f08_)
EK_SPELLINGS(mpi_type_commit, MPI_TYPE_COMMIT, (MPI_Fint * datatype, MPI_Fint *ierror))

#define FORTRAN_DUP(symbol)                                                                   \
	EK_EXPORT void symbol(MPI_Fint *oldtype, MPI_Fint *newtype, MPI_Fint *ierror)         \
	{                                                                                     \
		ek_next_resolve();                                                            \
		EK_NEXT(symbol)(oldtype, newtype, ierror);                                    \
		if (ek_datatype_open && ek_succeeded(ierror) &&                               \
		    ek_datatype_find(ek_mpi.Type_f2c(*oldtype)))                              \
			committed(ek_mpi.Type_f2c(*newtype));                                 \
	}
FORTRAN_DUP(mpi_type_dup_)
FORTRAN_DUP(mpi_type_dup_f08_)
EK_SPELLINGS(mpi_type_dup, MPI_TYPE_DUP, (MPI_Fint * oldtype, MPI_Fint *newtype, MPI_Fint *ierror))
