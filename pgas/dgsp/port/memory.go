package port

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// Served is a Config.Reach: the windows of a task's memory.
func Served(s memory.Served) func(window uint32, offset, length int) ([]byte, dgsp.Reason) {
	return func(window uint32, offset, length int) ([]byte, dgsp.Reason) {
		there, err := s.Reach(memory.Putting, wire.Window(window), uint64(offset), length)
		switch {
		case err == nil:
			return there, dgsp.NoReason
		case errors.Is(err, wire.NoWindow):
			return nil, dgsp.NoWindow
		case errors.Is(err, wire.Protection):
			return nil, dgsp.Protected
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
		}
	case errors.As(err, &why):
		return why
	case errors.Is(err, dgsp.ErrSilent):
		return wire.Silent
	}
	return err
}
