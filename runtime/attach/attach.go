// Package attach is evenkeel's Go runtime inside a rank: it drains the rank's
// event rings while the program runs, and makes the profile at its end.
//
// libevenkeel.so calls it through the table in table.c. A Go program has this
// runtime by importing the package (for its effect alone), which registers the
// table with libevenkeel.so where that is preloaded; any other program gets it
// as libevenkeel-runtime.so, built from shim/.
package attach

/*
#cgo CFLAGS: -I${SRCDIR}/../../c
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include <string.h>
#include "runtime.h"

void ek_attach_register(void);

static struct ek_clock_anchor read_anchor(const struct ek_runtime_process *process)
{
	return process->anchor();
}

static int reserve(const struct ek_runtime_process *process, const void *at, uint64_t bytes)
{
	return process->reserve(at, bytes);
}
*/
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"evenkeel/runtime/config"
	"evenkeel/runtime/drain"
	"evenkeel/runtime/job"
	"evenkeel/runtime/segment"
)

func init() {
	C.ek_attach_register()
}

// rank is the one rank that this process is.
var rank struct {
	sync.Mutex // over drainer: the last drain waits for the one under way
	process    *C.struct_ek_runtime_process
	segment    *segment.Segment
	drainer    *drain.Drainer // nil once stopped
	settings   config.Config
}

//export ekUp
func ekUp() {}

//export ekStart
func ekStart(process unsafe.Pointer) C.int {
	rank.process = (*C.struct_ek_runtime_process)(process)
	memory := unsafe.Slice((*byte)(rank.process.segment), uint64(rank.process.segment_size))
	s, err := segment.New(memory)
	if err != nil {
		if rank.process.local_rank == 0 { // one line a node is enough
			complain(err)
		}
		return 1
	}
	settings, warnings := config.Load(os.Environ())
	config.Tell(warnings, rank.process.world_rank == 0 && s.Header.World == 1) // not of each world that is spawned
	rank.segment, rank.settings = s, settings
	rank.drainer = drain.New(s, int(rank.process.local_rank))
	rank.drainer.Reserve = func(part []segment.Event) bool {
		at, bytes := unsafe.Pointer(unsafe.SliceData(part)), uintptr(len(part))*unsafe.Sizeof(part[0])
		return C.reserve(rank.process, at, C.uint64_t(bytes)) != 0
	}
	go drainAlong(settings.Drain())
	return 0
}

// drainAlong drains until ekStop.
func drainAlong(every time.Duration) {
	for {
		time.Sleep(every)
		if !drainOnce() {
			return
		}
	}
}

func drainOnce() bool {
	rank.Lock()
	defer rank.Unlock()
	if rank.drainer == nil {
		return false
	}
	now := C.read_anchor(rank.process)
	if rank.process.local_rank == 0 {
		rank.segment.Header.SetNewest(segment.ClockAnchor{Ticks: uint64(now.ticks), Ns: uint64(now.monotonic_ns)})
	}
	rank.drainer.Drain(uint64(now.ticks))
	return true
}

//export ekStop
func ekStop() {
	drainOnce()
	rank.Lock()
	rank.drainer = nil
	rank.Unlock()
}

//export ekImage
func ekImage(image *unsafe.Pointer) C.int64_t {
	var b bytes.Buffer
	if err := rank.segment.Encode(&b); err != nil {
		complain(err)
		return -1
	}
	*image = C.CBytes(b.Bytes())
	return C.int64_t(b.Len())
}

//export ekRelease
func ekRelease(image unsafe.Pointer) {
	C.free(image)
}

// published is closed when the profile is made.
var published = make(chan struct{})

//export ekPublish
func ekPublish(images, lengths unsafe.Pointer, count C.int) {
	pointers := unsafe.Slice((*unsafe.Pointer)(images), int(count))
	sizes := unsafe.Slice((*int64)(lengths), int(count))
	var others [][]byte
	for i, p := range pointers {
		if p != nil && sizes[i] > 0 {
			others = append(others, unsafe.Slice((*byte)(p), sizes[i]))
		}
	}
	go func() {
		defer close(published)
		err := job.Publish(rank.segment, others, segment.Text(rank.segment.Header.Out[:]), os.Stderr,
			rank.settings.Summary())
		if err != nil {
			complain(err)
		}
	}()
}

//export ekPublished
func ekPublished() {
	<-published
}

// services are what other packages offer to libevenkeel.so, by name.
var services = map[string]unsafe.Pointer{}

// Offer has libevenkeel.so find a table of C functions by the name that the
// table's header says. To be called from init functions; the table must stay
// where it is, in C memory.
func Offer(name string, table unsafe.Pointer) {
	services[name] = table
}

//export ekService
func ekService(name unsafe.Pointer) unsafe.Pointer {
	return services[C.GoString((*C.char)(name))]
}

func complain(err error) {
	fmt.Fprintf(os.Stderr, "evenkeel: %v\n", err)
}
