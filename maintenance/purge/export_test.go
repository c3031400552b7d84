package purge

// What tests see of the inside: the walk over a table's files, and bounds.
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
