/* sieve.c - counts the primes below a limit with the sieve of Eratosthenes over a shared
 * array: each thread strikes out multiples in its own blocks, and takes the next prime
 * from whichever thread has it. The same program in Go: go/sieve.
 *
 *	mpirun -np 4 sieve [LIMIT [BLOCK]]
 *
 * In UPC the array would be `shared [BLOCK] char struck[LIMIT]`. Linked to libevenkeel.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mpirun then ends the other ranks. */
static void check(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "sieve: %s\n", ek_upc_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Strikes the multiples of a prime out of the thread's own blocks. */
static void strike(struct ek_upc_array *struck, int64_t prime)
{
	const int64_t block = struck->layout.block;
	char *local = struck->local;
	for (int64_t begin = 0; begin < struck->local_elements; begin += block) {
		struct ek_upc_place at = {ek_upc_mythread(struck->world), begin};
		int64_t first = ek_upc_element(&struck->layout, at), multiple = (first + prime - 1) / prime * prime;
		int64_t end = struck->local_elements - begin < block ? struck->local_elements - begin : block;
		if (multiple < prime * prime)
			multiple = prime * prime;
		for (; multiple - first < end; multiple += prime)
			local[begin + multiple - first] = 1;
	}
}

/* Adds up what the threads have left. */
static int64_t count(struct ek_upc *w, struct ek_upc_array *struck)
{
	struct ek_upc_array counts, total;
	int64_t n = 0;
	check(ek_upc_all_alloc(w, 1, ek_upc_threads(w), sizeof n, &counts));
	check(ek_upc_all_alloc(w, EK_UPC_INDEFINITE, 1, sizeof n, &total));
	ek_upc_forall (i, 2, struck->layout.elements, struck)
		n += !((char *)struck->local)[ek_upc_locate(&struck->layout, i).local];
	*(int64_t *)counts.local = n;
	check(ek_upc_all_reduce(&total, 0, &counts, 0, ek_upc_threads(w), EK_UPC_INT64, EK_UPC_ADD, EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC));
	check(ek_upc_get(&total, 0, &n));
	check(ek_upc_all_free(&counts));
	check(ek_upc_all_free(&total));
	return n;
}

int main(int argc, char **argv)
{
	const int64_t limit = argc > 1 ? atoll(argv[1]) : 1000000, block = argc > 2 ? atoll(argv[2]) : 4096;
	struct ek_upc *w;
	struct ek_upc_array struck;
	if (limit < 2 || block < 1) {
		fprintf(stderr, "usage: sieve [LIMIT [BLOCK]], a limit of 2 at least and blocks of 1 at least\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	check(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), (uint64_t)(2 * limit + (1 << 20)), &w));
	check(ek_upc_all_alloc(w, block, limit, 1, &struck));
	if (struck.local)
		memset(struck.local, 0, (size_t)struck.local_elements);
	check(ek_upc_barrier(w, 0));
	for (int64_t prime = 2; prime * prime < limit; prime++) {
		char out;
		check(ek_upc_get(&struck, prime, &out)); /* of whichever thread */
		if (!out)
			strike(&struck, prime);
		/* The next number must have been struck out before anybody asks for it. */
		check(ek_upc_barrier(w, (int)prime));
	}
	int64_t primes = count(w, &struck);
	if (ek_upc_mythread(w) == 0)
		printf("%lld primes below %lld\n", (long long)primes, (long long)limit);
	check(ek_upc_all_free(&struck));
	check(ek_upc_end(w));
	MPI_Finalize();
	return 0;
}
