"""k-means clustering of points that are spread unevenly over the ranks.

    mpirun -np 4 python3 kmeans.py [ITERATIONS]

Each rank holds the points of its own source, and sources differ: rank r has
r + 1 times as many as rank 0. All meet in an Allreduce of the sums in each
iteration, in which those with few points wait for the last rank. Prints the
mean distance of a point from its centre; the output depends on ITERATIONS and
the number of ranks alone.
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a rank has one core

import numpy as np
from mpi4py import MPI

CENTRES = 24
DIMENSIONS = 8
POINTS = 8000  # of rank 0


def own_points(rank):
    """Points around a few places that all ranks share."""
    places = np.random.default_rng(1).normal(size=(CENTRES, DIMENSIONS)) * 4
    own = np.random.default_rng([2, rank])
    count = POINTS * (rank + 1)
    return places[own.integers(CENTRES, size=count)] + own.normal(size=(count, DIMENSIONS))


def assign(points, centres):
    """The nearest centre of each point, and its distance from it."""
    squared = (
        (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
    )
    nearest = squared.argmin(axis=1)
    distance = np.sqrt(np.maximum(squared[np.arange(len(points)), nearest], 0))
    return nearest, distance


def main():
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    comm = MPI.COMM_WORLD
    points = own_points(comm.Get_rank())
    centres = np.empty((CENTRES, DIMENSIONS))
    if comm.Get_rank() == 0:
        centres[:] = points[:CENTRES]
    comm.Bcast(centres)

    for iteration in range(1, iterations + 1):
        nearest, distance = assign(points, centres)
        # Per centre: the sum of its points, how many they are, and how far off.
        mine = np.zeros((CENTRES, DIMENSIONS + 2))
        for d in range(DIMENSIONS):
            mine[:, d] = np.bincount(nearest, points[:, d], CENTRES)
        mine[:, DIMENSIONS] = np.bincount(nearest, minlength=CENTRES)
        mine[:, DIMENSIONS + 1] = np.bincount(nearest, distance, CENTRES)
        everyone = np.empty_like(mine)
        comm.Allreduce(mine, everyone)
        counts = everyone[:, DIMENSIONS]
        used = counts > 0
        centres[used] = everyone[used, :DIMENSIONS] / counts[used, None]
        if comm.Get_rank() == 0 and iteration % 20 == 0:
            mean = everyone[:, DIMENSIONS + 1].sum() / counts.sum()
            print(f"iteration {iteration:3d}  mean distance {mean:.6f}", flush=True)


if __name__ == "__main__":
    main()
