#define _GNU_SOURCE
#include "load.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor.h"
#include "process.h"

static const struct ek_runtime *registered;
static bool opened; /* the Go library that is in this process is ours */

EK_EXPORT void ek_register_runtime(const struct ek_runtime *runtime)
{
	registered = runtime;
}

/* A path relative to the directory of libevenkeel.so. */
static bool beside(const char *relative, char *path, size_t size)
{
	Dl_info info;
	char here[PATH_MAX];
	if (!dladdr((void *)(uintptr_t)ek_runtime_load, &info) || !realpath(info.dli_fname, here))
		return false;
	return snprintf(path, size, "%s/%s", dirname(here), relative) < (int)size;
}

/* Go's linker leaves a note of the owner "Go" with the build id. */
static int has_go_note(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_NOTE)
			continue;
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			const char *name = at + sizeof *note;
			if (note->n_namesz == 4 && memcmp(name, "Go\0", 4) == 0)
				return 1;
			at = name + ((note->n_namesz + 3u) & ~3u) + ((note->n_descsz + 3u) & ~3u);
		}
	}
	return 0;
}

/* Go ends the process where it lacks address space, descriptors or threads when it
 * starts, so it is not started where these are not to be had. */
enum { GO_DESCRIPTORS = 8, GO_THREADS = 8 };
enum { MANY_THREADS = 32 }; /* enough for the watcher, MPI and the runtime together */
enum { WATCHER_THREADS = 5 }; /* for the watcher alone, on one processor */
static const size_t go_space = (size_t)2 << 30;

static bool has_space(void)
{
	void *space = mmap(0, go_space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return space != MAP_FAILED && munmap(space, go_space) == 0;
}

static bool has_descriptors(void)
{
	int files[GO_DESCRIPTORS], count = 0;
	while (count < GO_DESCRIPTORS && (files[count] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		count++;
	bool enough = count == GO_DESCRIPTORS;
	while (count > 0)
		close(files[--count]);
	return enough;
}

static void *pass(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return 0;
}

static bool has_threads(int wanted)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[MANY_THREADS];
	pthread_attr_t quiet; /* the program's signals are not for them */
	sigset_t all;
	int count = 0;
	sigfillset(&all);
	pthread_attr_init(&quiet);
	pthread_attr_setsigmask_np(&quiet, &all);
	pthread_mutex_lock(&gate);
	while (count < wanted && pthread_create(&threads[count], &quiet, pass, &gate) == 0)
		count++;
	pthread_mutex_unlock(&gate);
	bool enough = count == wanted;
	while (count > 0)
		pthread_join(threads[--count], 0);
	pthread_attr_destroy(&quiet);
	return enough;
}

/* What keeps Go from starting here, and what follows; null if nothing does. */
static const char *lacking(void)
{
	if (!has_space())
		return "the address space is limited (ulimit -v), and the runtime needs 2 GiB of it; there will be no report";
	if (!has_descriptors())
		return "too few files may be open (ulimit -n) for the runtime; the run is recorded, with less detail";
	if (!has_threads(WATCHER_THREADS))
		return "too few threads may be started (ulimit -u); there will be no report";
	if (!has_threads(GO_THREADS))
		return "too few threads may be started (ulimit -u) for the runtime; the run is recorded, with less detail";
	return 0;
}

/* What the process, and this thread of it, does with signals. */
struct signals {
	struct sigaction action[NSIG];
	bool known[NSIG];
	sigset_t mask;
	stack_t stack;
};

static void save_signals(struct signals *s)
{
	for (int i = 1; i < NSIG; i++)
		s->known[i] = sigaction(i, 0, &s->action[i]) == 0;
	pthread_sigmask(SIG_SETMASK, 0, &s->mask);
	sigaltstack(0, &s->stack);
}

static void restore_signals(const struct signals *s)
{
	for (int i = 1; i < NSIG; i++) {
		struct sigaction now;
		if (s->known[i] && sigaction(i, 0, &now) == 0 &&
		    (now.sa_sigaction != s->action[i].sa_sigaction || now.sa_flags != s->action[i].sa_flags))
			sigaction(i, &s->action[i], 0);
	}
	sigaltstack(&s->stack, 0);
	pthread_sigmask(SIG_SETMASK, &s->mask, 0);
}

/* Go installs handlers for the signals of faults and its own, marks those of
 * others SA_ONSTACK, gives a thread that enters it another signal stack, and
 * its own threads inherit the mask of the one that opens it. We install no
 * handlers: what was there is put back. With every signal blocked in Go's
 * threads, the program's signals go to the program's threads as before. */
static void *open_quietly(const char *path)
{
	struct signals before;
	sigset_t all;
	void *library;
	save_signals(&before);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, 0);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (library) {
		/* Go starts in a thread of its own; this waits until it is up. */
		void (*wait_until_up)(void) = (void (*)(void))dlsym(library, "ek_runtime_up");
		if (wait_until_up)
			wait_until_up();
	}
	restore_signals(&before);
	return library;
}

const struct ek_runtime *ek_runtime_open(const char *path, bool tells)
{
	const struct ek_runtime *runtime = registered;
	char own[PATH_MAX];
	if (!runtime) {
		if (dl_iterate_phdr(has_go_note, 0) && !opened)
			return 0; /* a Go program without our packages: C alone */
		const char *lack = lacking();
		if (lack) {
			if (tells)
				fprintf(stderr, "evenkeel: %s\n", lack);
			return 0;
		}
		if (!*path && beside("libevenkeel-runtime.so", own, sizeof own))
			path = own;
		void *library = open_quietly(path);
		if (!library) {
			if (tells)
				fprintf(stderr, "evenkeel: the runtime is missing (%s); the run is recorded, with less detail. "
				                "Set EVENKEEL_RUNTIME to where libevenkeel-runtime.so is\n", dlerror());
			return 0;
		}
		opened = true;
		runtime = dlsym(library, "ek_runtime");
	}
	if (!runtime || runtime->version != EK_RUNTIME_VERSION || runtime->size != sizeof *runtime) {
		if (tells)
			fprintf(stderr, "evenkeel: the runtime %s is of another version (%u, not %u); the run is recorded, with "
			                "less detail. Install both libraries from one build\n",
			        path, runtime ? runtime->version : 0, EK_RUNTIME_VERSION);
		return 0;
	}
	return runtime;
}

const struct ek_runtime *ek_runtime_load(const char *path, const struct ek_runtime_process *process)
{
	const struct ek_runtime *runtime = ek_runtime_open(path, process->local_rank == 0); /* one line a node is enough */
	return runtime && runtime->start(process) == 0 ? runtime : 0;
}

/* The watcher must be no child of the program (which may wait for its own
 * children), outlive it, and hold none of its files but stderr: a shell starts
 * it in the background, in a session of its own, and is waited for here. */
static bool start_detached(const char *script, char *const arguments[], int in, int out)
{
	char program[PATH_MAX];
	char *all[16] = {"sh", "-c", (char *)(uintptr_t)script, program};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t shell;
	int status = 0;
	bool started;
	if (!beside("../bin/evenkeel", program, sizeof program) || access(program, X_OK) != 0 || !has_space())
		return false;
	for (int i = 0; arguments[i]; i++)
		all[4 + i] = arguments[i];
	posix_spawn_file_actions_init(&files);
	if (in < 0)
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, in, 0);
	if (out < 0)
		posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	started = posix_spawn(&shell, "/bin/sh", &files, &attributes, all, environ) == 0;
	while (started && waitpid(shell, &status, 0) < 0 && errno == EINTR)
		;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return started && status == 0; /* not where it can't fork */
}

static int watcher = -1; /* the socket that one listens to */

/* What a shell starts in the background does not get the input that the shell has. */
#define START_WATCHER "\"$0\" watch <&3 3<&- &"
static const char with_many_threads[] = "unset LD_PRELOAD; exec 3<&0; " START_WATCHER,
	with_few_threads[] = "unset LD_PRELOAD; exec 3<&0; GOMAXPROCS=1 " START_WATCHER;

static void start_watcher(const char *how, int ours, int theirs)
{
	char *none[] = {0};
	if (start_detached(how, none, theirs, -1))
		watcher = ours;
	else
		close(ours);
	close(theirs);
}

void ek_watcher_start_early(void)
{
	int ends[2];
	if (!has_threads(MANY_THREADS) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	int high = ek_descriptor_raise(ends[0]);
	if (high != ends[0]) {
		start_watcher(with_many_threads, high, ends[1]);
		return;
	}
	close(ends[0]);
	close(ends[1]);
}

bool ek_watcher_tell(const char *segment_path)
{
	size_t length = strlen(segment_path);
	int ends[2];
	if (watcher < 0 && has_threads(WATCHER_THREADS) && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0)
		start_watcher(has_threads(MANY_THREADS) ? with_many_threads : with_few_threads, ends[0], ends[1]);
	bool told = watcher >= 0 && send(watcher, segment_path, length, MSG_NOSIGNAL) == (ssize_t)length;
	ek_watcher_dismiss();
	return told;
}

void ek_watcher_dismiss(void)
{
	if (watcher >= 0)
		close(watcher);
	watcher = -1;
}

int ek_guest_start(char *const arguments[])
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	bool started = start_detached("unset LD_PRELOAD; \"$0\" idle \"$@\" &", arguments, -1, ends[1]);
	close(ends[1]);
	if (started)
		return ends[0];
	close(ends[0]);
	return -1;
}
