package jobs

import (
	"slices"

	"moorage"
	"moorage/registry"
)

// Moves returns the possible states of a job's record. For each state, it lists the states that may
// follow. StateNone means that there is no record. docs/design/jobs.md draws the same graph.
func Moves() map[registry.State][]registry.State {
	return map[registry.State][]registry.State{
		registry.StateNone:       {registry.StateCollecting, registry.StateAssigned},
		registry.StateCollecting: {registry.StateWaiting, registry.StateBlocked, registry.StateNone},
		registry.StateWaiting:    {registry.StateDeleting, registry.StateBlocked, registry.StateNone},
		registry.StateDeleting:   {registry.StateBlocked, registry.StateNone},
		registry.StateBlocked: {
			registry.StateCollecting, registry.StateWaiting, registry.StateDeleting, registry.StateNone,
		},
		registry.StateAssigned: {registry.StateNone},
	}
}

// checkMove refuses a move that is not in Moves. A record may always keep its state.
func checkMove(from, to registry.State) error {
	if from == to || slices.Contains(Moves()[from], to) {
		return nil
	}
	return moorage.Errorf(moorage.KindInternal, "A job cannot go from %s to %s", from, to)
}
