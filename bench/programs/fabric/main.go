// Command fabric measures active messages and remote writes of two tasks, beside
// the least that they can take.
//
//	mpirun -np 2 --bind-to core fabric [-turns 9] [WAY...]
//	mpirun -np 2 --host A,B fabric [-turns 9] [WAY...]
//
// Between two hosts there are the ways over the network alone.
//
// Round trips are in nanoseconds, streams in MB/s: a line for each way, the
// median of all turns, in which the ways alternate.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/montanaflynn/stats"
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/engine/enginetest"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	fabricmpi "evenkeel/runtime/fabric/mpi"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

const (
	argument  = 40      // bytes of a message: with their header, what one line holds
	part      = 1 << 20 // bytes of a write in a stream
	depth     = 8       // writes under way
	loss      = 0.01
	perStream = 150 * time.Millisecond
	spin      = 20 * time.Microsecond // as where tasks have cores of their own
)

var (
	self    = 0                                // 0 asks, 1 answers
	address = netip.MustParseAddr("127.0.0.1") // at which the other one reaches this task
	apart   = false                            // they are on two hosts
)

// way is one way to do it: how long a round trip takes in nanoseconds, or how
// many MB/s a stream has. Both tasks run it at once.
type way struct {
	name string
	run  func() (float64, error)
}

func main() {
	turns := flag.Int("turns", 9, "turns of each way")
	flag.Parse()
	if err := run(*turns, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "fabric: %v\n", err)
		os.Exit(1)
	}
}

func run(turns int, only []string) error {
	runtime.LockOSThread()
	debug.SetGCPercent(1000)
	if _, err := mpi.InitThread(mpi.ThreadMultiple); err != nil {
		return err
	}
	if mpi.World.Size() != 2 {
		return errors.Errorf("it takes two ranks, not %d", mpi.World.Size())
	}
	self = mpi.World.Rank()
	ways, err := prepare()
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	for turn := -1; turn < turns; turn++ { // the first one warms up
		for _, w := range ways {
			if len(only) > 0 && !slices.Contains(only, w.name) {
				continue
			}
			if err := mpi.World.Barrier(); err != nil {
				return err
			}
			figure, err := w.run()
			if err != nil {
				return errors.WithMessage(err, w.name)
			}
			if turn >= 0 {
				took[w.name] = append(took[w.name], figure)
			}
		}
	}
	for _, w := range ways {
		if median, err := stats.Median(took[w.name]); err == nil && self == 0 {
			fmt.Printf("%s %.1f\n", w.name, median)
		}
	}
	return mpi.Finalize()
}

// place finds out whether the tasks are on two hosts, and by which addresses they reach each other then.
func place(m fabric.Meeting) error {
	host, err := udp.Host()
	if err != nil {
		return err
	}
	hosts, err := m.Exchange([]byte(host))
	if err != nil {
		return err
	}
	if apart = string(hosts[0]) != string(hosts[1]); !apart {
		return nil
	}
	all, err := udp.Addresses("")
	if err != nil {
		return err
	}
	if address = all[0].Addr(); !address.Is4() || address.IsLoopback() {
		return errors.Errorf("between two hosts it takes addresses of IPv4, and this one has %v", all)
	}
	return nil
}

func prepare() ([]way, error) {
	m := fabricmpi.Meet(mpi.World)
	if err := place(m); err != nil {
		return nil, err
	}
	ways, err := overNetwork(m)
	if err != nil || apart {
		return ways, err
	}
	lines, err := newLines()
	if err != nil {
		return nil, err
	}
	node, err := shm.Join(m, shm.Options{Spin: spin})
	if err != nil {
		return nil, err
	}
	messages, err := newPeer(m, node)
	if err != nil {
		return nil, err
	}
	return append([]way{
		{"line", func() (float64, error) { return trips(100000, lines.trip, lines.answer) }},
		{"node-message", messages.messages(100000)},
	}, ways...), nil
}

func overNetwork(m fabric.Meeting) ([]way, error) {
	network, err := udp.Join(m, udp.Options{Spin: spin})
	if err != nil {
		return nil, err
	}
	losing, err := udp.Join(m, udp.Options{Spin: spin})
	if err != nil {
		return nil, err
	}
	var peers [2]peer
	for i, f := range []fabric.Fabric{network, &lossy{Fabric: losing, random: rand.New(rand.NewPCG(1, uint64(self)))}} {
		if peers[i], err = newPeer(m, f); err != nil {
			return nil, err
		}
	}
	echo, err := newEcho(m)
	if err != nil {
		return nil, err
	}
	tcp, err := newStream(m)
	if err != nil {
		return nil, err
	}
	secure, err := newSecureStream(m)
	if err != nil {
		return nil, err
	}
	var bares [2]*bare
	for i := range bares {
		f, err := udp.Join(m, udp.Options{})
		if err == nil {
			bares[i], err = newBare(m, f, i == 1)
		}
		if err != nil {
			return nil, err
		}
	}
	return []way{
		{"udp-echo", func() (float64, error) { return trips(5000, echo.trip, echo.answer) }},
		{"udp-message", peers[0].messages(5000)},
		{"udp-put", peers[0].puts(5000)},
		{"udp-put-loss", peers[1].puts(5000)},
		{"tcp-stream", tcp.run},
		{"tls-stream", secure.run},
		{"udp-bare", bares[0].run},
		{"udp-bare-sealed", bares[1].run},
		{"udp-stream", peers[0].stream},
		{"udp-stream-loss", peers[1].stream},
	}, nil
}

// trips does so many round trips, of which task 0 asks and task 1 answers.
func trips(count int, trip, answer func() error) (float64, error) {
	begin := time.Now()
	for range count {
		do := trip
		if self == 1 {
			do = answer
		}
		if err := do(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(begin).Nanoseconds()) / float64(count), nil
}

// ---- the least: a line each way ---------------------------------------------

type lines struct {
	own, other []uint64
	number     uint64
}

func newLines() (*lines, error) {
	w, err := mpi.WinAllocateShared[uint64](mpi.World, 512)
	if err != nil {
		return nil, err
	}
	own, err := w.Shared(self)
	if err != nil {
		return nil, err
	}
	other, err := w.Shared(1 - self)
	if err != nil {
		return nil, err
	}
	aligned := func(words []uint64) []uint64 {
		skip := (64 - int(uintptr(unsafe.Pointer(&words[0]))%64)) % 64 / 8
		return words[skip : skip+8]
	}
	return &lines{own: aligned(own), other: aligned(other)}, nil
}

func (l *lines) send() {
	for i := range 7 {
		l.own[1+i] = l.number
	}
	atomic.StoreUint64(&l.own[0], l.number)
}

func (l *lines) receive() error {
	for atomic.LoadUint64(&l.other[0]) != l.number {
	}
	for i := range 7 {
		if l.other[1+i] != l.number {
			return errors.New("the line is torn")
		}
	}
	return nil
}

func (l *lines) trip() error {
	l.number++
	l.send()
	return l.receive()
}

func (l *lines) answer() error {
	l.number++
	if err := l.receive(); err != nil {
		return err
	}
	l.send()
	return nil
}

// ---- a bare echo: the system calls of the UDP fabric, and nothing else --------

type echo struct {
	fd      int
	message mmsghdr
	vector  unix.Iovec
	buffer  [128]byte
	peer    unix.RawSockaddrInet4
}

type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

func newEcho(m fabric.Meeting) (*echo, error) {
	e := &echo{}
	var err error
	if e.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0); err != nil {
		return nil, errors.Wrap(err, "socket")
	}
	if err := unix.Bind(e.fd, &unix.SockaddrInet4{Addr: address.As4()}); err != nil {
		return nil, errors.Wrap(err, "bind")
	}
	name, err := unix.Getsockname(e.fd)
	if err != nil {
		return nil, errors.Wrap(err, "getsockname")
	}
	port := name.(*unix.SockaddrInet4).Port
	said, err := m.Exchange(append([]byte{byte(port >> 8), byte(port)}, address.AsSlice()...))
	if err != nil {
		return nil, err
	}
	e.peer = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte(said[1-self][2:])}
	copy((*[2]byte)(unsafe.Pointer(&e.peer.Port))[:], said[1-self])
	e.vector.Base = &e.buffer[0]
	e.message.header.Iov = &e.vector
	e.message.header.SetIovlen(1)
	return e, nil
}

func (e *echo) call(number uintptr, length int) bool {
	e.vector.SetLen(length)
	n, _, err := unix.RawSyscall6(number, uintptr(e.fd), uintptr(unsafe.Pointer(&e.message)), 1, unix.MSG_DONTWAIT, 0, 0)
	return err == 0 && n == 1
}

func (e *echo) send() error {
	e.message.header.Name = (*byte)(unsafe.Pointer(&e.peer))
	e.message.header.Namelen = unix.SizeofSockaddrInet4
	if !e.call(unix.SYS_SENDMMSG, 104) {
		return errors.New("the echo was not sent")
	}
	return nil
}

func (e *echo) receive() error {
	e.message.header.Name, e.message.header.Namelen = nil, 0
	for begin := time.Now(); !e.call(unix.SYS_RECVMMSG, len(e.buffer)); {
		if time.Since(begin) > 10*time.Second {
			return errors.New("the echo was lost")
		}
	}
	return nil
}

func (e *echo) trip() error {
	if err := e.send(); err != nil {
		return err
	}
	return e.receive()
}

func (e *echo) answer() error {
	if err := e.receive(); err != nil {
		return err
	}
	return e.send()
}

// ---- one TCP stream ---------------------------------------------------------

type stream struct{ c net.Conn }

func newStream(m fabric.Meeting) (*stream, error) {
	if self == 1 {
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
		if err != nil {
			return nil, errors.Wrap(err, "listening")
		}
		defer l.Close()
		if _, err := m.Exchange([]byte(l.Addr().String())); err != nil {
			return nil, err
		}
		c, err := l.Accept()
		return &stream{c}, errors.Wrap(err, "accepting")
	}
	said, err := m.Exchange(nil)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", string(said[1]))
	return &stream{c}, errors.Wrap(err, "dialling")
}

// run sends for a while; the receiver confirms all of it at the end.
func (s *stream) run() (float64, error) {
	buffer := make([]byte, part)
	if self == 1 {
		for total := 0; ; {
			n, err := s.c.Read(buffer)
			if err != nil {
				return 0, errors.Wrap(err, "reading")
			}
			total += n
			if buffer[n-1] == 1 {
				_, err := s.c.Write([]byte{1})
				return 0, errors.Wrap(err, "confirming")
			}
		}
	}
	sent, begin := 0, time.Now()
	for more := true; more; {
		more = time.Since(begin) < perStream
		if !more {
			buffer[part-1] = 1
		}
		if _, err := s.c.Write(buffer); err != nil {
			return 0, errors.Wrap(err, "writing")
		}
		sent += part
	}
	_, err := s.c.Read(buffer[:1])
	return float64(sent) / time.Since(begin).Seconds() / 1e6, errors.Wrap(err, "waiting for the end")
}

// ---- engines ----------------------------------------------------------------

// lossy loses a share of what arrives.
type lossy struct {
	fabric.Fabric
	random *rand.Rand
}

func (l *lossy) Receive(packets []fabric.Packet) (int, error) {
	n, err := l.Fabric.Receive(packets)
	kept := 0
	for _, p := range packets[:n] {
		if l.random.Float64() >= loss {
			packets[kept] = p
			kept++
		}
	}
	return kept, err
}

// peer is an engine that two tasks have.
type peer struct {
	*engine.Engine
	done *atomic.Bool // task 0 has told task 1 that the turn is over
}

func newPeer(m fabric.Meeting, f fabric.Fabric) (peer, error) {
	secret, err := credential.Generate()
	if err != nil {
		return peer{}, err
	}
	said, err := m.Exchange(secret[:])
	if err != nil {
		return peer{}, err
	}
	copy(secret[:], said[0])
	p := peer{done: &atomic.Bool{}}
	handlers := &engine.Handlers{}
	err = handlers.Messages(1, func(_ fabric.Task, data, reply []byte) ([]byte, error) { return append(reply, data...), nil })
	if err == nil {
		err = handlers.Messages(2, func(_ fabric.Task, _, reply []byte) ([]byte, error) {
			p.done.Store(true)
			return reply, nil
		})
	}
	if err != nil {
		return peer{}, err
	}
	p.Engine, err = enginetest.New(f, secret, enginetest.NewStore(depth*part), handlers, nil)
	return p, err
}

// serve answers until the other task says that the turn is over.
func (p peer) serve() {
	for !p.done.Swap(false) {
		p.Poll()
	}
}

func (p peer) over() error {
	return p.Do(&engine.Operation{Command: epoch.Command{Op: wire.Message, Peer: 1, Handler: 2}})
}

func (p peer) trips(count int, o *engine.Operation) (float64, error) {
	if self == 1 {
		p.serve()
		return 0, nil
	}
	begin := time.Now()
	for range count {
		if err := p.Do(o); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	return float64(took.Nanoseconds()) / float64(count), p.over()
}

func (p peer) messages(count int) func() (float64, error) {
	o := &engine.Operation{Command: epoch.Command{Op: wire.Message, Peer: 1, Handler: 1, Data: make([]byte, argument)}}
	return func() (float64, error) { return p.trips(count, o) }
}

func (p peer) puts(count int) func() (float64, error) {
	o := &engine.Operation{Command: epoch.Command{Op: wire.Put, Peer: 1, Window: enginetest.Window, Data: make([]byte, 8)}}
	return func() (float64, error) { return p.trips(count, o) }
}

// stream writes for a while, so many at a time.
func (p peer) stream() (float64, error) {
	if self == 1 {
		p.serve()
		return 0, nil
	}
	var all [depth]*engine.Operation
	data := make([]byte, part)
	begin := time.Now()
	sent := 0
	for i := range all {
		all[i] = &engine.Operation{Command: epoch.Command{Op: wire.Put, Peer: 1, Window: enginetest.Window, Offset: uint64(i) * part, Data: data}}
		if err := p.Start(all[i]); err != nil {
			return 0, err
		}
	}
	for i := 0; ; i++ {
		o := all[i%depth]
		if err := p.Wait(o); err != nil {
			return 0, err
		}
		sent += part
		if time.Since(begin) > perStream {
			break
		}
		if err := p.Start(o); err != nil {
			return 0, err
		}
	}
	for _, o := range all {
		if !o.Finished() {
			sent += part
		}
		if err := p.Wait(o); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	return float64(sent) / took.Seconds() / 1e6, p.over()
}
