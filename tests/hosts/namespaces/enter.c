/*
 * Runs a command on a host of a cluster.
 *
 *     enter HOLDER COMMAND [ARGUMENT...]              from within the cluster
 *     enter -c CLUSTER HOLDER COMMAND [ARGUMENT...]   from outside of it
 *
 * HOLDER is the process that holds the host's namespaces, by its number within the cluster; CLUSTER is the
 * cluster's process 1, by its number outside. The working directory stays the same.
 *
 * From outside, to the caller it is as if enter were the command: signals sent to enter reach the command, its
 * exit status or fatal signal becomes enter's, and it is killed when enter is killed.
 *
 *     caller -- enter ..socket.. supervisor -- command
 *
 * Only a child can be in the cluster's PID namespace, and a child whose parent is outside would, once enter is
 * killed, be left to the machine's process 1, which may never wait for it; the cluster could then not end. So
 * there is a supervisor that was orphaned on purpose: it belongs to the cluster's process 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_FAILED = 125, STATUS_NO_COMMAND = 127 };

static void fail(const char *what)
{
    fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
    exit(STATUS_FAILED);
}

/* All are opened before any is joined: /proc is another one after the mount namespace has changed. */
static void join_namespaces_of(const char *pid)
{
    static const char *const kinds[] = {"pid_for_children", "time_for_children", "ipc", "uts", "net", "mnt"};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    int fds[KINDS];

    for (int i = 0; i < KINDS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%s/ns/%s", pid, kinds[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        int kernel_lacks_kind = fds[i] < 0 && errno == ENOENT && strcmp(kinds[i], "time_for_children") == 0;
        if (fds[i] < 0 && !kernel_lacks_kind)
            fail(path);
    }
    for (int i = 0; i < KINDS; i++) {
        if (fds[i] < 0)
            continue;
        if (setns(fds[i], 0) != 0)
            fail(kinds[i]);
        close(fds[i]);
    }
}

static void execute(char **command)
{
    execvp(command[0], command);
    fprintf(stderr, "enter: %s: %s\n", command[0], strerror(errno));
    exit(STATUS_NO_COMMAND);
}

static int end_like(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);

    int fatal = WTERMSIG(status);
    struct rlimit no_core = {0, 0};
    sigset_t only_fatal;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(fatal, SIG_DFL);
    sigemptyset(&only_fatal);
    sigaddset(&only_fatal, fatal);
    sigprocmask(SIG_UNBLOCK, &only_fatal, NULL);
    raise(fatal);
    return STATUS_FAILED;
}

/* Else the command could not close its end of the caller's pipes for good. */
static void leave_standard_files_to_the_command(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
}

static void wait_for_either(int first, int second, int *first_ready, int *second_ready)
{
    struct pollfd both[] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
    while (poll(both, 2, -1) < 0 && errno == EINTR) {
    }
    *first_ready = both[0].revents != 0;
    *second_ready = both[1].revents != 0;
}

/* In the cluster: runs the command, passes on the signal numbers that arrive, and sends its wait status. */
static void supervise(int socket, int signals, const sigset_t *mask, char **command)
{
    pid_t child = fork();
    if (child < 0)
        fail("start the command");
    if (child == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        execute(command);
    }
    leave_standard_files_to_the_command();
    for (;;) {
        int message, child_changed, status, number;
        wait_for_either(socket, signals, &message, &child_changed);
        if (child_changed) {
            struct signalfd_siginfo unused;
            if (read(signals, &unused, sizeof unused) > 0 && waitpid(child, &status, WNOHANG) == child) {
                send(socket, &status, sizeof status, MSG_NOSIGNAL);
                exit(0);
            }
        } else if (message) {
            int enter_is_there = recv(socket, &number, sizeof number, 0) == sizeof number;
            kill(child, enter_is_there ? number : SIGKILL);
        }
    }
}

/* Outside: sends the numbers of the signals that other processes send us, until the wait status arrives. */
static int relay(int socket, int signals)
{
    leave_standard_files_to_the_command();
    for (;;) {
        int message, signalled, status;
        wait_for_either(socket, signals, &message, &signalled);
        if (message) {
            int host_is_there = recv(socket, &status, sizeof status, 0) == sizeof status;
            return end_like(host_is_there ? status : SIGKILL);
        }
        struct signalfd_siginfo info;
        if (read(signals, &info, sizeof info) != sizeof info)
            continue;
        /* What a terminal sends, the whole process group has had already. */
        int sent_by_process = info.ssi_code <= 0;
        int number = (int)info.ssi_signo;
        if (sent_by_process)
            send(socket, &number, sizeof number, MSG_NOSIGNAL);
    }
}

static int run_supervised(char **command)
{
    sigset_t all, child_only, before;
    sigfillset(&all);
    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &all, &before);

    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        fail("make a socket");
    pid_t between = fork();
    if (between < 0)
        fail("start the supervisor");
    if (between == 0) {
        if (fork() != 0)
            _exit(0);
        close(ends[0]);
        int signals = signalfd(-1, &child_only, SFD_CLOEXEC);
        if (signals < 0)
            fail("receive signals");
        supervise(ends[1], signals, &before, command);
    }
    close(ends[1]);
    waitpid(between, NULL, 0);
    int signals = signalfd(-1, &all, SFD_CLOEXEC);
    if (signals < 0)
        fail("receive signals");
    return relay(ends[0], signals);
}

int main(int argc, char **argv)
{
    int outside = argc > 2 && strcmp(argv[1], "-c") == 0;
    char **host_and_command = argv + (outside ? 3 : 1);
    if (argc - (host_and_command - argv) < 2) {
        fprintf(stderr, "usage: enter [-c CLUSTER] HOLDER COMMAND [ARGUMENT...]\n");
        return STATUS_FAILED;
    }

    char directory[PATH_MAX];
    if (getcwd(directory, sizeof directory) == NULL)
        fail("the working directory");
    if (outside)
        join_namespaces_of(argv[2]);
    join_namespaces_of(host_and_command[0]);
    if (chdir(directory) != 0)
        fail(directory);

    if (!outside)
        execute(host_and_command + 1);
    return run_supervised(host_and_command + 1);
}
