// Package fabrictest is the test that every fabric must pass, and what tests of
// fabrics need.
package fabrictest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// End is one task's part in the test: a fabric of its own, and how it meets the
// others.
type End struct {
	fabric.Fabric
	Meeting fabric.Meeting
	// Priority: packets of the class Control that have arrived are received before
	// those of the class Bulk.
	Priority bool
	// Bounded: Send refuses packets that nobody receives after a while, rather
	// than take all.
	Bounded bool
	// Allocates: a packet may cost an allocation.
	Allocates bool
}

// patience is how long anything may take before the test gives up. The machine
// may be busy.
const patience = 30 * time.Second

// Run runs the tests on the ends that are in this process. There are at least
// two tasks, here or elsewhere, whose fabrics lose nothing while they are alone;
// they are closed afterwards.
func Run(t *testing.T, ends ...End) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			failed := make([]error, len(ends))
			var all sync.WaitGroup
			for i := range ends {
				all.Add(1)
				go func() {
					defer all.Done()
					failed[i] = test.run(ends[i])
					// All wait for all, or a test would meet packets of the one before.
					said := []byte("")
					if failed[i] != nil {
						said = []byte(failed[i].Error())
					}
					heard, err := ends[i].Meeting.Exchange(said)
					if failed[i] == nil {
						failed[i] = err
					}
					for task, other := range heard {
						if failed[i] == nil && len(other) > 0 {
							failed[i] = errors.Errorf("task %d has failed", task)
						}
					}
				}()
			}
			all.Wait()
			for i, err := range failed {
				if err != nil {
					t.Errorf("task %d: %v", ends[i].Self(), err)
				}
			}
		})
		if t.Failed() {
			break
		}
	}
	for _, e := range ends {
		if err := closing(e); err != nil {
			t.Errorf("task %d: %v", e.Self(), err)
		}
	}
}

var tests = []struct {
	name string
	run  func(End) error
}{
	{"every length reaches every task", lengths},
	{"a long stream in random batches", stream},
	{"what can't be sent is refused", refusals},
	{"control before bulk", priority},
	{"a full network takes no more and blocks nobody", fills},
	{"waiting", waiting},
	{"nothing is allocated for a packet", allocations},
}

// send sends all packets, waiting for room, and receives nothing meanwhile.
func (e End) send(packets []fabric.Packet) error {
	begin := time.Now()
	for len(packets) > 0 {
		n, err := e.Send(packets)
		if err != nil {
			return errors.WithMessage(err, "sending")
		}
		packets = packets[n:]
		if n == 0 {
			if time.Since(begin) > patience {
				return errors.Errorf("there was no room for %d packets for %v", len(packets), patience)
			}
			e.Wait(time.Millisecond)
		}
	}
	return nil
}

// receive waits for the next packets.
func (e End) receive(packets []fabric.Packet) (int, error) {
	begin := time.Now()
	for {
		n, err := e.Receive(packets)
		if n > 0 || err != nil {
			return n, errors.WithMessage(err, "receiving")
		}
		if time.Since(begin) > patience {
			return 0, errors.Errorf("nothing came for %v", patience)
		}
		e.Wait(100 * time.Millisecond)
	}
}

func (e End) barrier() error {
	_, err := e.Meeting.Exchange(nil)
	return err
}

// next is the task after this one, before the one before it.
func (e End) next() fabric.Task   { return e.step(1) }
func (e End) before() fabric.Task { return e.step(e.Meeting.Tasks() - 1) }
func (e End) step(n int) fabric.Task {
	return fabric.Task((int(e.Self()) + n) % e.Meeting.Tasks())
}

// content is what a packet of that number and length from that task holds.
func content(from fabric.Task, number, length int) []byte {
	r := rand.New(rand.NewPCG(uint64(from), uint64(number)))
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func lengths(e End) error {
	limit := e.MTU(e.next())
	if limit < 1000 {
		return errors.Errorf("an MTU of %d is too small for any use", limit)
	}
	try := []int{0, 1, 7, 8, 48, 55, 56, 57, 63, 64, 65, 500, 999, limit - 1, limit}
	expected := map[fabric.Task]int{}
	buffer := make([]byte, limit)
	for number, length := range try {
		for step := 1; step < e.Meeting.Tasks(); step++ {
			peer := e.step(step)
			class, path := fabric.Class(number%fabric.Classes), uint8(number%3)
			data := content(e.Self(), number, length)
			copy(buffer, data)
			if err := e.send([]fabric.Packet{{Peer: peer, Class: class, Path: path, Data: buffer[:length]}}); err != nil {
				return err
			}
			clear(buffer) // it may be used again
		}
		for step := 1; step < e.Meeting.Tasks(); step++ {
			var packets [1]fabric.Packet
			if _, err := e.receive(packets[:]); err != nil {
				return errors.WithMessagef(err, "length %d", length)
			}
			p := packets[0]
			number := expected[p.Peer]
			expected[p.Peer]++
			if want := content(p.Peer, number, try[number]); !bytes.Equal(p.Data, want) {
				return errors.Errorf("of %d bytes from task %d came %d, or others", len(want), p.Peer, len(p.Data))
			}
			if int(p.Class) != number%fabric.Classes || int(p.Path) != number%3 {
				return errors.Errorf("packet %d of task %d came as class %d, path %d", number, p.Peer, p.Class, p.Path)
			}
			clear(p.Data) // it is ours to overwrite
		}
		if err := e.barrier(); err != nil {
			return err
		}
	}
	return nil
}

// stream sends to the next task and receives from the one before, many at once.
func stream(e End) error {
	const count, window = 6000, 24
	limit := min(e.MTU(e.next()), 4000)
	r := rand.New(rand.NewPCG(1, uint64(e.Self())))
	length := func(from fabric.Task, number int) int {
		return int(rand.New(rand.NewPCG(uint64(number), uint64(from))).Uint32N(uint32(limit-8))) >> (number % 8)
	}
	sent, received, answered := 0, 0, 0
	packets := make([]fabric.Packet, 32)
	buffers := make([][]byte, len(packets))
	for i := range buffers {
		buffers[i] = make([]byte, limit)
	}
	begin := time.Now()
	for received < count || answered < count {
		if time.Since(begin) > patience {
			return errors.Errorf("after %v %d of %d were received, and %d confirmed", patience, received, count, answered)
		}
		batch := packets[:0]
		for i := range r.IntN(len(packets)) {
			if sent+i == count || sent+i-answered >= window {
				break
			}
			data := binary.LittleEndian.AppendUint64(buffers[i][:0], uint64(sent+i))
			data = append(data, content(e.Self(), sent+i, length(e.Self(), sent+i))...)
			batch = append(batch, fabric.Packet{Peer: e.next(), Class: fabric.Bulk, Data: data})
		}
		n, err := e.Send(batch)
		if err != nil {
			return err
		}
		sent += n
		n, err = e.Receive(packets[:1+r.IntN(len(packets)-1)])
		if err != nil {
			return err
		}
		confirmed := received
		for _, p := range packets[:n] {
			if len(p.Data) < 8 {
				return errors.Errorf("a packet of %d bytes was never sent", len(p.Data))
			}
			number := int(binary.LittleEndian.Uint64(p.Data))
			if p.Class == fabric.Control && p.Peer == e.next() {
				answered = number
				continue
			}
			if p.Peer != e.before() || number != received {
				return errors.Errorf("packet %d of task %d came in place of %d of %d", number, p.Peer, received, e.before())
			}
			if want := content(p.Peer, number, length(p.Peer, number)); !bytes.Equal(p.Data[8:], want) {
				return errors.Errorf("packet %d came changed", number)
			}
			received++
		}
		if received > confirmed {
			answer := binary.LittleEndian.AppendUint64(nil, uint64(received))
			if err := e.send([]fabric.Packet{{Peer: e.before(), Class: fabric.Control, Data: answer}}); err != nil {
				return err
			}
		}
		if n == 0 {
			e.Wait(time.Millisecond)
		}
	}
	return nil
}

func refusals(e End) error {
	good := fabric.Packet{Peer: e.next(), Data: []byte("first")}
	bad := map[error]fabric.Packet{
		fabric.ErrPeer:   {Peer: fabric.Task(e.Meeting.Tasks() + 7), Data: []byte("nobody")},
		fabric.ErrLength: {Peer: e.next(), Data: make([]byte, e.MTU(e.next())+1)},
	}
	for want, p := range bad {
		n, err := e.Send([]fabric.Packet{good, p, good})
		if n != 1 || !errors.Is(err, want) {
			return errors.Errorf("Send took %d packets, where the second must be refused with %q: %v", n, want, err)
		}
	}
	if n, err := e.Send(nil); n != 0 || err != nil {
		return errors.Errorf("sending nothing: %d, %v", n, err)
	}
	if n, err := e.Receive(nil); n != 0 || err != nil {
		return errors.Errorf("receiving nothing: %d, %v", n, err)
	}
	for range bad {
		var packets [1]fabric.Packet
		if _, err := e.receive(packets[:]); err != nil {
			return err
		}
		if string(packets[0].Data) != "first" {
			return errors.Errorf("%q came", packets[0].Data)
		}
	}
	return nil
}

func priority(e End) error {
	const each = 3
	for i := range 2 * each {
		class := fabric.Bulk
		if i >= each {
			class = fabric.Control
		}
		if err := e.send([]fabric.Packet{{Peer: e.next(), Class: class, Data: []byte{byte(i)}}}); err != nil {
			return err
		}
	}
	if err := e.barrier(); err != nil {
		return err
	}
	var order []byte
	for len(order) < 2*each {
		var packets [2 * each]fabric.Packet
		n, err := e.receive(packets[:])
		if err != nil {
			return err
		}
		for _, p := range packets[:n] {
			order = append(order, p.Data...)
		}
	}
	if e.Priority && !bytes.Equal(order, []byte{3, 4, 5, 0, 1, 2}) {
		return errors.Errorf("they came in the order %v", order)
	}
	return nil
}

// fills sends more than a network can hold while nobody receives.
func fills(e End) error {
	const attempts = 20000
	sent := 0
	for sent < attempts {
		n, err := e.Send([]fabric.Packet{{Peer: e.next(), Class: fabric.Bulk, Data: []byte{1, 2, 3}}})
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		sent++
	}
	heard, err := e.Meeting.Exchange(binary.LittleEndian.AppendUint32(nil, uint32(sent)))
	if err != nil {
		return err
	}
	if !e.Bounded {
		return e.drain()
	}
	if sent == attempts {
		return errors.Errorf("it took %d packets that nobody received", sent)
	}
	// As soon as there is room, it takes packets again; and none of the others is lost.
	var packets [16]fabric.Packet
	for left := int(binary.LittleEndian.Uint32(heard[e.before()])); left > 0; {
		n, err := e.receive(packets[:])
		if err != nil {
			return err
		}
		left -= n
	}
	if err := e.barrier(); err != nil {
		return err
	}
	if n, err := e.Receive(packets[:]); n != 0 || err != nil {
		return errors.Errorf("%d more came than were sent: %v", n, err)
	}
	if err := e.barrier(); err != nil {
		return err
	}
	if err := e.send([]fabric.Packet{{Peer: e.next(), Class: fabric.Bulk}}); err != nil {
		return err
	}
	_, err = e.receive(packets[:1])
	return err
}

// drain receives until nothing comes any more.
func (e End) drain() error {
	var packets [64]fabric.Packet
	for quiet := 0; quiet < 20; quiet++ {
		n, err := e.Receive(packets[:])
		if err != nil {
			return err
		}
		if n > 0 {
			quiet = 0
			continue
		}
		e.Wait(5 * time.Millisecond)
	}
	return nil
}

func waiting(e End) error {
	// A Wake before a Wait ends it, and only that one.
	for range 100 {
		e.Wake()
		e.Wait(patience)
	}
	// So does one from elsewhere, whenever it comes.
	for range 200 {
		woken := make(chan struct{})
		go func() {
			e.Wake()
			close(woken)
		}()
		e.Wait(patience)
		<-woken
		e.Wait(0) // answers it, where the Wait before returned early
	}
	// And a packet: the tasks take turns, and each sleeps until it is sent to.
	var packets [1]fabric.Packet
	ball := []fabric.Packet{{Peer: e.next(), Data: []byte("ball")}}
	for range 50 {
		if e.Self() == 0 {
			if err := e.send(ball); err != nil {
				return err
			}
		}
		begin := time.Now()
		for {
			n, err := e.Receive(packets[:])
			if err != nil {
				return err
			}
			if n == 1 {
				break
			}
			if time.Since(begin) > patience {
				return errors.Errorf("nothing came, or nobody was woken for it")
			}
			e.Wait(patience)
		}
		if e.Self() != 0 {
			time.Sleep(time.Millisecond) // so that the next one sleeps
			if err := e.send(ball); err != nil {
				return err
			}
		}
	}
	return nil
}

func allocations(e End) error {
	if e.Allocates || raced {
		return nil
	}
	const rounds = 2000
	packets := make([]fabric.Packet, 1)
	ball := []fabric.Packet{{Peer: e.next(), Data: make([]byte, 200)}}
	round := func() error {
		if n, err := e.Send(ball); n != 1 || err != nil {
			return errors.Errorf("Send took %d of 1: %v", n, err)
		}
		for n := 0; n == 0; {
			var err error
			if n, err = e.Receive(packets); err != nil {
				return err
			}
			if n == 0 {
				e.Wait(time.Millisecond)
			}
		}
		return nil
	}
	for range rounds / 10 {
		if err := round(); err != nil {
			return err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		if err := round(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > rounds/2 {
		return errors.Errorf("%d allocations for %d packets", n, rounds)
	}
	return nil
}

// closing is the last: a fabric that is closed refuses, and can be woken.
func closing(e End) error {
	if err := e.Close(); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return errors.WithMessage(err, "closing it twice")
	}
	e.Wake()
	e.Wait(patience) // it doesn't wait for what can't come
	packets := []fabric.Packet{{Peer: e.next()}}
	if _, err := e.Send(packets); !errors.Is(err, fabric.ErrClosed) {
		return errors.Errorf("sending after Close: %v", err)
	}
	if _, err := e.Receive(packets); !errors.Is(err, fabric.ErrClosed) {
		return errors.Errorf("receiving after Close: %v", err)
	}
	return nil
}
