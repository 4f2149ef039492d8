package engine_test

import (
	"testing"

	. "evenkeel/pgas/gsm/engine"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/udp"
)

// Round trips between two goroutines over UDP: what the engine adds to the
// system calls shows in a profile.
func BenchmarkOverUDP(b *testing.B) {
	for name, o := range map[string]*Operation{"message": message(1, 1, make([]byte, 40)), "put": put(1, 0, make([]byte, 8))} {
		b.Run(name, func(b *testing.B) {
			job := job(b, 2, overUDP(udp.Options{}), nil)
			err := job[1].handlers.Messages(1, func(_ fabric.Task, data, reply []byte) ([]byte, error) { return append(reply, data...), nil })
			if err != nil {
				b.Fatal(err)
			}
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						job[1].Poll()
					}
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				if err := job[0].Do(o); err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			<-stopped
			c := job[0].Counters()
			b.ReportMetric(float64(c.Sent)/float64(b.N), "sent/op")
			b.ReportMetric(float64(c.Received)/float64(b.N), "received/op")
			b.ReportMetric(float64(c.Resent), "resent")
		})
	}
}
