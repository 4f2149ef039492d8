/* Says how the ranks are spread over the hosts, and passes a large block around the ring of all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1 << 20 };

static int block_came_from(const int *block, int source)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != source * BLOCK + i)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Comm node;
    int node_rank, node_size;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_size);

    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(name, &length);

    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int *out = malloc(BLOCK * sizeof *out), *in = malloc(BLOCK * sizeof *in);
    for (int i = 0; i < BLOCK; i++)
        out[i] = rank * BLOCK + i;
    MPI_Sendrecv(out, BLOCK, MPI_INT, next, 0, in, BLOCK, MPI_INT, previous, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);

    printf("rank %d of %d is %d of %d on %s, block %s\n", rank, size, node_rank, node_size, name,
           block_came_from(in, previous) ? "whole" : "damaged");
    free(in);
    free(out);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
