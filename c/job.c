/* job.c - the life of a process under evenkeel: MPI_Init sets up the node
 * segment and the runtime, MPI_Finalize brings the nodes together and has the
 * profile made. The only wrappers that are written by hand are here.
 *
 * All that can fail here leaves the program as it would be without us: one
 * line on stderr, and every call is passed on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "barrier.h"
#include "datatype.h"
#include "descriptor.h"
#include "evenkeel.h"
#include "gsm.h"
#include "idle.h"
#include "launcher.h"
#include "layout.h"
#include "load.h"
#include "presence.h"
#include "python.h"
#include "record.h"
#include "room.h"
#include "shadow.h"
#include "shared.h"
#include "wait.h"

struct ek_process ek = {.mode = EK_OFF, .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
uint64_t ek_ticks_per_us = 1000;
static MPI_Comm node_comm, leader_comm; /* leader_comm: on leaders only */
static int nodes, node;
static struct stat segment_file;
static bool all_have_runtime; /* on every rank, so that all take the same way in MPI_Finalize */
static const struct ek_runtime *runtime;
static bool watched; /* on leaders */

static void complain(const char *format, ...)
{
	char line[512];
	va_list arguments;
	va_start(arguments, format);
	int length = snprintf(line, sizeof line, "evenkeel: ");
	vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s\n", line);
}

/* ---- the segment -------------------------------------------------------- */

/* What the ranks must agree on, made by world rank 0. */
struct agreement {
	char job[EK_JOB_LEN];
	char out[EK_OUT_LEN];
	uint64_t seed;
	uint64_t created_realtime_ns;
	uint32_t world;
};

static void agree(struct agreement *a)
{
	memset(a, 0, sizeof *a);
	if (ek.world_rank == 0) {
		char here[PATH_MAX] = "";
		struct timespec now;
		const char *out = ek.settings.out;
		a->world = ek_launcher_job(a->job, sizeof a->job);
		clock_gettime(CLOCK_REALTIME, &now);
		a->created_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
		a->seed = ek_mix(a->created_realtime_ns ^ (uint64_t)getpid() << 40);
		if (!getcwd(here, sizeof here))
			here[0] = 0;
		int length;
		if (out[0] == '/')
			length = snprintf(a->out, sizeof a->out, "%s", out);
		else if (out[0])
			length = snprintf(a->out, sizeof a->out, "%s/%s", here, out);
		else
			length = snprintf(a->out, sizeof a->out, "%s/evenkeel.%s", here, a->job);
		if (length >= (int)sizeof a->out) {
			snprintf(a->out, sizeof a->out, "/tmp/evenkeel.%s", a->job);
			complain("the name of the profile's directory is longer than %d; it goes to %s", EK_OUT_LEN, a->out);
		}
	}
	ek_mpi.Bcast(a, sizeof *a, ek_mpi.type_byte, 0, ek_mpi.comm_world);
}

static void fill_header(struct ek_header *h, const struct agreement *a, int local_ranks)
{
	memset(h, 0, sizeof *h);
	h->layout_version = EK_LAYOUT_VERSION;
	h->table_hash = EK_TABLE_HASH;
	h->header_size = sizeof *h;
	h->local_ranks = (uint32_t)local_ranks;
	h->world_size = (uint32_t)ek.world_size;
	h->world = a->world;
	h->node = (uint32_t)node;
	h->nodes = (uint32_t)nodes;
	h->thread_slots = (uint32_t)ek.settings.threads;
	h->accounts = 1 << EK_ACCOUNT_BITS;
	h->ring_events = (uint32_t)ek.settings.ring;
	h->history_events = (uint32_t)ek.settings.history;
	h->members = (uint32_t)(ek.world_size * 8 < 16384 ? 16384 : ek.world_size * 8);
	h->clock_source = ek_clock_is_tsc ? EK_CLOCK_TSC : EK_CLOCK_MONOTONIC;
	h->created_realtime_ns = a->created_realtime_ns;
	h->sample_seed = a->seed;
	h->anchor[0] = h->anchor[1] = ek_clock_anchor_now();
	memcpy(h->job, a->job, sizeof h->job);
	memcpy(h->out, a->out, sizeof h->out);
	gethostname(h->host, sizeof h->host - 1);
	h->rank_area_size = ek_layout_of(h).rank_area_size;
	h->segment_size = EK_PAGE + h->rank_area_size * h->local_ranks;
}

/* The program may have closed our file, and opened one of its own under the
 * same number. */
static bool still_ours(void)
{
	struct stat now;
	return fstat(ek.fd, &now) == 0 && now.st_dev == segment_file.st_dev && now.st_ino == segment_file.st_ino;
}

/* Like posix_fallocate, which leaves errno alone; signals of the program may
 * interrupt it. */
static int allocate(off_t offset, off_t bytes)
{
	int error;
	do
		error = posix_fallocate(ek.fd, offset, bytes);
	while (error == EINTR);
	return error;
}

bool ek_segment_reserve(size_t offset, size_t bytes)
{
	/* Without our file there is only to take what there is. */
	return !still_ours() || allocate((off_t)offset, (off_t)bytes) == 0;
}

static int reserve_history(const void *at, uint64_t bytes)
{
	return ek_segment_reserve((size_t)((const unsigned char *)at - ek.segment), bytes);
}

static bool map_segment(size_t size)
{
	ek.segment = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, ek.fd, 0);
	if (ek.segment == MAP_FAILED || fstat(ek.fd, &segment_file) != 0)
		return false;
	ek.segment_size = size;
	ek.header = (struct ek_header *)ek.segment;
	return true;
}

/* Whether a rank that lives holds a lock of the file. */
static bool in_use(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool used = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return used;
}

static bool have_first_page(void)
{
	int error = allocate(0, EK_PAGE);
	if (error)
		errno = error;
	return error == 0;
}

/* The leader makes the segment. A file of that name is left from a job that is
 * gone, or belongs to one of the same number in another container. */
static bool create_segment(const struct agreement *a, int local_ranks)
{
	struct ek_header header;
	fill_header(&header, a, local_ranks);
	if (in_use(ek.segment_path)) {
		complain("another job of the same number uses %s; this run is not recorded", ek.segment_path);
		return false;
	}
	unlink(ek.segment_path);
	ek.fd = open(ek.segment_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ek.fd < 0 || ftruncate(ek.fd, (off_t)header.segment_size) != 0 ||
	    !have_first_page() || !map_segment(header.segment_size)) {
		complain("no room for the node segment %s (%zu bytes): %s; this run is not recorded. "
		         "`evenkeel doctor` tells what /dev/shm has",
		         ek.segment_path, (size_t)header.segment_size, strerror(errno));
		return false;
	}
	memcpy(ek.header, &header, sizeof header);
	EK_PUBLISH(ek.header->magic, EK_SEGMENT_MAGIC);
	return true;
}

static bool open_segment(void)
{
	struct stat info;
	ek.fd = open(ek.segment_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (ek.fd < 0 || fstat(ek.fd, &info) != 0 || !map_segment((size_t)info.st_size)) {
		complain("cannot open the node segment %s: %s; this run is not recorded", ek.segment_path, strerror(errno));
		return false;
	}
	return true;
}

/* The rank's byte of the file is locked as long as the rank lives. */
static void say_that_we_live(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ek.local_rank, .l_len = 1};
	fcntl(ek.fd, F_SETLK, &lock);
}

static void say_that_we_are_done(void)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = ek.local_rank, .l_len = 1};
	fcntl(ek.fd, F_SETLK, &lock);
}

static void read_command(char *command, size_t size)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t length = file ? fread(command, 1, size - 1, file) : 0;
	for (size_t i = 0; i + 1 < length; i++)
		if (command[i] == 0)
			command[i] = ' ';
	command[length] = 0;
	if (file)
		fclose(file);
}

static bool take_area(uint64_t init_enter)
{
	struct ek_layout layout = ek_layout_of(ek.header);
	size_t at = EK_PAGE + (size_t)ek.local_rank * layout.rank_area_size;
	cpu_set_t cpus;
	int level = MPI_THREAD_SINGLE;
	if (!ek_segment_reserve(at, layout.threads + layout.thread_size)) /* with the main thread's part */
		return false;
	ek.area = ek.segment + at;
	ek.rank = (struct ek_rank *)ek.area;
	ek.modules = (struct ek_module *)(ek.area + layout.modules);
	ek.comms = (struct ek_comm *)(ek.area + layout.comms);
	ek.members = (uint32_t *)(ek.area + layout.members);
	ek.regions = (struct ek_region *)(ek.area + layout.regions);
	ek.windows = (struct ek_window *)(ek.area + layout.windows);
	ek_mpi.Query_thread(&level);
	ek.rank->rank = (uint32_t)ek.world_rank;
	ek.rank->pid = (uint32_t)getpid();
	ek.rank->thread_level = (uint32_t)level;
	ek.threads_multiple = level == MPI_THREAD_MULTIPLE;
	ek.rank->modules = 1; /* 0 stands for unknown code */
	ek.rank->init_enter = init_enter;
	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		ek.rank->cpus = (uint32_t)CPU_COUNT(&cpus);
	read_command(ek.rank->command, sizeof ek.rank->command);
	return true;
}

/* ---- the start ---------------------------------------------------------- */

/* The same where it can't be known. All have just left MPI_Init, and are not long
 * in coming if they come at all; so this is asked in a way that can be given up. */
static bool all_vote(void)
{
	static int enabled, all; /* they outlive an answer that comes too late */
	const uint64_t eager_ns = 100000000u, patience_ns = 10000000000u, begun = ek_monotonic_ns();
	const struct timespec moment = {0, 1000000};
	MPI_Request request;
	int answered = 0;
	enabled = ek.settings.enable != 0;
	if (ek_mpi.Iallreduce(&enabled, &all, 1, ek_mpi.type_int, ek_mpi.op_min, ek_mpi.comm_world, &request) != MPI_SUCCESS)
		return false;
	for (uint64_t waited = 0; !answered && waited < patience_ns; waited = ek_monotonic_ns() - begun) {
		ek_mpi.Test(&request, &answered, MPI_STATUS_IGNORE);
		if (!answered && waited < eager_ns)
			sched_yield();
		else if (!answered)
			nanosleep(&moment, 0);
	}
	if (!answered)
		complain("not all ranks of MPI_COMM_WORLD run under evenkeel: rank %d has waited for them in vain; "
		         "this run is not recorded. Start all ranks with it, or none", ek.world_rank);
	return answered && all;
}

/* Whether all ranks run under evenkeel and are to be recorded. */
static bool all_take_part(void)
{
	struct ek_presence presence = ek_presence_look(ek.world_size);
	if (!presence.known)
		return all_vote();
	if (presence.absent && ek.settings.enable && ek.world_rank == presence.first)
		complain("%d of the %d ranks of MPI_COMM_WORLD %s not run under evenkeel (rank %d%s); "
		         "this run is not recorded. Start all ranks with it, or none",
		         presence.absent, ek.world_size, presence.absent == 1 ? "does" : "do", presence.missing,
		         presence.absent == 1 ? "" : " is the first");
	return presence.absent == 0 && presence.enabled;
}

static void split_nodes(int *local_ranks)
{
	int place[2] = {0, 1};
	ek_mpi.Comm_split_type(ek_mpi.comm_world, MPI_COMM_TYPE_SHARED, ek.world_rank, ek_mpi.info_null, &node_comm);
	ek_mpi.Comm_set_errhandler(node_comm, ek_mpi.errors_return);
	ek_mpi.Comm_rank(node_comm, &ek.local_rank);
	ek_mpi.Comm_size(node_comm, local_ranks);
	ek_mpi.Comm_split(ek_mpi.comm_world, ek.local_rank == 0 ? 0 : MPI_UNDEFINED, ek.world_rank, &leader_comm);
	if (ek.local_rank == 0) {
		ek_mpi.Comm_set_errhandler(leader_comm, ek_mpi.errors_return);
		ek_mpi.Comm_rank(leader_comm, &place[0]);
		ek_mpi.Comm_size(leader_comm, &place[1]);
	}
	ek_mpi.Bcast(place, 2, ek_mpi.type_int, 0, node_comm);
	node = place[0];
	nodes = place[1];
}

/* Whether the ranks of this node have fewer processors than they are. */
static bool find_crowded(void)
{
	cpu_set_t mine, all;
	int ranks;
	ek_mpi.Comm_size(node_comm, &ranks);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		CPU_ZERO(&mine);
	ek_mpi.Allreduce(&mine, &all, (int)(sizeof mine / sizeof(uint64_t)), ek_mpi.type_uint64, ek_mpi.op_bor, node_comm);
	return CPU_COUNT(&all) < ranks;
}

/* Whether all ranks of a communicator say yes. */
static bool everybody(bool mine, MPI_Comm comm)
{
	int yes = mine, all = 0;
	ek_mpi.Allreduce(&yes, &all, 1, ek_mpi.type_int, ek_mpi.op_min, comm);
	return all != 0;
}

/* Others may be reading these: see segment.h for the order. */
static void keep_anchor(struct ek_clock_anchor now)
{
	EK_STORE(ek.header->anchor[1].monotonic_ns, 0);
	EK_PUBLISH(ek.header->anchor[1].ticks, now.ticks);
	EK_PUBLISH(ek.header->anchor[1].monotonic_ns, now.monotonic_ns);
}

static void keep_sync(int which, struct ek_clock_sync sync)
{
	ek.header->sync[which].offset_ns = sync.offset_ns;
	ek.header->sync[which].error_ns = sync.error_ns;
	EK_PUBLISH(ek.header->sync[which].monotonic_ns, sync.monotonic_ns);
}

static void calibrate(void)
{
	struct ek_clock_anchor now = ek_clock_anchor_now();
	uint64_t ns = now.monotonic_ns - ek.header->anchor[0].monotonic_ns;
	if (ek_clock_is_tsc && ns > 1000)
		ek_ticks_per_us = (now.ticks - ek.header->anchor[0].ticks) * 1000 / ns;
}

/* After fork without exec the child must not enter Go nor write into the
 * parent's area: there the library only passes calls on. */
static void in_child(void)
{
	ek.mode = EK_OFF;
	ek_self.thread = 0;
	ek_way_plain();
	runtime = 0;
}

static void start(uint64_t init_enter)
{
	struct agreement agreement;
	int local_ranks = 0, flag = 0;
	bool ok;

	if (!ek_mpi.found || ek.rank)
		return;
	ek_mpi.Initialized(&flag);
	if (!flag)
		return;
	ek_mpi.Comm_rank(ek_mpi.comm_world, &ek.world_rank);
	ek_mpi.Comm_size(ek_mpi.comm_world, &ek.world_size);
	if (!all_take_part())
		return;
	ek_clock_choose();
	split_nodes(&local_ranks);
	ek.crowded = find_crowded();
	agree(&agreement);
	snprintf(ek.segment_path, sizeof ek.segment_path, "/dev/shm/evenkeel.%u.%.64s.%u.%d", (unsigned)getuid(),
	         agreement.job, agreement.world, node);

	ok = ek.local_rank != 0 || create_segment(&agreement, local_ranks);
	if (everybody(ok, node_comm)) {
		ok = everybody((ek.local_rank == 0 || open_segment()) && take_area(init_enter), node_comm);
		if (!ok && ek.local_rank == 0)
			complain("/dev/shm has no room for the node segment %s; this run is not recorded. "
			         "`evenkeel doctor` tells how much it needs", ek.segment_path);
	} else {
		ok = false;
	}
	if (!everybody(ok, ek_mpi.comm_world)) {
		if (ek.local_rank == 0 && ek.fd >= 0)
			unlink(ek.segment_path);
		return;
	}
	ek.fd = ek_descriptor_raise(ek.fd);
	say_that_we_live();
	calibrate();
	ek.rank->bin_ticks = ek_ticks_per_us * 1000; /* a millisecond, doubling as the run grows */
	ek_handles_start();
	ek_regions_start(ek_ticks());
	pthread_atfork(0, 0, in_child);
	EK_STORE(ek.rank->state, EK_RANK_RUNNING);
	ek_python_start();
	EK_STORE(ek.mode, EK_RECORDING);
	ek_attach();
	ek_datatype_start();

	static struct ek_runtime_process process;
	process = (struct ek_runtime_process){ek.segment, ek.segment_size, (uint32_t)ek.local_rank,
	                                      (uint32_t)ek.world_rank, ek_clock_anchor_now, reserve_history};
	runtime = ek_runtime_load(ek.settings.runtime, &process);
	all_have_runtime = everybody(runtime != 0, ek_mpi.comm_world);
	if (ek.local_rank == 0) {
		if (nodes > 1)
			keep_sync(0, ek_clock_sync_now(leader_comm));
		watched = ek.settings.watch && ek_watcher_tell(ek.segment_path);
		keep_anchor(ek_clock_anchor_now()); /* a job that dies young has its rate from here */
	}
	ek_barrier_start((struct ek_barrier_place){node_comm, node, nodes});
	ek_shadow_start();
	ek_wait_start(nodes);
	ek_idle_start(node_comm);
	ek_mpi.Barrier(ek_mpi.comm_world); /* nobody is to look late for what we did here */
	EK_STORE(ek.rank->init_leave, ek_ticks());
	ek_regions_start(EK_LOAD(ek.rank->init_leave));
}

const void *ek_service(const char *name)
{
	return runtime && all_have_runtime ? runtime->service(name) : 0;
}

/* ---- the end ------------------------------------------------------------ */

/* A profile image may be larger than a count of MPI can say. */
enum { CHUNK = 1 << 30, TAG = 4712 };

static void send_image(const char *bytes, int64_t length)
{
	uint64_t announced = length < 0 ? 0 : (uint64_t)length;
	ek_mpi.Send(&announced, 1, ek_mpi.type_uint64, 0, TAG, leader_comm);
	for (uint64_t at = 0; at < announced; at += CHUNK)
		ek_mpi.Send(bytes + at, announced - at < CHUNK ? (int)(announced - at) : CHUNK, ek_mpi.type_byte, 0, TAG,
		            leader_comm);
}

/* A null image of length -1 says that there was no memory for it. */
static void receive_image(int from, void **bytes, int64_t *length)
{
	uint64_t announced = 0;
	ek_mpi.Recv(&announced, 1, ek_mpi.type_uint64, from, TAG, leader_comm, MPI_STATUS_IGNORE);
	char *to = malloc(announced + 1), none;
	for (uint64_t at = 0; at < announced; at += CHUNK) {
		int size = announced - at < CHUNK ? (int)(announced - at) : CHUNK;
		/* Without memory the message is truncated, and so taken away. */
		ek_mpi.Recv(to ? to + at : &none, to ? size : 1, ek_mpi.type_byte, from, TAG, leader_comm, MPI_STATUS_IGNORE);
	}
	*bytes = to;
	*length = to ? (int64_t)announced : -1;
}

/* Of the other nodes, from which rank 0 makes the profile meanwhile. */
static void **images;
static int64_t *lengths;
static bool publishing;

static void publish(void)
{
	if (ek.world_rank != 0) {
		void *mine = 0;
		int64_t length = runtime->image(&mine);
		send_image(mine, length);
		runtime->release(mine);
		return;
	}
	images = calloc((size_t)nodes, sizeof *images);
	lengths = calloc((size_t)nodes, sizeof *lengths);
	if (!images || !lengths)
		return;
	for (int i = 1; i < nodes; i++)
		receive_image(i, &images[i - 1], &lengths[i - 1]);
	runtime->publish(images, lengths, nodes - 1);
	publishing = true;
}

static void finish(void)
{
	if (EK_LOAD(ek.mode) != EK_RECORDING)
		return;
	uint64_t now = ek_ticks();
	ek_idle_stop();
	ek_wait_stop();
	ek_barrier_stop();
	ek_regions_stop(now);
	EK_STORE(ek.mode, EK_OFF);
	ek_way_plain();
	ek_shadow_stop();
	ek_datatype_finish();
	EK_STORE(ek.rank->finalize_enter, now);
	EK_STORE(ek.rank->state, EK_RANK_FINALIZING);
	if (runtime)
		runtime->stop();
	if (ek.local_rank == 0) {
		if (nodes > 1)
			keep_sync(1, ek_clock_sync_now(leader_comm));
		keep_anchor(ek_clock_anchor_now());
	}
	EK_STORE(ek.rank->state, EK_RANK_FINALIZED);
	ek_mpi.Barrier(node_comm); /* all have drained */
	if (all_have_runtime && ek.local_rank == 0)
		publish();
	if (leader_comm != ek_mpi.comm_null)
		ek_mpi.Comm_free(&leader_comm);
	ek_mpi.Comm_free(&node_comm);
}

/* After PMPI_Finalize, which takes a while in which the profile is made. */
static void finished(void)
{
	if (!ek.rank || EK_LOAD(ek.rank->state) != EK_RANK_FINALIZED || getpid() != (pid_t)ek.rank->pid)
		return;
	if (publishing) {
		runtime->published();
		for (int i = 0; i < nodes - 1; i++)
			free(images[i]);
	}
	free(images);
	free(lengths);
	if (ek.local_rank == 0 && all_have_runtime)
		EK_STORE(ek.header->reported, EK_REPORT_MADE);
	if (ek.local_rank == 0 && (all_have_runtime || !watched))
		unlink(ek.segment_path); /* else the watcher makes the profile from it */
	say_that_we_are_done();
}

/* The launcher ends the job, and stops listening, as soon as it hears of the
 * abort: before that, the watcher gets the time to tell what was seen. */
static void let_the_watcher_tell(void)
{
	const struct timespec millisecond = {0, 1000000};
	pid_t watcher = (pid_t)EK_LOAD(ek.header->watcher);
	say_that_we_are_done();
	for (int i = 0; i < 2000 && watcher && EK_LOAD(ek.header->reported) == EK_REPORT_NONE; i++) {
		if (kill(watcher, 0) != 0)
			break;
		nanosleep(&millisecond, 0);
	}
}

static void aborting(int code)
{
	if (EK_LOAD(ek.mode) != EK_RECORDING)
		return;
	int kept = errno;
	EK_STORE(ek.rank->abort_code, code);
	EK_STORE(ek.rank->finalize_enter, ek_ticks());
	EK_PUBLISH(ek.rank->state, EK_RANK_ABORTED);
	let_the_watcher_tell();
	errno = kept;
}

/* exit() without MPI_Finalize: what was recorded stays in the segment, for the
 * watcher. A forked child comes by here too, with recording off. */
__attribute__((destructor)) static void leaving(void)
{
	if (EK_LOAD(ek.mode) != EK_RECORDING || EK_LOAD(ek.rank->state) != EK_RANK_RUNNING)
		return;
	EK_STORE(ek.rank->finalize_enter, ek_ticks());
	EK_STORE(ek.rank->state, EK_RANK_EXITED);
}

/* ---- the wrappers ------------------------------------------------------- */

static uint64_t before_init(void)
{
	int kept = errno;
	ek_next_resolve();
	ek_clock_choose();
	uint64_t entered = ek_ticks();
	ek.settings = ek_settings_read();
	ek_presence_announce(ek.settings.enable);
	if (ek.settings.enable) {
		ek_descriptor_make_room();
		if (ek.settings.watch && ek_launcher_place() == 0)
			ek_watcher_start_early();
		if (ek.settings.fast & EK_FAST_SHADOW && ek.settings.shadow_route != EK_SHADOW_ROUTE_CONTROL)
			ek_room_ask((int)ek.settings.shadow_room, ek.settings.shadow_slots, (size_t)ek.settings.shadow_limit);
		ek_room_ask_depth(ek.settings.fast & EK_FAST_DATATYPE);
	}
	errno = kept;
	return entered;
}

static void after_init(uint64_t entered, bool succeeded)
{
	int kept = errno;
	ek_room_asked();
	if (succeeded)
		start(entered);
	ek_watcher_dismiss();
	errno = kept;
}

EK_EXPORT int MPI_Init(int *argc, char ***argv)
{
	uint64_t entered = before_init();
	int result = ek_next.MPI_Init(argc, argv);
	after_init(entered, result == MPI_SUCCESS);
	return result;
}

EK_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	uint64_t entered = before_init();
	int result = ek_next.MPI_Init_thread(argc, argv, required, provided);
	after_init(entered, result == MPI_SUCCESS);
	return result;
}

EK_EXPORT int MPI_Finalize(void)
{
	int kept = errno;
	ek_next_resolve();
	finish();
	errno = kept;
	int result = ek_next.MPI_Finalize();
	kept = errno;
	finished();
	errno = kept;
	return result;
}

EK_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode)
{
	ek_next_resolve();
	aborting(errorcode);
	return ek_next.MPI_Abort(comm, errorcode);
}

EK_EXPORT int MPI_Pcontrol(const int level, ...)
{
	va_list rest;
	va_start(rest, level);
	const char *name = va_arg(rest, const char *);
	va_end(rest);
	ek_next_resolve();
	ek_pcontrol(level, (level == 1 || level == -1) && ek_printable(name) ? name : 0);
	/* Open MPI's own does nothing; another tool's may read what followed. */
	return ek_next.MPI_Pcontrol(level, name);
}

/* Fortran: two entries for each, mpi_x_ (mpif.h, `use mpi`) with its other
 * spellings, and mpi_x_f08_. */
#define FORTRAN_INIT(symbol)                               \
	EK_EXPORT void symbol(MPI_Fint *ierror)            \
	{                                                  \
		uint64_t entered = before_init();          \
		EK_NEXT(symbol)(ierror);                   \
		after_init(entered, ek_succeeded(ierror)); \
	}
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)
EK_SPELLINGS(mpi_init, MPI_INIT, (MPI_Fint * ierror))

#define FORTRAN_INIT_THREAD(symbol)                                                     \
	EK_EXPORT void symbol(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror) \
	{                                                                               \
		uint64_t entered = before_init();                                       \
		EK_NEXT(symbol)(required, provided, ierror);                            \
		after_init(entered, ek_succeeded(ierror));                              \
	}
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
EK_SPELLINGS(mpi_init_thread, MPI_INIT_THREAD, (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *ierror))

#define FORTRAN_FINALIZE(symbol)                \
	EK_EXPORT void symbol(MPI_Fint *ierror) \
	{                                       \
		int kept = errno;               \
		ek_next_resolve();              \
		finish();                       \
		errno = kept;                   \
		EK_NEXT(symbol)(ierror);        \
		kept = errno;                   \
		finished();                     \
		errno = kept;                   \
	}
FORTRAN_FINALIZE(mpi_finalize_)
FORTRAN_FINALIZE(mpi_finalize_f08_)
EK_SPELLINGS(mpi_finalize, MPI_FINALIZE, (MPI_Fint * ierror))

#define FORTRAN_ABORT(symbol)                                                        \
	EK_EXPORT void symbol(MPI_Fint *comm, MPI_Fint *errorcode, MPI_Fint *ierror) \
	{                                                                            \
		ek_next_resolve();                                                   \
		aborting(*errorcode);                                                \
		EK_NEXT(symbol)(comm, errorcode, ierror);                            \
	}
FORTRAN_ABORT(mpi_abort_)
FORTRAN_ABORT(mpi_abort_f08_)
EK_SPELLINGS(mpi_abort, MPI_ABORT, (MPI_Fint * comm, MPI_Fint *errorcode, MPI_Fint *ierror))

#define FORTRAN_PCONTROL(symbol)               \
	EK_EXPORT void symbol(MPI_Fint *level) \
	{                                      \
		ek_next_resolve();             \
		ek_pcontrol(*level, 0);        \
		EK_NEXT(symbol)(level);        \
	}
FORTRAN_PCONTROL(mpi_pcontrol_)
FORTRAN_PCONTROL(mpi_pcontrol_f08_)
EK_SPELLINGS(mpi_pcontrol, MPI_PCONTROL, (MPI_Fint * level))

EK_EXPORT const char *ek_strerror(int result)
{
	switch (result) {
	case EK_OK:
		return "done";
	case EK_INACTIVE:
		return "evenkeel is not recording (MPI is not initialized or already finalized, EVENKEEL_ENABLE is 0, "
		       "or there is no room for more), or, of a hook, waits spin: see EVENKEEL_WAIT";
	case EK_REFUSED:
		return "the arguments make no sense, or differ between ranks (ek_error_text says which), or there are too many of their kind";
	case EK_NO_MEMORY:
		return "no memory on some rank; nothing has changed";
	case EK_HOOK_FAILED:
		return "a function of the program's failed on some rank; nothing has changed";
	case EK_NO_HISTORY:
		return "it is not known when the ranks came to the end of the cycle";
	case EK_MPI_FAILED:
		return "MPI returned an error";
	}
	const char *of_memory = ek_gsm_strerror(result), *of_objects = ek_upc_strerror(result);
	return of_memory ? of_memory : of_objects ? of_objects : "not a result of evenkeel";
}
