package gsm

import (
	"os"
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/mpi/own"
	"evenkeel/pgas/dgsp/port"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	overmpi "evenkeel/runtime/fabric/mpi"
	"evenkeel/runtime/fabric/route"
	"evenkeel/runtime/fabric/udp"
)

// spinning is how long a task that waits for packets over MPI looks for them before it sleeps.
const spinning = 20 * time.Microsecond

// Commands to tasks on other nodes go through the task's engine: the reliability protocol over a fabric.

// connect makes the engine, if some task is on another node. Collective.
func (j *Job) connect(o Options) error {
	far := []int32{0}
	for _, local := range j.local {
		if !local {
			far[0] = 1
		}
	}
	if err := mpi.AllreduceInPlace(j.comm, far, mpi.Max); err != nil || far[0] == 0 {
		return err
	}
	// All take the same steps, also those that failed in the one before: they are collective.
	var shared [1 + len(credential.Secret{})]byte // whether there is a secret, and it
	if j.task == 0 {
		if secret, err := credential.Generate(); err == nil {
			shared[0] = 1
			copy(shared[1:], secret[:])
		}
	}
	if err := mpi.Bcast(j.comm, shared[:], 0); err != nil {
		return err
	}
	if shared[0] == 0 {
		return errors.New("task 0 could not make the job's secret")
	}
	join := o.Fabric
	if join == nil && !o.Apart {
		join = j.route
	} else if join == nil {
		join = func(m fabric.Meeting) (fabric.Fabric, error) { return udp.Join(m, udp.Options{}) }
	}
	network, err := join(overmpi.Meet(j.comm))
	if err == nil {
		err = j.start(network, credential.Secret(shared[1:]), o)
	}
	return j.agree(err, func() {
		j.port.Close()
		j.engine.Close()
	})
}

// route is the way to each task that the settings say (EVENKEEL_FABRIC): without other wishes shared memory on the node,
// UDP between nodes, and MPI where UDP can't be had.
func (j *Job) route(m fabric.Meeting) (fabric.Fabric, error) {
	settings, _ := config.Load(os.Environ()) // Join said what is wrong with them
	return route.Join(m, route.Options{Settings: settings, MPI: func() (fabric.Sleeper, error) { return overmpi.Join(j.comm, spinning) }})
}

func (j *Job) start(network fabric.Fabric, secret credential.Secret, o Options) error {
	const job = 1 // what sets jobs apart is their secret
	life, err := credential.NewLife()
	if err != nil {
		network.Close()
		return err
	}
	c, err := credential.New(job, j.task, life, secret)
	if err != nil {
		network.Close()
		return err
	}
	p := epoch.Default()
	p.Job, p.Life = job, life
	p.Silence = o.Silence
	served := memory.Served{Area: j.space.Self()}
	p.Memory = j.keys.Memory(served)
	if o.Handlers == nil {
		o.Handlers = &engine.Handlers{}
	}
	e, err := engine.New(engine.Config{Protocol: p, Credential: c, Fabric: network, Handlers: o.Handlers, Foreign: showForeign})
	if err != nil {
		network.Close()
		return err
	}
	j.port, err = port.Open(port.Config{Engine: e, Handlers: o.Handlers, Number: LayoutHandler,
		Reach: port.Served(served, &j.keys), Show: port.Shown(served, &j.keys), Times: port.Patience(p.Silence)})
	if err != nil {
		e.Close()
		return err
	}
	j.engine = e
	return nil
}

// Engine is what commands to tasks on other nodes go through, and active messages; nil where all tasks are on one node.
func (j *Job) Engine() *engine.Engine { return j.engine }

// command is one to a task on another node.
type command struct {
	engine.Operation
	address Address
	bytes   uint64
	old     *uint64 // of an atomic; nil: not wanted
}

// issue starts a command on another node, which checks it.
func (w *Window) issue(c epoch.Command, at Address, bytes uint64, old *uint64) (*command, error) {
	if !w.key.has(at.Task) {
		return nil, w.refuse(c.Op, at, bytes, ErrKey)
	}
	if w.job.engine == nil {
		return nil, w.refuse(c.Op, at, bytes, ErrUnreachable)
	}
	c.Peer, c.Window, c.Offset, c.Key = at.Task, at.Window, at.Offset, w.key.numberOf()
	switch c.Op {
	case wire.Put:
		w.counters.Puts++
		w.counters.PutBytes += bytes
	case wire.Get:
		w.counters.Gets++
		w.counters.GetBytes += bytes
	default:
		w.counters.Atomics++
	}
	o := &command{address: at, bytes: bytes, old: old}
	o.Command = c
	if err := w.job.engine.Start(&o.Operation); err != nil {
		return nil, w.refuse(c.Op, at, bytes, ErrClosed)
	}
	return o, nil
}

// What commands are recorded as that have to wait for another node.
var (
	putCall    = own.Named("gsm.Window.Put")
	getCall    = own.Named("gsm.Window.Get")
	updateCall = own.Named("gsm.Window.Update")
	waitCall   = own.Named("gsm.Window.Wait")
	fenceCall  = own.Named("gsm.Window.Fence")
)

// end waits for a command, in a function of that name.
func (w *Window) end(o *command, by own.Function) error {
	if !o.Finished() {
		defer by.Begin(w.job.comm, int(o.address.Task)).End()
	}
	if err := w.job.engine.Wait(&o.Operation); err != nil {
		var why wire.Reason
		if !errors.As(err, &why) {
			why = wire.Fault
		}
		return w.refuse(o.Op, o.address, o.bytes, why)
	}
	if o.old != nil {
		*o.old = o.Value()
	}
	return nil
}
