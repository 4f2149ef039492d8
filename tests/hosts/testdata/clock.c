/* Prints CLOCK_MONOTONIC and CLOCK_BOOTTIME in nanoseconds. */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

static long long nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void)
{
    printf("%lld %lld\n", nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_BOOTTIME));
    return 0;
}
