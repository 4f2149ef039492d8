package engine

import (
	"time"

	"evenkeel/runtime/fabric"
)

// Stop keeps the engine from being driven, until Go.
func (e *Engine) Stop() { e.enter() }

// Go ends that.
func (e *Engine) Go() { e.leave() }

// Fabric is the engine's, to be used between Stop and Go.
func (e *Engine) Fabric() fabric.Fabric { return e.fabric }

// Pend has the operation look as if it was under way.
func (o *Operation) Pend() { o.state.Store(pending) }

// Sweep gives up direct messages that have had no answer for too long, as of a time; between Stop and Go.
func (e *Engine) Sweep(now time.Duration) bool { return e.sweep(now) }
