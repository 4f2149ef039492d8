// Package idle lets a Go SPMD program use the time in which it waits in MPI, where
// libevenkeel.so is preloaded and EVENKEEL_WAIT lets waits sleep.
package idle

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>

int ekIdleCollect(void *unused);

static int collect(void *unused)
{
	return ekIdleCollect(unused);
}

// 0, or a result of evenkeel.h; -1 where libevenkeel.so is not preloaded.
static int hook_collection(long declared_us)
{
	int (*hook)(const char *, int (*)(void *), void *, long);
	*(void **)&hook = dlsym(RTLD_DEFAULT, "ek_idle_hook");
	return hook ? hook("Go's collection", collect, 0, declared_us) : -1;
}

static int unhook_collection(void)
{
	int (*unhook)(int (*)(void *), void *);
	*(void **)&unhook = dlsym(RTLD_DEFAULT, "ek_idle_unhook");
	return unhook ? unhook(collect, 0) : -1;
}
*/
import "C"

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
	"unsafe"

	"github.com/pkg/errors"
)

const (
	firstGuess = 5 * time.Millisecond // of what a collection takes
	shortest   = time.Millisecond     // that is declared for one
	worth      = 1 << 20              // bytes of garbage, at least
)

var collection struct {
	sync.Mutex
	collecting bool
	percent    int   // GOGC before
	limit      int64 // memory limit before
	declared   time.Duration
}

// Collect moves Go's garbage collection out of the program's computation into its
// waits in MPI: while a rank waits, and can be expected to wait for as long as twice
// the last collection took, its waiting thread collects, if the heap has grown by a
// quarter since. At other times there is no collection, unless the process comes to
// use limit bytes of memory (debug.SetMemoryLimit), which keeps a program that never
// waits from growing without bound. Results are the same as ever.
//
// To be called after mpi.Init, on any rank; it holds until Stop. An error, and
// nothing changed, where limit is not positive, where libevenkeel.so is not
// preloaded, and where waits spin. Safe for concurrent use.
func Collect(limit int64) error {
	if limit <= 0 {
		return errors.Errorf("idle: a memory limit of %d bytes: it must be positive, since nothing else bounds the heap of a rank that never waits", limit)
	}
	collection.Lock()
	defer collection.Unlock()
	if err := declare(firstGuess); err != nil {
		return err
	}
	percent, before := debug.SetGCPercent(-1), debug.SetMemoryLimit(limit)
	if !collection.collecting {
		collection.percent, collection.limit, collection.collecting = percent, before, true
	}
	return nil
}

// Stop has Go collect as it did before Collect.
func Stop() {
	collection.Lock()
	defer collection.Unlock()
	if !collection.collecting {
		return
	}
	C.unhook_collection()
	debug.SetGCPercent(collection.percent)
	debug.SetMemoryLimit(collection.limit)
	collection.collecting = false
}

// declare registers the collection as a hook that takes that long.
func declare(took time.Duration) error {
	took = max(took, shortest)
	if took == collection.declared && collection.collecting {
		return nil
	}
	switch C.hook_collection(C.long(took.Microseconds())) {
	case 0:
		collection.declared = took
		return nil
	case -1:
		return errors.New("idle: libevenkeel.so is not preloaded: start the program with `evenkeel run`, or with LD_PRELOAD")
	default:
		return errors.New("idle: waits are not used: MPI is not initialized, or EVENKEEL_WAIT is spin; set it to adaptive or sleep")
	}
}

// grown says whether the heap holds a quarter more than after the last collection.
func grown() bool {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	objects, live := sample[0].Value.Uint64(), sample[1].Value.Uint64()
	return objects > live+live/4+worth
}

//export ekIdleCollect
func ekIdleCollect(unsafe.Pointer) C.int {
	if !grown() {
		return 0
	}
	began := time.Now()
	runtime.GC()
	took := time.Since(began)
	// Whoever holds the lock is about to change all of this.
	if collection.TryLock() {
		defer collection.Unlock()
		if collection.collecting {
			declare(2 * took)
		}
	}
	return 0
}
