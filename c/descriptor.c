#define _GNU_SOURCE
#include "descriptor.h"

#include <fcntl.h>
#include <unistd.h>

enum { HIGH = 500 }; /* below the limit of 1024 that most processes have */

void ek_descriptor_make_room(void)
{
	int any = open("/", O_PATH | O_CLOEXEC);
	if (any < 0)
		return;
	close(ek_descriptor_raise(any));
}

int ek_descriptor_raise(int descriptor)
{
	int high = fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH);
	if (high < 0)
		return descriptor;
	close(descriptor);
	return high;
}
