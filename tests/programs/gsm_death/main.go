// Command gsm_death is a task of a job, one of whose tasks is killed while all of
// them use each other's memory.
//
//	mpirun --enable-recovery -np 3 gsm_death -meet DIRECTORY -victim 1 [-seed 1] [-silence 2s] [-apart]
//
// The victim kills itself after a time that the seed says: wherever it is then.
// The others go on, and each command to the victim must end with an error in time
// or, where its memory is mapped, be done; those to others must be done. In the end
// each looks at its memory, and writes into the directory what came of it: MPI
// can't be used any more.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
)

// A task's block: pages that no window shows; a page of its window that others may only
// read; a page with the word in which all count; and for each task a part of the window
// that it alone writes.
const (
	hidden  = 0
	guarded = gsm.Page
	counter = 2 * gsm.Page
	first   = 3 * gsm.Page
	each    = 16 * gsm.Page
	mark    = 0xa5 // what must stay
	most    = 50 * time.Millisecond
	after   = 1 // rounds once the victim is known to be dead
)

type options struct {
	meet    string
	victim  int
	seed    uint64
	silence time.Duration
	apart   bool
}

// account is what a task that lives has to say in the end.
type account struct {
	Task, Done int
	Failed     int           // commands to the victim that ended with an error
	Longest    time.Duration // that one of them took
	Mapped     bool          // the victim's memory is
}

func main() {
	var o options
	flag.StringVar(&o.meet, "meet", "", "a directory that all tasks share")
	flag.IntVar(&o.victim, "victim", 1, "the task that dies")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.DurationVar(&o.silence, "silence", 2*time.Second, "after which a task has failed")
	flag.BoolVar(&o.apart, "apart", false, "tasks of a node reach each other over the network")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatalf("seed %d: %v", o.seed, err)
	}
	select {} // until mpirun is ended: whoever ended first would end the others
}

// worker is a task at work.
type worker struct {
	options
	job     *gsm.Job
	block   *gsm.Block
	window  *gsm.Window
	windows []uint32 // by task
	images  [][]byte // of its parts at the others
	strided *dgsp.Program
	packed  *dgsp.Program
	random  *rand.Rand
	dead    bool // the victim, as far as is known
	account account
}

func run(o options) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	job, err := gsm.Join(mpi.World, gsm.Options{Reserve: 64 << 20, Silence: o.silence, Apart: o.apart})
	if err != nil {
		return err
	}
	w := &worker{options: o, job: job, random: rand.New(rand.NewPCG(o.seed, uint64(job.Task())))}
	w.account = account{Task: int(job.Task()), Mapped: job.SameNode(fabric.Task(o.victim))}
	if err := w.prepare(); err != nil {
		return err
	}
	if w.account.Task == o.victim {
		life := time.Duration(w.random.Int64N(int64(most)))
		time.AfterFunc(life, func() { syscall.Kill(syscall.Getpid(), syscall.SIGKILL) })
	}
	begin := time.Now()
	for rounds := 0; rounds < after; {
		if err := w.round(); err != nil {
			return errors.WithMessagef(err, "task %d", job.Task())
		}
		if w.dead || w.account.Mapped && time.Since(begin) > most+o.silence {
			rounds++
		}
	}
	return errors.WithMessagef(w.verify(), "task %d", job.Task())
}

func (w *worker) prepare() (err error) {
	tasks := w.job.Tasks()
	if w.block, err = w.job.Allocate(uint64(first + tasks*each + gsm.Page)); err != nil {
		return err
	}
	for _, at := range []int{hidden, guarded, first + tasks*each} {
		copy(w.block.Bytes()[at:], bytes.Repeat([]byte{mark}, gsm.Page))
	}
	if w.window, err = w.job.OpenPart(w.block, guarded, uint64(first+tasks*each-guarded), gsm.AllowAll); err != nil {
		return err
	}
	if err := w.block.Protect(guarded, gsm.Page, gsm.AllowGet); err != nil {
		return err
	}
	w.windows = make([]uint32, tasks)
	if err := mpi.Allgather(mpi.World, []uint32{uint32(w.window.Number())}, w.windows); err != nil {
		return err
	}
	for range tasks {
		w.images = append(w.images, make([]byte, each))
	}
	if w.strided, err = dgsp.Compile(dgsp.Strided(64, 24, 56)); err != nil {
		return err
	}
	if w.packed, err = dgsp.Compile(dgsp.Block(64 * 24)); err != nil {
		return err
	}
	return w.job.GlobalFence()
}

// at is an address in a task's block.
func (w *worker) at(task, offset int) gsm.Address {
	return gsm.Address{Task: fabric.Task(task), Window: wire.Window(w.windows[task]), Offset: uint64(offset - guarded)}
}

// round is a command to each task.
func (w *worker) round() error {
	for task := range w.job.Tasks() {
		if task == w.account.Task {
			continue
		}
		begin := time.Now()
		err := w.command(task)
		switch {
		case err == nil:
			w.account.Done++
		case task == w.victim && !w.account.Mapped && (errors.Is(err, wire.Silent) || errors.Is(err, wire.Dead)):
			w.dead = true
			w.account.Failed++
			w.account.Longest = max(w.account.Longest, time.Since(begin))
		default:
			return err
		}
	}
	return nil
}

func (w *worker) command(task int) error {
	offset := w.random.IntN(each)
	length := w.random.IntN(min(each-offset, 1<<w.random.IntN(17)) + 1)
	image := w.images[task][offset : offset+length]
	switch w.random.IntN(8) {
	case 0:
		return refused(w.window.Put(w.at(task, guarded+offset%gsm.Page), w.fresh(1)), gsm.ErrProtected)
	case 5:
		return refused(w.window.Put(w.at(task, first+w.job.Tasks()*each-length), w.fresh(length+1)), gsm.ErrRange)
	case 1:
		return second(w.window.FetchAndAdd64(w.at(task, counter), 1))
	case 2:
		if offset+64*56 > each {
			return nil
		}
		data := w.fresh(64 * 24)
		if err := w.window.PutLayout(w.at(task, w.mine()+offset), w.strided, data, w.packed); err != nil {
			return err
		}
		return w.strided.Scatter(w.images[task], offset, data, 0)
	case 3:
		if offset+64*56 > each {
			return nil
		}
		got, want := make([]byte, 64*24), make([]byte, 64*24)
		if err := w.window.GetLayout(w.at(task, w.mine()+offset), w.strided, got, w.packed); err != nil {
			return err
		}
		if err := w.strided.Gather(want, w.images[task], offset, 0); err != nil {
			return err
		}
		return w.compare(task, want, got)
	case 4:
		got := make([]byte, length)
		if err := w.window.Get(w.at(task, w.mine()+offset), got); err != nil {
			return err
		}
		return w.compare(task, image, got)
	}
	return w.puts(task)
}

// puts has several PUTs under way at once.
func (w *worker) puts(task int) error {
	const parts = 8
	var handles []gsm.Handle
	var first error
	var data [parts][]byte
	for i := range data {
		data[i] = w.fresh(w.random.IntN(each/parts) + 1)
		h, err := w.window.StartPut(w.at(task, w.mine()+i*(each/parts)), data[i], true)
		if err != nil {
			return err
		}
		handles = append(handles, h)
	}
	for i, h := range handles {
		if err := w.window.Wait(h); err != nil {
			first = err
		}
		copy(w.images[task][i*(each/parts):], data[i])
	}
	return first
}

// mine is where the part begins that this task writes.
func (w *worker) mine() int { return first + w.account.Task*each }

// refused: a command must be, for that reason.
func refused(err, why error) error {
	switch {
	case err == nil:
		return errors.Errorf("what must be refused was done, not: %v", why)
	case errors.Is(err, why):
		return nil
	}
	return err
}

func second[T any](_ T, err error) error { return err }

// compare what was read with what was written; nobody knows what a victim holds
// of a PUT that failed.
func (w *worker) compare(task int, want, got []byte) error {
	if !bytes.Equal(want, got) {
		return errors.Errorf("%d bytes of task %d are not what was written", len(want), task)
	}
	return nil
}

// fresh are bytes that say who wrote them.
func (w *worker) fresh(length int) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(w.random.Uint32())<<3 | byte(w.account.Task+1)
	}
	return data
}

// verify looks at the own memory when all others that live have ended.
func (w *worker) verify() error {
	self := w.account.Task
	if self > w.victim {
		self--
	}
	m := fabrictest.Directory(w.meet, self, w.job.Tasks()-1, nil)
	said, err := m.Exchange(bytes.Join(w.images, nil))
	if err != nil {
		return err
	}
	memory := w.block.Bytes()
	for _, at := range []int{hidden, guarded, first + w.job.Tasks()*each} {
		if !bytes.Equal(memory[at:at+gsm.Page], bytes.Repeat([]byte{mark}, gsm.Page)) {
			return errors.Errorf("the page at %d was changed, where nobody may write", at)
		}
	}
	for task := range w.job.Tasks() {
		part := memory[first+task*each:][:each]
		if task == w.victim {
			for i, b := range part {
				if b != 0 && int(b&7) != task+1 {
					return errors.Errorf("byte %d of the part that the victim wrote is %#x: not its own", i, b)
				}
			}
			continue
		}
		number := task
		if task > w.victim {
			number--
		}
		if task != w.account.Task && !bytes.Equal(part, said[number][w.account.Task*each:][:each]) {
			return errors.Errorf("what task %d wrote here is not what it says", task)
		}
	}
	report, err := json.Marshal(w.account)
	if err != nil {
		return errors.Wrap(err, "an account")
	}
	written := filepath.Join(w.meet, fmt.Sprintf("written%d", w.account.Task))
	if err := os.WriteFile(written, report, 0600); err != nil {
		return errors.Wrap(err, "an account")
	}
	return errors.Wrap(os.Rename(written, filepath.Join(w.meet, fmt.Sprintf("account%d", w.account.Task))), "an account")
}
