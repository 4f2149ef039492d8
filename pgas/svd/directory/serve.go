package directory

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/svd"
	"evenkeel/runtime/fabric"
)

// Server runs a directory over a fabric that it has to itself. The fabric proves
// nothing about who sent a packet: between tasks that do not trust each other's
// network, send the messages of a directory as active messages of the engine
// (pgas/gsm/engine) instead.
type Server struct {
	*Directory
	fabric fabric.Fabric

	lock    sync.Mutex // over queue
	queue   []fabric.Packet
	queued  atomic.Bool
	asleep  atomic.Bool
	closing atomic.Bool
	ended   chan struct{}
}

// batch is how many packets are received or sent at once; longWait how long the
// server sleeps where nothing is to be done.
const (
	batch    = 64
	longWait = time.Second
)

// Serve makes a directory that sends and receives over a fabric; Self, Limit and Send
// of the configuration are the fabric's. The fabric is the server's until Close.
func Serve(f fabric.Fabric, c Config) (*Server, error) {
	s := &Server{fabric: f, ended: make(chan struct{})}
	c.Self, c.Limit = f.Self(), 1<<30
	for t := range svd.Task(c.Tasks) {
		if t != c.Self {
			c.Limit = min(c.Limit, f.MTU(t))
		}
	}
	c.Send, c.Changed = s.send, f.Wake
	d, err := New(c)
	if err != nil {
		return nil, err
	}
	s.Directory = d
	go s.serve()
	return s, nil
}

// Close ends the server and closes the fabric. What others still wait for from this
// task they don't get.
func (s *Server) Close() error {
	if s.closing.Swap(true) {
		return errors.New("the directory is closed")
	}
	s.fabric.Wake()
	<-s.ended
	return s.fabric.Close()
}

func (s *Server) send(to svd.Task, message []byte) {
	s.lock.Lock()
	s.queue = append(s.queue, fabric.Packet{Peer: to, Class: fabric.Control, Data: message})
	s.queued.Store(true)
	s.lock.Unlock()
	if s.asleep.Load() {
		s.fabric.Wake()
	}
}

// serve receives, repeats and sends, and sleeps when there is nothing to do.
func (s *Server) serve() {
	defer close(s.ended)
	var in [batch]fabric.Packet
	var out []fabric.Packet
	for !s.closing.Load() {
		n, err := s.fabric.Receive(in[:])
		if err != nil {
			return
		}
		for _, p := range in[:n] {
			// What is no message of a task is as good as lost.
			_ = s.Receive(p.Peer, p.Data)
		}
		wait, waits := s.Tick()
		if !waits || wait > longWait {
			wait = longWait
		}
		s.lock.Lock()
		out = append(out, s.queue...)
		s.queue = s.queue[:0]
		s.queued.Store(false)
		s.lock.Unlock()
		if len(out) > 0 {
			sent, err := s.fabric.Send(out)
			if err != nil {
				sent++ // that one can't be sent
			}
			out = out[:copy(out, out[sent:])]
		}
		if n > 0 || len(out) > 0 || s.queued.Load() {
			continue
		}
		s.asleep.Store(true)
		if !s.queued.Load() && !s.closing.Load() {
			s.fabric.Wait(wait)
		}
		s.asleep.Store(false)
	}
}
