package port

import (
	"testing"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/wire"
)

// BenchmarkStridedPut is 64 KiB in blocks of 8 bytes, over UDP within the machine.
func BenchmarkStridedPut(b *testing.B) {
	const blocks = 8192
	job := job(b, 2, straight, nil)
	target, source := compiled(b, dgsp.Strided(blocks, 8, 16)), compiled(b, dgsp.Block(8*blocks))
	m := dgsp.Message{Source: source, Memory: make([]byte, 8*blocks), Target: target, Window: windowNumber}
	b.SetBytes(8 * blocks)
	for b.Loop() {
		if err := job[0].Put(1, wire.JobKey, m); err != nil {
			b.Fatal(err)
		}
	}
	packets, again := job[0].peers[partner{1, wire.JobKey}].sender.Sent()
	b.ReportMetric(float64(packets)/float64(b.N), "packets/op")
	b.ReportMetric(float64(again)/float64(b.N), "again/op")
}
