package route

import (
	"runtime"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

// Names of the ways.
const (
	SharedMemory = "shared memory"
	UDP          = "UDP"
	MPI          = "MPI"
)

// Options are what Join makes ways of.
type Options struct {
	Settings config.Config
	// MPI makes the fabric over a communicator; nil: there is none here.
	MPI func() (fabric.Sleeper, error)
}

// spinning is how long a task looks for packets before it sleeps, where it has a
// core of its own.
const spinning = 20 * time.Microsecond

// Join makes the ways that the settings say, for each task of a job. Collective;
// all tasks have the same settings.
func Join(m fabric.Meeting, o Options) (*Fabric, error) {
	var ways []Way
	fail := func(err error) (*Fabric, error) {
		for _, w := range ways {
			w.Fabric.(fabric.Fabric).Close()
		}
		return nil, errors.WithMessage(err, "the job's fabric")
	}
	s := o.Settings
	spin := time.Duration(spinning)
	node, err := shm.Join(m, shm.Options{Slots: s.ShmSlots(), Buffer: s.ShmBuffer()})
	if err != nil {
		return fail(err)
	}
	if len(node.Tasks()) > runtime.NumCPU() {
		spin = 0 // who looks keeps others from their work
	}
	if s.FabricNode() {
		ways = append(ways, Way{Name: SharedMemory, Fabric: node, Reaches: node.Reaches})
	} else if err := node.Close(); err != nil {
		return fail(err)
	}

	// Who needs no network opens no socket; but all decide alike.
	alone := byte(0)
	if s.FabricNode() && len(node.Tasks()) == m.Tasks() {
		alone = 1
	}
	said, err := m.Exchange([]byte{alone})
	if err != nil {
		return fail(err)
	}
	for _, one := range said {
		if len(one) != 1 || one[0] == 0 {
			alone = 0
		}
	}
	if alone == 0 {
		network, err := o.network(m)
		if err != nil {
			return fail(err)
		}
		ways = append(ways, network)
	}
	f, err := New(spin, ways...)
	if err != nil {
		return fail(err)
	}
	return f, nil
}

// network joins the one between nodes. Whether UDP can be used all tasks find out
// alike.
func (o Options) network(m fabric.Meeting) (Way, error) {
	s := o.Settings
	var why error
	if s.Fabric() != "mpi" {
		u, err := udp.Join(m, udp.Options{Address: s.UdpAddress(), Paths: s.UdpPaths(), Rate: s.UdpRate()})
		if err == nil {
			return Way{Name: UDP, Fabric: u}, nil
		}
		if s.Fabric() == "udp" || o.MPI == nil {
			return Way{}, err
		}
		why = err
	}
	if o.MPI == nil {
		return Way{}, errors.New("EVENKEEL_FABRIC=mpi needs tasks that are ranks of an MPI program")
	}
	f, err := o.MPI()
	if err != nil && why != nil {
		err = errors.Errorf("%v; and %v", why, err)
	}
	return Way{Name: MPI, Fabric: f}, err
}
