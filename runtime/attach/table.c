/* The table by which libevenkeel.so calls this runtime: see c/runtime.h. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "_cgo_export.h"
#include "runtime.h"

static int start(const struct ek_runtime_process *process)
{
	return ekStart((void *)process);
}

static void publish(void *const *images, const int64_t *lengths, int count)
{
	ekPublish((void *)images, (void *)lengths, count);
}

static const void *service(const char *name)
{
	return ekService((void *)name);
}

const struct ek_runtime ek_runtime = {
	.version = EK_RUNTIME_VERSION,
	.size = sizeof(struct ek_runtime),
	.start = start,
	.stop = ekStop,
	.image = ekImage,
	.release = ekRelease,
	.publish = publish,
	.published = ekPublished,
	.service = service,
};

/* Returns when the Go runtime is up: its start installs signal handlers, and
 * the loader puts the program's back after that. */
void ek_runtime_up(void)
{
	ekUp();
}

void ek_attach_register(void)
{
	void (*reg)(const struct ek_runtime *) = (void (*)(const struct ek_runtime *))dlsym(RTLD_DEFAULT, "ek_register_runtime");
	if (reg)
		reg(&ek_runtime);
}
