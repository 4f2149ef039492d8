// Package model checks the epoch protocol: spin, the model checker, goes through all that can happen in epoch.pml, and
// the Go state machines take the same steps as the model in random runs of it.
package model

import (
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// spin runs it in a folder of its own, where the model is.
func spin(t *testing.T, dir string, args ...string) string {
	path, err := exec.LookPath("spin")
	require.NoError(t, err, "the model checker is missing: scripts/packages test installs it")
	cmd := exec.Command(path, append(args, "epoch.pml")...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func folder(t *testing.T) string {
	dir := t.TempDir()
	model, err := os.ReadFile("epoch.pml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "epoch.pml"), model, 0o600))
	return dir
}

// check goes through all states of the model, or a variant, and returns what the verifier reports.
func check(t *testing.T, compile []string, args ...string) string {
	dir := folder(t)
	spin(t, dir, append([]string{"-a"}, args...)...)
	cc := exec.Command("gcc", append([]string{"-w", "-O1", "-o", "pan", "pan.c"}, compile...)...)
	cc.Dir = dir
	out, err := cc.CombinedOutput()
	require.NoError(t, err, "%s", out)
	pan := exec.Command("./pan", "-m1000000", "-a")
	if len(compile) > 0 {
		pan.Args = pan.Args[:2]
	}
	pan.Dir = dir
	out, err = pan.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "search not completed", "%s", out)
	return string(out)
}

var safety = []string{"-DSAFETY"}

func TestTheProtocolIsRight(t *testing.T) {
	out := check(t, safety, "-DEPOCHS=3")
	assert.Contains(t, out, "errors: 0", "%s", out)
	t.Log(regexp.MustCompile(`\d+ states, stored`).FindString(out))
}

// Without a part of it the protocol is wrong, and the checker says so.
func TestBadVariantsAreRejected(t *testing.T) {
	for _, variant := range []string{"OLD_PACKETS", "OLD_ANSWERS", "LATE_CLEAR", "UNCONFIRMED", "FORGET", "NO_COUNT"} {
		t.Run(variant, func(t *testing.T) {
			out := check(t, safety, "-DEPOCHS=2", "-D"+variant)
			assert.Contains(t, out, "errors: 1", "%s", out)
			assert.Contains(t, out, "assertion violated", "%s", out)
		})
	}
}

// A model in which nothing can be finished would be right too.
func TestBothOperationsCanEnd(t *testing.T) {
	out := check(t, nil, "-DEPOCHS=2", "-DREACHES")
	assert.Contains(t, out, "errors: 1", "%s", out)
}

// pair is the Go state machines of the model's two tasks, and everything that they ever sent.
type pair struct {
	t       *testing.T
	now     time.Duration
	tasks   [2]*epoch.Endpoint
	memory  uint64 // executions of the atomic
	network map[string][]byte
	parts   []byte // what is sent by the PUT
}

const part = 10 // bytes in a packet of the PUT

// The target's memory: one word for the atomic, and nothing is kept of a PUT.

func (p *pair) Check(wire.Window, wire.Op, uint64, uint64) error { return nil }
func (p *pair) Write(wire.Window, uint64, []byte) error          { return nil }
func (p *pair) Read(wire.Window, uint64, []byte) error           { return nil }
func (p *pair) Atomic(_ wire.Window, _ uint64, op wire.Op, width int, operand, _ uint64) (uint64, error) {
	old := p.memory
	p.memory = op.Apply(width, old, operand, 0)
	return old, nil
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, network: map[string][]byte{}, parts: make([]byte, 2*part)}
	for self := range p.tasks {
		c := epoch.Default()
		c.Self, c.Job, c.Life, c.Repairs = fabric.Task(self), 1, wire.Life(self+1), 0
		c.Packets, c.Operations = 32, 2
		c.MTU = func(fabric.Task) int { return wire.Overhead + part }
		c.Memory = func(fabric.Task, wire.Key) epoch.Memory { return p }
		c.Silence = 1000 * time.Hour
		e, err := epoch.New(c)
		require.NoError(t, err)
		p.tasks[self] = e
	}
	require.NoError(t, p.tasks[0].Submit(0, epoch.Command{Op: wire.Put, Peer: 1, Data: p.parts, Token: 0}))
	require.NoError(t, p.tasks[0].Submit(0, epoch.Command{Op: wire.Add, Peer: 1, Width: 8, Operand: 1, Token: 1}))
	return p
}

// next is the next packet of a task in the model's words; empty if there is none.
func (p *pair) next(self int) string {
	packet, _, _, ok := p.tasks[self].Next(p.now, make([]byte, 0, wire.Overhead+part))
	if !ok {
		return ""
	}
	packet = append(packet, make([]byte, wire.TagLength)...)
	h, body := open(p.t, packet)
	name, more := fmt.Sprintf("%v %d", h.Type, h.Epoch), ""
	switch h.Type {
	case wire.TypePut:
		var b wire.PutPart
		require.True(p.t, b.Decode(body))
		name += fmt.Sprintf(" %d", b.At/part)
		more = fmt.Sprintf(" number %d", b.Number)
	case wire.TypeAtomic:
		var b wire.Atomic
		require.True(p.t, b.Decode(body))
		more = fmt.Sprintf(" number %d", b.Number)
	case wire.TypeConfirm:
		var b wire.Confirm
		require.True(p.t, b.Decode(body))
		done := 0
		if b.Floor == 0 && b.Done.Get(0) {
			done = 1
		}
		name += fmt.Sprintf(" %d", done)
	case wire.TypeAck:
		var b wire.Ack
		require.True(p.t, b.Decode(body))
		mask := uint64(1)<<b.Base - 1
		if b.Received.Len() > 0 {
			mask |= b.Received.Word(0) << b.Base
		}
		require.LessOrEqual(p.t, bits.Len64(mask), 3)
		name += fmt.Sprintf(" %d", mask)
	}
	p.network[name] = packet
	return name + more
}

func open(t *testing.T, packet []byte) (wire.Header, []byte) {
	var h wire.Header
	body, reason := h.Decode(packet)
	require.Equal(t, wire.OK, reason)
	return h, body[:len(body)-wire.TagLength]
}

// sends has the initiator send what the model sends, after a timeout if that is what it is.
func (p *pair) sends(what string) {
	if strings.HasPrefix(what, "raise") && what != "raise 1" {
		deadline, any := p.tasks[0].Deadline()
		require.True(p.t, any, "nothing is under way, where the model has a timeout before %q", what)
		p.now = deadline
		p.tasks[0].Advance(p.now)
	}
	require.Equal(p.t, what, p.next(0))
}

// arrives delivers a packet and checks that Go makes of it what the model does.
func (p *pair) arrives(name, outcome string) {
	packet, sent := p.network[name]
	require.True(p.t, sent, "%q arrives in the model, and Go never sent it", name)
	h, body := open(p.t, packet)
	to := 0
	if h.Type.FromInitiator() {
		to = 1
	}
	before := p.tasks[to].Counters()
	p.tasks[to].Receive(p.now, &h, body)
	after := p.tasks[to].Counters()
	dropped := wire.OK
	for r := range after.Dropped {
		if after.Dropped[r] > before.Dropped[r] {
			dropped = wire.Reason(r)
		}
	}
	result, answer, _ := strings.Cut(outcome, " ")
	switch result {
	case "stale":
		assert.Equal(p.t, wire.Stale, dropped)
	case "late":
		assert.Equal(p.t, wire.Late, dropped)
	case "repeated":
		assert.Contains(p.t, []wire.Reason{wire.Repeated, wire.Late}, dropped)
	default:
		assert.Equal(p.t, wire.OK, dropped)
	}
	if h.Type == wire.TypePut || h.Type == wire.TypeAtomic {
		assert.Equal(p.t, result == "executed", after.Executed > before.Executed, "executed")
	}
	notifications := p.tasks[0].Notifications(nil)
	if result == "notified" {
		require.Len(p.t, notifications, 1)
		assert.Equal(p.t, wire.OK, notifications[0].Reason)
		assert.Equal(p.t, h.Type == wire.TypeAnswer, notifications[0].Token == 1)
	} else {
		assert.Empty(p.t, notifications)
	}
	if to == 1 {
		want := ""
		if answer != "" {
			kind, value, _ := strings.Cut(answer, " ")
			want = strings.TrimSpace(fmt.Sprintf("%s %d %s", kind, h.Epoch, value))
		}
		assert.Equal(p.t, want, p.next(1), "what the target sends for it")
		assert.Empty(p.t, p.next(1), "and nothing else")
	}
}

var line = regexp.MustCompile(`^ *(?:send (.+)|((?:raise|confirm|put|atomic|answer|ack) [\d ]+): +([a-z].*))$`)

// Whatever the model does in a random run, the Go state machines do too: the same packets with the same numbers, the
// same drops, answers and notifications.
func TestGoTakesTheStepsOfTheModel(t *testing.T) {
	dir := folder(t)
	seen := map[string]int{}
	for seed := range 100 {
		run := spin(t, dir, "-DEPOCHS=3", fmt.Sprintf("-n%d", seed+1), "-u4000")
		p := newPair(t)
		for _, text := range strings.Split(run, "\n") {
			step := line.FindStringSubmatch(strings.TrimRight(text, " "))
			if step == nil {
				continue
			}
			if step[1] != "" {
				p.sends(step[1])
			} else {
				p.arrives(step[2], step[3])
				kind, _, _ := strings.Cut(step[2], " ")
				result, _, _ := strings.Cut(step[3], " ")
				seen[kind+" "+result]++
			}
			require.False(t, t.Failed(), "seed %d, at %q", seed+1, text)
		}
	}
	t.Log(seen)
	for _, kind := range []string{
		"raise executed", "raise repeated", "raise stale", "confirm accepted", "confirm notified", "confirm stale",
		"put executed", "put repeated", "put stale", "atomic executed", "atomic repeated", "atomic stale",
		"ack accepted", "ack notified", "ack repeated", "ack stale", "answer notified", "answer repeated", "answer stale",
	} {
		assert.Positive(t, seen[kind], "no run had this step: %s", kind)
	}
}
