package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/storage"
)

// Bounds of reading the files of one table. Clients write manifests, and many callers may ask.
const (
	// deepFilesMax and deepTime bound one deep look. A look that reaches a bound returns what it
	// has read so far.
	deepFilesMax = 1_000_000
	deepTime     = 60 * time.Second
	// deepBytes is the memory of one deep look. It is reserved in the room for metadata. Blocks of
	// a list and a manifest, with their headers, take up to half of it.
	deepBytes = 64 << 20
	// partitionsBytesMax bounds the memory for partitions within deepBytes.
	partitionsBytesMax = 32 << 20
	// partitionBytes is the memory for one partition, not counting its name.
	partitionBytes = 128
	// deepAtOnce is the maximum number of concurrent deep looks on a node.
	deepAtOnce = 2
	// deepPatience is how long a deep look waits for others.
	deepPatience = 10 * time.Second
	// listTime bounds reading the manifest list, in addition to deepTime.
	listTime = 30 * time.Second

	// worstMax is the maximum number of partitions in Shape.Worst.
	worstMax = 10
	// partitionNameMax bounds the name of a partition in a Shape.
	partitionNameMax = 200
)

// Shape describes the distribution of the files in a table's current snapshot. It counts live files
// only.
type Shape struct {
	// Stopped explains why some manifests were not read. Then the numbers cover only the other
	// manifests. Stopped is empty if all were read.
	Stopped             string
	Manifests           int64 // the number of manifests that were read
	Files, Bytes, Rows  int64 // of data files
	Deletes, DeleteRows int64 // delete files, and the rows in them
	Small               int64 // data files below 32 MB
	// Sizes counts the data files by size, in ascending order.
	Sizes []SizeClass
	// ByRows counts the data files by their number of rows, and ByFiles counts the partitions by
	// their number of data files. Both are in ascending order, and nil if there are no data files.
	ByRows, ByFiles []CountClass
	// Partitions is the number of partitions with data files. Lone is the number of partitions with
	// a single data file that is small.
	Partitions, Lone int
	// Worst lists the partitions with the most small files, at most ten, worst first.
	Worst []PartitionShape
}

// SizeClass counts the data files in one range of sizes. The range ends below Below bytes, and
// begins at the Below of the previous class. Below is 0 in the last class, which has no upper
// bound.
type SizeClass struct{ Below, Files, Bytes int64 }

// CountClass counts the items in one range of numbers. The range ends below Below, and begins at
// the Below of the previous class. Below is 0 in the last class, which has no upper bound.
type CountClass struct{ Below, Count int64 }

// PartitionShape describes the files of one partition. The name has the form that engines use for
// folders, such as "departed_month=2026-11".
type PartitionShape struct {
	Name                      string
	Files, Bytes, Rows, Small int64 // of data files
	Deletes                   int64 // delete files
}

// classBounds are the upper bounds of the size classes.
var classBounds = [...]int64{1_000_000, 8_000_000, smallFileBytes, 128_000_000, 512_000_000, 0}

// rowBounds are the upper bounds of the classes of ByRows. fileBounds are the upper bounds of the
// classes of ByFiles.
var (
	rowBounds  = [...]int64{1_000, 10_000, 100_000, 1_000_000, 10_000_000, 0}
	fileBounds = [...]int64{2, 6, 21, 101, 501, 0}
)

// classesOf returns empty classes with these upper bounds.
func classesOf(bounds []int64) []CountClass {
	classes := make([]CountClass, len(bounds))
	for i, below := range bounds {
		classes[i].Below = below
	}
	return classes
}

// count adds an item with the number n to its class.
func count(classes []CountClass, n int64) {
	for i := range classes {
		if class := &classes[i]; n < class.Below || class.Below == 0 {
			class.Count++
			return
		}
	}
}

// beginDeep waits until a deep look may begin, and reserves its memory. The caller must call done
// at the end.
func (b *Browse) beginDeep(ctx context.Context, warehouse string) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, deepPatience)
	defer cancel()
	select {
	case b.deep <- struct{}{}:
	case <-ctx.Done():
		return nil, moorage.Errorf(moorage.KindTooManyRequests,
			"%d deep looks at tables run on this node; try again later", deepAtOnce)
	}
	room := b.documents.Room().Enter(warehouse)
	done = func() {
		room.GiveBack()
		<-b.deep
	}
	if err := room.Take(ctx, deepBytes); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// factsOf returns the facts about a table. If a file is missing, the error is storage.ErrNotFound,
// and it is also in the facts as unreadable.
func (b *Browse) factsOf(ctx context.Context, found *directory.Found, document *metadata.Document, deep bool) (
	facts, error) {
	f := documentFacts(document)
	patience := listTime
	look := &deepLook{found: found, at: make(map[string]*PartitionShape)}
	if deep {
		patience += deepTime
		f.shape = &Shape{}
		look.shape, look.ends = f.shape, b.now().Add(deepTime)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f.readHead(ctx, b.now, look, document)
	if deep {
		look.finish()
		if f.shape.Stopped == "" && err == nil {
			f.files, f.bytes, f.rows = f.shape.Files, f.shape.Bytes, f.shape.Rows
			f.deletedRows = f.shape.DeleteRows
		}
	}
	var unreadable *unreadableError
	if errors.As(err, &unreadable) {
		f.unreadable = err
		if !errors.Is(err, storage.ErrNotFound) {
			err = nil
		}
	}
	return f, err
}

// readHead reads the manifest list of the current snapshot. In a deep look, it also reads the
// manifests.
func (f *facts) readHead(ctx context.Context, now func() time.Time, look *deepLook, document *metadata.Document) error {
	head, has := document.Head()
	switch {
	case !has:
		return nil
	case head.Encrypted:
		f.encrypted++
		return nil
	case head.ManifestList == "": // format version 1 allows a snapshot without a list
		f.manifestBytes = metadata.Unsaid
		for _, path := range head.Manifests {
			f.manifests++
			if err := f.read(ctx, now, look, manifests.Listed{Manifest: manifests.Unlisted(path)}); err != nil {
				return err
			}
		}
		return nil
	case !documents.WithinClaims(look.found.Pointer.Claims, head.ManifestList):
		f.outside++
		return nil
	}
	return stream(ctx, look.found.Storage, head.ManifestList, func(body io.Reader) error {
		for listed, err := range manifests.EachListed(body) {
			if err != nil {
				return err
			}
			f.manifests++
			f.manifestBytes += listed.Bytes
			if err := f.read(ctx, now, look, listed); err != nil {
				return &innerError{err}
			}
		}
		return nil
	})
}

// read adds the files of a manifest to the shape. It does nothing without a shape, or after a bound
// was reached.
func (f *facts) read(ctx context.Context, now func() time.Time, look *deepLook, m manifests.Listed) error {
	shape := look.shape
	switch {
	case shape == nil || shape.Stopped != "":
		return nil
	case m.Encrypted:
		f.encrypted++
		return nil
	case !documents.WithinClaims(look.found.Pointer.Claims, m.Path()):
		f.outside++
		return nil
	}
	left := look.ends.Sub(now())
	deepCtx, cancel := context.WithTimeout(ctx, max(left, 0))
	defer cancel()
	err := stream(deepCtx, look.found.Storage, m.Path(), func(body io.Reader) error {
		for file, err := range m.Measure(body) {
			if err != nil {
				return err
			}
			if look.add(file); shape.Stopped != "" {
				return &innerError{errStopped}
			}
		}
		return nil
	})
	switch {
	case err == nil:
		shape.Manifests++
	case errors.Is(err, errStopped):
		return nil
	case deepCtx.Err() != nil && ctx.Err() == nil:
		shape.Stopped = fmt.Sprintf("the time is over: %s", deepTime)
		return nil
	}
	return err
}

// errStopped ends the reading of a manifest at a bound.
var errStopped = errors.New("browse: stopped at a bound")

// deepLook gathers the shape of one table.
type deepLook struct {
	found *directory.Found
	shape *Shape // nil unless the look is deep
	ends  time.Time
	at    map[string]*PartitionShape // by name
	bytes int                        // memory for the partitions in at
	files int
}

// add counts a file. If a bound is reached, it sets Stopped.
func (l *deepLook) add(file manifests.MeasuredFile) {
	if l.files == deepFilesMax {
		l.shape.Stopped = fmt.Sprintf("there are more than %d files", deepFilesMax)
		return
	}
	l.files++
	part := l.at[file.Partition]
	if part == nil {
		if l.bytes+partitionBytes+len(file.Partition) > partitionsBytesMax {
			l.shape.Stopped = fmt.Sprintf("there are more than %d partitions", len(l.at))
			return
		}
		l.bytes += partitionBytes + len(file.Partition)
		part = &PartitionShape{}
		l.at[file.Partition] = part
	}
	s := l.shape
	if file.Content != manifests.Data {
		s.Deletes++
		s.DeleteRows += file.Rows
		part.Deletes++
		return
	}
	s.Files++
	s.Bytes += file.Bytes
	s.Rows += file.Rows
	part.Files++
	part.Bytes += file.Bytes
	part.Rows += file.Rows
	if file.Bytes < smallFileBytes {
		s.Small++
		part.Small++
	}
	if s.Sizes == nil {
		for _, bound := range classBounds {
			s.Sizes = append(s.Sizes, SizeClass{Below: bound})
		}
		s.ByRows, s.ByFiles = classesOf(rowBounds[:]), classesOf(fileBounds[:])
	}
	count(s.ByRows, file.Rows)
	for i := range s.Sizes {
		if class := &s.Sizes[i]; file.Bytes < class.Below || class.Below == 0 {
			class.Files++
			class.Bytes += file.Bytes
			return
		}
	}
}

// finish sets the fields of the shape about partitions.
func (l *deepLook) finish() {
	worse := func(a, b *PartitionShape) int {
		return cmp.Or(cmp.Compare(b.Small, a.Small), cmp.Compare(b.Files, a.Files), cmp.Compare(a.Name, b.Name))
	}
	var worst []*PartitionShape // sorted, at most worstMax
	for name, part := range l.at {
		if part.Files == 0 {
			continue // delete files that apply to all partitions can have none
		}
		l.shape.Partitions++
		count(l.shape.ByFiles, part.Files)
		if part.Files == 1 && part.Small == 1 {
			l.shape.Lone++
		}
		part.Name = name
		at, _ := slices.BinarySearchFunc(worst, part, worse)
		if at < worstMax {
			worst = slices.Insert(worst, at, part)[:min(len(worst)+1, worstMax)]
		}
	}
	for _, part := range worst {
		part.Name = moorage.Cut(part.Name, partitionNameMax)
		l.shape.Worst = append(l.shape.Worst, *part)
	}
}

// unreadableError means that a list or manifest is missing or damaged.
type unreadableError struct {
	Path string
	Err  error
}

// Error returns the text of the error.
func (e *unreadableError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns why the file cannot be read.
func (e *unreadableError) Unwrap() error { return e.Err }

// innerError wraps an error of reading another file while a file is decoded.
type innerError struct{ error }

// stream opens the file at location, passes it to decode, and reads it to its end. If the file is
// at fault, the error is an unreadableError. If the storage fails, it is KindUnavailable. If decode
// returns an innerError, it is the wrapped error.
func stream(ctx context.Context, files storage.Store, location string, decode func(io.Reader) error) error {
	body, info, err := files.Open(ctx, location)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrOutside), errors.Is(err, storage.ErrLocation):
		return &unreadableError{location, err}
	case err != nil:
		return documents.FileError(location, err)
	}
	defer body.Close()
	source := &countingReader{from: body}
	err = decode(source)
	if inner, ok := errors.AsType[*innerError](err); ok {
		return inner.error
	}
	if err == nil {
		_, err = io.Copy(io.Discard, source) // a decoder may stop before the end of a truncated file
	}
	switch {
	case source.failure != nil:
		return documents.FileError(location, source.failure)
	case err == nil && source.bytes != info.Bytes:
		err = fmt.Errorf("it has %d bytes, and %d were read", info.Bytes, source.bytes)
	}
	if err != nil {
		return &unreadableError{location, err}
	}
	return nil
}

// countingReader counts the bytes of a file, and remembers a failure of its storage.
type countingReader struct {
	from    io.Reader
	bytes   int64
	failure error
}

// Read implements io.Reader.
func (r *countingReader) Read(into []byte) (int, error) {
	n, err := r.from.Read(into)
	r.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failure = err
	}
	return n, err
}
