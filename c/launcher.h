/* launcher.h - what the program that started this process says of it before
 * MPI_Init: Open MPI's mpirun, or Slurm's srun.
 *
 * mpirun says OMPI_COMM_WORLD_...; srun says SLURM_..., which a batch script and all
 * that it starts have too: where mpirun has said something, that counts.
 */
#ifndef EK_LAUNCHER_H
#define EK_LAUNCHER_H

#include <stdint.h>

/* The process's place among those of the program on this node, from 0; -1: not said. */
int ek_launcher_place(void);

/* How many processes of the program are on this node; 0: not said. */
int ek_launcher_places(void);

/* What the job is called, in `size` bytes, and the number of this process's world
 * in it: 1, and 2... for those that were spawned. Where nobody calls it anything it
 * has the name of the process. */
uint32_t ek_launcher_job(char *job, int size);

#endif
