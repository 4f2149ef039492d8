package port

import (
	"encoding/binary"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Reading from another task. It is asked by a message that describes where the data lies there, or
// names a layout that it holds; it gathers by that program and sends the data in a message of its own,
// whose header is the number of the first. When that has been placed it says that the first was served.
// As long as it has not, it is asked, so that it is known when it dies.

// fetched is the header handler of what this task has asked for: no other has its number.
const fetched = ^uint32(0)

// fetch is what this task has asked for.
type fetch struct {
	into   []byte
	target *dgsp.Program
	answer *message // the message that brings it, when that was described
}

// mostAsks is how many messages of Get to one task are under way: fewer than there may be in all, so that
// two tasks that ask each other have room for what they answer.
const mostAsks = 32

// Get reads what lies in a window of a task as source says, and puts it to where target says in into; under
// a key that both have.
func (p *Port) Get(from fabric.Task, key wire.Key, window uint32, base int, source *dgsp.Program, into []byte, target *dgsp.Program) error {
	if source == nil || target == nil || source.Size() != target.Size() || !target.Fits(into, 0) {
		return errors.Errorf("a transfer from task %d: layouts of different sizes, or one that does not fit the memory", from)
	}
	m := dgsp.Message{Ask: true, Target: source, Window: window, Base: base}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := p.get(partner{from, key}, m, &fetch{into: into, target: target})
		var refused dgsp.Reason
		if !errors.As(err, &refused) || refused != dgsp.Busy {
			return errors.WithMessagef(err, "a transfer from task %d", from)
		}
		time.Sleep(pause)
	}
}

// get asks once.
func (p *Port) get(from partner, m dgsp.Message, f *fetch) error {
	p.lock.Lock()
	q, err := p.peer(from)
	for err == nil && q.asks >= mostAsks {
		q.room.Wait()
	}
	var t *Transfer
	var n dgsp.Number
	if err == nil {
		q, t, n, err = p.start(from, m)
	}
	if err != nil {
		p.lock.Unlock()
		return err
	}
	q.asks++
	at := message{from, n}
	p.fetches[at] = f
	t.then = func(error) { // what comes late has no place any more
		q.asks--
		delete(p.fetches, at)
		if f.answer != nil {
			delete(p.answers, *f.answer)
		}
	}
	p.proceed(q)
	return p.wait(t)
}

// fetched answers the message that brings what was asked for.
func (p *Port) fetched(a Arrival) Answer {
	if len(a.Header) != 8 {
		return Answer{Refuse: dgsp.HandlerChoice}
	}
	f := p.fetches[message{a.partner(), dgsp.Number(binary.LittleEndian.Uint64(a.Header))}]
	if f == nil || f.answer != nil {
		return Answer{Refuse: dgsp.HandlerChoice} // it was given up
	}
	f.answer = &message{a.partner(), a.number}
	return Answer{Memory: f.into, Target: f.target}
}

// serve answers a task that asks for data.
func (p *Port) serve(e *dgsp.Effect, at message) {
	q, err := p.gather(e, at)
	reason := dgsp.NoReason
	switch {
	case err == nil:
		_ = p.receiver.Accept(e.Peer, e.Number) // it waits for an answer
		p.serving = append(p.serving, q)
		return
	case err == dgsp.ErrFull:
		reason = dgsp.Busy
	case !errors.As(err, &reason):
		reason = dgsp.HandlerChoice
	}
	_ = p.receiver.Refuse(e.Peer, e.Number, reason)
}

// served adds to operations what is to be sent to those that serve has answered.
func (p *Port) served(operations []*engine.Operation) []*engine.Operation {
	for len(p.serving) > 0 {
		all := p.serving
		p.serving = nil
		for _, q := range all {
			operations = p.collect(q, operations)
		}
		p.place() // what ended may have let another message in
	}
	return operations
}

// gather begins the message that brings a task what it has asked for.
func (p *Port) gather(e *dgsp.Effect, at message) (*peer, error) {
	if p.config.Show == nil {
		return nil, dgsp.NoWindow
	}
	memory, base, reason := within(e, p.config.Show)
	if reason != dgsp.NoReason {
		return nil, reason
	}
	q, err := p.peer(at.partner)
	if err != nil {
		return nil, err
	}
	packed, err := dgsp.Compile(dgsp.Block(e.Program.Size()))
	if err != nil {
		return nil, err
	}
	n, err := q.sender.Put(p.now(), dgsp.Message{Source: e.Program, Memory: memory, SourceBase: base, Target: packed,
		Handler: fetched, Header: binary.LittleEndian.AppendUint64(nil, uint64(at.number))})
	if err != nil {
		return nil, err
	}
	p.begun(q, n).then = func(err error) {
		if err == nil {
			_ = p.receiver.Served(e.Peer, at.number) // it may have been forgotten
			return
		}
		_ = p.receiver.Refuse(e.Peer, at.number, dgsp.HandlerChoice)
	}
	return q, nil
}
