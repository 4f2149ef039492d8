/* room.c - see room.h. */
#define _GNU_SOURCE
#include "room.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "next.h"
#include "process.h"

/* A thousand messages of 256 bytes take 288,000 bytes of a ring. Open MPI makes
 * at most 32 rings in each process, when first used; with them and 2048
 * fragments the segment may grow to 24 MiB where it was 4: a file of which only
 * what is used takes memory. */
static const struct wish {
	const char *name, *value;
} wishes[] = {
	{"OMPI_MCA_btl_vader_fbox_size", "327680"},
	{"OMPI_MCA_btl_vader_free_list_max", "2048"},
	{"OMPI_MCA_btl_vader_segment_size", "25165824"},
};
enum { WISHES = sizeof wishes / sizeof wishes[0], SEGMENT_MIB = 24 };

static bool asked;
static char vote_path[64]; /* empty: there was no vote */

/* ---- the ranks of a node agree ------------------------------------------ */

enum decision { UNDECIDED, YES, NO };

/* Shared by the ranks, and gone after MPI_Init: before that a rank may still come,
 * and would begin another one. */
struct vote {
	uint32_t yes;      /* ranks that want more room */
	uint32_t decision; /* who sets it first decides for all */
};

static uint32_t decide(struct vote *vote, uint32_t decision)
{
	uint32_t undecided = UNDECIDED;
	__atomic_compare_exchange_n(&vote->decision, &undecided, decision, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&vote->decision, __ATOMIC_ACQUIRE);
}

/* A rank may be late, since it does other things before MPI_Init, or may run
 * without us: after a second this is given up, for all. */
static bool await(struct vote *vote, int ranks, bool wanted)
{
	const uint64_t patience_ns = 1000000000u, begun = ek_monotonic_ns();
	const struct timespec moment = {0, 200000};
	if (!wanted)
		return decide(vote, NO) == YES;
	if (__atomic_add_fetch(&vote->yes, 1, __ATOMIC_ACQ_REL) == (uint32_t)ranks)
		return decide(vote, YES) == YES;
	while (ek_monotonic_ns() - begun < patience_ns) {
		uint32_t decision = __atomic_load_n(&vote->decision, __ATOMIC_ACQUIRE);
		if (decision != UNDECIDED)
			return decision == YES;
		nanosleep(&moment, 0);
	}
	return decide(vote, NO) == YES;
}

/* The name holds what tells this job from all others on the node: where its
 * launcher listens, and its number there. */
static bool all_want(int ranks, bool wanted)
{
	static const char *const names[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_NAMESPACE"};
	uint64_t job = 14695981039346656037ull; /* FNV-1a */
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		for (const char *c = getenv(names[i]); c && *c; c++)
			job = (job ^ (unsigned char)*c) * 1099511628211ull;
	snprintf(vote_path, sizeof vote_path, "/dev/shm/evenkeel.room.%u.%016llx", (unsigned)getuid(), (unsigned long long)job);
	int fd = open(vote_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	struct vote *vote = MAP_FAILED;
	if (ftruncate(fd, sizeof *vote) == 0)
		vote = mmap(0, sizeof *vote, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (vote == MAP_FAILED)
		return false;
	bool yes = await(vote, ranks, wanted);
	munmap(vote, sizeof *vote);
	return yes;
}

/* ---- asking ------------------------------------------------------------- */

static bool user_has_asked(void)
{
	for (int i = 0; i < WISHES; i++)
		if (getenv(wishes[i].name))
			return true;
	return false;
}

/* Open MPI does without shared memory if the file system is too small. */
static bool shm_has_room(int ranks)
{
	struct statvfs shm;
	return statvfs("/dev/shm", &shm) == 0 &&
	       (uint64_t)shm.f_bavail * shm.f_frsize >> 20 >= 2 * (uint64_t)SEGMENT_MIB * (uint64_t)ranks;
}

void ek_room_ask(bool wanted)
{
	const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	int ranks = local ? atoi(local) : 0;
	if (ranks < 2 || !all_want(ranks, wanted && !user_has_asked() && shm_has_room(ranks)))
		return;
	for (int i = 0; i < WISHES; i++)
		setenv(wishes[i].name, wishes[i].value, 1);
	asked = true;
}

void ek_room_asked(void)
{
	for (int i = 0; asked && i < WISHES; i++)
		unsetenv(wishes[i].name);
	asked = false;
	if (*vote_path)
		unlink(vote_path);
}

/* ---- looking ------------------------------------------------------------ */

/* The table of Open MPI's parameters, which `ompi_info` shows too. MPI_T would
 * tell the same after loading every component there is, which takes 0.2 s. */
static bool parameter(const char *name, const void **value)
{
	static int (*find)(const char *, int *);
	static int (*get)(int, void *, void *, void *);
	int number;
	if (!find) {
		find = (int (*)(const char *, int *))ek_next_data("mca_base_var_find_by_name");
		get = (int (*)(int, void *, void *, void *))ek_next_data("mca_base_var_get_value");
	}
	return find && get && find(name, &number) == 0 && get(number, value, 0, 0) == 0 && *value;
}

static size_t unsigned_parameter(const char *name)
{
	const unsigned *value;
	return parameter(name, (const void **)&value) ? *value : 0;
}

/* The engine's table begins with a function of the component that was chosen. */
static bool engine_is_ob1(void)
{
	void **engine = ek_next_data("mca_pml");
	Dl_info owner;
	return engine && *engine && dladdr(*engine, &owner) && owner.dli_fname && strstr(owner.dli_fname, "mca_pml_ob1");
}

struct ek_room ek_room_look(void)
{
	enum {
		ENTRY = 32,         /* bytes of the ring */
		HEADER = 64,        /* of ob1, which counts as part of an eager message: at most */
		XPMEM = 0, CMA = 1, /* mechanisms in which the receiver copies */
	};
	struct ek_room room = {0};
	const size_t *eager;
	if (!engine_is_ob1() || !parameter("btl_vader_eager_limit", (const void **)&eager) || *eager <= HEADER)
		return room;
	/* A quarter of each is left to what the program sends otherwise. */
	room.entries = (int)(unsigned_parameter("btl_vader_fbox_size") / ENTRY * 3 / 4);
	room.fragments = (int)(unsigned_parameter("btl_vader_free_list_max") * 3 / 4);
	room.eager = *eager - HEADER;
	const int *mechanism;
	room.single_copy = parameter("btl_vader_single_copy_mechanism", (const void **)&mechanism) &&
	                   (*mechanism == CMA || *mechanism == XPMEM);
	return room;
}
