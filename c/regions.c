#define _GNU_SOURCE
#include "regions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "evenkeel.h"
#include "process.h"

uint32_t ek_region_now;
uint64_t ek_epoch = 1;

enum { DEPTH = 64 };
static struct {
	uint32_t open[DEPTH]; /* from the outermost in */
	int depth;
	uint64_t since;       /* ticks when the innermost began to count */
} stack;

/* Adds the time since the last change to the innermost region. */
static void settle(uint64_t ticks)
{
	struct ek_region *region = &ek.regions[stack.open[stack.depth]];
	EK_ADD(region->ticks, ticks - stack.since);
	stack.since = ticks;
}

static void enter(uint32_t region)
{
	settle(ek_ticks());
	stack.open[++stack.depth] = region;
	EK_ADD(ek.regions[region].entries, 1);
	EK_STORE(ek_region_now, region);
	EK_STORE(ek.rank->region, region);
	ek_epoch_next();
}

static void leave_to(int depth)
{
	settle(ek_ticks());
	stack.depth = depth;
	EK_STORE(ek_region_now, stack.open[depth]);
	EK_STORE(ek.rank->region, stack.open[depth]);
	ek_epoch_next();
}

/* A region is its name and the region around it: the same name inside two
 * others is two regions. 0 if the table is full. */
static uint32_t find(const char *name, uint32_t parent)
{
	uint32_t used = EK_LOAD(ek.rank->regions);
	for (uint32_t i = EK_REGION_OFF + 1; i < used; i++)
		if (ek.regions[i].parent == parent && strncmp(ek.regions[i].name, name, EK_NAME_LEN - 1) == 0)
			return i;
	if (used == EK_REGIONS)
		return 0;
	ek.regions[used].parent = parent;
	snprintf(ek.regions[used].name, EK_NAME_LEN, "%s", name);
	EK_PUBLISH(ek.rank->regions, used + 1);
	return used;
}

void ek_regions_start(uint64_t ticks)
{
	snprintf(ek.regions[EK_REGION_WHOLE].name, EK_NAME_LEN, "whole run");
	snprintf(ek.regions[EK_REGION_OFF].name, EK_NAME_LEN, "recording off");
	EK_PUBLISH(ek.rank->regions, 2);
	stack.depth = 0;
	stack.open[0] = EK_REGION_WHOLE;
	stack.since = ticks;
}

void ek_regions_stop(uint64_t ticks)
{
	settle(ticks);
}

static bool active(void)
{
	return EK_LOAD(ek.mode) == EK_RECORDING;
}

bool ek_region_open(const char *name)
{
	bool opened = false;
	if (!active() || !name)
		return false;
	pthread_mutex_lock(&ek.lock);
	if (stack.depth + 1 < DEPTH) {
		uint32_t region = find(name, stack.open[stack.depth]);
		if (region) {
			enter(region);
			opened = true;
		}
	}
	pthread_mutex_unlock(&ek.lock);
	return opened;
}

/* Ending a region that is not the innermost ends those inside it too; ending
 * one that is not open does nothing. */
void ek_region_close(const char *name)
{
	if (!active())
		return;
	pthread_mutex_lock(&ek.lock);
	for (int depth = stack.depth; depth > 0; depth--)
		if (!name || strncmp(ek.regions[stack.open[depth]].name, name, EK_NAME_LEN - 1) == 0) {
			leave_to(depth - 1);
			break;
		}
	pthread_mutex_unlock(&ek.lock);
}

static bool off_now(void)
{
	return stack.open[stack.depth] == EK_REGION_OFF;
}

static void recording(bool on)
{
	if (!active())
		return;
	pthread_mutex_lock(&ek.lock);
	if (!on && !off_now() && stack.depth + 1 < DEPTH)
		enter(EK_REGION_OFF);
	else if (on && off_now())
		leave_to(stack.depth - 1);
	pthread_mutex_unlock(&ek.lock);
}

/* Where a program says MPI_Pcontrol(1) and means "on", a text that an earlier
 * call left in a register looks like the name of a region. What the program
 * does besides tells: one that names regions ends them by name, one that
 * switches says MPI_Pcontrol(0). */
static struct {
	bool ends_by_name;
	bool switches;
	int doubtful; /* depth of the outermost region begun before either was seen; 0: none */
} convention;

static void begin(const char *name)
{
	if (off_now() || (convention.switches && !convention.ends_by_name)) {
		recording(true);
	} else if (ek_region_open(name) && !convention.ends_by_name && !convention.doubtful) {
		convention.doubtful = stack.depth;
	}
}

static void end(const char *name)
{
	convention.ends_by_name = true;
	convention.doubtful = 0;
	ek_region_close(name);
}

static void switch_off(void)
{
	convention.switches = true;
	if (active() && convention.doubtful && convention.doubtful <= stack.depth) {
		pthread_mutex_lock(&ek.lock);
		leave_to(convention.doubtful - 1);
		pthread_mutex_unlock(&ek.lock);
	}
	convention.doubtful = 0;
	recording(false);
}

void ek_pcontrol(int level, const char *name)
{
	char number[16];
	int kept = errno;
	if (level == 1 && name) {
		begin(name);
	} else if (level == -1 && name) {
		end(name);
	} else if (level == -1) {
		ek_region_close(0);
	} else if (level == 1) {
		recording(true);
	} else if (level == 0) {
		switch_off();
	} else if (level > 2 || level < -2) {
		snprintf(number, sizeof number, "%d", level < 0 ? -level : level);
		if (level > 0)
			ek_region_open(number);
		else
			ek_region_close(number);
	}
	errno = kept;
}

/* MPI_Pcontrol(1) may come with nothing behind the 1, and the register then
 * holds anything: the kernel reads there for us and does not crash. A single
 * letter is no name: in memory, a small number looks like one. */
bool ek_printable(const void *address)
{
	char copy[EK_NAME_LEN];
	int kept = errno;
	bool fits = false;
	for (size_t length = sizeof copy; length >= 8 && !fits; length /= 2) {
		/* Shorter tries, for a name at the end of a mapped page. */
		struct iovec to = {copy, length}, from = {(void *)(uintptr_t)address, length};
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)length)
			continue;
		size_t end = strnlen(copy, length);
		fits = end > 1 && end < length;
		for (size_t i = 0; i < end; i++)
			fits = fits && (unsigned char)copy[i] >= ' ' && copy[i] != 127;
		break;
	}
	errno = kept;
	return fits;
}

EK_EXPORT int ek_region_begin(const char *name)
{
	return ek_region_open(name) ? EK_OK : EK_INACTIVE;
}

EK_EXPORT int ek_region_end(void)
{
	if (!active())
		return EK_INACTIVE;
	ek_region_close(0);
	return EK_OK;
}
