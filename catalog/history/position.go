package history

import (
	"strconv"
	"strings"

	"moorage"
	"moorage/registry"
)

// The words that a request can use in place of a position.
const (
	First = "first" // before the first retained change
	End   = "end"   // after the last change
)

// A position begins with the first storeDigits digits of the store's ID.
const storeDigits = 8

// format returns the text of a position in a store.
func format(store registry.ID, position registry.Position) string {
	return store.String()[:storeDigits] + "." + strconv.FormatUint(uint64(position), 10)
}

// parse is the inverse of format. isOurs is false for a position of another store.
func parse(store registry.ID, text string) (position registry.Position, isOurs bool, err error) {
	of, digits, _ := strings.Cut(text, ".")
	number, broken := strconv.ParseUint(digits, 10, 63)
	if broken != nil || len(of) != storeDigits || strings.ContainsFunc(of, isNoDigit) {
		return 0, false, moorage.Errorf(moorage.KindBadRequest,
			"Invalid position %q: take it from an answer, or say %s or %s", moorage.Cut(text, moorage.ShownBytesMax),
			First, End)
	}
	return registry.Position(number), of == store.String()[:storeDigits], nil
}

func isNoDigit(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }
