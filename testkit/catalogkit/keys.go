package catalogkit

import (
	"crypto/sha256"
	"fmt"

	"moorage"
	"moorage/catalog"
)

// KeyOf returns the key of a request with the given body.
func KeyOf(body string) catalog.Key {
	return catalog.Key{
		ID: "01926f3a-7b1c-7def-8123-456789abcdef", Warehouse: Warehouse, Method: "POST", Path: "/v1/w/somewhere",
		Body: sha256.Sum256([]byte(body)),
	}
}

// AnswerText returns all parts of an answer that a client can see, as text.
func AnswerText(outcome Reply, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %s", moorage.KindOf(err), moorage.MessageOf(err))
	case outcome.Table != nil:
		table := outcome.Table
		return fmt.Sprintf("%s %s %s %v", table.Identifier, table.MetadataLocation, table.Document.Raw(), table.Config)
	case outcome.View != nil:
		view := outcome.View
		return fmt.Sprintf("%s %s %s %v", view.Identifier, view.MetadataLocation, view.Document.Raw(), view.Config)
	case outcome.Changed != nil:
		return fmt.Sprintf("%q", *outcome.Changed)
	}
	return fmt.Sprintf("%q", outcome.Properties)
}
