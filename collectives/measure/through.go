package measure

import (
	"bytes"
	"sync"
	"time"

	"evenkeel/collectives/carrier"
	"evenkeel/runtime/fabric"
)

// through is a fabric whose packets are the messages of a carrier, so that what is
// measured is what messages cost that go the same way.
type through struct {
	carrier carrier.Carrier
	limit   int

	lock    sync.Mutex // over arrived
	arrived []fabric.Packet
	came    chan struct{}
}

// Through makes a fabric of a carrier, for Network. Closing it closes the carrier.
func Through(by carrier.Carrier, tasks int) (fabric.Fabric, error) {
	t := &through{carrier: by, limit: by.Limit(tasks), came: make(chan struct{}, 1)}
	return t, by.Start(inbox{t})
}

// inbox is the core whose messages are carried: it keeps them for Receive.
type inbox struct{ of *through }

func (i inbox) Receive(from fabric.Task, message []byte) error {
	i.of.lock.Lock()
	i.of.arrived = append(i.of.arrived, fabric.Packet{Peer: from, Data: bytes.Clone(message)})
	i.of.lock.Unlock()
	i.of.Wake()
	return nil
}

func (i inbox) Tick() (time.Duration, bool) { return 0, false }

func (t *through) Self() fabric.Task { return t.carrier.Self() }

func (t *through) MTU(fabric.Task) int { return t.limit }

func (t *through) Send(packets []fabric.Packet) (int, error) {
	for _, p := range packets {
		t.carrier.Send(p.Peer, bytes.Clone(p.Data))
	}
	return len(packets), nil
}

func (t *through) Receive(packets []fabric.Packet) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	n := copy(packets, t.arrived)
	t.arrived = t.arrived[:copy(t.arrived, t.arrived[n:])]
	return n, nil
}

func (t *through) Wait(timeout time.Duration) {
	select {
	case <-t.came:
	case <-time.After(timeout):
	}
}

func (t *through) Wake() {
	select {
	case t.came <- struct{}{}:
	default:
	}
}

func (t *through) Close() error { return t.carrier.Close() }
