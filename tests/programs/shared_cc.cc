// shared_cc.cc - evenkeel.h as C++: a shared array of a struct, which each thread writes
// and the next one reads, and the sum of it. Prints "ok" on rank 0. Linked to libevenkeel.
#include <evenkeel.h>

#include <complex>
#include <cstdio>

static void check(bool right)
{
	if (!right) {
		std::fprintf(stderr, "shared_cc: %s\n", ek_upc_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static void add(void *a, const void *b)
{
	*static_cast<std::complex<double> *>(a) += *static_cast<const std::complex<double> *>(b);
}

int main(int argc, char **argv)
{
	const int64_t elements = 1000;
	ek_upc *w;
	ek_upc_array a, total;
	struct ek_upc_lock lock; // a function has that name too
	std::complex<double> v;
	MPI_Init(&argc, &argv);
	check(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 1 << 20, &w) == EK_OK);
	check(ek_upc_all_alloc(w, 7, elements, sizeof v, &a) == EK_OK);
	check(ek_upc_all_alloc(w, EK_UPC_INDEFINITE, 1, sizeof v, &total) == EK_OK);
	check(ek_upc_all_lock_alloc(w, &lock) == EK_OK);
	ek_upc_forall (i, 0, elements, &a) {
		v = {double(i), 1};
		check(ek_upc_put(&a, i, &v) == EK_OK);
	}
	check(ek_upc_barrier(w, 0) == EK_OK);
	ek_upc_forall_number (i, 0, elements, w) {
		check(ek_upc_load(&a, ek_upc_add(&a.layout, ek_upc_pointer_at(&a, 0), i), &v) == EK_OK);
		check(v == std::complex<double>(double(i), 1));
	}
	check(ek_upc_all_reduce_func(&total, 0, &a, 0, elements, add, EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC) == EK_OK);
	check(ek_upc_get(&total, 0, &v) == EK_OK && v == std::complex<double>(499500, elements));
	check(ek_upc_lock(&lock) == EK_OK && ek_upc_unlock(&lock) == EK_OK);
	check(ek_upc_all_lock_free(&lock) == EK_OK && ek_upc_all_free(&a) == EK_OK && ek_upc_all_free(&total) == EK_OK);
	if (ek_upc_mythread(w) == 0)
		std::puts("ok");
	check(ek_upc_end(w) == EK_OK);
	MPI_Finalize();
}
