package measure

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/runtime/fabric"
)

// Few and Many are the bytes of the messages that Network measures with, where the
// fabric takes that many.
const (
	Few  = 16
	Many = 4096
)

// Network measures the network of a job while it starts, before anything else uses
// the fabric: task 0 with the first task on its own node, and with the first on
// another. It is collective, and all tasks get the same. What a job does not have, a
// second node or a second task on task 0's, has the figures of what it has.
func Network(m fabric.Meeting, f fabric.Fabric, nodes collectives.Nodes) (collectives.Network, error) {
	near, far := peers(m.Tasks(), nodes)
	var network collectives.Network
	var failed string
	for i, peer := range []int{near, far} {
		switch {
		case peer == 0:
		case m.Self() == 0:
			p := &probe{fabric: f, peer: fabric.Task(peer)}
			l, err := Fit(p, Few, min(Many, f.MTU(p.peer)))
			if err != nil {
				failed = err.Error()
			}
			p.stop()
			if i == 0 {
				network.Within = l
			} else {
				network.Between = l
			}
		case int(m.Self()) == peer:
			if err := reflect(f); err != nil {
				failed = err.Error()
			}
		}
	}
	if near == 0 {
		network.Within = network.Between
	}
	if far == 0 {
		network.Between = network.Within
	}
	network.Combine = combine()
	said, err := json.Marshal(struct {
		Network collectives.Network
		Failed  string
	}{network, failed})
	if err != nil {
		return collectives.Network{}, errors.Wrap(err, "telling the others what was measured")
	}
	heard, err := m.Exchange(said)
	if err != nil {
		return collectives.Network{}, errors.WithMessage(err, "telling the others what was measured")
	}
	var first struct{ Network collectives.Network }
	for task, data := range heard {
		var other struct{ Failed string }
		if err := json.Unmarshal(data, &other); err != nil {
			return collectives.Network{}, errors.Wrapf(err, "what task %d measured", task)
		}
		if other.Failed != "" {
			return collectives.Network{}, errors.Errorf("measuring the network: task %d: %s", task, other.Failed)
		}
	}
	if err := json.Unmarshal(heard[0], &first); err != nil {
		return collectives.Network{}, errors.Wrap(err, "what task 0 measured")
	}
	return first.Network, first.Network.Check()
}

// peers are the first tasks on task 0's node and on another; 0: there is none. Where
// nodes are not known every other task is on another.
func peers(tasks int, nodes collectives.Nodes) (near, far int) {
	for t := tasks - 1; t > 0; t-- {
		if nodes != nil && nodes(fabric.Task(t)) == nodes(0) {
			near = t
		} else {
			far = t
		}
	}
	return near, far
}

// combine is the time to add up one byte of two vectors of numbers, in ns.
func combine() float64 {
	const words, times = 1024, 16
	var a, b [words]float64
	begin := time.Now()
	for range times {
		for i := range a {
			a[i] += b[i]
		}
		b[0] = a[words-1]
	}
	return float64(time.Since(begin)) / (words * 8 * times)
}

// Messages: a kind, the volley's number, whether it is the last of its volley; then
// as many bytes as are measured with.
const (
	kindMessage byte = iota + 1
	kindAnswer
	kindStop
	header = 1 + 4 + 1
)

// patience is how long a probe waits for an answer, and attempts how often it tries
// again, for a network may lose messages; a task that reflects waits all of them.
const (
	patience = 50 * time.Millisecond
	attempts = 20
)

type probe struct {
	fabric fabric.Fabric
	peer   fabric.Task
	number uint32
	buffer []byte
}

func (p *probe) Volley(count, bytes int) (sending, whole time.Duration, err error) {
	for range attempts {
		sending, whole, err = p.try(count, bytes)
		if err != nil || whole > 0 {
			return sending, whole, err
		}
	}
	return 0, 0, errors.Errorf("task %d does not answer", p.peer)
}

// try returns 0 for a volley that was not answered.
func (p *probe) try(count, bytes int) (sending, whole time.Duration, err error) {
	p.number++
	bytes = max(bytes, header)
	if len(p.buffer) < 2*bytes {
		p.buffer = make([]byte, 2*bytes)
	}
	message, last := p.buffer[:bytes], p.buffer[bytes:2*bytes]
	for i, m := range [][]byte{message, last} {
		m[0], m[5] = kindMessage, byte(i)
		binary.LittleEndian.PutUint32(m[1:], p.number)
	}
	begin := time.Now()
	for i := range count {
		m := message
		if i == count-1 {
			m = last
		}
		if err := sendOne(p.fabric, p.peer, m, begin); err != nil {
			return 0, 0, err
		}
	}
	sending = time.Since(begin)
	var in [4]fabric.Packet
	for {
		n, err := p.fabric.Receive(in[:])
		if err != nil {
			return 0, 0, err
		}
		for _, packet := range in[:n] {
			if len(packet.Data) == header && packet.Data[0] == kindAnswer && binary.LittleEndian.Uint32(packet.Data[1:]) == p.number {
				return sending, max(1, time.Since(begin)), nil
			}
		}
		if n == 0 {
			if time.Since(begin) > patience {
				return 0, 0, nil
			}
			p.fabric.Wait(patience)
		}
	}
}

// sendOne sends a packet as soon as the fabric has room for it.
func sendOne(f fabric.Fabric, to fabric.Task, data []byte, begin time.Time) error {
	one := [1]fabric.Packet{{Peer: to, Data: data}}
	for {
		n, err := f.Send(one[:])
		if err != nil || n == 1 {
			return err
		}
		if time.Since(begin) > attempts*patience {
			return errors.Errorf("there is no room for a message to task %d", to)
		}
	}
}

// stop tells the other task that this was all: some times, for one may be lost.
func (p *probe) stop() {
	for range 5 {
		if sendOne(p.fabric, p.peer, []byte{kindStop, 0, 0, 0, 0, 0}, time.Now()) != nil {
			return
		}
	}
}

// reflect answers a probe until it stops.
func reflect(f fabric.Fabric) error {
	var in [32]fabric.Packet
	heard := time.Now()
	for {
		n, err := f.Receive(in[:])
		if err != nil {
			return err
		}
		for _, packet := range in[:n] {
			switch {
			case len(packet.Data) < header:
			case packet.Data[0] == kindStop:
				return nil
			case packet.Data[0] == kindMessage && packet.Data[5] != 0:
				answer := append([]byte{kindAnswer}, packet.Data[1:header]...)
				if err := sendOne(f, packet.Peer, answer, time.Now()); err != nil {
					return err
				}
			}
		}
		if n > 0 {
			heard = time.Now()
		} else if time.Since(heard) > attempts*patience {
			return errors.New("nothing comes from task 0")
		} else {
			f.Wait(patience)
		}
	}
}
