package service

/*
#include "gsm_network.h"
#include "gsm_memory.h"

static int ek_open(const struct ek_gsm_mpi *m, char *text)
{
	return m->open(m->context, text);
}

static int ek_send(const struct ek_gsm_mpi *m, uint32_t class, uint32_t slot, uint32_t to, uint8_t path, const void *data,
                   uint64_t bytes)
{
	return m->send(m->context, class, slot, to, path, data, bytes);
}

static int ek_sent(const struct ek_gsm_mpi *m, uint32_t class, uint32_t slot, int *over)
{
	return m->sent(m->context, class, slot, over);
}

static int ek_find(const struct ek_gsm_mpi *m, uint32_t class, uint32_t *source, uint64_t *bytes, int *found)
{
	return m->find(m->context, class, source, bytes, found);
}

static int ek_receive(const struct ek_gsm_mpi *m, void *buffer, uint64_t bytes)
{
	return m->receive(m->context, buffer, bytes);
}
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/messages"
)

// The slots are C's: an array of a negative length does not compile.
var (
	_ [C.EK_GSM_SENDS - messages.Slots]struct{}
	_ [messages.Slots - C.EK_GSM_SENDS]struct{}
	_ [C.EK_GSM_LONGEST - messages.Longest]struct{}
	_ [C.EK_GSM_CLASSES - fabric.Classes]struct{}
)

// calls is a messages.MPI: libevenkeel.so's way to MPI, past all tools.
type calls struct {
	mpi   C.struct_ek_gsm_mpi
	self  fabric.Task
	tasks int
}

// overMessages makes the fabric over MPI's messages. Collective.
func overMessages(m *C.struct_ek_gsm_membership, spin time.Duration) (fabric.Sleeper, error) {
	var text [C.EK_GSM_TEXT]C.char
	c := &calls{mpi: m.mpi, self: fabric.Task(m.task), tasks: int(m.tasks)}
	if C.ek_open(&c.mpi, &text[0]) != C.EK_OK {
		return nil, errors.New(C.GoString(&text[0]))
	}
	return messages.New(c, spin)
}

func (c *calls) Self() fabric.Task { return c.self }
func (c *calls) Tasks() int        { return c.tasks }

func (c *calls) Send(class fabric.Class, slot int, to fabric.Task, path uint8, data []byte) error {
	return failed("a send", C.ek_send(&c.mpi, C.uint32_t(class), C.uint32_t(slot), C.uint32_t(to), C.uint8_t(path),
		unsafe.Pointer(unsafe.SliceData(data)), C.uint64_t(len(data))))
}

func (c *calls) Sent(class fabric.Class, slot int) (bool, error) {
	var over C.int
	err := failed("a send", C.ek_sent(&c.mpi, C.uint32_t(class), C.uint32_t(slot), &over))
	return over != 0, err
}

func (c *calls) Find(class fabric.Class) (source fabric.Task, length int, found bool, err error) {
	var from C.uint32_t
	var bytes C.uint64_t
	var some C.int
	err = failed("a probe", C.ek_find(&c.mpi, C.uint32_t(class), &from, &bytes, &some))
	return fabric.Task(from), int(bytes), some != 0, err
}

func (c *calls) Receive(buffer []byte) error {
	return failed("a receive", C.ek_receive(&c.mpi, unsafe.Pointer(unsafe.SliceData(buffer)), C.uint64_t(len(buffer))))
}

func failed(what string, result C.int) error {
	if result != C.EK_OK {
		return errors.Errorf("%s failed with MPI's error %d", what, int(result))
	}
	return nil
}
