package analysis

import (
	"testing"

	"golang.org/x/sys/unix"

	"evenkeel/runtime/history"
)

// full is a run of so many ranks that keep as many events as they can.
func full(ranks, events int, program func(w *world)) *history.Run {
	w := newWorld(1, options{ranks: ranks, nodes: 1, transfer: 2000})
	for len(w.run.Ranks[0].Events) < events {
		program(w)
	}
	return w.finish()
}

// The analysis runs inside MPI_Finalize: a full history of 64 ranks should
// take a second or less.
func BenchmarkAnalyse(b *testing.B) {
	const ranks, events = 64, 65536
	programs := map[string]func(w *world){
		"allreduce": func(w *world) {
			computeAll(w, loads(w))
			w.all(allreduce, 0, 0)
		},
		"halo": func(w *world) {
			computeAll(w, loads(w))
			w.halo()
		},
	}
	for name, program := range programs {
		b.Run(name, func(b *testing.B) {
			run := full(ranks, events, program)
			b.ReportAllocs()
			before := cpuSeconds(b)
			for b.Loop() {
				Analyse(run)
			}
			b.ReportMetric((cpuSeconds(b)-before)/float64(b.N), "cpu-s/op")
		})
	}
}

// cpuSeconds is the processor time of this process, which does not depend on
// what else the machine does.
func cpuSeconds(b *testing.B) float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(unix.TimevalToNsec(used.Utime)+unix.TimevalToNsec(used.Stime)) / 1e9
}
