/*
 * The first process of a cluster: makes its hosts, then waits for its standard input to end.
 *
 *     cluster HOSTS_FILE NAME=OFFSET...
 *
 * It is started as process 1 of a new PID namespace, in new mount, network, UTS and IPC namespaces.
 * For every host it starts one process that holds that host's namespaces and prints "NAME PID".
 * OFFSET, in nanoseconds, is added to the host's CLOCK_MONOTONIC and CLOCK_BOOTTIME.
 *
 * Standard input is a pipe whose other end only the creator holds. When the creator closes it or dies,
 * however it dies, process 1 ends, and with it the kernel ends every process of the cluster.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static const long long nanoseconds_per_second = 1000000000;

static void fail(const char *what)
{
    fprintf(stderr, "cluster: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void mount_tmpfs(const char *where)
{
    if (mount("tmpfs", where, "tmpfs", MS_NOSUID | MS_NODEV, NULL) != 0)
        fail(where);
}

/* The offsets can be written only as long as no process is in the new time namespace; newer kernels move
 * a process into it at exec, so it cannot be left to a shell. */
static void offset_clocks(long long nanoseconds)
{
    long long seconds = nanoseconds / nanoseconds_per_second;
    long long rest = nanoseconds % nanoseconds_per_second;
    if (rest < 0) {
        seconds -= 1;
        rest += nanoseconds_per_second;
    }
    if (unshare(CLONE_NEWTIME) != 0)
        fail("new time namespace");
    FILE *offsets = fopen("/proc/self/timens_offsets", "w");
    if (offsets == NULL)
        fail("/proc/self/timens_offsets");
    fprintf(offsets, "monotonic %lld %lld\nboottime %lld %lld\n", seconds, rest, seconds, rest);
    if (fclose(offsets) != 0)
        fail("write /proc/self/timens_offsets");
}

static void hold_host(const char *hosts_file, const char *name, long long offset)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
        fail("new namespaces of a host");
    if (offset != 0)
        offset_clocks(offset);
    if (sethostname(name, strlen(name)) != 0)
        fail("set the host name");
    mount_tmpfs("/dev/shm");
    mount_tmpfs("/run");
    if (mount(hosts_file, "/etc/hosts", NULL, MS_BIND, NULL) != 0)
        fail("mount /etc/hosts");

    printf("%s %d\n", name, (int)getpid());
    fclose(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    if (argc < 3 || getpid() != 1) {
        fprintf(stderr, "cluster: it is started by the Go package evenkeel/tests/hosts\n");
        return 2;
    }
    /* Nothing that is mounted here may reach the real machine. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        fail("make the mounts private");
    if (mount("proc", "/proc", "proc", 0, NULL) != 0)
        fail("/proc");
    /* Orphans become children of process 1; ignored, they leave no zombie that looks alive. */
    signal(SIGCHLD, SIG_IGN);

    for (int i = 2; i < argc; i++) {
        char *name = argv[i];
        char *offset = strchr(name, '=');
        if (offset == NULL) {
            fprintf(stderr, "cluster: %s: expected NAME=OFFSET\n", name);
            return 2;
        }
        *offset++ = '\0';
        pid_t host = fork();
        if (host < 0)
            fail("start a host");
        if (host == 0)
            hold_host(argv[1], name, strtoll(offset, NULL, 10));
    }
    /* The reader of our output sees its end as soon as every host is made, or one has failed. */
    fclose(stdout);

    char ignored[64];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, ignored, sizeof ignored);
        if (n == 0 || (n < 0 && errno != EINTR))
            return 0;
    }
}
