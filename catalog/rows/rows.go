package rows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/rows/parquet"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/metadata/schema"
	"moorage/storage"
)

// Reader reads rows for the callers of one node. It is safe for concurrent use.
type Reader struct {
	slots     chan struct{}
	manifests manifests.Reader
}

// New returns a Reader.
func New() *Reader { return &Reader{slots: make(chan struct{}, AtOnceMax)} }

// Request is a request for the first rows of a table.
type Request struct {
	// Limit is the number of rows, 1 to RowsMax.
	Limit int
	// Columns lists the names of the columns to read, in the order of the answer. If it is empty,
	// the first ColumnsMax columns are read.
	Columns []string
}

// Table is a table to read.
type Table struct {
	metadata.Scan

	// NameMapping is the property schema.name-mapping.default. It may be empty.
	NameMapping string
	// Files is the storage with the table's files.
	Files storage.Store
	// Within reports whether a file lies in a location of the table.
	Within func(file string) bool
}

// Column is a column of the answer.
type Column struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// Result is the answer to a Request.
type Result struct {
	// SnapshotID is the snapshot of the rows. It is 0 if the table has no snapshot.
	SnapshotID int64
	// Columns are the columns that were read, and Width is the number of columns of the table.
	Columns []Column
	Width   int
	// Rows has one JSON array for each row, with the values in the order of Columns.
	Rows []json.RawMessage
	// IsComplete is true if these are all rows of the table.
	IsComplete bool
	// Stopped explains why there are fewer rows than requested. It is empty if the limit was
	// reached, or if these are all rows.
	Stopped string
}

// Read returns the first rows of a table, in the order of its manifests and files.
//
// Values have the form of the specification's "JSON single-value serialization", with two
// exceptions. Structs are objects with the names of the fields. NaN and the infinities are strings.
//
// Errors: KindBadRequest for an invalid request or an unknown column; KindNotShown if the rows
// cannot be shown; KindTooManyRequests if AtOnceMax other calls are reading; KindUnavailable if the
// storage does not answer.
func (r *Reader) Read(ctx context.Context, table Table, asked Request) (Result, error) {
	if asked.Limit < 1 || asked.Limit > RowsMax {
		return Result{}, moorage.Errorf(moorage.KindBadRequest, "The limit is %d rows, not 1 to %d", asked.Limit,
			RowsMax)
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		return Result{}, moorage.Errorf(moorage.KindTooManyRequests,
			"This node is reading the rows of %d other tables. Try again in a moment", AtOnceMax)
	}
	fields, err := chooseColumns(table.Schema, asked.Columns)
	if err != nil {
		return Result{}, err
	}
	result := Result{Width: table.Schema.Width(), Rows: []json.RawMessage{}, Columns: []Column{}}
	for _, f := range fields {
		result.Columns = append(result.Columns, Column{f.ID, f.Name, textOf(f.Type)})
	}
	if table.Snapshot == nil {
		result.IsComplete = true
		return result, nil
	}
	result.SnapshotID = table.Snapshot.ID
	within, cancel := context.WithTimeout(ctx, TimeMax)
	defer cancel()
	s := &scan{
		table: table, fields: fields, limit: asked.Limit, manifests: &r.manifests,
		files: newFiles(table), memory: parquet.NewMemory(MemoryMax), result: &result,
	}
	err = s.run(within)
	if err == nil || ctx.Err() != nil {
		return result, errors.Join(err, ctx.Err())
	}
	var known *moorage.Error
	var spent budgetError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Result{}, notShown("reading took more than %s", TimeMax)
	case errors.As(err, &spent):
		return Result{}, notShown("%v before the first row", spent)
	case errors.As(err, &known):
		return Result{}, err
	}
	return Result{}, moorage.E("rows.Read", "", moorage.KindUnavailable, err)
}

// chooseColumns returns the columns with these names, or the first columns of the schema.
func chooseColumns(s *schema.Schema, names []string) ([]schema.Field, error) {
	all := s.RowType().Fields
	if len(names) == 0 {
		return all[:min(len(all), ColumnsMax)], nil
	}
	if len(names) > ColumnsMax {
		return nil, moorage.Errorf(moorage.KindBadRequest, "%d columns are named, at most %d", len(names), ColumnsMax)
	}
	chosen := make([]schema.Field, 0, len(names))
	for i, name := range names {
		at := slices.IndexFunc(all, func(f schema.Field) bool { return f.Name == name })
		if at < 0 || slices.Contains(names[:i], name) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "The table has no column %.100q, or it is named twice",
				name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// typeTextMax bounds the text of a type.
const typeTextMax = 1000

// textOf returns a readable text for a type.
func textOf(t schema.Type) string {
	var b strings.Builder
	var write func(t schema.Type)
	write = func(t schema.Type) {
		if t.Text != "" {
			b.WriteString(t.Text)
			return
		}
		b.WriteString(t.Name + "<")
		for i, f := range t.Fields {
			if b.Len() > typeTextMax {
				b.WriteString("…")
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			if t.Name == "struct" {
				b.WriteString(moorage.Cut(f.Name, 100) + ": ")
			}
			write(f.Type)
		}
		b.WriteString(">")
	}
	write(t)
	return b.String()
}

// scan is one call of Read.
type scan struct {
	table     Table
	fields    []schema.Field
	limit     int
	manifests *manifests.Reader
	files     *files
	memory    *parquet.Memory
	result    *Result
	deleted   deleted
	answered  int // bytes of the rows so far
}

// run adds the rows to the result.
func (s *scan) run(ctx context.Context) error {
	plan, err := s.plan(ctx)
	if err != nil {
		return err
	}
	for _, file := range plan.files {
		err := s.readFile(ctx, file)
		var stop stopped
		switch {
		case errors.As(err, &stop):
			s.result.Stopped = stop.reason
			return nil
		case err != nil:
			return err
		case len(s.result.Rows) == s.limit:
			// Assume further rows, until these turn out to be the last.
			s.result.IsComplete = false
			return nil
		}
	}
	s.result.IsComplete = !plan.isCut
	if plan.isCut {
		s.result.Stopped = fmt.Sprintf("%d data files were read", len(plan.files))
	}
	return nil
}

// stopped is an error that ends the reading of rows. The rows read so far are correct.
type stopped struct{ reason string }

func (s stopped) Error() string { return s.reason }

// readFile adds the rows of a data file to the result.
func (s *scan) readFile(ctx context.Context, file dataFile) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = notShown("the file %s cannot be shown (%.200s)", file.Path, fmt.Sprint(reason))
		}
	}()
	isDeleted, held, err := s.deletedRows(ctx, file)
	if err != nil {
		return s.beforeReading(file, err)
	}
	defer s.memory.Give(held)
	opened, err := s.openParquet(ctx, file.File)
	if err != nil {
		return s.beforeReading(file, err)
	}
	defer opened.Close()
	if opened.Rows != file.Rows {
		return notShown("the file %s has %d rows, and %d in its manifest", file.Path, opened.Rows, file.Rows)
	}
	row, err := s.bind(ctx, opened, file)
	if err != nil {
		return s.beforeReading(file, err)
	}
	position := int64(0)
	for group := range opened.Groups() {
		count, err := opened.Enter(group)
		for i := int64(0); err == nil && i < count; i++ {
			if i%1024 == 0 { // checked here too: a row may have no columns in the file
				if err = ctx.Err(); err != nil {
					break
				}
			}
			w := writer{left: AnswerBytesMax - s.answered, isDiscarding: isDeleted(position)}
			position++
			if err = row.read(&w); err != nil || w.isDiscarding {
				continue
			}
			s.answered += len(w.text)
			s.result.Rows = append(s.result.Rows, json.RawMessage(w.text))
			if len(s.result.Rows) == s.limit {
				return nil
			}
		}
		if err != nil {
			return s.whileReading(file, err)
		}
	}
	if err := opened.Leave(); err != nil {
		return s.whileReading(file, err)
	}
	if position != file.Rows {
		return notShown("the row groups of the file %s have %d rows, and the file %d", file.Path, position, file.Rows)
	}
	return nil
}

// beforeReading returns the error for a file that fails before any of its rows is read. The rows of
// earlier files are correct.
func (s *scan) beforeReading(file dataFile, err error) error {
	if len(s.result.Rows) == 0 {
		return err
	}
	return s.whileReading(file, err)
}

// whileReading returns the error for a file that fails while its rows are read.
func (s *scan) whileReading(file dataFile, err error) error {
	var spent budgetError
	switch {
	case errors.As(err, &spent):
		return stopped{spent.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return stopped{fmt.Sprintf("%s passed", TimeMax)}
	case errors.Is(err, errFull):
		return stopped{fmt.Sprintf("the rows have more than %d MiB", AnswerBytesMax>>20)}
	}
	return fileError(file.Path, err)
}

// fileError returns the error for a file that cannot be read.
func fileError(path string, err error) error {
	switch {
	case errors.Is(err, parquet.ErrDamaged), errors.Is(err, parquet.ErrUnsupported),
		errors.Is(err, parquet.ErrTooLarge), errors.Is(err, errValue):
		return notShown("the file %s cannot be shown: %v", path, err)
	}
	return err
}

// openParquet opens a Parquet file of the table.
func (s *scan) openParquet(ctx context.Context, file manifests.File) (*parquet.File, error) {
	opened, err := parquet.Open(parquet.Input{
		Size: file.Bytes, Memory: s.memory, Alive: ctx.Err,
		Read: func(ranges []parquet.Range) ([][]byte, error) { return s.files.ranges(ctx, file.Path, ranges) },
	})
	if err != nil {
		return nil, fileError(file.Path, err)
	}
	return opened, nil
}
