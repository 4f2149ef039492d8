package udp

import (
	"encoding/json"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

// Options are what can be chosen. The zero Options are the defaults.
type Options struct {
	// Address is by which of this host's addresses others reach it: the name of an
	// interface, an address, or a prefix like 10.0.0.0/8; empty: any.
	Address string
	// Paths is how many sockets there are, so that packets of dynamic routing take
	// as many paths where the network has several; 0: 1.
	Paths int
	// MTU is the longest datagram; 0: what the path to the peer takes in one piece,
	// but not more than 16 KiB where the peer's buffer has no room for many.
	MTU int
	// Rate is how many bytes a second leave for one peer at most, in packets of the
	// class Bulk; 0: no limit.
	Rate int
	// Buffer is the size of a socket's buffers in bytes, if the kernel grants it; 0: 4 MiB.
	Buffer int
	// NoSegmentation has each datagram go to the kernel by itself.
	NoSegmentation bool
	// Spin is how long Wait looks before it sleeps.
	Spin time.Duration
}

const (
	maxPaths    = 16
	leastMTU    = 1200 // that IPv6 asks of every path, less the headers
	sureMTU     = 16 << 10
	manyLongest = 64 // datagrams longer than that fit the buffer of who receives them
	headersIPv4 = 20 + 8
	headersIPv6 = 40 + 8
)

func (o Options) complete() (Options, error) {
	if o.Paths == 0 {
		o.Paths = 1
	}
	if o.Buffer == 0 {
		o.Buffer = 4 << 20
	}
	if o.Paths < 0 || o.Paths > maxPaths {
		return o, errors.Errorf("UDP can't have %d paths: it takes 1 to %d", o.Paths, maxPaths)
	}
	if o.MTU != 0 && (o.MTU < leastMTU || o.MTU > longest-headersIPv6) {
		return o, errors.Errorf("datagrams can't have %d bytes: they take %d to %d", o.MTU, leastMTU, longest-headersIPv6)
	}
	if o.Rate < 0 || o.Buffer < 0 {
		return o, errors.New("rates and buffers are not negative")
	}
	return o, nil
}

// Join opens this task's sockets and learns the addresses of all others. It is
// collective over all tasks of the job.
func Join(m fabric.Meeting, o Options) (*Fabric, error) {
	f, own, err := open(m, o)
	if err != nil {
		own.Error = err.Error()
	}
	said, met := json.Marshal(own)
	if met != nil {
		return nil, errors.Wrap(met, "telling the others of this task's sockets")
	}
	heard, met := m.Exchange(said)
	if err == nil {
		err = met
	}
	if err == nil {
		f.cards = make([]Card, len(heard))
		for task := range heard {
			if err = json.Unmarshal(heard[task], &f.cards[task]); err != nil {
				err = errors.Wrapf(err, "what task %d told", task)
				break
			}
			if f.cards[task].Error != "" {
				err = errors.Errorf("task %d: %s", task, f.cards[task].Error)
				break
			}
		}
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, errors.WithMessage(err, "the UDP fabric")
	}
	f.own = own
	return f, nil
}

func open(m fabric.Meeting, o Options) (f *Fabric, own Card, err error) {
	if o, err = o.complete(); err != nil {
		return nil, own, err
	}
	if own.Host, err = Host(); err != nil {
		return nil, own, err
	}
	if own.Addresses, err = Addresses(o.Address); err != nil {
		return nil, own, err
	}
	f = &Fabric{options: o, self: m.Self(), peers: make([]atomic.Pointer[peer], m.Tasks()), begin: time.Now()}
	for range o.Paths {
		s, port, err := f.socket()
		if err != nil {
			f.Close()
			return nil, own, err
		}
		f.sockets = append(f.sockets, s)
		own.Ports = append(own.Ports, port)
		if buffer, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			own.Buffer = buffer
		}
	}
	if err = f.Open(o.Spin, f); err != nil {
		f.Close()
		return nil, own, err
	}
	return f, own, nil
}

const kind = unix.SOCK_DGRAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC // of all sockets

// socket opens one for both versions of IP, where the kernel has both.
func (f *Fabric) socket() (*socket, uint16, error) {
	var any unix.Sockaddr = &unix.SockaddrInet6{}
	f.family = unix.AF_INET6
	fd, err := unix.Socket(unix.AF_INET6, kind, 0)
	if err == nil {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		if err = unix.Bind(fd, any); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		f.family, any = unix.AF_INET, &unix.SockaddrInet4{}
		if fd, err = unix.Socket(unix.AF_INET, kind, 0); err != nil {
			return nil, 0, errors.Wrap(err, "opening a socket")
		}
		if err := unix.Bind(fd, any); err != nil {
			unix.Close(fd)
			return nil, 0, errors.Wrap(err, "binding a socket")
		}
	}
	f.buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	f.sends(fd)
	if !f.options.NoSegmentation {
		unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) // where the kernel can't, datagrams come one by one
		_, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT)
		f.segmentation = err == nil
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, 0, errors.Wrap(err, "asking for a socket's port")
	}
	port := 0
	switch a := name.(type) {
	case *unix.SockaddrInet6:
		port = a.Port
	case *unix.SockaddrInet4:
		port = a.Port
	}
	return newSocket(fd), uint16(port), nil
}

// sends has a socket send as the options say. What turns out too long for its
// path is cut up by this host.
func (f *Fabric) sends(fd int) {
	f.buffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_WANT)
	if f.family == unix.AF_INET6 {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_WANT)
	}
}

// buffer sets the size of one of a socket's buffers. Where the kernel grants no more
// than its limit, that has to do.
func (f *Fabric) buffer(fd, force, plain int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, f.options.Buffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, f.options.Buffer)
	}
}

// pathMTU asks the kernel for the longest datagram that leaves for an address
// in one piece.
func pathMTU(a netip.Addr, port uint16) (int, error) {
	a = a.Unmap()
	family, level, option, headers := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU, headersIPv4
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{}}
	if a.Is4() {
		to = &unix.SockaddrInet4{Port: int(port), Addr: a.As4()}
	} else {
		family, level, option, headers = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU, headersIPv6
		to = &unix.SockaddrInet6{Port: int(port), Addr: a.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, errors.Wrap(err, "opening a socket")
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return 0, errors.Wrapf(err, "there is no way to %v", a)
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0, errors.Wrapf(err, "asking for the longest packet to %v", a)
	}
	return min(mtu, longest) - headers, nil
}
