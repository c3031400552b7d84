package client

import "encoding/json"

// Rows are the first rows of a table.
type Rows struct {
	SnapshotID int64       `json:"snapshot-id,omitempty"` // 0 if the table has no snapshot
	Columns    []RowColumn `json:"columns"`
	// ColumnsInAll is the number of columns of the table.
	ColumnsInAll int `json:"columns-in-all"`
	// Rows has a JSON array for each row, with the values in the order of Columns.
	Rows []json.RawMessage `json:"rows"`
	// Complete is true if these are all rows of the table.
	Complete bool `json:"complete"`
	// If Rows has fewer rows than requested although the table has more, Stopped explains why.
	// Otherwise it is empty.
	Stopped string `json:"stopped,omitempty"`
}

// RowColumn is a column of rows.
type RowColumn struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}
