package gsm

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../c
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include "gsm_counters.h"

// libevenkeel.so's, where it is preloaded; see gsm_counters.h.
static struct ek_window *(*row)(uint32_t job, uint32_t window);
static void (*show)(struct ek_window *row, const struct ek_gsm_counters *now, struct ek_gsm_counters *told);
static void (*foreign)(uint32_t more);

__attribute__((constructor)) static void find(void)
{
	*(void **)&row = dlsym(RTLD_DEFAULT, "ek_gsm_row");
	*(void **)&show = dlsym(RTLD_DEFAULT, "ek_gsm_show_row");
	*(void **)&foreign = dlsym(RTLD_DEFAULT, "ek_gsm_show_foreign");
}

static struct ek_window *ek_row_of(uint32_t job, uint32_t window)
{
	return row && show ? row(job, window) : 0;
}

static void ek_show(struct ek_window *at, const void *now, void *told)
{
	show(at, now, told);
}

static void ek_show_foreign(uint32_t more)
{
	if (foreign)
		foreign(more);
}

#cgo noescape ek_show
#cgo nocallback ek_show
*/
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// jobs counts those of the process: the report names a window by its job and its number.
var jobs atomic.Uint32

// row is where `evenkeel status` and the report see the counters of a window.
type row struct {
	at   *C.struct_ek_window // in the node segment; nil: this run is not recorded
	told memory.Counters     // there already
}

func newRow(job uint32, window wire.Window) row {
	return row{at: C.ek_row_of(C.uint32_t(job), C.uint32_t(window))}
}

// tell has others see the counters of the window.
func (w *Window) tell() {
	c, at := &w.counters, w.row.at
	*w.job.space.Self().Counters(w.number) = *c
	switch {
	case at == nil:
	case at.number != 0: // the window's own: a call of C would cost five times as much as the fence
		at.puts, at.put_bytes = C.uint64_t(c.Puts), C.uint64_t(c.PutBytes)
		at.gets, at.get_bytes = C.uint64_t(c.Gets), C.uint64_t(c.GetBytes)
		at.atomics, at.refused, at.fences = C.uint64_t(c.Atomics), C.uint64_t(c.Refused), C.uint64_t(c.Fences)
	default:
		C.ek_show(at, unsafe.Pointer(&w.counters), unsafe.Pointer(&w.row.told))
	}
}

// showForeign has others see that more packets have come which are not the job's.
func showForeign(more uint64) { C.ek_show_foreign(C.uint32_t(min(more, math.MaxUint32))) }
