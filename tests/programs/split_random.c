/* split_random.c - jobs that are split in many ways: the results are those of one
 * rank that computes all, bit for bit.
 *
 *	mpirun -np 4 split_random SEED JOBS
 *
 * Units cost differently much; threads, parts, the relation between spread and
 * tasks, and who cuts them, change from job to job; now and then the program's
 * function fails on one rank. Each unit is run once on one rank. Last come many jobs whose
 * lists end while all claim from them. Prints how many jobs were checked, how many parts were
 * claimed from other ranks, and how many jobs failed as they were to.
 */
#include <evenkeel.h>
#include <math.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 2000, SMALL_JOBS = 400 };

struct result {
	double value;
	int64_t unit;
};

static int rank, ranks;
static int64_t failing_unit = -1;
static atomic_int times[UNITS]; /* that a unit was run on this rank */

static void expect(int is_so, const char *what, int64_t number)
{
	if (is_so)
		return;
	fprintf(stderr, "rank %d: %s (%lld): %s\n", rank, what, (long long)number, ek_error_text());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint64_t state;
static uint64_t draw(uint64_t below)
{
	uint64_t x = state++ * 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return (x >> 33) % below;
}

/* Longer for some units than for others. */
static struct result compute(int64_t unit)
{
	double x = (double)unit * 0.7 + 1;
	for (int64_t i = 0; i < 100 + unit % 97 * 40; i++)
		x = sqrt(x * x + 1.0 / (double)(i + 1));
	return (struct result){x, unit};
}

static int run(void *context, int64_t first, int64_t count, void *results)
{
	struct result *r = results;
	expect(context == &state, "the context", first);
	for (int64_t i = 0; i < count; i++) {
		atomic_fetch_add(&times[first + i], 1);
		if (first + i == failing_unit)
			return 13;
		r[i] = compute(first + i);
	}
	return 0;
}

/* Into parts of unequal size. */
static int cut(void *context, int64_t first, int64_t count, int parts, int64_t *end)
{
	(void)context;
	for (int i = 0; i < parts; i++)
		end[i] = first + (int64_t)((double)count * (i + 1) / parts * (i + 1) / parts);
	return 0;
}

/* Of a job that failed some units were not run at all. */
static void check_times(int64_t work, int least)
{
	static int here[UNITS], all[UNITS];
	for (int64_t i = 0; i < work; i++)
		here[i] = atomic_exchange(&times[i], 0);
	MPI_Allreduce(here, all, (int)work, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int64_t i = 0; i < work; i++)
		expect(all[i] >= least && all[i] <= 1, all[i] > 1 ? "a unit was run twice" : "a unit was not run", i);
}

static int hardly_anything(void *context, int64_t first, int64_t count, void *results)
{
	(void)context;
	for (int64_t i = 0; i < count; i++) {
		atomic_fetch_add(&times[first + i], 1);
		((char *)results)[i] = (char)(first + i);
	}
	return 0;
}

static void small_jobs(void)
{
	char results[UNITS];
	ek_job *job;
	expect(ek_job_create(MPI_COMM_WORLD, &(struct ek_job_options){.parts = 2, .threads = 3}, &job) == EK_OK, "ek_job_create", 0);
	for (int i = 0; i < SMALL_JOBS; i++) {
		expect(ek_job_run(job, 2 * ranks, hardly_anything, 0, results, 1) == EK_OK, "a small job", i);
		check_times(2 * ranks, 1);
		for (int k = 0; k < 2 * ranks; k++)
			expect(results[k] == (char)k, "a result of a small job", k);
	}
	expect(ek_job_free(&job) == EK_OK, "ek_job_free", 0);
}

int main(int argc, char **argv)
{
	int jobs = argc > 2 ? atoi(argv[2]) : 20, failed = 0;
	int64_t claimed_in_all = 0, checked = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	state = argc > 1 ? strtoull(argv[1], 0, 10) << 20 : 0;
	for (int j = 0; j < jobs; j++) {
		static const double table[] = {0, 1, 0.5, 2, 1, 5};
		struct ek_job_options o = {.parts = 1 + (int)draw(20), .threads = (int)draw(4), .slope = (double)draw(3), .most = 4};
		ek_job *job;
		if (draw(2))
			o.cut = cut;
		if (draw(3) == 0) {
			o.table = table;
			o.points = 3;
		}
		expect(ek_job_create(MPI_COMM_WORLD, draw(4) ? &o : 0, &job) == EK_OK, "ek_job_create", j);
		for (int again = 0; again < 3; again++) {
			int64_t work = 1 + (int64_t)draw(UNITS), tasks, own, claimed, sums[2], all[2];
			struct result *results = malloc((size_t)work * sizeof *results);
			memset(results, 77, (size_t)work * sizeof *results);
			failing_unit = draw(5) ? -1 : (int64_t)draw((uint64_t)work);
			int result = ek_job_run(job, work, run, &state, results, sizeof *results);
			check_times(work, failing_unit < 0);
			if (failing_unit >= 0) {
				expect(result == EK_HOOK_FAILED, "a job that fails", result);
				expect(strstr(ek_error_text(), "runs tasks failed (13)") != 0, "the error's words", j);
				expect(((char *)results)[0] == 77, "results that were to stay", j);
				failed++;
				free(results);
				continue;
			}
			expect(result == EK_OK, "ek_job_run", result);
			for (int64_t i = 0; i < work; i++) {
				struct result alone = compute(i);
				expect(memcmp(&alone, &results[i], sizeof alone) == 0, "a result", i);
			}
			ek_job_counts(job, &tasks, &own, &claimed);
			sums[0] = claimed;
			sums[1] = own + claimed;
			MPI_Allreduce(sums, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
			expect(all[1] >= (tasks < work ? tasks : work), "parts that were run", all[1]);
			claimed_in_all += all[0];
			checked++;
			free(results);
		}
		if (rank == 0 && j == jobs - 1)
			fprintf(stderr, "%s\n", ek_job_report(job));
		expect(ek_job_free(&job) == EK_OK, "ek_job_free", j);
	}
	small_jobs();
	if (rank == 0)
		printf("checked %lld claimed %lld failed %d\n", (long long)checked, (long long)claimed_in_all, failed);
	MPI_Finalize();
	return 0;
}
