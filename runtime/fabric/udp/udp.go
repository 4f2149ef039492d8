// Package udp is the fabric over UDP: datagrams, in batches, through sockets
// that are looked at rather than slept on while there is traffic.
//
// A packet is a datagram: eight bytes of this fabric, which say who sends it, its
// class and path, and the data. Send gathers packets that go to the same task
// and have the same length into one send that the kernel or the network card
// cuts up (UDP_SEGMENT), and gives the kernel up to 64 packets in one call
// (sendmmsg); Receive takes what arrives in the same ways (UDP_GRO, recvmmsg).
// Packets of static routing all arrive at one socket of their receiver; those of
// dynamic routing are spread over as many as there are paths, so that a network with
// several ways, which chooses by addresses and ports, uses them. Who is sent to often
// is sent to by a socket that is connected to him (connected.go).
//
// Whatever UDP loses, repeats or reorders stays so, and anybody may send to the
// sockets: see package fabric.
package udp

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

const (
	version = 0xe1 // the first byte of every datagram of ours
	prefix  = 8    // bytes before the data: version, class, path, 0, task

	sendBatch    = 64        // packets in one call
	receiveBatch = 8         // datagrams in one call, each of up to 64 KiB with all its segments,
	receiveBytes = 128 << 10 // and so many bytes, where they are alike
	paceBurst    = 128 << 10
	rareLook     = 8 // looks at the first socket for each at one that has been quiet

	fewBytes = 256 // of a datagram that is copied together, which costs less than to say where its parts are

	oftenSent       = 64 // sends to one peer after which a socket is connected to it,
	mostConnections = 64 // of which there are at most so many
)

// Fabric is one task's end. It implements fabric.Fabric and fabric.Sleeper.
type Fabric struct {
	fabric.Waiter
	options      Options
	self         fabric.Task
	own          Card
	cards        []Card                 // by task
	peers        []atomic.Pointer[peer] // by task; nil until it is first asked for, by any goroutine
	finding      sync.Mutex
	begin        time.Time
	family       int
	segmentation bool // the kernel cuts sends up
	sockets      []*socket
	connections  int // sockets that are connected to peers

	resume   time.Duration // since begin, when the packet may leave that Send had to hold back; 0: none
	held     *socket       // the one whose datagrams Receive is going through; nil: none
	looked   int
	foreign  uint64
	messages [sendBatch]message
	vectors  [2 * sendBatch]unix.Iovec
	prefixes [sendBatch][prefix]byte
	controls [sendBatch]control
	few      [fewBytes]byte
	targets  [sendBatch]*peer // of each message,
	counts   [sendBatch]int   // and its packets
}

var (
	_ fabric.Fabric  = (*Fabric)(nil)
	_ fabric.Sleeper = (*Fabric)(nil)
)

// peer is what a task knows of another one that it sends to.
type peer struct {
	addresses []sockaddr // by path
	mtu       int        // of a datagram
	pacer     pacer
	whole     bool // sends to it are not to be cut up
	sends     int  // so far, up to oftenSent
	connected int  // a socket that is connected to it; -1: none
}

// socket is one socket with room for what arrives at it: twice, since what
// Receive has shown is to last while Wait looks for more.
type socket struct {
	fd    int
	banks [2]bank
	bank  int // the one that was last received into
	// What has been received and not been shown yet: messages at to count, the
	// first of them from its byte offset.
	at, count, offset int
	quiet             bool // nothing came when it was last looked at
	wanted            int  // datagrams in the next call
}

// bank is room for one call of recvmmsg.
type bank struct {
	messages [receiveBatch]message
	vectors  [receiveBatch]unix.Iovec
	controls [receiveBatch]control
	buffers  [receiveBatch][]byte
}

func newSocket(fd int) *socket {
	s := &socket{fd: fd, wanted: 1}
	for b := range s.banks {
		bank := &s.banks[b]
		memory := make([]byte, receiveBatch*longest)
		for i := range bank.messages {
			bank.buffers[i] = memory[i*longest : (i+1)*longest]
			bank.vectors[i].Base = &bank.buffers[i][0]
			bank.vectors[i].SetLen(longest)
			h := &bank.messages[i].header
			h.Iov = &bank.vectors[i]
			h.SetIovlen(1)
			h.Control = &bank.controls[i][0]
		}
	}
	return s
}

// Self is the task whose end this is.
func (f *Fabric) Self() fabric.Task { return f.self }

// Foreign is how many datagrams have arrived that are not those of a task of
// the job.
func (f *Fabric) Foreign() uint64 { return f.foreign }

// MTU is what the path to a peer takes in one piece, as it was when first asked
// for; 0 if no way leads there.
func (f *Fabric) MTU(to fabric.Task) int {
	p, err := f.peer(to)
	if err != nil {
		return 0
	}
	return p.mtu - prefix
}

func (f *Fabric) peer(to fabric.Task) (*peer, error) {
	if int64(to) >= int64(len(f.peers)) {
		return nil, errors.WithMessagef(fabric.ErrPeer, "task %d of %d over UDP", to, len(f.peers))
	}
	if p := f.peers[to].Load(); p != nil {
		return p, nil
	}
	f.finding.Lock()
	defer f.finding.Unlock()
	if p := f.peers[to].Load(); p != nil {
		return p, nil
	}
	p, err := f.find(f.cards[to])
	if err != nil {
		return nil, errors.WithMessagef(fabric.ErrPeer, "task %d over UDP: %v", to, err)
	}
	f.peers[to].Store(p)
	return p, nil
}

func (f *Fabric) find(c Card) (*peer, error) {
	address, err := choose(f.own, c)
	if err != nil {
		return nil, err
	}
	p := &peer{mtu: f.options.MTU, connected: -1}
	if p.mtu == 0 {
		if p.mtu, err = pathMTU(address, c.Ports[0]); err != nil {
			return nil, err
		}
		p.mtu = min(max(p.mtu, leastMTU), max(c.Buffer/manyLongest, sureMTU))
	}
	if f.options.Rate > 0 {
		p.pacer = newPacer(float64(f.options.Rate), paceBurst)
	}
	for _, port := range c.Ports {
		s, err := newSockaddr(f.family, address, port)
		if err != nil {
			return nil, err
		}
		p.addresses = append(p.addresses, s)
	}
	return p, nil
}

// Send gives packets to the kernel until it has no more room.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	sent := 0
	f.resume = 0
	for sent < len(packets) {
		messages, path, err := f.gather(packets[sent:])
		done, room := f.flush(messages, path)
		sent += done
		if err != nil && room {
			return sent, err
		}
		if !room || messages == 0 {
			break
		}
	}
	return sent, nil
}

// gather lays out messages of the first packets, up to one that takes another
// path or may not leave yet. The error is about the packet after those.
func (f *Fabric) gather(packets []fabric.Packet) (messages, path int, err error) {
	var last *message
	size, total := 0, 0 // of the last message's segments, and of them all
	for i := range packets {
		p := &packets[i]
		to, err := f.peer(p.Peer)
		if err != nil {
			return messages, path, err
		}
		length := prefix + len(p.Data)
		if length > to.mtu {
			return messages, path, errors.WithMessagef(fabric.ErrLength, "%d bytes to task %d, at most %d over UDP",
				len(p.Data), p.Peer, to.mtu-prefix)
		}
		way := int(p.Path) % len(f.sockets)
		if i == sendBatch || i > 0 && way != path {
			break
		}
		path = way
		if p.Class == fabric.Bulk && to.pacer.rate > 0 {
			if now := time.Since(f.begin); !to.pacer.take(now, length) {
				f.resume = now + to.pacer.wait(now, length)
				break
			}
		}
		f.prefixes[i] = [prefix]byte{version, byte(p.Class), p.Path}
		binary.LittleEndian.PutUint32(f.prefixes[i][4:], uint32(f.self))
		f.vectors[2*i].Base = &f.prefixes[i][0]
		f.vectors[2*i].SetLen(prefix)
		f.vectors[2*i+1].Base = unsafe.SliceData(p.Data)
		f.vectors[2*i+1].SetLen(len(p.Data))

		// All segments of a send are of one length, but for the last.
		if last != nil && to == f.targets[messages-1] && f.segmentation && !to.whole && length <= size &&
			f.counts[messages-1] < segments && total+length <= gsoBytes {
			if f.counts[messages-1] == 1 {
				last.header.Control = &f.controls[messages-1][0]
				last.header.SetControllen(f.controls[messages-1].put(size))
			}
			f.counts[messages-1]++
			last.header.SetIovlen(2 * f.counts[messages-1])
			total += length
			if length < size {
				last = nil
			}
			continue
		}
		last, size, total = &f.messages[messages], length, length
		*last = message{}
		last.header.Iov = &f.vectors[2*i]
		last.header.SetIovlen(2)
		f.targets[messages], f.counts[messages] = to, 1
		messages++
	}
	return messages, path, nil
}

// flush sends the messages of gather, and says how many packets have left, or
// are lost, and whether there was room for all.
func (f *Fabric) flush(messages, path int) (packets int, room bool) {
	for at := 0; at < messages; {
		fd := f.address(at, messages, path)
		n, err := f.give(fd, f.messages[at:messages])
		switch {
		case err == 0:
			for range n {
				packets += f.counts[at]
				at++
			}
		case err == unix.EINTR:
		case err == unix.EAGAIN || err == unix.ENOBUFS || err == unix.ENOMEM:
			return packets, false
		case fd == f.targets[at].connected:
			f.disconnect(f.targets[at]) // and again by the socket that leads to all
		case f.counts[at] > 1:
			// The path is narrower than it was, or an interface there does not cut sends
			// up: from now on packet by packet. What was gathered otherwise is lost.
			f.targets[at].whole = true
			fallthrough
		default:
			packets += f.counts[at]
			at++
		}
	}
	return packets, true
}

// Receive shows what has arrived.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	if !f.Arrived() {
		return 0, nil
	}
	n := 0
	for n < len(packets) && f.next(&packets[n]) {
		n++
	}
	return n, nil
}

// look receives from the first socket that has something.
func (f *Fabric) look() bool {
	f.looked++
	for i, s := range f.sockets {
		if i > 0 && s.quiet && f.looked%rareLook != 0 {
			continue
		}
		if s.receive() {
			f.held = s
			return true
		}
	}
	return false
}

func (s *socket) receive() bool {
	b := &s.banks[1-s.bank]
	wanted := b.messages[:s.wanted]
	for i := range wanted {
		wanted[i].header.SetControllen(controlLen)
	}
	n, err := recvmmsg(s.fd, wanted)
	s.quiet = err != 0 || n == 0
	// To ask for more than there are costs the kernel another look, so a call asks for
	// twice as many only after one that was filled; and for no more than what the
	// processor's cache keeps until it has been looked at.
	if n > 0 && n == s.wanted {
		s.wanted = min(2*n, receiveBatch, 1+receiveBytes/int(1+wanted[0].length))
	} else {
		s.wanted = max(1, n)
	}
	if s.quiet {
		return false // whatever the error is, there is nothing to receive; the next look may tell another
	}
	s.bank = 1 - s.bank
	s.at, s.count, s.offset = 0, n, 0
	return true
}

// next shows the next packet of the socket that is held.
func (f *Fabric) next(p *fabric.Packet) bool {
	s := f.held
	for s != nil && s.at < s.count {
		b := &s.banks[s.bank]
		m := &b.messages[s.at]
		rest := b.buffers[s.at][s.offset:m.length]
		size := b.controls[s.at].segment(uint64(m.header.Controllen))
		if size <= 0 || size >= len(rest) {
			s.at++
			s.offset = 0
		} else {
			rest = rest[:size]
			s.offset += size
		}
		if len(rest) < prefix || rest[0] != version || rest[1] >= fabric.Classes ||
			int64(binary.LittleEndian.Uint32(rest[4:])) >= int64(len(f.peers)) {
			f.foreign++
			continue
		}
		p.Peer = fabric.Task(binary.LittleEndian.Uint32(rest[4:]))
		p.Class, p.Path = fabric.Class(rest[1]), rest[2]
		p.Data = rest[prefix:]
		return true
	}
	f.held = nil
	return false
}

// Arrived says whether there may be something to receive.
func (f *Fabric) Arrived() bool { return f.held != nil || f.look() }

// Arm does nothing: a socket that has something to receive is readable.
func (f *Fabric) Arm() bool { return !f.Arrived() }

// Disarm has nothing to end.
func (f *Fabric) Disarm() {}

// Descriptors are the sockets.
func (f *Fabric) Descriptors() (all []int) {
	for _, s := range f.sockets {
		all = append(all, s.fd)
	}
	return all
}

// Wait is fabric.Fabric's. It returns when a packet may leave that Send had to hold
// back.
func (f *Fabric) Wait(timeout time.Duration) {
	if f.resume > 0 {
		timeout = min(timeout, f.resume-time.Since(f.begin))
	}
	f.Waiter.Wait(timeout)
}

// Close closes the sockets.
func (f *Fabric) Close() error {
	if f.Closed() {
		return nil
	}
	first := f.Waiter.Close()
	for _, s := range f.sockets {
		if err := unix.Close(s.fd); err != nil && first == nil {
			first = errors.Wrap(err, "closing a socket")
		}
	}
	for i := range f.peers {
		if p := f.peers[i].Load(); p != nil && p.connected >= 0 {
			f.disconnect(p)
		}
	}
	return first
}
