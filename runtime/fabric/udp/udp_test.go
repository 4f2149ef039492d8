package udp

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
)

func tryJoin(tasks int, options func(task int) Options) ([]*Fabric, []error, []fabric.Meeting) {
	meetings := fabrictest.Meetings(tasks)
	fabrics, errs := make([]*Fabric, tasks), make([]error, tasks)
	var all sync.WaitGroup
	for i, m := range meetings {
		all.Add(1)
		go func() {
			defer all.Done()
			fabrics[i], errs[i] = Join(m, options(i))
		}()
	}
	all.Wait()
	return fabrics, errs, meetings
}

func join(t *testing.T, tasks int, o Options) ([]*Fabric, []fabric.Meeting) {
	fabrics, errs, meetings := tryJoin(tasks, func(int) Options { return o })
	for i, err := range errs {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, fabrics[i].Close()) })
	}
	return fabrics, meetings
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		tasks int
		o     Options
	}{
		"IPv4":                 {2, Options{Address: "127.0.0.1"}},
		"IPv6":                 {2, Options{Address: "::1"}},
		"any address":          {3, Options{}},
		"by interface":         {2, Options{Address: "lo", Spin: 20 * time.Microsecond}},
		"two paths":            {2, Options{Address: "127.0.0.0/8", Paths: 2}},
		"short datagrams":      {2, Options{Address: "127.0.0.1", MTU: leastMTU}},
		"one by one":           {2, Options{Address: "127.0.0.1", NoSegmentation: true}},
		"paced, fast and slow": {2, Options{Address: "127.0.0.1", Rate: 1 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Address == "::1" && !haveIPv6() {
				t.Skip("this machine has no IPv6")
			}
			fabrics, meetings := join(t, c.tasks, c.o)
			var ends []fabrictest.End
			for i, f := range fabrics {
				ends = append(ends, fabrictest.End{Fabric: f, Meeting: meetings[i]})
			}
			fabrictest.Run(t, ends...)
		})
	}
}

func haveIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// Batches of mixed lengths, peers, classes and paths: every packet comes out as
// it went in, whichever of them the kernel was given in one piece.
func TestMixedBatches(t *testing.T) {
	for _, o := range []Options{{Address: "127.0.0.1", Paths: 3}, {Address: "127.0.0.1", Paths: 3, NoSegmentation: true}} {
		const seed = 7
		r := rand.New(rand.NewPCG(seed, 0))
		fabrics, _ := join(t, 3, o)
		for round := range 100 {
			var batch []fabric.Packet
			for i := range 1 + r.IntN(90) {
				data := bytes.Repeat([]byte{byte(i)}, []int{0, 1, 100, 100, 100, 700, 700, 1900}[r.IntN(8)])
				batch = append(batch, fabric.Packet{Peer: fabric.Task(1 + r.IntN(2)), Class: fabric.Class(r.IntN(2)),
					Path: uint8(r.IntN(4) / 2), Data: data})
			}
			n, err := fabrics[0].Send(batch)
			require.NoError(t, err)
			require.Equal(t, len(batch), n, "seed %d, round %d", seed, round)
			// Of one path they come in order.
			var came [3][3][]fabric.Packet
			for got := 0; got < n; {
				before := got
				for _, f := range fabrics[1:] {
					packets := make([]fabric.Packet, 1+r.IntN(20))
					k, err := f.Receive(packets)
					require.NoError(t, err)
					for _, p := range packets[:k] {
						require.Equal(t, fabric.Task(0), p.Peer)
						p.Data = bytes.Clone(p.Data)
						came[f.Self()][p.Path] = append(came[f.Self()][p.Path], p)
					}
					got += k
				}
				if got == before {
					fabrics[1].Wait(time.Millisecond)
				}
			}
			for _, p := range batch {
				q := &came[p.Peer][p.Path]
				require.NotEmpty(t, *q, "seed %d, round %d", seed, round)
				require.True(t, bytes.Equal(p.Data, (*q)[0].Data) && p.Class == (*q)[0].Class, "seed %d, round %d", seed, round)
				*q = (*q)[1:]
			}
		}
	}
}

// However many packets are sent at once, the kernel is given no more in one piece than it takes: else it would refuse, and
// packets to that peer would go one by one from then on.
func TestSendsThatTheKernelTakes(t *testing.T) {
	for _, c := range []struct{ packets, length int }{{200, 1}, {64, 1400}, {64, 9000}, {20, 16000}} {
		fabrics, _ := join(t, 2, Options{Address: "127.0.0.1"})
		batch := make([]fabric.Packet, c.packets)
		for i := range batch {
			batch[i] = fabric.Packet{Peer: 1, Data: bytes.Repeat([]byte{byte(i)}, c.length)}
		}
		for rest := batch; len(rest) > 0; {
			n, err := fabrics[0].Send(rest)
			require.NoError(t, err)
			rest = rest[n:]
		}
		assert.False(t, fabrics[0].peers[1].Load().whole, "%d packets of %d bytes", c.packets, c.length)
		if fabrics[1].own.Buffer < 4<<20 {
			continue // some are lost, where the kernel grants no more
		}
		packets := make([]fabric.Packet, 16)
		for came := 0; came < c.packets; {
			n, err := fabrics[1].Receive(packets)
			require.NoError(t, err)
			if n == 0 {
				fabrics[1].Wait(time.Second)
			}
			for _, p := range packets[:n] {
				require.True(t, bytes.Equal(batch[came].Data, p.Data), "packet %d of %d of %d bytes", came, c.packets, c.length)
				came++
			}
		}
	}
}

// What Receive has shown lasts until the next Receive, though Wait and looks take in what comes meanwhile.
func TestShownPacketsLast(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Address: "127.0.0.1"})
	send := func(what string) {
		n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: []byte(what)}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	var packets [4]fabric.Packet
	next := func() string {
		for {
			n, err := fabrics[1].Receive(packets[:])
			require.NoError(t, err)
			if n > 0 {
				return string(packets[0].Data)
			}
			fabrics[1].Wait(time.Second)
		}
	}
	send("first")
	require.Equal(t, "first", next())
	for _, what := range []string{"other", "third"} {
		shown := packets[0].Data
		before := string(shown)
		send(what)
		for !fabrics[1].Arrived() {
		}
		assert.Equal(t, before, string(shown))
		require.Equal(t, what, next())
	}
}

// Addresses that others are told: those of IPv4 first, loopback last, and none that mean nothing elsewhere.
func TestAddressesInOrder(t *testing.T) {
	all := []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.1")}
	for i, a := range all {
		assert.Equal(t, 3-i, rank(a), "%v", a)
	}
	found, err := Addresses("")
	require.NoError(t, err)
	for i, p := range found {
		assert.False(t, p.Addr().IsLinkLocalUnicast(), "%v", p)
		assert.True(t, i == 0 || rank(found[i-1].Addr()) <= rank(p.Addr()), "%v", found)
	}
}

// Packets of a batch take the socket of their path, at both ends.
func TestPathsHaveTheirSockets(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Address: "127.0.0.1", Paths: 3})
	batch := []fabric.Packet{{Peer: 1, Path: 2, Data: []byte("two")}, {Peer: 1, Data: []byte("none")}, {Peer: 1, Path: 5, Data: []byte("two")}}
	n, err := fabrics[0].Send(batch)
	require.NoError(t, err)
	require.Equal(t, len(batch), n)
	var buffer [100]byte
	for path, packets := range []int{1, 0, 2} {
		fd := fabrics[1].Descriptors()[path]
		for range packets {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			require.NoError(t, err)
			n, from, err := unix.Recvfrom(fd, buffer[:], unix.MSG_DONTWAIT)
			require.NoError(t, err)
			assert.Equal(t, map[int]string{0: "none", 2: "two"}[path], string(buffer[prefix:n]))
			port := 0
			switch a := from.(type) {
			case *unix.SockaddrInet6:
				port = a.Port
			case *unix.SockaddrInet4:
				port = a.Port
			}
			assert.Equal(t, int(fabrics[0].own.Ports[path]), port)
		}
		_, _, err := unix.Recvfrom(fd, buffer[:], unix.MSG_DONTWAIT)
		assert.ErrorIs(t, err, unix.EAGAIN)
	}
}

// Closed fabrics leave no descriptor behind, those of connected sockets neither.
func TestClosingGivesDescriptorsBack(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	before := open()
	fabrics, errs, _ := tryJoin(2, func(int) Options { return Options{Address: "127.0.0.1", Paths: 2} })
	for _, err := range errs {
		require.NoError(t, err)
	}
	for range oftenSent {
		_, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: []byte("one")}})
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, fabrics[0].peers[1].Load().connected, 0)
	assert.Greater(t, open(), before)
	for _, f := range fabrics {
		require.NoError(t, f.Close())
	}
	assert.Equal(t, before, open())
}

// What others send to our port is counted, and seen by nobody.
func TestForeignDatagrams(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Address: "127.0.0.1"})
	c, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), fabrics[1].own.Ports[0]).String())
	require.NoError(t, err)
	defer c.Close()
	garbage := [][]byte{{}, {version}, {version, 0, 0, 0, 0, 0, 0}, []byte("hello, is anybody there?"), {version, 9, 0, 0, 0, 0, 0, 0},
		{version, 0, 0, 0, 2, 0, 0, 0, 1}, {version, 0, 0, 0, 255, 255, 255, 255, 1}, bytes.Repeat([]byte{1}, 60000)}
	for _, g := range garbage {
		_, err := c.Write(g)
		require.NoError(t, err)
	}
	n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: []byte("real")}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	var packets [10]fabric.Packet
	for n = 0; n == 0; {
		fabrics[1].Wait(time.Second)
		n, err = fabrics[1].Receive(packets[:])
		require.NoError(t, err)
	}
	assert.Equal(t, "real", string(packets[0].Data))
	assert.EqualValues(t, len(garbage), fabrics[1].Foreign())
}

// Where a send that was gathered can't be cut up for its path, later ones go
// packet by packet.
func TestPathTooNarrowForSegments(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Address: "127.0.0.1", MTU: 3000})
	p, err := fabrics[0].peer(1)
	require.NoError(t, err)
	p.mtu = longest - headersIPv4 // longer than two of them would be in one send
	large := make([]byte, 40000)
	for range 2 {
		n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: large}, {Peer: 1, Data: large}})
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	assert.False(t, p.whole, "two of them are too long for one send")
	// What the kernel refuses to cut up is lost, and the last of its kind.
	p.whole = false
	f := fabrics[0]
	messages, path, err := f.gather([]fabric.Packet{{Peer: 1, Data: large[:100]}, {Peer: 1, Data: large[:100]}})
	require.NoError(t, err)
	require.Equal(t, 1, messages)
	f.controls[0].put(1) // a segment for each byte is more than the kernel makes
	n, room := f.flush(messages, path)
	assert.True(t, room)
	assert.Equal(t, 2, n, "they are lost, which is no error")
	assert.True(t, p.whole)
	n, err = f.Send([]fabric.Packet{{Peer: 1, Data: []byte("one")}, {Peer: 1, Data: []byte("two")}})
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	last := ""
	for last != "two" {
		var packets [1]fabric.Packet
		fabrics[1].Wait(time.Second)
		n, err := fabrics[1].Receive(packets[:])
		require.NoError(t, err)
		if n == 1 {
			last = string(packets[0].Data)
		}
	}
}

func TestPacedSendsWait(t *testing.T) {
	fabrics, _ := join(t, 2, Options{Address: "127.0.0.1", Rate: 1000})
	bulk := fabric.Packet{Peer: 1, Class: fabric.Bulk, Data: make([]byte, 1000)}
	sent := 0
	for {
		n, err := fabrics[0].Send([]fabric.Packet{bulk})
		require.NoError(t, err)
		if n == 0 {
			break
		}
		sent++
		require.Less(t, sent, 200)
	}
	assert.GreaterOrEqual(t, sent, paceBurst/(1000+prefix))
	n, err := fabrics[0].Send([]fabric.Packet{{Peer: 1, Data: []byte("control is not held back")}})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}

func TestPacer(t *testing.T) {
	p := newPacer(1000, 500)
	assert.True(t, p.take(0, 500))
	assert.False(t, p.take(0, 1))
	assert.Equal(t, 100*time.Millisecond, p.wait(0, 100))
	assert.True(t, p.take(100*time.Millisecond, 100))
	assert.False(t, p.take(100*time.Millisecond, 1))
	assert.False(t, p.take(599*time.Millisecond, 5000))
	assert.True(t, p.take(600*time.Millisecond, 5000), "more than a burst leaves from a full bucket")
	assert.Equal(t, 5*time.Second, p.wait(600*time.Millisecond, 5000).Round(time.Millisecond), "and has to be made good")
	unlimited := pacer{}
	assert.True(t, unlimited.take(0, 1<<40))
	// Whatever is asked for when, no more than the burst and the rate leave, and what asks often gets its due.
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 1))
	p, now, sent := newPacer(1e6, 2000), time.Duration(0), 0
	for range 100000 {
		if n := 1 + r.IntN(1500); p.take(now, n) {
			sent += n
		}
		now += time.Duration(r.IntN(int(200 * time.Microsecond)))
	}
	assert.InEpsilon(t, 1e6*now.Seconds(), sent, 0.001, "seed %d", seed)
}

func TestChoose(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	own := Card{Host: "a", Addresses: prefixes("192.168.7.2/24", "172.17.0.1/16", "fd00::2/64", "127.0.0.1/8")}
	for _, c := range []struct {
		name string
		peer Card
		want string
	}{
		{"the same network", Card{Host: "b", Addresses: prefixes("10.1.1.1/8", "192.168.7.9/24", "127.0.0.1/8")}, "192.168.7.9"},
		{"a bridge for containers leads nowhere", Card{Host: "b", Addresses: prefixes("172.17.0.1/16", "10.1.1.1/8")}, "10.1.1.1"},
		{"over a router", Card{Host: "b", Addresses: prefixes("10.1.1.1/8", "10.1.2.1/8")}, "10.1.1.1"},
		{"the same network in IPv6", Card{Host: "b", Addresses: prefixes("10.1.1.1/8", "fd00::9/64")}, "fd00::9"},
		{"the same host", Card{Host: "a", Addresses: own.Addresses}, "127.0.0.1"},
		{"the same host, which may not use loopback", Card{Host: "a", Addresses: prefixes("192.168.7.2/24")}, "192.168.7.2"},
		{"the same host, which has no network", Card{Host: "a", Addresses: prefixes("127.0.0.1/8")}, "127.0.0.1"},
		{"another host, which has no network", Card{Host: "b", Addresses: prefixes("127.0.0.1/8")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := choose(own, c.peer)
			if c.want == "" {
				assert.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, a.String())
		})
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"paths":        {Paths: 17},
		"datagrams":    {MTU: 100},
		"no interface": {Address: "nowhere0"},
		"no address":   {Address: "203.0.113.0/24"},
		"negative":     {Rate: -1},
	} {
		_, errs, _ := tryJoin(2, func(task int) Options {
			if task == 1 {
				return o
			}
			return Options{}
		})
		assert.ErrorContains(t, errs[0], want)
		assert.ErrorContains(t, errs[0], "task 1")
		assert.ErrorContains(t, errs[1], want)
	}
}

// Who is sent to often has a socket of its own, which only sends; who is not, and
// whoever comes when there are as many as there may be, has none.
func TestConnections(t *testing.T) {
	fabrics, _ := join(t, 3, Options{Address: "127.0.0.1"})
	f := fabrics[0]
	peers := make([]*peer, 3)
	for i := range peers {
		p, err := f.peer(fabric.Task(i))
		require.NoError(t, err)
		peers[i] = p
	}
	one := []byte("one")
	arrives := func(to fabric.Task, data []byte) {
		n, err := f.Send([]fabric.Packet{{Peer: to, Data: data}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		var packets [1]fabric.Packet
		for n = 0; n == 0; {
			fabrics[to].Wait(time.Second)
			n, err = fabrics[to].Receive(packets[:])
			require.NoError(t, err)
		}
		require.Equal(t, fabric.Task(0), packets[0].Peer)
		require.True(t, bytes.Equal(data, packets[0].Data))
	}
	for range oftenSent - 1 {
		arrives(1, one)
	}
	require.Negative(t, peers[1].connected, "not yet")
	for _, length := range []int{0, 1, fewBytes - prefix, fewBytes - prefix + 1, 9000} {
		arrives(1, bytes.Repeat([]byte{7}, length))
	}
	require.GreaterOrEqual(t, peers[1].connected, 0)
	// Packets to others, alone and beside those to it, take the socket that leads to all.
	arrives(2, one)
	n, err := f.Send([]fabric.Packet{{Peer: 1, Data: one}, {Peer: 2, Data: one}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for _, to := range fabrics[1:] {
		var packets [2]fabric.Packet
		for n = 0; n == 0; {
			to.Wait(time.Second)
			n, err = to.Receive(packets[:])
			require.NoError(t, err)
		}
		require.Equal(t, 1, n)
	}
	f.connections = mostConnections
	for range 2 * oftenSent {
		arrives(2, one)
	}
	assert.Negative(t, peers[2].connected)
	f.connections = 1

	// Who has gone answers by an error of the network: the socket is closed, and no packet is held back by it.
	fd := peers[1].connected
	require.NoError(t, fabrics[1].Close())
	for range 3 {
		n, err := f.Send([]fabric.Packet{{Peer: 1, Data: one}, {Peer: 1, Data: one}})
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	assert.Negative(t, peers[1].connected)
	assert.False(t, peers[1].whole, "that the way has become narrower is not said")
	assert.Zero(t, f.connections)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	assert.ErrorIs(t, err, unix.EBADF)
}
