package rebase

import (
	"moorage"
	"moorage/metadata"
)

// Choice is what somebody says about appends whose branch has moved. The table, its warehouse, the
// request and the server may each say something.
type Choice int8

// The choices.
const (
	Unsaid Choice = iota
	On            // put them on top of the head
	Off           // refuse them
)

// ParseChoice reads "on" or "off"; an empty text says nothing. Anything else is KindBadRequest.
func ParseChoice(name, text string) (Choice, error) {
	switch text {
	case "":
		return Unsaid, nil
	case metadata.AppendRebaseOn:
		return On, nil
	case metadata.AppendRebaseOff:
		return Off, nil
	}
	return Off, moorage.Errorf(moorage.KindBadRequest,
		"Invalid %s: %s is neither on nor off", name, moorage.Cut(text, textMax))
}

// textMax is how many bytes of a wrong choice its refusal repeats.
const textMax = 100

// decide returns what the choices of a table, its warehouse and a request come to: one that says
// off wins. preset is what counts if none of them says anything.
func decide(preset Choice, said ...Choice) bool {
	decided := Unsaid
	for _, choice := range said {
		decided = max(decided, choice)
	}
	if decided == Unsaid {
		decided = preset
	}
	return decided == On
}

// choiceOf returns what a property says. A value that is neither on nor off, in a table that was
// registered with it, counts as off.
func choiceOf(text string, set bool) Choice {
	switch {
	case !set:
		return Unsaid
	case text == metadata.AppendRebaseOn:
		return On
	}
	return Off
}
