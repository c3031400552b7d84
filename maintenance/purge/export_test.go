package purge

// Internals for tests: the walk over a table's files, and bounds.
var (
	EachBatch    = eachBatch
	AssignmentOf = assignmentOf
	ErrStalled   = errStalled
)

const (
	BatchMax    = batchMax
	AtOnce      = atOnce
	OfWarehouse = ofWarehouse
)
