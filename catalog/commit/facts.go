package commit

import (
	"moorage/catalog/documents"
	"moorage/metadata"
	"moorage/registry"
)

// WithFacts returns item with the facts of document, its version after the change. A view has no
// facts.
func WithFacts(item registry.Item, document documents.Document) registry.Item {
	table, ok := document.(*metadata.Document)
	if !ok {
		return item
	}
	f := table.Facts()
	item.Facts = &registry.Facts{
		Snapshots: int64(f.Snapshots), FirstMS: f.FirstMS, Refs: int64(f.Refs), Seq: f.Sequence,
		Operation: f.Operation, Files: f.Files, Deletes: f.Deletes, Bytes: f.Bytes, Rules: f.Rules,
	}
	return item
}
