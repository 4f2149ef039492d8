/* room.c - see room.h. */
#define _GNU_SOURCE
#include "room.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher.h"
#include "next.h"
#include "process.h"

enum {
	FRAGMENT = 4096,        /* bytes in the fragments for short messages, with their headers, and all in Open MPI as it is */
	LONGEST = 65536,        /* bytes of a message: Open MPI makes eight fragments of that length at once */
	HEADER = 128,           /* of ob1, which counts as part of an eager message: at most */
	AT_ONCE = 64,           /* fragments that Open MPI makes when it needs one */
	LEAST_MIB = 4,          /* of a rank's part of the shared memory, as Open MPI has it, */
	MOST_MIB = 24,          /* and with all fragments: a file of which only what is used takes memory */
	INPLACE = 8,            /* of btl_vader_flags */
	DEPTH = 16              /* fragments of 32 KiB that a long message is packed into before the first comes back */
};

/* In the order in which ek_room_ask sets them. Open MPI 5 calls the transport `sm`
 * and knows these names too. */
static const char *const names[] = {
	"OMPI_MCA_btl_vader_flags",
	"OMPI_MCA_btl_vader_eager_limit",
	"OMPI_MCA_btl_vader_rndv_eager_limit",
	"OMPI_MCA_btl_vader_max_inline_send",
	"OMPI_MCA_btl_vader_free_list_max",
	"OMPI_MCA_btl_vader_segment_size",
};
enum { NAMES = sizeof names / sizeof names[0] };
static const char depth_name[] = "OMPI_MCA_pml_ob1_send_pipeline_depth";

static bool asked, asked_depth;

/* ---- asking ------------------------------------------------------------- */

static bool user_has_asked(void)
{
	char newer[64];
	for (int i = 0; i < NAMES; i++) {
		snprintf(newer, sizeof newer, "OMPI_MCA_btl_sm_%s", names[i] + sizeof "OMPI_MCA_btl_vader_" - 1);
		if (getenv(names[i]) || getenv(newer))
			return true;
	}
	return false;
}

/* MiB for this rank, if each rank of the node takes as much and half is left. */
static long share_of_shm(int ranks)
{
	struct statvfs shm;
	if (statvfs("/dev/shm", &shm) != 0)
		return 0;
	long share = (long)(((uint64_t)shm.f_bavail * shm.f_frsize >> 20) / 2 / (uint64_t)ranks);
	return share < MOST_MIB ? share : MOST_MIB;
}

/* Whether the node has fewer processors than so many ranks, as far as that can be told
 * before they can ask each other. A rank's own mask tells nothing where each is bound to
 * some: what started them has those of all, unless a shell was put between. */
static bool is_crowded(int ranks)
{
	cpu_set_t mine, launchers;
	if (getenv("OMPI_MCA_orte_bound_at_launch"))
		return ranks > sysconf(_SC_NPROCESSORS_ONLN);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0 || sched_getaffinity(getppid(), sizeof launchers, &launchers) != 0)
		return false;
	CPU_OR(&mine, &mine, &launchers);
	return ranks > CPU_COUNT(&mine);
}

/* Those without "inplace". Since single copies are a part of its own, the transport
 * adds itself what that part can do. */
static const char *flags(void)
{
	return ek_next_data("mca_smsc") ? "send" : "send,put,get,atomics,fetching-atomics";
}

void ek_room_ask(int when, long slots, size_t limit)
{
	int ranks = ek_launcher_places();
	long share = ranks < 2 ? 0 : share_of_shm(ranks);
	if (when == EK_SHADOW_ROOM_0 || share < LEAST_MIB || slots == 0 || limit < FRAGMENT || user_has_asked() ||
	    (when == EK_SHADOW_ROOM_AUTO && is_crowded(ranks)))
		return;
	char texts[NAMES][64];
	snprintf(texts[0], sizeof texts[0], "%s", flags()); /* as it is, but for "inplace" */
	snprintf(texts[1], sizeof texts[1], "%zu", (limit < LONGEST ? limit : LONGEST) + HEADER);
	snprintf(texts[2], sizeof texts[2], "%d", FRAGMENT); /* what goes ahead of a message that is longer */
	snprintf(texts[3], sizeof texts[3], "%d", FRAGMENT);
	snprintf(texts[4], sizeof texts[4], "%ld", slots < AT_ONCE ? AT_ONCE : slots);
	snprintf(texts[5], sizeof texts[5], "%ld", share << 20);
	for (int i = 0; i < NAMES; i++)
		setenv(names[i], texts[i], 1);
	asked = true;
}

void ek_room_ask_depth(bool wanted)
{
	char text[16];
	if (!wanted || getenv(depth_name))
		return;
	snprintf(text, sizeof text, "%d", DEPTH);
	setenv(depth_name, text, 1);
	asked_depth = true;
}

void ek_room_asked(void)
{
	for (int i = 0; asked && i < NAMES; i++)
		unsetenv(names[i]);
	if (asked_depth)
		unsetenv(depth_name);
	asked = asked_depth = false;
}

/* ---- looking ------------------------------------------------------------ */

/* The table of Open MPI's parameters, which `ompi_info` shows too. MPI_T would
 * tell the same after loading every component there is, which takes 0.2 s. */
const void *ek_room_parameter(const char *name)
{
	static int (*find)(const char *, int *);
	static int (*get)(int, void *, void *, void *);
	const void *value;
	int number;
	if (!find) {
		find = (int (*)(const char *, int *))ek_next_data("mca_base_var_find_by_name");
		get = (int (*)(int, void *, void *, void *))ek_next_data("mca_base_var_get_value");
	}
	return find && get && find(name, &number) == 0 && get(number, &value, 0, 0) == 0 ? value : 0;
}

/* The engine's table begins with a function of the component that was chosen: a
 * library of its own, or a part of libmpi, as in Open MPI 5. */
static bool engine_is_ob1(void)
{
	void **engine = ek_next_data("mca_pml");
	Dl_info owner;
	if (!engine || !*engine || !dladdr(*engine, &owner))
		return false;
	return (owner.dli_fname && strstr(owner.dli_fname, "mca_pml_ob1")) ||
	       (owner.dli_sname && strncmp(owner.dli_sname, "mca_pml_ob1_", 12) == 0);
}

bool ek_room_given(void)
{
	const unsigned *flags = ek_room_parameter("btl_vader_flags");
	return flags && !(*flags & INPLACE) && engine_is_ob1();
}
