// Package service takes the commands of C programs to tasks of other nodes: the table of c/gsm_network.h, which
// libevenkeel.so finds under the name "gsm".
//
// The path of a command: C puts it into the FIFO of its job; who waits for it, or this package's goroutine when the
// doorbell rings, takes all that is there and starts it as operations of the task's engine, in one batch; the engine tells
// their ends, which are written back into the commands.
package service

/*
#cgo CFLAGS: -I${SRCDIR}/../../../c
#include "gsm_network.h"
#include "gsm_memory.h"

const struct ek_gsm_network *ek_gsm_network_table(void);

static int meet(const struct ek_gsm_membership *member, const void *mine, void *all, uint64_t bytes)
{
	return member->allgather(member->context, mine, all, bytes);
}

static void show_foreign(void (*show)(uint32_t), uint32_t more)
{
	show(more);
}
*/
import "C"

import (
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/dgsp/port"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/attach"
	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/route"
)

func init() {
	attach.Offer("gsm", unsafe.Pointer(C.ek_gsm_network_table()))
}

// Handlers of the engine: the letters of C's active messages, and layouts.
const (
	letters wire.Handler = 1
	layouts wire.Handler = engine.MostHandlers - 1
)

// spinning is how long a task that waits for packets over MPI looks for them before it sleeps.
const spinning = 20 * time.Microsecond

// ends are the tasks' ends that are open, by number.
var ends struct {
	sync.RWMutex
	open map[C.uint64_t]*end
	last C.uint64_t
}

func endOf(number C.uint64_t) *end {
	ends.RLock()
	defer ends.RUnlock()
	return ends.open[number]
}

// end is a task's end of its job's network.
type end struct {
	self   *memory.Area // its memory
	engine *engine.Engine
	port   *port.Port
	fifo   fifo
	inbox  inbox
	keys   memory.Keys // narrower ones

	taking   sync.Mutex   // over all below: one goroutine at a time takes commands
	commands []*operation // by the number that is written into their commands
	taken    []*operation // for reuse
	batch    []*engine.Operation
}

// operation is what the engine has of a command. It is used again whenever the command is.
type operation struct {
	engine.Operation
	command *C.struct_ek_gsm_command
}

//export ekGsmJoin
func ekGsmJoin(member unsafe.Pointer, text *C.char) C.uint64_t {
	e, err := join((*C.struct_ek_gsm_membership)(member))
	if err != nil {
		to := unsafe.Slice((*byte)(unsafe.Pointer(text)), C.EK_GSM_TEXT)
		to[copy(to[:len(to)-1], err.Error())] = 0
		return 0
	}
	ends.Lock()
	defer ends.Unlock()
	if ends.open == nil {
		ends.open = map[C.uint64_t]*end{}
		// A thread that waits drives the engine; another one may have to, or to give a command in, meanwhile.
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	}
	ends.last++
	ends.open[ends.last] = e
	return ends.last
}

// join takes the same steps on all tasks, also on those on which one has failed: they are collective.
func join(m *C.struct_ek_gsm_membership) (*end, error) {
	environment := os.Environ()
	settings, _ := config.Load(environment) // who starts the job says what is wrong with them
	if m.apart != 0 {
		settings, _ = config.Load(append([]string{"EVENKEEL_FABRIC_NODE=0"}, environment...))
	}
	meeting := meeting{m}
	var secret credential.Secret
	mine := []byte{}
	if meeting.Self() == 0 {
		if made, err := credential.Generate(); err == nil {
			mine = made[:]
		}
	}
	said, err := meeting.Exchange(mine)
	if err != nil {
		return nil, err
	}
	if copy(secret[:], said[0]) != len(secret) {
		return nil, errors.New("task 0 could not make the job's secret")
	}
	network, err := route.Join(meeting, route.Options{Settings: settings, MPI: func() (fabric.Sleeper, error) {
		return overMessages(m, spinning)
	}})
	if err != nil {
		return nil, err
	}
	e := &end{self: (*memory.Area)(unsafe.Pointer(m.area)), fifo: fifo{c: m.fifo}, inbox: inbox{m.inbox}}
	show := m.show_foreign
	foreign := func(more uint64) { C.show_foreign(show, C.uint32_t(min(more, math.MaxUint32))) }
	if err := e.start(network, secret, settings, foreign); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *end) start(network fabric.Fabric, secret credential.Secret, settings config.Config, foreign func(uint64)) error {
	const job = 1 // what sets jobs apart is their secret
	life, err := credential.NewLife()
	if err != nil {
		network.Close()
		return err
	}
	c, err := credential.New(job, network.Self(), life, secret)
	if err != nil {
		network.Close()
		return err
	}
	p := epoch.Default()
	p.Job, p.Life, p.Silence = job, life, settings.GsmSilence()
	served := memory.Served{Area: e.self}
	p.Memory = e.keys.Memory(served)
	handlers := &engine.Handlers{}
	if err := handlers.Messages(letters, e.inbox.deliver); err != nil {
		network.Close()
		return err
	}
	if e.engine, err = engine.New(engine.Config{Protocol: p, Credential: c, Fabric: network, Handlers: handlers, Foreign: foreign}); err != nil {
		network.Close()
		return err
	}
	e.port, err = port.Open(port.Config{Engine: e.engine, Handlers: handlers, Number: layouts, Reach: port.Served(served, &e.keys),
		Show: port.Shown(served, &e.keys), Times: port.Patience(p.Silence)})
	if err == nil {
		err = e.fifo.open(e.take)
	}
	if err != nil {
		e.engine.Close()
	}
	return err
}

//export ekGsmLeave
func ekGsmLeave(number C.uint64_t) {
	ends.Lock()
	e := ends.open[number]
	delete(ends.open, number)
	ends.Unlock()
	e.fifo.close()
	e.port.Close()
	e.engine.Close()
}

// take starts all commands that are in the FIFO. When it returns, those that were there before have been started.
func (e *end) take() {
	e.taking.Lock()
	defer e.taking.Unlock()
	e.taken, e.batch = e.taken[:0], e.batch[:0]
	for c := e.fifo.take(); c != nil; c = c.next {
		e.taken = append(e.taken, e.operation(c))
	}
	for _, o := range slices.Backward(e.taken) { // the list leads from the last to the first
		e.batch = append(e.batch, &o.Operation)
	}
	if len(e.batch) == 0 {
		return
	}
	if err := e.engine.Start(e.batch...); err != nil {
		for _, o := range e.taken {
			o.end(C.EK_GSM_CLOSED)
		}
	}
}

// operation is a command as the engine wants it.
func (e *end) operation(c *C.struct_ek_gsm_command) *operation {
	if c.operation_number == 0 {
		o := &operation{command: c}
		o.Done = func(*engine.Operation) { o.done() }
		e.commands = append(e.commands, o)
		c.operation_number = C.uint64_t(len(e.commands))
	}
	o := e.commands[c.operation_number-1]
	o.Command = epoch.Command{
		Op: wire.Op(c.operation), Key: wire.Key(c.key), Peer: fabric.Task(c.at.task), Window: wire.Window(c.at.window), Offset: uint64(c.at.offset),
		Width: int(c.width), Operand: uint64(c.operand), Compare: uint64(c.compare),
		Data: unsafe.Slice((*byte)(c.data), uint64(c.bytes)),
	}
	if o.Op == wire.Message {
		o.Handler = letters
	}
	return o
}

// done writes the end of an operation into its command.
func (o *operation) done() {
	if err := o.Err(); err != nil {
		o.end(result(err))
		return
	}
	o.command.value = C.uint64_t(o.Value())
	o.end(C.EK_OK)
}

func (o *operation) end(result C.uint32_t) {
	o.command.result = result
	atomic.StoreUint32((*uint32)(&o.command.progress), C.EK_GSM_ENDED)
}

//export ekGsmWait
func ekGsmWait(number C.uint64_t, command unsafe.Pointer) {
	e, c := endOf(number), (*C.struct_ek_gsm_command)(command)
	e.take()
	e.taking.Lock()
	o := e.commands[c.operation_number-1]
	e.taking.Unlock()
	e.engine.Wait(&o.Operation) // its error is in the command
	for atomic.LoadUint32((*uint32)(&c.progress)) == C.EK_GSM_UNDER_WAY {
		runtime.Gosched() // another goroutine is about to write it
	}
}

//export ekGsmPoll
func ekGsmPoll(number C.uint64_t, holds C.int) C.int {
	e := endOf(number)
	e.take()
	if holds == 0 {
		e.engine.Poll()
	} else if e.engine.PollHolding() {
		return 1
	}
	return 0
}

//export ekGsmStrided
func ekGsmStrided(number C.uint64_t, operation C.uint32_t, at C.struct_ek_gsm_address, atStep C.uint64_t, data unsafe.Pointer,
	step, bytes, count C.uint64_t, key C.uint32_t) C.int {
	here, err := dgsp.Compile(dgsp.Strided(int(count), int(bytes), int(step)))
	if err != nil {
		return C.EK_GSM_LENGTH
	}
	there, err := dgsp.Compile(dgsp.Strided(int(count), int(bytes), int(atStep)))
	if err != nil {
		return C.EK_GSM_LENGTH
	}
	const furthest = 1 << 61
	if at.offset > furthest {
		return C.EK_GSM_RANGE
	}
	_, spanned := here.Bounds()
	memory, p := unsafe.Slice((*byte)(data), spanned), endOf(number).port
	if operation == C.EK_GSM_GET_BYTES {
		err = p.Get(fabric.Task(at.task), wire.Key(key), uint32(at.window), int(at.offset), there, memory, here)
	} else {
		err = p.Put(fabric.Task(at.task), wire.Key(key), dgsp.Message{Source: here, Memory: memory, Target: there,
			Window: uint32(at.window), Base: int(at.offset)})
	}
	if err != nil {
		return C.int(result(port.Reason(err)))
	}
	return C.EK_OK
}

//export ekGsmAddKey
func ekGsmAddKey(number C.uint64_t, key C.uint32_t, token C.uint64_t, secret unsafe.Pointer) C.int {
	e := endOf(number)
	given := credential.Secret(unsafe.Slice((*byte)(secret), C.EK_GSM_SECRET))
	err := e.engine.Credential(func(c *credential.Credential) error { return c.Add(wire.Key(key), given) })
	if err != nil {
		return C.EK_GSM_FAILED
	}
	e.keys.Set(wire.Key(key), &memory.Served{Area: e.self, Token: uint64(token)})
	return C.EK_OK
}

//export ekGsmRemoveKey
func ekGsmRemoveKey(number C.uint64_t, key C.uint32_t) {
	e := endOf(number)
	e.keys.Set(wire.Key(key), nil)
	_ = e.engine.Credential(func(c *credential.Credential) error {
		c.Remove(wire.Key(key))
		return nil
	})
	e.port.Drop(wire.Key(key))
}

// result is what C calls the reason why an operation failed.
func result(err error) C.uint32_t {
	var why wire.Reason
	if !errors.As(err, &why) {
		return C.EK_GSM_FAILED
	}
	switch why {
	case wire.NoWindow:
		return C.EK_GSM_NO_WINDOW
	case wire.Range:
		return C.EK_GSM_RANGE
	case wire.Protection:
		return C.EK_GSM_PROTECTED
	case wire.Alignment:
		return C.EK_GSM_UNALIGNED
	case wire.Length:
		return C.EK_GSM_LENGTH
	case wire.Operation:
		return C.EK_GSM_OPERATION
	case wire.Silent, wire.Dead:
		return C.EK_GSM_SILENT
	case wire.Closed:
		return C.EK_GSM_CLOSED
	case wire.Credential:
		return C.EK_GSM_KEY
	case wire.Fault: // no room for a letter: nothing else fails there
		return C.EK_GSM_NO_MEMORY
	}
	return C.EK_GSM_FAILED
}

// meeting is how C's tasks meet.
type meeting struct{ member *C.struct_ek_gsm_membership }

func (m meeting) Self() fabric.Task { return fabric.Task(m.member.task) }
func (m meeting) Tasks() int        { return int(m.member.tasks) }

func (m meeting) Exchange(mine []byte) ([][]byte, error) {
	lengths := make([]uint64, m.Tasks())
	length := []uint64{uint64(len(mine))}
	if err := m.allgather(unsafe.Pointer(&length[0]), unsafe.Pointer(&lengths[0]), 8); err != nil {
		return nil, err
	}
	longest := uint64(1)
	for _, n := range lengths {
		longest = max(longest, n)
	}
	padded, all := make([]byte, longest), make([]byte, longest*uint64(m.Tasks()))
	copy(padded, mine)
	if err := m.allgather(unsafe.Pointer(&padded[0]), unsafe.Pointer(&all[0]), longest); err != nil {
		return nil, err
	}
	said := make([][]byte, m.Tasks())
	for task := range said {
		said[task] = all[uint64(task)*longest:][:lengths[task]:lengths[task]]
	}
	return said, nil
}

func (m meeting) allgather(mine, all unsafe.Pointer, bytes uint64) error {
	if C.meet(m.member, mine, all, C.uint64_t(bytes)) != 0 {
		return errors.New("MPI's allgather failed in the tasks' meeting")
	}
	return nil
}
