#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ek_mpi ek_mpi;

/* MPI libraries that were brought by dlopen(RTLD_LOCAL) and so are invisible
 * to RTLD_NEXT. */
struct libraries {
	char name[8][512];
	void *handle[8];
	int count;
};

static int add_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct libraries *found = data;
	const char *base = strrchr(info->dlpi_name, '/');
	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if ((strncmp(base, "libmpi", 6) != 0 && strncmp(base, "libpmix", 7) != 0) || found->count == 8 || strlen(info->dlpi_name) >= sizeof found->name[0])
		return 0;
	strcpy(found->name[found->count++], info->dlpi_name);
	return 0;
}

/* Opened after the walk over the list: dl_iterate_phdr holds the loader's lock. */
static struct libraries find_libraries(void)
{
	struct libraries found = {.count = 0};
	dl_iterate_phdr(add_library, &found);
	for (int i = 0; i < found.count; i++)
		found.handle[i] = dlopen(found.name[i], RTLD_LAZY | RTLD_NOLOAD);
	return found;
}

static void release(const struct libraries *libraries)
{
	for (int i = 0; i < libraries->count; i++)
		if (libraries->handle[i])
			dlclose(libraries->handle[i]);
}

/* `scope` is RTLD_NEXT for functions. MPI's constants are looked up from the
 * start (RTLD_DEFAULT): the linker may have moved them into the program
 * (a copy relocation), and libmpi then uses that copy too. */
static void *look_up(void *scope, const struct libraries *loaded, const char *name)
{
	void *found = dlsym(scope, name);
	for (int i = 0; !found && i < loaded->count; i++)
		found = loaded->handle[i] ? dlsym(loaded->handle[i], name) : 0;
	return found;
}

/* Stands in for a function that no loaded library has. */
static int absent(void)
{
	fputs("evenkeel: the program called an MPI function that no loaded MPI library defines; it gets MPI_ERR_OTHER "
	      "(a linker told --as-needed leaves MPI's libraries out: put -Wl,--no-as-needed before them)\n", stderr);
	return MPI_ERR_OTHER;
}

static void resolve(void)
{
	struct libraries loaded = find_libraries();

	for (const struct ek_next_symbol *s = ek_next_symbols; s->name; s++) {
		void *found = look_up(RTLD_NEXT, &loaded, s->name);
		bool fortran = s->name[0] == 'm'; /* may still come: see ek_next_late */
		*s->place = found || fortran ? found : (void *)absent;
	}
	ek_way_plain();
#define OURS(name) *(void **)&ek_mpi.name = look_up(RTLD_NEXT, &loaded, "PMPI_" #name)
	OURS(Comm_group);
	OURS(Comm_remote_group);
	OURS(Comm_test_inter);
	OURS(Comm_rank);
	OURS(Comm_size);
	OURS(Comm_get_name);
	OURS(Topo_test);
	OURS(Cartdim_get);
	OURS(Cart_shift);
	OURS(Graph_neighbors_count);
	OURS(Graph_neighbors);
	OURS(Dist_graph_neighbors_count);
	OURS(Dist_graph_neighbors);
	OURS(Comm_set_errhandler);
	OURS(Comm_call_errhandler);
	OURS(Comm_split);
	OURS(Comm_split_type);
	OURS(Comm_free);
	OURS(Comm_dup);
	OURS(Comm_create_keyval);
	OURS(Comm_free_keyval);
	OURS(Comm_get_attr);
	OURS(Comm_set_attr);
	OURS(Group_size);
	OURS(Group_translate_ranks);
	OURS(Group_free);
	OURS(Type_size);
	OURS(Type_get_extent);
	OURS(Type_get_envelope);
	OURS(Type_size_x);
	OURS(Type_get_extent_x);
	OURS(Type_get_true_extent_x);
	OURS(Type_get_contents);
	OURS(Type_create_keyval);
	OURS(Type_free_keyval);
	OURS(Type_set_attr);
	OURS(Type_vector);
	OURS(Type_commit);
	OURS(Type_free);
	OURS(Pack);
	OURS(Unpack);
	OURS(Query_thread);
	OURS(Bcast);
	OURS(Allreduce);
	OURS(Allgather);
	OURS(Sendrecv);
	OURS(Iprobe);
	OURS(Barrier);
	OURS(Improbe);
	OURS(Mrecv);
	OURS(Get_count);
	OURS(Iallreduce);
	OURS(Test);
	OURS(Testsome);
	OURS(Wait);
	OURS(Send);
	OURS(Isend);
	OURS(Recv);
	OURS(Error_string);
	OURS(Initialized);
	OURS(Comm_f2c);
	OURS(Comm_c2f);
	OURS(Type_f2c);
	OURS(Request_c2f);
#undef OURS
	*(void **)&ek_mpi.progress = look_up(RTLD_NEXT, &loaded, "opal_progress"); /* behind ours: see wait.c */
#define CONSTANT(place, symbol) *(void **)&ek_mpi.place = look_up(RTLD_DEFAULT, &loaded, symbol)
	CONSTANT(comm_world, "ompi_mpi_comm_world");
	CONSTANT(comm_self, "ompi_mpi_comm_self");
	CONSTANT(comm_null, "ompi_mpi_comm_null");
	CONSTANT(type_null, "ompi_mpi_datatype_null");
	CONSTANT(type_byte, "ompi_mpi_byte");
	CONSTANT(type_int, "ompi_mpi_int");
	CONSTANT(type_uint64, "ompi_mpi_uint64_t");
	CONSTANT(op_min, "ompi_mpi_op_min");
	CONSTANT(op_max, "ompi_mpi_op_max");
	CONSTANT(op_bor, "ompi_mpi_op_bor");
	CONSTANT(errors_return, "ompi_mpi_errors_return");
	CONSTANT(info_null, "ompi_mpi_info_null");
	CONSTANT(request_null, "ompi_request_null");
	CONSTANT(request_empty, "ompi_request_empty");
	CONSTANT(f_status_ignore, "MPI_F_STATUS_IGNORE");
	CONSTANT(f_statuses_ignore, "MPI_F_STATUSES_IGNORE");
	CONSTANT(f_in_place, "mpi_fortran_in_place_");
	CONSTANT(f_bottom, "mpi_fortran_bottom_");
	CONSTANT(progress_yields, "opal_progress_yield_when_idle");
#undef CONSTANT
	ek_mpi.found = ek_mpi.comm_world && ek_mpi.Comm_split_type;
	release(&loaded);
}

void *ek_next_late(const char *name, void **place)
{
	struct libraries loaded = find_libraries();
	void *found = look_up(RTLD_NEXT, &loaded, name);
	release(&loaded);
	if (!found)
		return (void *)absent;
	__atomic_store_n(place, found, __ATOMIC_RELAXED);
	return found;
}

bool ek_next_is_mpis(const char *name, const void *next)
{
	struct libraries loaded = find_libraries();
	char of_mpi[64];
	Dl_info theirs, ours;
	snprintf(of_mpi, sizeof of_mpi, "%c%s", name[0] == 'M' ? 'P' : 'p', name);
	const void *found = look_up(RTLD_NEXT, &loaded, of_mpi);
	release(&loaded);
	return !next || (found && dladdr(next, &theirs) && dladdr(found, &ours) && theirs.dli_fbase == ours.dli_fbase);
}

void *ek_next_data(const char *name)
{
	struct libraries loaded = find_libraries();
	void *found = look_up(RTLD_DEFAULT, &loaded, name);
	release(&loaded);
	return found;
}

bool ek_next_resolved;

void ek_next_resolve(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, resolve);
	__atomic_store_n(&ek_next_resolved, true, __ATOMIC_RELEASE);
}
