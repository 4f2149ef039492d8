/* gsm_memory.c - see gsm_memory.h.
 *
 * Every area of the file looks alike: window table, counters, a byte for each
 * page, the collective heap, the task's own heap. The file is as long as all
 * areas and FIFOs, and has no memory but where something was written or allocated.
 * The table's pages and all that is allocated get theirs at once, by fallocate, so
 * that a full /dev/shm is an error here and never a SIGBUS.
 *
 * Memory that is not allocated is zero: what is given back is cleared, and its
 * whole pages go back to the system.
 */
#define _GNU_SOURCE
#include "gsm_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "descriptor.h"

enum {
	GRANULE = 64,
	GENERATIONS = 0xffffffffu / EK_GSM_WINDOWS, /* then a slot is used up: numbers never begin anew */
	FIFO_SLOTS = 64,
	STEP = 64 << 20 /* bytes at a time that are taken from the system: a signal may interrupt one step, not all */
};

static const char directory[] = "/dev/shm";

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* ---- the file ----------------------------------------------------------- */

static uint64_t heaps_begin(uint64_t heap)
{
	return round_up(sizeof(struct ek_gsm_area) + EK_GSM_PARTS * heap / EK_GSM_PAGE, EK_GSM_PAGE);
}

static uint64_t area_bytes(uint64_t heap)
{
	return heaps_begin(heap) + EK_GSM_PARTS * heap;
}

/* The FIFOs of so many tasks, empty. */
static struct ek_fifo_header fifos_of(uint32_t tasks)
{
	return (struct ek_fifo_header){
		.magic = EK_FIFO_MAGIC, .layout = EK_FIFO_LAYOUT, .tasks = tasks, .slots = FIFO_SLOTS, .buffer = EK_GSM_AM_BYTES};
}

static uint64_t fifos_bytes(uint32_t tasks)
{
	const struct ek_fifo_header header = fifos_of(tasks);
	return tasks <= EK_FIFO_TASKS ? ek_fifo_offset(&header, tasks, 0, 0) : 0;
}

/* A file may be longer than the shell lets it be: that is a signal, not an error. */
static bool too_long(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

int ek_gsm_invite(struct ek_gsm_invitation *invitation, uint32_t tasks, uint64_t heap, char *text)
{
	struct stat info;
	const uint64_t most = (uint64_t)1 << 46; /* of half an address space */
	*invitation = (struct ek_gsm_invitation){.pid = -1, .descriptor = -1, .tasks = tasks};
	if (heap == 0 || heap > most) {
		snprintf(text, EK_GSM_TEXT, "a heap of %llu bytes can't be reserved", (unsigned long long)heap);
		return EK_GSM_LENGTH;
	}
	heap = round_up(heap, EK_GSM_PAGE);
	const struct ek_fifo_header fifos = fifos_of(tasks);
	const uint64_t areas = tasks * area_bytes(heap), bytes = areas + fifos_bytes(tasks);
	if (area_bytes(heap) > most / tasks || too_long(bytes)) {
		snprintf(text, EK_GSM_TEXT, "%u tasks can't reserve %llu bytes each: lower EVENKEEL_GSM_RESERVE, or raise ulimit -f",
		         tasks, (unsigned long long)area_bytes(heap));
		return EK_GSM_NO_MEMORY;
	}
	int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || fstat(fd, &info) != 0 ||
	    (tasks <= EK_FIFO_TASKS && pwrite(fd, &fifos, sizeof fifos, (off_t)areas) != sizeof fifos)) {
		snprintf(text, EK_GSM_TEXT, "a file of %llu bytes in %s: %s", (unsigned long long)bytes, directory, strerror(errno));
		if (fd >= 0)
			close(fd);
		return EK_GSM_NO_MEMORY;
	}
	invitation->device = info.st_dev;
	invitation->inode = info.st_ino;
	invitation->heap = heap;
	invitation->pid = getpid();
	invitation->descriptor = fd;
	return EK_OK;
}

void ek_gsm_uninvite(struct ek_gsm_invitation *invitation)
{
	if (invitation->descriptor >= 0)
		close(invitation->descriptor);
	invitation->descriptor = -1;
}

/* Has the system give memory to these bytes of the file now. */
static int back(const struct ek_gsm_space *space, uint64_t offset, uint64_t bytes)
{
	uint64_t end = round_up(offset + bytes, EK_GSM_PAGE);
	for (uint64_t at = offset / EK_GSM_PAGE * EK_GSM_PAGE; at < end;) {
		uint64_t step = end - at < STEP ? end - at : STEP;
		if (fallocate(space->fd, 0, (off_t)at, (off_t)step) == 0)
			at += step;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* By way of the inviter's descriptor: the file has no name. */
static int open_file(const struct ek_gsm_invitation *invitation, char *text)
{
	char path[64];
	struct stat info;
	snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)invitation->pid, invitation->descriptor);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == invitation->device && info.st_ino == invitation->inode)
		return fd;
	snprintf(text, EK_GSM_TEXT, "%s does not lead to the node's shared file (%s): the tasks of a node must see each other's "
	         "processes, in one pid namespace and as one user", path, fd < 0 ? strerror(errno) : "it is another file");
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool make_heaps(struct ek_gsm_space *space, uint64_t heap)
{
	for (int part = 0; part < EK_GSM_PARTS; part++) {
		struct ek_gsm_heap *h = &space->heap[part];
		h->start = heaps_begin(heap) + (uint64_t)(EK_GSM_PARTS - 1 - part) * heap;
		h->size = heap;
		h->room = 64;
		h->extents = malloc(h->room * sizeof *h->extents);
		if (!h->extents)
			return false;
		h->extents[0] = (struct ek_gsm_extent){0, heap, EK_GSM_UNUSED, false, 0};
		h->count = 1;
	}
	return true;
}

int ek_gsm_enter(struct ek_gsm_space *space, const struct ek_gsm_invitation *invitation, uint32_t self, char *text)
{
	int error;
	memset(space, 0, sizeof *space);
	space->fd = -1;
	if (invitation->pid < 0 || self >= invitation->tasks) {
		snprintf(text, EK_GSM_TEXT, "the lowest task of the node has no shared file");
		return EK_GSM_NO_MEMORY;
	}
	space->area_size = area_bytes(invitation->heap);
	const uint64_t areas = invitation->tasks * space->area_size;
	space->map_size = areas + fifos_bytes(invitation->tasks);
	space->tasks = invitation->tasks;
	space->self = self;
	space->mark = 1;
	pthread_mutex_init(&space->lock, 0);
	space->fd = open_file(invitation, text);
	if (space->fd < 0) {
		ek_gsm_exit(space);
		return EK_GSM_NO_MEMORY;
	}
	space->fd = ek_descriptor_raise(space->fd);
	void *map = mmap(0, space->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, space->fd, 0);
	if (map == MAP_FAILED || !make_heaps(space, invitation->heap)) {
		snprintf(text, EK_GSM_TEXT, "mapping %llu bytes for %u tasks: %s. Lower EVENKEEL_GSM_RESERVE, or raise ulimit -v",
		         (unsigned long long)space->map_size, space->tasks, strerror(errno));
		if (map != MAP_FAILED)
			munmap(map, space->map_size);
		ek_gsm_exit(space);
		return EK_GSM_NO_MEMORY;
	}
	space->map = map;
	space->area = ek_gsm_area_of(space, self);
	madvise(map, space->map_size, MADV_DONTDUMP); /* a core file holds what was allocated, not what was reserved */
	error = back(space, self * space->area_size, sizeof(struct ek_gsm_area));
	if (space->map_size > areas) {
		space->fifos = (struct ek_fifo_header *)(void *)(space->map + areas);
		if (!error) /* the page of this task */
			error = back(space, areas + (1 + self) * EK_FIFO_PAGE, EK_FIFO_PAGE);
	}
	if (error) {
		snprintf(text, EK_GSM_TEXT, "%s has no room for a window table: %s", directory, strerror(error));
		ek_gsm_exit(space);
		return EK_GSM_NO_MEMORY;
	}
	space->area->pid = (uint64_t)getpid();
	space->area->heaps = heaps_begin(invitation->heap);
	space->area->bytes = EK_GSM_PARTS * invitation->heap;
	return EK_OK;
}

void ek_gsm_exit(struct ek_gsm_space *space)
{
	for (int part = 0; part < EK_GSM_PARTS; part++) {
		free(space->heap[part].extents);
		space->heap[part].extents = 0;
	}
	if (space->map)
		munmap(space->map, space->map_size);
	if (space->fd >= 0)
		close(space->fd);
	space->map = 0;
	space->area = 0;
	space->fifos = 0;
	space->fd = -1;
}

/* Whether a line of /proc/PID/maps is of that file. */
static bool maps(const char *line, const struct stat *file)
{
	unsigned high, low;
	unsigned long long inode;
	return sscanf(line, "%*s %*s %*s %x:%x %llu", &high, &low, &inode) == 3 && inode == file->st_ino &&
	       makedev(high, low) == file->st_dev;
}

/* The mappings of its process say so. A process that ended, though nobody may have asked
 * how, has none; and whoever has its number now does not map this file. */
bool ek_gsm_lives(const struct ek_gsm_space *space, const struct ek_gsm_area *area)
{
	char path[64], *line = 0;
	size_t room = 0;
	bool found = false;
	struct stat info;
	int kept = errno;
	snprintf(path, sizeof path, "/proc/%llu/maps", (unsigned long long)area->pid);
	FILE *list = fopen(path, "re");
	if (!list || fstat(space->fd, &info) != 0) {
		found = list || errno != ENOENT;
	} else {
		while (!found && getline(&line, &room, list) >= 0)
			found = maps(line, &info);
		found = found || (ferror(list) && errno != ESRCH);
	}
	free(line);
	if (list)
		fclose(list);
	errno = kept;
	return found;
}

int ek_gsm_back_fifo(struct ek_gsm_space *space, uint32_t to, uint32_t class)
{
	const uint64_t offset = ek_fifo_offset(space->fifos, to, space->self, class);
	return back(space, space->tasks * space->area_size + offset, ek_fifo_bytes(space->fifos->slots, space->fifos->buffer));
}

/* ---- the heaps ---------------------------------------------------------- */

/* The extent that holds a place of the heap. */
static size_t extent_at(const struct ek_gsm_heap *h, uint64_t place)
{
	size_t low = 0, high = h->count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (h->extents[middle].start <= place)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Which heap holds a place of the area; null: none. */
static struct ek_gsm_heap *heap_of(struct ek_gsm_space *space, uint64_t place)
{
	for (int part = 0; part < EK_GSM_PARTS; part++)
		if (place >= space->heap[part].start && place - space->heap[part].start < space->heap[part].size)
			return &space->heap[part];
	return 0;
}

/* The allocation that holds these bytes of the area as a whole; null: none. */
static struct ek_gsm_extent *allocation(struct ek_gsm_space *space, uint64_t place, uint64_t bytes)
{
	struct ek_gsm_heap *h = heap_of(space, place);
	if (!h)
		return 0;
	struct ek_gsm_extent *e = &h->extents[extent_at(h, place - h->start)];
	uint64_t within = place - h->start - e->start;
	return e->use == EK_GSM_USED && within <= e->length && bytes <= e->length - within ? e : 0;
}

static bool room_for_two(struct ek_gsm_heap *h)
{
	if (h->count + 2 <= h->room)
		return true;
	struct ek_gsm_extent *more = realloc(h->extents, 2 * h->room * sizeof *more);
	if (!more)
		return false;
	h->extents = more;
	h->room *= 2;
	return true;
}

static void insert(struct ek_gsm_heap *h, size_t i, struct ek_gsm_extent e)
{
	memmove(&h->extents[i + 1], &h->extents[i], (h->count - i) * sizeof e);
	h->extents[i] = e;
	h->count++;
}

static void remove_at(struct ek_gsm_heap *h, size_t i)
{
	h->count--;
	memmove(&h->extents[i], &h->extents[i + 1], (h->count - i) * sizeof h->extents[i]);
}

static uint64_t sum_of(const struct ek_gsm_heap *h, enum ek_gsm_use use)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < h->count; i++)
		if (h->extents[i].use == use)
			sum += h->extents[i].length;
	return sum;
}

/* The lowest unused place: what is in use stays together. */
static bool find(const struct ek_gsm_heap *h, uint64_t bytes, uint64_t unit, size_t *index, uint64_t *start)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct ek_gsm_extent *e = &h->extents[i];
		uint64_t skipped = round_up(e->start, unit) - e->start;
		if (e->use == EK_GSM_UNUSED && skipped <= e->length && bytes <= e->length - skipped) {
			*index = i;
			*start = e->start + skipped;
			return true;
		}
	}
	return false;
}

/* Cuts [start, start + bytes) out of an unused extent. */
static void cut(struct ek_gsm_heap *h, size_t i, uint64_t start, uint64_t bytes)
{
	struct ek_gsm_extent whole = h->extents[i];
	uint64_t before = start - whole.start, after = whole.length - before - bytes;
	h->extents[i] = (struct ek_gsm_extent){start, bytes, EK_GSM_USED, false, 0};
	if (after)
		insert(h, i + 1, (struct ek_gsm_extent){start + bytes, after, EK_GSM_UNUSED, false, 0});
	if (before)
		insert(h, i, (struct ek_gsm_extent){whole.start, before, EK_GSM_UNUSED, false, 0});
}

static int take(struct ek_gsm_space *space, struct ek_gsm_heap *h, uint64_t wanted, uint64_t *place, char *text)
{
	size_t i;
	uint64_t start;
	if (wanted == 0 || wanted > h->size) {
		snprintf(text, EK_GSM_TEXT, "%llu bytes: a task's heap has %llu (EVENKEEL_GSM_RESERVE)", (unsigned long long)wanted,
		         (unsigned long long)h->size);
		return wanted ? EK_GSM_NO_MEMORY : EK_GSM_LENGTH;
	}
	uint64_t unit = wanted < EK_GSM_PAGE ? GRANULE : EK_GSM_PAGE, bytes = round_up(wanted, unit);
	if (!find(h, bytes, unit, &i, &start) || !room_for_two(h)) {
		snprintf(text, EK_GSM_TEXT, "%llu bytes: of a heap of %llu bytes %llu are in use, and %llu wait for a global fence "
		         "(EVENKEEL_GSM_RESERVE is how much there is)", (unsigned long long)wanted, (unsigned long long)h->size,
		         (unsigned long long)sum_of(h, EK_GSM_USED), (unsigned long long)sum_of(h, EK_GSM_RELEASED));
		return EK_GSM_NO_MEMORY;
	}
	int error = back(space, space->self * space->area_size + h->start + start, bytes);
	if (!error) /* and for the bytes of its pages */
		error = back(space, space->self * space->area_size + sizeof(struct ek_gsm_area) +
		             (h->start + start - space->area->heaps) / EK_GSM_PAGE, bytes / EK_GSM_PAGE + 1);
	if (error) {
		snprintf(text, EK_GSM_TEXT, "%llu bytes in %s: %s", (unsigned long long)wanted, directory, strerror(error));
		return EK_GSM_NO_MEMORY;
	}
	cut(h, i, start, bytes);
	*place = h->start + start;
	char *first = (char *)space->area + *place - *place % EK_GSM_PAGE;
	madvise(first, bytes, MADV_DODUMP);
	return EK_OK;
}

int ek_gsm_take(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t bytes, uint64_t *place, char *text)
{
	pthread_mutex_lock(&space->lock);
	int result = take(space, &space->heap[part], bytes, place, text);
	pthread_mutex_unlock(&space->lock);
	return result;
}

/* The lowest open window that shows any of these bytes; 0: none. */
static uint32_t shown_by(const struct ek_gsm_space *space, uint64_t place, uint64_t bytes)
{
	for (int slot = 0; slot < EK_GSM_WINDOWS; slot++) {
		const struct ek_gsm_entry *e = &space->area->windows[slot];
		if (e->window && e->length && e->start < place + bytes && place < e->start + e->length)
			return e->window;
	}
	return 0;
}

static void clear(struct ek_gsm_space *space, uint64_t place, uint64_t bytes)
{
	char *memory = (char *)space->area + place;
	if (place % EK_GSM_PAGE || bytes % EK_GSM_PAGE) {
		memset(memory, 0, bytes);
		return;
	}
	memset(ek_gsm_denied(space->area) + (place - space->area->heaps) / EK_GSM_PAGE, 0, bytes / EK_GSM_PAGE);
	while (fallocate(space->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	                 (off_t)(space->self * space->area_size + place), (off_t)bytes) != 0)
		if (errno != EINTR) {
			memset(memory, 0, bytes);
			return;
		}
}

static void settle(struct ek_gsm_space *space, struct ek_gsm_heap *h, uint64_t mark)
{
	for (size_t i = 0; i < h->count; i++) {
		struct ek_gsm_extent *e = &h->extents[i];
		if (e->use == EK_GSM_RELEASED && e->released <= mark) {
			clear(space, h->start + e->start, e->length);
			e->use = EK_GSM_UNUSED;
			space->released--;
		}
		if (i > 0 && e->use == EK_GSM_UNUSED && e[-1].use == EK_GSM_UNUSED) {
			e[-1].length += e->length;
			remove_at(h, i--);
		}
	}
}

static int give(struct ek_gsm_space *space, uint64_t place, char *text)
{
	struct ek_gsm_extent *e = allocation(space, place, 0);
	struct ek_gsm_heap *h = heap_of(space, place);
	if (!e || h->start + e->start != place) {
		snprintf(text, EK_GSM_TEXT, "no allocation begins there, or it was freed before");
		return EK_GSM_NOT_MEMORY;
	}
	uint32_t window = shown_by(space, place, e->length);
	if (window) {
		snprintf(text, EK_GSM_TEXT, "window %u still shows it: close that first", window);
		return EK_GSM_IN_USE;
	}
	e->use = EK_GSM_RELEASED;
	space->released++;
	e->released = e->shown ? space->mark : 0;
	settle(space, h, 0); /* at once, if nobody else ever had an address of it */
	return EK_OK;
}

int ek_gsm_give(struct ek_gsm_space *space, uint64_t place, char *text)
{
	pthread_mutex_lock(&space->lock);
	int result = give(space, place, text);
	pthread_mutex_unlock(&space->lock);
	return result;
}

uint64_t ek_gsm_mark(struct ek_gsm_space *space)
{
	pthread_mutex_lock(&space->lock);
	uint64_t mark = space->mark++;
	pthread_mutex_unlock(&space->lock);
	return mark;
}

void ek_gsm_settle(struct ek_gsm_space *space, uint64_t mark)
{
	pthread_mutex_lock(&space->lock);
	for (int part = 0; part < EK_GSM_PARTS && space->released; part++)
		settle(space, &space->heap[part], mark);
	for (int slot = 0; slot < EK_GSM_WINDOWS && space->released; slot++)
		if (space->slots[slot].use == EK_GSM_RELEASED && space->slots[slot].released <= mark) {
			space->slots[slot].use = EK_GSM_UNUSED;
			space->released--;
		}
	pthread_mutex_unlock(&space->lock);
}

void ek_gsm_usage(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t *used, uint64_t *released)
{
	pthread_mutex_lock(&space->lock);
	*used = sum_of(&space->heap[part], EK_GSM_USED);
	*released = sum_of(&space->heap[part], EK_GSM_RELEASED);
	pthread_mutex_unlock(&space->lock);
}

/* ---- the window table --------------------------------------------------- */

/* What others may not do to some page that these bytes touch. */
static uint32_t denied(const struct ek_gsm_area *area, uint64_t place, uint64_t bytes)
{
	uint64_t first = (place - area->heaps) / EK_GSM_PAGE, last = (place + bytes - 1 - area->heaps) / EK_GSM_PAGE;
	uint32_t all = 0;
	for (uint64_t page = first; bytes > 0 && page <= last; page++)
		all |= __atomic_load_n(&ek_gsm_denied(area)[page], __ATOMIC_RELAXED);
	return all;
}

static void set_limits(struct ek_gsm_space *space, struct ek_gsm_entry *e)
{
	uint32_t allowed = e->length ? e->rights & ~denied(space->area, e->start, e->length) : 0;
	/* Others read them at any time; a limit that they have just read holds for the command that they are at. */
	for (int kind = 0; kind < 3; kind++)
		__atomic_store_n(&e->limit[kind], allowed & (1u << kind) ? e->length : 0, __ATOMIC_RELAXED);
	/* Where aligned offsets may be unaligned addresses, each atomic takes the longer look. */
	if (e->start % sizeof(uint64_t))
		__atomic_store_n(&e->limit[EK_GSM_UPDATING], 0, __ATOMIC_RELAXED);
}

static int show(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t place, uint64_t bytes, uint32_t rights,
                uint64_t token, uint32_t *window, char *text)
{
	const int half = EK_GSM_WINDOWS / 2, first = part == EK_GSM_COLLECTIVE ? 0 : half;
	if (rights & ~(uint32_t)EK_GSM_ALL) {
		snprintf(text, EK_GSM_TEXT, "there are no such rights: %#x", rights);
		return EK_GSM_OPERATION;
	}
	struct ek_gsm_extent *shown = bytes ? allocation(space, place, bytes) : 0;
	if (bytes && !shown) {
		snprintf(text, EK_GSM_TEXT, "%llu bytes from there are not of one allocation", (unsigned long long)bytes);
		return EK_GSM_NOT_MEMORY;
	}
	for (int slot = first; slot < first + half; slot++) {
		struct ek_gsm_slot *s = &space->slots[slot];
		if (s->use != EK_GSM_UNUSED || s->generation == GENERATIONS)
			continue;
		struct ek_gsm_entry *e = &space->area->windows[slot];
		if (shown)
			shown->shown = true;
		s->use = EK_GSM_USED;
		s->generation++;
		*window = s->generation * EK_GSM_WINDOWS + (uint32_t)slot;
		e->rights = token ? 0 : rights; /* for all, who look at the limits alone */
		e->narrow = token ? rights : 0;
		__atomic_store_n(&e->token, token, __ATOMIC_RELAXED);
		e->start = bytes ? place : 0;
		e->length = bytes;
		set_limits(space, e);
		memset(&space->area->counters[slot], 0, sizeof space->area->counters[slot]);
		/* Release: whoever sees the number sees what it stands for. */
		__atomic_store_n(&e->window, *window, __ATOMIC_RELEASE);
		return EK_OK;
	}
	snprintf(text, EK_GSM_TEXT, "all %d windows are open, or were closed since the last global fence", half);
	return EK_GSM_NO_MEMORY;
}

int ek_gsm_show(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t place, uint64_t bytes, uint32_t rights,
                uint64_t token, uint32_t *window, char *text)
{
	pthread_mutex_lock(&space->lock);
	int result = show(space, part, place, bytes, rights, token, window, text);
	pthread_mutex_unlock(&space->lock);
	return result;
}

static int hide(struct ek_gsm_space *space, uint32_t window, char *text)
{
	struct ek_gsm_entry *e = &space->area->windows[window % EK_GSM_WINDOWS];
	struct ek_gsm_slot *s = &space->slots[window % EK_GSM_WINDOWS];
	if (!window || e->window != window) {
		snprintf(text, EK_GSM_TEXT, "window %u is not open", window);
		return EK_GSM_NO_WINDOW;
	}
	/* The place stays as it is, for a command that has looked at the number. */
	__atomic_store_n(&e->window, 0, __ATOMIC_RELAXED);
	for (int kind = 0; kind < 3; kind++)
		__atomic_store_n(&e->limit[kind], 0, __ATOMIC_RELAXED);
	s->use = EK_GSM_RELEASED;
	space->released++;
	s->released = space->mark;
	return EK_OK;
}

int ek_gsm_hide(struct ek_gsm_space *space, uint32_t window, char *text)
{
	pthread_mutex_lock(&space->lock);
	int result = hide(space, window, text);
	pthread_mutex_unlock(&space->lock);
	return result;
}

void ek_gsm_revoke(struct ek_gsm_space *space, uint32_t window)
{
	const uint64_t nobodys = 2; /* tokens are odd */
	pthread_mutex_lock(&space->lock);
	struct ek_gsm_entry *e = &space->area->windows[window % EK_GSM_WINDOWS];
	if (e->window == window)
		__atomic_store_n(&e->token, nobodys, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&space->lock);
}

static int guard(struct ek_gsm_space *space, uint64_t place, uint64_t bytes, uint32_t rights, char *text)
{
	if (place % EK_GSM_PAGE || bytes % EK_GSM_PAGE || !bytes) {
		snprintf(text, EK_GSM_TEXT, "protection is for whole pages of %d bytes", EK_GSM_PAGE);
		return EK_GSM_LENGTH;
	}
	if (rights & ~(uint32_t)EK_GSM_ALL) {
		snprintf(text, EK_GSM_TEXT, "there are no such rights: %#x", rights);
		return EK_GSM_OPERATION;
	}
	if (!allocation(space, place, bytes)) {
		snprintf(text, EK_GSM_TEXT, "%llu bytes from there are not of one allocation", (unsigned long long)bytes);
		return EK_GSM_NOT_MEMORY;
	}
	for (uint64_t page = 0; page < bytes / EK_GSM_PAGE; page++)
		__atomic_store_n(&ek_gsm_denied(space->area)[(place - space->area->heaps) / EK_GSM_PAGE + page],
		                 (unsigned char)(~rights & EK_GSM_ALL), __ATOMIC_RELAXED);
	for (int slot = 0; slot < EK_GSM_WINDOWS; slot++) {
		struct ek_gsm_entry *e = &space->area->windows[slot];
		if (e->window && e->start < place + bytes && place < e->start + e->length)
			set_limits(space, e);
	}
	return EK_OK;
}

int ek_gsm_guard(struct ek_gsm_space *space, uint64_t place, uint64_t bytes, uint32_t rights, char *text)
{
	pthread_mutex_lock(&space->lock);
	int result = guard(space, place, bytes, rights, text);
	pthread_mutex_unlock(&space->lock);
	return result;
}

int ek_gsm_admit(const struct ek_gsm_area *area, uint32_t window, uint64_t offset, uint64_t bytes, uint32_t right,
                 uint64_t token, uint64_t *place)
{
	const struct ek_gsm_entry *e = &area->windows[window % EK_GSM_WINDOWS];
	/* Acquire: with the number comes what it stands for. */
	if (!window || __atomic_load_n(&e->window, __ATOMIC_ACQUIRE) != window)
		return EK_GSM_NO_WINDOW;
	const uint64_t wanted = __atomic_load_n(&e->token, __ATOMIC_RELAXED);
	if (wanted && wanted != token)
		return EK_GSM_KEY;
	if (offset > e->length || bytes > e->length - offset)
		return EK_GSM_RANGE;
	if (!((wanted ? e->narrow : e->rights) & right) || (bytes && denied(area, e->start + offset, bytes) & right))
		return EK_GSM_PROTECTED;
	*place = e->start + offset;
	return EK_OK;
}
