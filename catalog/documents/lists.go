package documents

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/internal/worker"
	"moorage/storage"
)

// listsAtOnce is the number of manifest lists that one commit writes concurrently.
const listsAtOnce = 32

// NameList draws a name for a manifest list of a snapshot of document, in the folder of the
// metadata files: snap-<snapshot>-0-<uuid>.avro.
func (d *Documents) NameList(document Document, snapshot int64) (string, error) {
	unique, err := d.ledger.NewUUID()
	if err != nil {
		return "", err
	}
	location := inMetadataFolder(document, "snap-"+strconv.FormatInt(snapshot, 10)+"-0-"+unique+".avro")
	return location, checkLocation(location)
}

// ReadRaw returns all bytes of the manifest list or manifest at location, at most bytesMax. take
// reserves room for them. If it reads fewer bytes than the file's length, it returns an error,
// because a truncated list may still parse.
func (d *Documents) ReadRaw(ctx context.Context, store storage.Store, location string, bytesMax int64,
	take func(ctx context.Context, bytes int64) error) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, info, err := store.Open(ctx, location)
	if err != nil {
		return nil, FileError(location, err)
	}
	defer body.Close()
	if info.Bytes > bytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge,
			"Cannot read %s: it has %d bytes, at most %d are read", location, info.Bytes, bytesMax)
	}
	if err := take(ctx, info.Bytes); err != nil {
		return nil, err
	}
	source := &sourceReader{Reader: body, cancel: cancel, hasRoom: true}
	raw := make([]byte, info.Bytes)
	if _, err := io.ReadFull(source, raw); err != nil {
		return nil, FileError(location, err)
	}
	if n, err := io.ReadFull(source, make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, FileError(location, fmt.Errorf("documents: more than its %d bytes, or no end: %w", len(raw), err))
	}
	return raw, nil
}

// WriteWith is like WriteHedged, but also stores lists. If the error is nil, file and lists are
// durable. After an error some of them may exist, and the caller deletes all of them: see MayRemain
// and Lost.
func (d *Documents) WriteWith(ctx context.Context, file File, lists []storage.File) (File, error) {
	const op = "documents.WriteWith"
	if len(lists) == 0 || len(file.Document.Raw()) > BytesMax { // File.Write refuses a document that is too long
		return d.WriteHedged(ctx, file)
	}
	if batcher, ok := file.Storage.(storage.Batcher); ok {
		return file, writeBatch(ctx, batcher, file, lists)
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	written := file
	group.Go(func() error {
		return worker.Safely(writing, func(ctx context.Context) (err error) {
			written, err = d.WriteHedged(ctx, file)
			return err
		})
	})
	for _, list := range lists {
		group.Go(func() error {
			return worker.Safely(writing, func(ctx context.Context) error {
				return file.Storage.Create(ctx, list.Location, list.Body)
			})
		})
	}
	return written, unstored(op, file.Location, group.Wait())
}

// writeBatch stores file and lists by one call.
func writeBatch(ctx context.Context, batcher storage.Batcher, file File, lists []storage.File) error {
	body, err := file.Content()
	if err != nil {
		return err
	}
	all := append([]storage.File{{Location: file.Location, Body: body}}, lists...)
	for _, err := range batcher.CreateAll(ctx, all) {
		if err != nil {
			return unstored("documents.writeBatch", file.Location, err)
		}
	}
	return nil
}

// unstored adds to err a kind for which MayRemain returns true. err is the failure of one of
// several writes of files with fresh names. nil stays nil.
func unstored(op, location string, err error) error {
	if err == nil {
		return nil
	}
	return moorage.E(op, location, moorage.KindUnavailable, err)
}
