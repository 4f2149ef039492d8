package epoch

import (
	"testing"
	"time"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// What the protocol itself costs both tasks together for one operation, without tags and network.
func BenchmarkRoundTrip(b *testing.B) {
	for _, op := range []wire.Op{wire.Put, wire.Get, wire.FetchAndAdd, wire.Message} {
		b.Run(op.String(), func(b *testing.B) {
			var tasks [2]*Endpoint
			for self := range tasks {
				c := Default()
				c.Self, c.Life = fabric.Task(self), 1
				c.MTU = func(fabric.Task) int { return 1472 }
				c.Memory = func(fabric.Task, wire.Key) Memory { return &sink{} }
				c.Handlers = deaf{}
				tasks[self], _ = New(c)
			}
			buffer, data := make([]byte, 0, 1472), make([]byte, 8)
			var notifications []Notification
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 5000
				if err := tasks[0].Submit(now, Command{Op: op, Peer: 1, Width: 8, Data: data, Handler: 1}); err != nil {
					b.Fatal(err)
				}
				for notifications = notifications[:0]; len(notifications) == 0; notifications = tasks[0].Notifications(notifications) {
					for self := range tasks {
						for {
							packet, _, _, ok := tasks[self].Next(now, buffer)
							if !ok {
								break
							}
							var h wire.Header
							body, _ := h.Decode(packet[:len(packet)+wire.TagLength])
							tasks[1-self].Receive(now, &h, body[:len(body)-wire.TagLength])
						}
					}
				}
			}
		})
	}
}

// deaf has handlers that do nothing.
type deaf struct{}

func (deaf) Has(wire.Handler) bool { return true }
func (deaf) Message(_ fabric.Task, _ wire.Key, _ wire.Handler, _, reply []byte) ([]byte, error) {
	return reply, nil
}
func (deaf) Arrived(fabric.Task, wire.Handler, wire.Window, uint64, uint64) {}
