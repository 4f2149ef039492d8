package main

import (
	"encoding/binary"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// bare is a stream over a fabric without any protocol but a window: what the system
// calls take, and with sealed packets what these and the tags take.
type bare struct {
	fabric     fabric.Fabric
	credential *credential.Credential // nil: packets have no tags
	memory     []byte                 // where the receiver puts the data
	packets    [bareBatch]fabric.Packet
	arrived    [64]fabric.Packet
}

const (
	bareBatch  = 8
	bareWindow = 64 // packets under way
	bareEach   = 8  // packets for which the receiver sends a word
)

func newBare(m fabric.Meeting, f fabric.Fabric, sealed bool) (*bare, error) {
	b := &bare{fabric: f, memory: make([]byte, depth*part)}
	length := f.MTU(fabric.Task(1 - self))
	for i := range b.packets {
		b.packets[i] = fabric.Packet{Peer: fabric.Task(1 - self), Class: fabric.Bulk, Data: make([]byte, length)}
	}
	if !sealed {
		return b, nil
	}
	secret, err := credential.Generate()
	if err != nil {
		return nil, err
	}
	said, err := m.Exchange(secret[:])
	if err != nil {
		return nil, err
	}
	copy(secret[:], said[0])
	b.credential, err = credential.New(1, f.Self(), wire.Life(1+self), secret)
	return b, err
}

// run sends for a while; the receiver's last word ends the turn.
func (b *bare) run() (float64, error) {
	if self == 1 {
		return 0, b.receive()
	}
	data := make([]byte, part)
	sent, heard, bytes := 0, 0, 0
	begin := time.Now()
	for more := true; more || heard < sent; {
		if more && sent-heard <= bareWindow-bareBatch {
			more = time.Since(begin) < perStream
			for i := range b.packets {
				p := &b.packets[i]
				n, err := b.pack(p, data[bytes%part:], !more)
				if err != nil {
					return 0, err
				}
				bytes += n
			}
			for at := 0; at < bareBatch; {
				n, err := b.fabric.Send(b.packets[at:])
				if err != nil {
					return 0, err
				}
				at += n
			}
			sent += bareBatch
		}
		n, err := b.fabric.Receive(b.arrived[:])
		if err != nil {
			return 0, err
		}
		heard += n * bareEach
		if time.Since(begin) > 10*time.Second {
			return 0, errors.New("a packet of the bare stream was lost")
		}
	}
	return float64(bytes) / time.Since(begin).Seconds() / 1e6, nil
}

// pack makes a packet of a header and data, as the protocol would.
func (b *bare) pack(p *fabric.Packet, data []byte, last bool) (int, error) {
	length := cap(p.Data) - wire.TagLength
	h := wire.Header{Type: wire.TypePut, Job: 1, Source: 0, Target: 1, SourceLife: 1, TargetLife: 2, Epoch: 1}
	packet := h.Append(p.Data[:0])
	flag := uint64(0)
	if last {
		flag = 1
	}
	packet = binary.LittleEndian.AppendUint64(packet, flag)
	n := min(length-len(packet), len(data))
	packet = append(packet, data[:n]...)
	if b.credential == nil {
		p.Data = packet
		return n, nil
	}
	sealed, err := b.credential.Seal(packet)
	p.Data = sealed
	return n, err
}

func (b *bare) receive() error {
	word := []fabric.Packet{{Peer: 0, Class: fabric.Control, Data: make([]byte, 8)}}
	at, got := 0, 0
	for last := 0; last < bareBatch; {
		n, err := b.fabric.Receive(b.arrived[:])
		if err != nil {
			return err
		}
		for i := range n {
			packet := b.arrived[i].Data
			body := packet[wire.HeaderLength:]
			if b.credential != nil {
				var reason wire.Reason
				if _, body, reason = b.credential.Open(packet); reason != wire.OK {
					return reason
				}
			}
			last += int(binary.LittleEndian.Uint64(body))
			at += copy(b.memory[at%(depth*part):], body[8:])
			if got++; got%bareEach == 0 {
				if _, err := b.fabric.Send(word); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
