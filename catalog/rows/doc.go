// Package rows reads the first rows of a table, so that people can look at them. It is not a query
// engine: it reads a few files, and stops early.
//
// It never returns a wrong row. What it does not apply or does not know is KindNotShown, with the
// reason. Examples are equality deletes, encrypted files, files that are not Parquet, and types
// that it does not know. Others are columns without ids, and columns with values in the partition
// only. plan.go decides which files are read, and refuses deletes that it cannot apply. bind.go
// refuses columns, and values.go refuses types.
//
// All files are untrusted input. Whatever they contain, one call reads at most BytesMax in
// RequestsMax requests, takes at most TimeMax, answers at most AnswerBytesMax, and holds about
// 2*(BytesMax+MemoryMax) bytes of memory. A panic while a file is read becomes KindNotShown too.
//
// Only files that lie in the table's own locations are read, because the server can access more of
// the storage than the caller may.
//
// Source: table specification, "Scan Planning", "Column Projection", "Position Delete Files",
// "Deletion Vectors"; Puffin specification, deletion-vector-v1.
package rows

import (
	"fmt"
	"time"

	"moorage"
)

// Bounds of one call.
const (
	// RowsMax is the maximum number of rows.
	RowsMax = 200
	// FilesMax is the maximum number of data files that are read.
	FilesMax = 5
	// BytesMax bounds the bytes that are read from the storage, over all files.
	BytesMax = 32 << 20
	// TimeMax bounds the duration of a call.
	TimeMax = 10 * time.Second
	// AnswerBytesMax bounds the values in the answer.
	AnswerBytesMax = 4 << 20
	// MemoryMax bounds the unpacked pages of data files and delete files, and deletion vectors.
	MemoryMax = 64 << 20
	// AtOnceMax is the maximum number of concurrent calls on one node.
	AtOnceMax = 2
	// RequestsMax bounds the requests to the storage.
	RequestsMax = 500
	// ColumnsMax is the maximum number of columns that are read if the request names none.
	ColumnsMax = 100
)

const (
	// unpackedMax bounds the unpacked bytes of the manifest list, and of all manifests.
	unpackedMax = 64 << 20
	// deletesMax bounds the delete files of a snapshot.
	deletesMax = 10_000
	// positionsMax bounds the deleted positions that are read from position delete files.
	positionsMax = 4 << 20
	// leavesMax bounds the leaf columns of a file that are read. A struct has one for each of its
	// fields.
	leavesMax = 1000
	// readsAtOnce is the maximum number of concurrent reads of ranges of a file.
	readsAtOnce = 8
)

// notShown returns the error for a table whose rows cannot be shown.
func notShown(format string, arguments ...any) error {
	return moorage.Errorf(moorage.KindNotShown, "Rows are not shown: %s", fmt.Sprintf(format, arguments...))
}
