package service

/*
#include <stdlib.h>
#include "gsm_network.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// inbox is where letters wait for the thread of the program that runs handlers, which frees them.
type inbox struct{ c *C.struct_ek_gsm_inbox }

// deliver is the handler of letters. One that there is no room for is refused; its sender tries again.
func (i inbox) deliver(source fabric.Task, data, _ []byte) ([]byte, error) {
	if uint64(i.c.put)-atomic.LoadUint64((*uint64)(&i.c.taken)) >= C.EK_GSM_INBOX {
		return nil, wire.Fault
	}
	l := (*C.struct_ek_gsm_letter)(C.malloc(C.size_t(C.sizeof_struct_ek_gsm_letter) + C.size_t(len(data))))
	if l == nil {
		return nil, wire.Fault
	}
	l.source, l.bytes = C.uint32_t(source), C.uint32_t(len(data))
	copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(l), C.sizeof_struct_ek_gsm_letter)), len(data)), data)
	i.c.put++
	last := (*unsafe.Pointer)(unsafe.Pointer(&i.c.last))
	for {
		before := atomic.LoadPointer(last)
		l.next = (*C.struct_ek_gsm_letter)(before)
		if atomic.CompareAndSwapPointer(last, before, unsafe.Pointer(l)) {
			return nil, nil
		}
	}
}
