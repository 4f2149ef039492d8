package udp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket that is connected to a peer spares the kernel the search for the way there
// with each send. It only sends: what comes back goes to the ports that the peer was
// told of, so there is no further socket to look at for arrivals. A peer gets one for
// the first path when enough was sent to it.

// address says where the messages from one on go, and returns the socket for them
// all: that of the path, or the one that is connected to their only target.
func (f *Fabric) address(at, messages, path int) int {
	to := f.targets[at]
	if path == 0 && to.sends < oftenSent {
		if to.sends++; to.sends == oftenSent && f.connections < mostConnections {
			f.connect(to)
		}
	}
	alone := path == 0 && to.connected >= 0
	for i := at + 1; i < messages && alone; i++ {
		alone = f.targets[i] == to
	}
	if alone {
		return to.connected
	}
	for i := at; i < messages; i++ {
		address := &f.targets[i].addresses[path%len(f.targets[i].addresses)]
		h := &f.messages[i].header
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&address.bytes)), address.length
	}
	return f.sockets[path].fd
}

// connect makes the socket, if it can be had.
func (f *Fabric) connect(to *peer) {
	fd, err := unix.Socket(f.family, kind, 0)
	if err != nil {
		return
	}
	if f.family == unix.AF_INET6 {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	f.sends(fd)
	address := &to.addresses[0]
	if _, _, err := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address.bytes)),
		uintptr(address.length)); err != 0 {
		unix.Close(fd)
		return
	}
	to.connected = fd
	f.connections++
}

// disconnect closes the socket for good: what it can't send, or what the network told
// it about a packet before, is left to the socket that leads to all.
func (f *Fabric) disconnect(from *peer) {
	unix.Close(from.connected)
	from.connected = -1
	f.connections--
}

// give gives messages to the kernel, and says how many it took.
func (f *Fabric) give(fd int, messages []message) (int, unix.Errno) {
	h := &messages[0].header
	if len(messages) > 1 || h.Iovlen != 2 {
		return sendmmsg(fd, messages)
	}
	parts := unsafe.Slice(h.Iov, 2)
	if parts[0].Len+parts[1].Len > fewBytes {
		return sendmmsg(fd, messages)
	}
	n := 0
	for _, p := range parts {
		n += copy(f.few[n:], unsafe.Slice(p.Base, p.Len))
	}
	return sendto(fd, f.few[:n], h)
}
