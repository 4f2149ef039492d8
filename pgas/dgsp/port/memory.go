package port

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// Served is a Config.Reach: the windows of a task's memory, for what comes under the job's key or one of
// the task's.
func Served(job memory.Served, narrower *memory.Keys) Memory {
	return windows(job, narrower, memory.Putting)
}

// Shown is a Config.Show: the same windows.
func Shown(job memory.Served, narrower *memory.Keys) Memory {
	return windows(job, narrower, memory.Getting)
}

func windows(job memory.Served, narrower *memory.Keys, kind memory.Kind) Memory {
	return func(key wire.Key, window uint32, offset, length int) ([]byte, dgsp.Reason) {
		s := &job
		if key != wire.JobKey {
			if s = narrower.Under(key); s == nil {
				return nil, dgsp.WrongKey
			}
		}
		there, err := s.Reach(kind, wire.Window(window), uint64(offset), length)
		switch {
		case err == nil:
			return there, dgsp.NoReason
		case errors.Is(err, wire.NoWindow):
			return nil, dgsp.NoWindow
		case errors.Is(err, wire.Protection):
			return nil, dgsp.Protected
		case errors.Is(err, wire.Credential):
			return nil, dgsp.WrongKey
		}
		return nil, dgsp.OutOfRange
	}
}

// Patience is a Config.Times over an engine that gives up a task after so much silence: the engine tells first.
func Patience(silence time.Duration) dgsp.Times {
	t := dgsp.DefaultTimes()
	t.Silence = 2 * silence
	return t
}

// Reason is why a transfer failed, as other commands say it: a wire.Reason, or the error itself where there is none for it.
func Reason(err error) error {
	var refused dgsp.Reason
	var why wire.Reason
	switch {
	case errors.As(err, &refused):
		switch refused {
		case dgsp.NoWindow:
			return wire.NoWindow
		case dgsp.OutOfRange:
			return wire.Range
		case dgsp.Protected:
			return wire.Protection
		case dgsp.WrongKey:
			return wire.Credential
		}
	case errors.As(err, &why):
		return why
	case errors.Is(err, dgsp.ErrSilent):
		return wire.Silent
	}
	return err
}
