// Package relay is a bad network for tests of fabrics over real sockets: it
// stands between tasks that use UDP, and loses, repeats, reorders, delays, cuts
// short and changes their datagrams, by a seed.
package relay

import (
	"container/heap"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/udp"
)

// Impairments are what happens to a datagram, as probabilities from 0 to 1.
type Impairments struct {
	Loss, Duplication, Corruption, Truncation float64
	// Reordering is the share of datagrams that are held back, each for a time up to
	// Delay, and so overtaken.
	Reordering float64
	Delay      time.Duration
}

// Relay passes datagrams on to tasks. Its methods may be called from any
// goroutine.
type Relay struct {
	impairments atomic.Pointer[Impairments]
	seed        uint64
	address     netip.Addr
	gates       []*gate
	all         sync.WaitGroup

	passed, impaired atomic.Uint64
}

// gate is the relay's socket for one path to one task.
type gate struct {
	relay  *Relay
	socket *net.UDPConn
	target netip.AddrPort
	random *rand.Rand
	held   held
	sent   uint64
}

// New makes a relay with an address that all tasks reach.
func New(address netip.Addr, seed uint64, i Impairments) *Relay {
	r := &Relay{seed: seed, address: address}
	r.impairments.Store(&i)
	return r
}

// Change has datagrams from now on impaired in another way.
func (r *Relay) Change(i Impairments) { r.impairments.Store(&i) }

// Counts are how many datagrams came, and to how many something happened.
func (r *Relay) Counts() (passed, impaired uint64) { return r.passed.Load(), r.impaired.Load() }

// Redirect makes a way to a task through the relay out of what the task tells
// the others in udp.Join.
func (r *Relay) Redirect(told []byte) ([]byte, error) {
	var c udp.Card
	if err := json.Unmarshal(told, &c); err != nil {
		return nil, errors.Wrap(err, "a task's card")
	}
	if c.Error != "" {
		return told, nil
	}
	for i, port := range c.Ports {
		socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.address, 0)))
		if err != nil {
			return nil, errors.Wrap(err, "a relay's socket")
		}
		socket.SetReadBuffer(4 << 20)
		socket.SetWriteBuffer(4 << 20)
		g := &gate{relay: r, socket: socket, target: netip.AddrPortFrom(c.Addresses[0].Addr(), port),
			random: rand.New(rand.NewPCG(r.seed, uint64(len(r.gates))))}
		r.gates = append(r.gates, g)
		r.all.Add(1)
		go g.run()
		c.Ports[i] = uint16(socket.LocalAddr().(*net.UDPAddr).Port)
	}
	c.Addresses = []netip.Prefix{netip.PrefixFrom(r.address, r.address.BitLen())}
	if !r.address.IsLoopback() {
		c.Host = "relay"
	}
	return json.Marshal(c)
}

// Close ends the relay.
func (r *Relay) Close() {
	for _, g := range r.gates {
		g.socket.Close()
	}
	r.all.Wait()
}

// run passes on what arrives, at its time.
func (g *gate) run() {
	defer g.relay.all.Done()
	buffer := make([]byte, 1<<16)
	for {
		deadline := time.Time{}
		if len(g.held) > 0 {
			deadline = g.held[0].at
		}
		g.socket.SetReadDeadline(deadline)
		n, _, err := g.socket.ReadFromUDPAddrPort(buffer)
		for now := time.Now(); len(g.held) > 0 && !g.held[0].at.After(now); {
			g.pass(heap.Pop(&g.held).(datagram).data)
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			continue
		}
		if err != nil {
			return
		}
		g.impair(buffer[:n])
	}
}

func (g *gate) impair(data []byte) {
	i := g.relay.impairments.Load()
	g.relay.passed.Add(1)
	hit := func(p float64) bool {
		yes := p > 0 && g.random.Float64() < p
		if yes {
			g.relay.impaired.Add(1)
		}
		return yes
	}
	if hit(i.Loss) {
		return
	}
	copies := 1
	if hit(i.Duplication) {
		copies++
	}
	for range copies {
		one := data
		if hit(i.Corruption) && len(data) > 0 {
			one = append([]byte(nil), data...)
			one[g.random.IntN(len(one))] ^= 1 << g.random.IntN(8)
		}
		if hit(i.Truncation) {
			one = one[:g.random.IntN(len(one)+1)]
		}
		if i.Delay > 0 && hit(i.Reordering) {
			g.sent++
			late := time.Duration(g.random.Int64N(int64(i.Delay)))
			heap.Push(&g.held, datagram{time.Now().Add(late), g.sent, append([]byte(nil), one...)})
			continue
		}
		g.pass(one)
	}
}

func (g *gate) pass(data []byte) {
	g.socket.WriteToUDPAddrPort(data, g.target) // what a bad network can't pass on it loses
}

// datagram is one that is held back.
type datagram struct {
	at     time.Time
	number uint64
	data   []byte
}

type held []datagram

func (h held) Len() int { return len(h) }
func (h held) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].number < h[j].number
	}
	return h[i].at.Before(h[j].at)
}
func (h held) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *held) Push(x any)   { *h = append(*h, x.(datagram)) }
func (h *held) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Meeting is one in which each task hears of ways through the relay to all
// others. All tasks of the job use the same relay, whose sockets are made by the
// first.
func (r *Relay) Meeting(m fabric.Meeting) fabric.Meeting { return meeting{m, r} }

type meeting struct {
	fabric.Meeting
	relay *Relay
}

func (m meeting) Exchange(mine []byte) ([][]byte, error) {
	told, err := m.Meeting.Exchange(mine)
	if err != nil {
		return nil, err
	}
	var redirected []byte
	if m.Self() == 0 {
		cards := make([][]byte, len(told))
		for task, card := range told {
			if cards[task], err = m.relay.Redirect(card); err != nil {
				break
			}
		}
		if err == nil {
			redirected, err = json.Marshal(cards)
		}
	}
	all, met := m.Meeting.Exchange(redirected)
	if err != nil || met != nil {
		return nil, errors.WithMessage(firstOf(err, met), "relay")
	}
	var cards [][]byte
	if err := json.Unmarshal(all[0], &cards); err != nil {
		return nil, errors.Wrap(err, "relay")
	}
	return cards, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
