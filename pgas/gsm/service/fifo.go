package service

/*
#include "gsm_network.h"
*/
import "C"

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// fifo is where C puts its commands; a goroutine takes them when the doorbell rings.
type fifo struct {
	c       *C.struct_ek_gsm_fifo
	closing *atomic.Bool
	ended   chan struct{}
}

// open makes the doorbell, and has take called whenever it rings.
func (f *fifo) open(take func()) error {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return errors.Wrap(err, "making the doorbell of the commands' FIFO")
	}
	f.c.doorbell = C.int32_t(bell)
	f.closing, f.ended = &atomic.Bool{}, make(chan struct{})
	go func() {
		defer close(f.ended)
		for !f.closing.Load() {
			f.sleep()
			take()
		}
	}()
	return nil
}

// sleep returns when there may be a command.
func (f *fifo) sleep() {
	asleep := (*uint32)(&f.c.asleep)
	atomic.StoreUint32(asleep, 1) // before the look at the FIFO, as who puts a command there does it the other way round
	if atomic.LoadPointer(f.last()) == nil && !f.closing.Load() {
		var rings [8]byte
		unix.Read(int(f.c.doorbell), rings[:]) // an interrupted sleep is an early return
	}
	atomic.StoreUint32(asleep, 0)
}

func (f *fifo) last() *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(&f.c.last)) }

// take takes all commands that are there: the last one, which leads to the others.
func (f *fifo) take() *C.struct_ek_gsm_command {
	return (*C.struct_ek_gsm_command)(atomic.SwapPointer(f.last(), nil))
}

// close ends the goroutine.
func (f *fifo) close() {
	f.closing.Store(true)
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(int(f.c.doorbell), one[:])
	<-f.ended
	unix.Close(int(f.c.doorbell))
}
