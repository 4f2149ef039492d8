/* next.h - the definitions that our wrappers forward to.
 *
 * A preload library may neither leave PMPI_* undefined (a python that brings
 * libmpi by dlopen would not start) nor be linked to libmpi (every shell would
 * load it). So each symbol is looked up when the program first calls MPI: with
 * RTLD_NEXT, so that another preloaded tool behind ours gets its turn, and
 * where that finds nothing, in the libmpi that has been loaded since.
 */
#ifndef EK_NEXT_H
#define EK_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "ek_functions.h"

struct ek_next_symbol {
	const char *name;
	void **place;
};

extern const struct ek_next_symbol ek_next_symbols[]; /* ends with a null name */

/* Fills ek_next and ek_mpi, once; safe to call from several threads. */
void ek_next_resolve(void);
extern bool ek_next_resolved; /* it has been done */

/* Looks for a definition that was not there before: a program may load Fortran's
 * library long after its first call, and MPI calls some of ours before that.
 * Returns it, or what reports that there is none. */
void *ek_next_late(const char *name, void **place);

/* Whether the next definition of that name is in the library that has the one with
 * a P before it, so that no other tool waits for its turn; or there is none yet. */
bool ek_next_is_mpis(const char *name, const void *next);

/* What a loaded library of MPI defines by that name; null if none does. */
void *ek_next_data(const char *name);

/* The next definition of a Fortran symbol. */
#define EK_NEXT(symbol)                                                                             \
	(__builtin_expect(__atomic_load_n(&ek_next.symbol, __ATOMIC_RELAXED) != 0, 1)               \
	         ? __atomic_load_n(&ek_next.symbol, __ATOMIC_RELAXED)                               \
	         : (__typeof__(ek_next.symbol))ek_next_late(#symbol, (void **)&ek_next.symbol))

/* What evenkeel itself asks of MPI, past all tools. */
struct ek_mpi {
	int (*Comm_group)(MPI_Comm, MPI_Group *);
	int (*Comm_remote_group)(MPI_Comm, MPI_Group *);
	int (*Comm_test_inter)(MPI_Comm, int *);
	int (*Comm_rank)(MPI_Comm, int *);
	int (*Comm_size)(MPI_Comm, int *);
	int (*Comm_get_name)(MPI_Comm, char *, int *);
	int (*Topo_test)(MPI_Comm, int *);
	int (*Cartdim_get)(MPI_Comm, int *);
	int (*Cart_shift)(MPI_Comm, int, int, int *, int *);
	int (*Graph_neighbors_count)(MPI_Comm, int, int *);
	int (*Graph_neighbors)(MPI_Comm, int, int, int[]);
	int (*Dist_graph_neighbors_count)(MPI_Comm, int *, int *, int *);
	int (*Dist_graph_neighbors)(MPI_Comm, int, int[], int[], int, int[], int[]);
	int (*Comm_set_errhandler)(MPI_Comm, MPI_Errhandler);
	int (*Comm_call_errhandler)(MPI_Comm, int);
	int (*Comm_split)(MPI_Comm, int, int, MPI_Comm *);
	int (*Comm_split_type)(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
	int (*Comm_free)(MPI_Comm *);
	int (*Comm_dup)(MPI_Comm, MPI_Comm *);
	int (*Comm_create_keyval)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *);
	int (*Comm_free_keyval)(int *);
	int (*Comm_get_attr)(MPI_Comm, int, void *, int *);
	int (*Comm_set_attr)(MPI_Comm, int, void *);
	int (*Group_size)(MPI_Group, int *);
	int (*Group_translate_ranks)(MPI_Group, int, const int[], MPI_Group, int[]);
	int (*Group_free)(MPI_Group *);
	int (*Type_size)(MPI_Datatype, int *);
	int (*Type_get_extent)(MPI_Datatype, MPI_Aint *, MPI_Aint *);
	int (*Type_get_envelope)(MPI_Datatype, int *, int *, int *, int *);
	int (*Type_size_x)(MPI_Datatype, MPI_Count *);
	int (*Type_get_extent_x)(MPI_Datatype, MPI_Count *, MPI_Count *);
	int (*Type_get_true_extent_x)(MPI_Datatype, MPI_Count *, MPI_Count *);
	int (*Type_get_contents)(MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]);
	int (*Type_create_keyval)(MPI_Type_copy_attr_function *, MPI_Type_delete_attr_function *, int *, void *);
	int (*Type_free_keyval)(int *);
	int (*Type_set_attr)(MPI_Datatype, int, void *);
	int (*Type_vector)(int, int, int, MPI_Datatype, MPI_Datatype *);
	int (*Type_commit)(MPI_Datatype *);
	int (*Type_free)(MPI_Datatype *);
	int (*Pack)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
	int (*Unpack)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
	int (*Query_thread)(int *);
	int (*Bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
	int (*Allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
	int (*Sendrecv)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	int (*Iprobe)(int, int, MPI_Comm, int *, MPI_Status *);
	int (*Barrier)(MPI_Comm);
	int (*Improbe)(int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *);
	int (*Mrecv)(void *, int, MPI_Datatype, MPI_Message *, MPI_Status *);
	int (*Get_count)(const MPI_Status *, MPI_Datatype, int *);
	int (*Iallreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
	int (*Test)(MPI_Request *, int *, MPI_Status *);
	int (*Testsome)(int, MPI_Request *, int *, int *, MPI_Status *);
	int (*Wait)(MPI_Request *, MPI_Status *);
	int (*Send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
	int (*Isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*Recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	int (*Error_string)(int, char *, int *);
	int (*Initialized)(int *);
	MPI_Comm (*Comm_f2c)(MPI_Fint);
	MPI_Fint (*Comm_c2f)(MPI_Comm);
	MPI_Datatype (*Type_f2c)(MPI_Fint);
	MPI_Fint (*Request_c2f)(MPI_Request);
	/* Addresses of MPI's constants, which mpi.h names as data symbols. */
	MPI_Comm comm_world, comm_self, comm_null;
	MPI_Datatype type_null, type_byte, type_int, type_uint64;
	MPI_Request request_null, request_empty;
	MPI_Op op_min, op_max, op_bor;
	MPI_Errhandler errors_return;
	MPI_Info info_null;
	MPI_Fint **f_status_ignore, **f_statuses_ignore; /* variables: MPI_Init may set them */
	void *f_in_place; /* Fortran's MPI_IN_PLACE, */
	void *f_bottom;   /* and its MPI_BOTTOM */
	/* Open MPI's own, which it exports: null elsewhere. */
	void (*progress)(void);           /* completes what can be completed */
	bool *progress_yields;      /* whether that gives up the processor when there is nothing to do */
	bool found; /* a libmpi is loaded */
};

extern struct ek_mpi ek_mpi;

/* The spellings of a Fortran function besides mpi_x_ (mpif.h, `use mpi`). */
#define EK_SPELLINGS(lower, upper, parameters)                                  \
	EK_EXPORT void lower parameters __attribute__((alias(#lower "_")));     \
	EK_EXPORT void lower##__ parameters __attribute__((alias(#lower "_"))); \
	EK_EXPORT void upper parameters __attribute__((alias(#lower "_")));

/* A buffer that Fortran names, as C does. */
static inline void *ek_buffer_f(void *buffer)
{
	if (__builtin_expect(buffer == ek_mpi.f_bottom, 0))
		return MPI_BOTTOM;
	return buffer == ek_mpi.f_in_place ? MPI_IN_PLACE : buffer;
}

#endif
