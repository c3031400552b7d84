package commit

import (
	"moorage/catalog/documents"
	"moorage/registry"
)

// SummaryOf returns the summary of a document for the records about it.
func SummaryOf(document documents.Document) *registry.Summary {
	summary := registry.Summary(document.Summary())
	return &summary
}
