// Package rows reads the first rows of a table, for people who look at it. It is no query engine:
// it reads a few files, and stops early.
//
// It never returns a wrong row. What it does not apply or does not know is KindNotShown, with the
// reason. Examples are equality deletes, encrypted files, files that are not Parquet, and types
// that it does not know. Others are columns without ids, and columns with values in the partition
// only. plan.go decides which files are read, and refuses deletes that it cannot apply. bind.go
// refuses columns, and values.go refuses types.
//
// All files are the input of a stranger. Whatever they contain, one call reads at most BytesMax
// in RequestsMax requests, takes at most TimeMax, answers at most AnswerBytesMax, and holds about
// 2*(BytesMax+MemoryMax) of memory. A panic while a file is read is KindNotShown too.
//
// Only files that lie in the table's own locations are read, because the server's access to the
// storage goes further than the caller's.
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
	// BytesMax bounds the bytes that are read from the storage, of all files.
	BytesMax = 32 << 20
	// TimeMax bounds the time.
	TimeMax = 10 * time.Second
	// AnswerBytesMax bounds the values in the answer.
	AnswerBytesMax = 4 << 20
	// MemoryMax bounds the unpacked pages of data files and delete files, and deletion vectors.
	MemoryMax = 64 << 20
	// AtOnceMax is how many calls of one node read at the same time.
	AtOnceMax = 2
	// RequestsMax bounds the requests to the storage.
	RequestsMax = 500
	// ColumnsMax is how many columns are read if the request names none.
	ColumnsMax = 100
)

const (
	// unpackedMax bounds the unpacked bytes of the manifest list, and of all manifests.
	unpackedMax = 64 << 20
	// deletesMax bounds the delete files of a snapshot.
	deletesMax = 10_000
	// positionsMax bounds the deleted positions that are read from position delete files.
	positionsMax = 4 << 20
	// leavesMax bounds the columns of a file that are read. A struct has several of them.
	leavesMax = 1000
	// readsAtOnce is how many ranges of a file are read at the same time.
	readsAtOnce = 8
)

// notShown returns the error of rows that are not shown.
func notShown(format string, arguments ...any) error {
	return moorage.Errorf(moorage.KindNotShown, "Rows are not shown: %s", fmt.Sprintf(format, arguments...))
}
