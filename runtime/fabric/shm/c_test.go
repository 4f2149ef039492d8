package shm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

// C and Go do the same on the same memory: a task in C answers one in Go, which
// sleeps until it is woken.
func TestATaskInC(t *testing.T) {
	const packets, seed = 20000, 11
	program := filepath.Join(t.TempDir(), "echo")
	text, err := exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I../../../c", "testdata/echo.c", "-o", program).CombinedOutput()
	require.NoError(t, err, "%s", text)

	fabrics, _ := join(t, 2, Options{Slots: 16, Buffer: 1024})
	f := fabrics[0]
	defer fabrics[0].Close()
	defer fabrics[1].Close()
	// The other task's FIFOs have memory from its first packet on.
	for class := range fabric.Class(fabric.Classes) {
		l := f.line(0, 1, int(class), 1)
		require.NoError(t, reserve(f.area, f.offset(l.fifo), 2*lineSize+16*(lineSize+1024)))
	}
	echo := exec.CommandContext(t.Context(), program, fmt.Sprint(packets))
	for _, descriptor := range []int{f.area, f.bells[0], f.bells[1]} {
		copied, err := unix.Dup(descriptor)
		require.NoError(t, err)
		file := os.NewFile(uintptr(copied), "inherited")
		defer file.Close()
		echo.ExtraFiles = append(echo.ExtraFiles, file)
	}
	echo.Stderr = os.Stderr
	require.NoError(t, echo.Start())

	content := func(number int) []byte {
		r := rand.New(rand.NewPCG(seed, uint64(number)))
		data := make([]byte, r.IntN(1025)>>r.IntN(8))
		for i := range data {
			data[i] = byte(number + i)
		}
		return data
	}
	// Of each class they are answered in order.
	next := [fabric.Classes]int{0, 1}
	sent, begin := 0, time.Now()
	for got := 0; got < packets; {
		require.Less(t, time.Since(begin), time.Minute, "seed %d: %d of %d have come back", seed, got, packets)
		if sent < packets && sent-got < 20 {
			n, err := f.Send([]fabric.Packet{{Peer: 1, Class: fabric.Class(sent % 2), Path: uint8(sent), Data: content(sent)}})
			require.NoError(t, err)
			sent += n
			continue
		}
		var back [5]fabric.Packet
		n, err := f.Receive(back[:])
		require.NoError(t, err)
		for _, p := range back[:n] {
			number := next[1-p.Class]
			next[1-p.Class] += 2
			want := content(number)
			for i := range want {
				want[i] = ^want[i]
			}
			require.True(t, bytes.Equal(want, p.Data) && p.Path == uint8(number)+1, "seed %d: packet %d", seed, number)
		}
		got += n
		if n == 0 {
			f.Wait(time.Second)
		}
	}
	assert.NoError(t, echo.Wait())
}
