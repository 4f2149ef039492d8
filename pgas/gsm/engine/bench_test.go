package engine_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	. "evenkeel/pgas/gsm/engine"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/udp"
)

// processorTime is what this process has used.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// What a round trip over UDP costs the processor in all, both tasks by one
// goroutine and nobody waiting, beside the packets alone: the difference is the
// engine's, on a busy machine too.
func BenchmarkOverUDP(b *testing.B) {
	quiet := func(c *Config) { c.Yield = time.Hour }
	measure := func(b *testing.B, trip func()) {
		for range 100 {
			trip()
		}
		begin := processorTime()
		b.ReportAllocs()
		for b.Loop() {
			trip()
		}
		b.ReportMetric(float64((processorTime()-begin).Nanoseconds())/float64(b.N), "cpu-ns/op")
	}
	b.Run("packets alone", func(b *testing.B) {
		job := job(b, 2, overUDP(udp.Options{}), quiet)
		for _, one := range job {
			one.Stop() // its fabric is ours
			defer one.Go()
		}
		data := make([]byte, 112)
		one := make([]fabric.Packet, 1)
		measure(b, func() {
			for from := range job {
				one[0] = fabric.Packet{Peer: fabric.Task(1 - from), Data: data}
				job[from].Fabric().Send(one)
				for n := 0; n == 0; {
					n, _ = job[1-from].Fabric().Receive(one)
				}
			}
		})
	})
	for name, o := range map[string]*Operation{"message": message(1, 1, make([]byte, 40)), "put": put(1, 0, make([]byte, 8))} {
		b.Run(name, func(b *testing.B) {
			job := job(b, 2, overUDP(udp.Options{}), quiet)
			err := job[1].handlers.Messages(1, func(_ fabric.Task, data, reply []byte) ([]byte, error) { return append(reply, data...), nil })
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() {
				if err := job[0].Start(o); err != nil {
					b.Fatal(err)
				}
				for !o.Finished() {
					job[1].Poll()
					job[0].Poll()
				}
			})
		})
	}
}

// What a stream of PUTs over UDP costs both tasks together, driven by one goroutine.
func BenchmarkStream(b *testing.B) {
	job := job(b, 2, overUDP(udp.Options{}), func(c *Config) { c.Yield = time.Hour })
	o := put(1, 0, make([]byte, storeBytes/2))
	b.SetBytes(storeBytes / 2)
	begin := processorTime()
	for b.Loop() {
		if err := job[0].Start(o); err != nil {
			b.Fatal(err)
		}
		for !o.Finished() {
			job[0].Poll()
			job[1].Poll()
		}
	}
	b.ReportMetric(float64((processorTime()-begin).Nanoseconds())/float64(b.N), "cpu-ns/op")
}
