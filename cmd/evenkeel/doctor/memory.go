package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"evenkeel/runtime/config"
	"evenkeel/runtime/job"
)

const megabyte = 1 << 20

// An event is 64 bytes in ring and history (c/segment.h); a rank's other
// tables, its call sites and what Open MPI itself keeps in /dev/shm take less
// than otherTables.
const (
	eventBytes  = 64
	otherTables = 8 * megabyte
)

func (m Machine) sharedMemory() []Finding {
	f := Finding{Status: Fail, Subject: "/dev/shm", Why: "Ranks record into a file there; without it a run is not recorded."}
	path := m.path(job.SegmentDir)
	var fs unix.Statfs_t
	if err := m.statfs(path, &fs); err != nil {
		f.What = fmt.Sprintf("There is no %s: %v.", job.SegmentDir, err)
		f.Fix = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm"
		return []Finding{f}
	}
	if err := usable(path); err != nil {
		f.What = fmt.Sprintf("No file can be made, filled and locked in it: %v.", err)
		f.Fix = "chmod 1777 /dev/shm; make room in it; mount a tmpfs there if it is none."
		return []Finding{f}
	}
	settings, _ := config.Load(m.Environ)
	perRank := uint64(settings.Ring()+settings.History())*eventBytes + otherTables
	ranks := uint64(max(1, m.affinity()))
	free, size := fs.Bavail*uint64(fs.Bsize), fs.Blocks*uint64(fs.Bsize)
	f.Status = OK
	f.What = fmt.Sprintf("%d of %d MB free; a rank takes up to %d MB.", free/megabyte, size/megabyte, perRank/megabyte)
	if free < ranks*perRank {
		f.Status = Warn
		if free < perRank {
			f.Status = Fail
		}
		f.What = fmt.Sprintf("%d of %d MB free; a rank takes up to %d MB, and %d ranks, one for each core, %d MB.",
			free/megabyte, size/megabyte, perRank/megabyte, ranks, ranks*perRank/megabyte)
		f.Fix = "mount -o remount,size=1g /dev/shm (in a container: docker run --shm-size=1g), or a smaller EVENKEEL_HISTORY."
	}
	return []Finding{f}
}

// usable does with a file what the library does with its segment.
func usable(directory string) error {
	file, err := os.CreateTemp(directory, "evenkeel-doctor-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, 4096); err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	return unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock)
}

// leftBehind looks for segments whose ranks are dead.
func (m Machine) leftBehind() []Finding {
	paths, _ := filepath.Glob(m.path(job.SegmentDir + "/evenkeel.*.*.*.*"))
	var stale []string
	bytes := int64(0)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		file, ok := info.Sys().(*syscall.Stat_t)
		// Whether those of other users live cannot be seen.
		if !ok || m.uid != 0 && int(file.Uid) != m.uid || job.Alive(path) {
			continue
		}
		stale = append(stale, path)
		bytes += file.Blocks * 512
	}
	if len(stale) == 0 {
		return nil
	}
	return []Finding{{Status: Warn, Subject: "left behind",
		What: fmt.Sprintf("%d segments (%d MB) of jobs that are gone: %s.", len(stale), bytes/megabyte, strings.Join(stale, " ")),
		Why:  "They take memory until they are removed.",
		Fix:  "rm " + strings.Join(stale, " ")}}
}

// limit is how many bytes of a resource a process may have.
func limit(resource int) uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// addressSpace is what Go reserves much of, without taking memory; c/load.c asks for 2 GiB.
func (m Machine) addressSpace() []Finding {
	const enough = 4096 * megabyte
	if m.space >= enough {
		return nil
	}
	return []Finding{{Status: Warn, Subject: "address space",
		What: fmt.Sprintf("A process may have %d MB of addresses.", m.space/megabyte),
		Why:  "The runtime reserves 2 GB in each rank; where these are not left to it there is no report.",
		Fix:  "ulimit -v unlimited, or ask the batch system for no limit of virtual memory."}}
}

// lockedMemory matters to networks that read and write memory themselves.
func (m Machine) lockedMemory() []Finding {
	adapters, _ := filepath.Glob(m.path("/sys/class/infiniband/*"))
	if len(adapters) == 0 {
		return nil
	}
	f := Finding{Status: OK, Subject: "locked memory", Why: "InfiniBand and its like need memory that stays in place; with too little, Open MPI falls back to slower ways, and waiting looks longer.",
		What: "Unlimited."}
	if m.locked != unix.RLIM_INFINITY {
		f.Status = Warn
		f.What = fmt.Sprintf("At most %s kB may be locked, and %s is there.", strconv.FormatUint(m.locked/1024, 10), filepath.Base(adapters[0]))
		f.Fix = `Add "* - memlock unlimited" to /etc/security/limits.d/, and log in again.`
	}
	return []Finding{f}
}
