package gsm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
)

func TestFirst(t *testing.T) {
	job, err := gsm.Join(mpi.World, gsm.Options{})
	require.NoError(t, err)
	b, err := job.Allocate(4096)
	require.NoError(t, err)
	w, err := job.Open(b, gsm.AllowAll)
	require.NoError(t, err)
	require.NoError(t, w.Put64(w.Address(8), 7))
	v, err := w.Get64(w.Address(8))
	require.NoError(t, err)
	require.Equal(t, uint64(7), v)
	require.NoError(t, w.Close())
	require.NoError(t, b.Free())
	require.NoError(t, job.Leave())
}

func BenchmarkPut64(b *testing.B) {
	job, _ := gsm.Join(mpi.World, gsm.Options{})
	m, _ := job.Allocate(4096)
	w, _ := job.Open(m, gsm.AllowAll)
	a := w.Address(8)
	for i := 0; i < b.N; i++ {
		if w.Put64(a, uint64(i)) != nil {
			b.Fatal()
		}
	}
	job.Leave()
}
func BenchmarkGet64(b *testing.B) {
	job, _ := gsm.Join(mpi.World, gsm.Options{})
	m, _ := job.Allocate(4096)
	w, _ := job.Open(m, gsm.AllowAll)
	a := w.Address(8)
	for i := 0; i < b.N; i++ {
		if _, err := w.Get64(a); err != nil {
			b.Fatal()
		}
	}
	job.Leave()
}
