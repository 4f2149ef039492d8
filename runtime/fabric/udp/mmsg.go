package udp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// The system calls sendmmsg and recvmmsg, on memory that is laid out once.
//
// golang.org/x/net offers both, but makes an address on the heap for each
// datagram that it receives, and takes the poller's locks for each look at an
// empty socket, of which a spinning task takes millions.

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

const _ = -(unsafe.Sizeof(message{}) - 64) // its size in the kernel's interface of all 64-bit machines

const (
	longest    = 65535 // of a datagram with its IP header
	segments   = 64    // that the kernel cuts one send into, at most
	gsoBytes   = 64000 // of one such send
	controlLen = 32    // of one control message with an int: CmsgSpace(4) and to spare
)

// control is one control message that carries an int: the size of segments.
type control [controlLen]byte

// put writes UDP_SEGMENT; the result is its length.
func (c *control) put(size int) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(c[unix.CmsgLen(0):], uint16(size))
	return unix.CmsgSpace(2)
}

// segment reads UDP_GRO: the size of the segments that a received datagram
// consists of; 0: it is one.
func (c *control) segment(length uint64) int {
	if length < uint64(unix.CmsgLen(4)) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	if h.Level != unix.SOL_UDP || h.Type != unix.UDP_GRO {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(c[unix.CmsgLen(0):])))
}

// sendmmsg sends messages, and says how many. It never blocks.
func sendmmsg(fd int, m []message) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// sendto sends data to where a header says, for which the kernel has the least to
// do. It never blocks.
func sendto(fd int, data []byte, to *unix.Msghdr) (int, unix.Errno) {
	_, _, err := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(to.Name)), uintptr(to.Namelen))
	if err != 0 {
		return 0, err
	}
	return 1, 0
}

// recvmmsg fills messages with what has arrived. It never blocks.
func recvmmsg(fd int, m []message) (int, unix.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)),
		unix.MSG_DONTWAIT, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}

// sockaddr is an address in the kernel's form.
type sockaddr struct {
	bytes  unix.RawSockaddrInet6 // the longer one
	length uint32
}

// newSockaddr makes an address for sockets of a family: an IPv4 address has a
// form of its own for those of IPv6.
func newSockaddr(family int, a netip.Addr, port uint16) (s sockaddr, err error) {
	if family == unix.AF_INET6 {
		s.bytes.Family = unix.AF_INET6
		s.bytes.Addr = a.As16()
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.bytes.Port))[:], port)
		s.length = unix.SizeofSockaddrInet6
		return s, nil
	}
	if !a.Is4() && !a.Is4In6() {
		return s, errors.Errorf("this host can't send to %v: it has no IPv6", a)
	}
	four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.bytes))
	four.Family = unix.AF_INET
	four.Addr = a.As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&four.Port))[:], port)
	s.length = unix.SizeofSockaddrInet4
	return s, nil
}
