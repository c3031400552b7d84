package rows

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"moorage/catalog/rows/parquet"
)

// Field ids of position delete files. Source: table specification, "Reserved Field IDs".
const (
	idDeletePath     = 2147483546
	idDeletePosition = 2147483545
)

// readPositions calls add for each deleted position of the wanted data files in a position delete
// file.
func (s *scan) readPositions(ctx context.Context, d deleteFile, wanted map[string]bool,
	add func(path string, position int64) error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = notShown("the delete file %s cannot be read (%.200s)", d.Path, fmt.Sprint(reason))
		}
	}()
	opened, err := s.openParquet(ctx, d.File)
	if err != nil {
		return err
	}
	defer opened.Close()
	paths, positions := deleteColumn(opened, idDeletePath, "file_path"), deleteColumn(opened, idDeletePosition, "pos")
	switch {
	case paths == nil || positions == nil || paths.Type != parquet.ByteArray || positions.Type != parquet.Int64:
		return notShown("the delete file %s lacks the columns file_path and pos", d.Path)
	case paths.Repeat > 0 || positions.Repeat > 0:
		return notShown("the delete file %s has lists", d.Path)
	case opened.Rows != d.Rows:
		return notShown("the delete file %s has %d rows, and %d in its manifest", d.Path, opened.Rows, d.Rows)
	}
	pathOf, positionOf := opened.Column(paths), opened.Column(positions)
	read := int64(0)
	for group := range opened.Groups() {
		count, err := opened.Enter(group)
		for ; err == nil && count > 0; count-- {
			var path, position parquet.Value
			if path, err = nextValue(pathOf); err != nil {
				break
			}
			if position, err = nextValue(positionOf); err != nil {
				break
			}
			read++
			if wanted[string(path.Bytes)] {
				err = add(string(path.Bytes), position.Int)
			}
		}
		if err != nil {
			return fileError(d.Path, err)
		}
	}
	if err := opened.Leave(); err != nil {
		return fileError(d.Path, err)
	}
	if read != d.Rows {
		return notShown("the row groups of the delete file %s have %d rows, and the file %d", d.Path, read, d.Rows)
	}
	return nil
}

// deleteColumn returns a column of a delete file by its id, or by its name if the file has no ids.
func deleteColumn(f *parquet.File, id int, name string) *parquet.Node {
	at := slices.IndexFunc(f.Root.Children, func(n *parquet.Node) bool {
		return n.IsColumn() && (n.HasID && n.ID == id || !f.HasIDs && n.Name == name)
	})
	if at < 0 {
		return nil
	}
	return f.Root.Children[at]
}

// nextValue returns the next value of a column, which must not be null.
func nextValue(c *parquet.Column) (parquet.Value, error) {
	_, definition, err := c.Peek()
	switch {
	case errors.Is(err, io.EOF):
		return parquet.Value{}, fmt.Errorf("a column has too few rows: %w", parquet.ErrDamaged)
	case err == nil && definition < c.Node.Definition:
		return parquet.Value{}, fmt.Errorf("a path or position is null: %w", parquet.ErrDamaged)
	case err != nil:
		return parquet.Value{}, err
	}
	return c.Next()
}

// deletedRows returns which rows of a data file are deleted, by their positions in the file.
// isDeleted must be called with ascending positions. held is the number of bytes of memory taken
// for isDeleted. The caller must give them back.
func (s *scan) deletedRows(ctx context.Context, file dataFile) (isDeleted func(position int64) bool, held int,
	err error) {
	if vector, ok := s.deleted.vectors[file.Path]; ok {
		if vector.Rows > file.Rows {
			return nil, 0, notShown("the deletion vector in %s has %d rows, and the data file %d", vector.Path,
				vector.Rows, file.Rows)
		}
		b, err := s.readVector(ctx, vector)
		if err != nil {
			return nil, 0, err
		}
		return func(position int64) bool { return b.has(uint64(position)) }, b.held, nil
	}
	positions := s.deleted.positions[file.Path]
	isDeleted = func(position int64) bool {
		for len(positions) > 0 && positions[0] < position {
			positions = positions[1:]
		}
		return len(positions) > 0 && positions[0] == position
	}
	return isDeleted, 0, nil
}

// vectorMagic is the magic number at the start of a deletion vector.
var vectorMagic = []byte{0xd1, 0xd3, 0x39, 0x64}

// readVector reads a deletion vector:
//
//	length of magic and bitmap (4 bytes, big endian), magic, bitmap, CRC-32 (4 bytes, big endian)
//
// Source: Puffin specification, deletion-vector-v1.
func (s *scan) readVector(ctx context.Context, d deleteFile) (*bitmap, error) {
	const frame = 4 + 4 + 4
	if d.ContentBytes.Value < frame || d.ContentBytes.Value > BytesMax {
		return nil, notShown("the deletion vector in %s has %d bytes", d.Path, d.ContentBytes.Value)
	}
	raw, err := s.files.part(ctx, d.Path, d.ContentOffset.Value, d.ContentBytes.Value)
	if err != nil {
		return nil, err
	}
	length, content, sum := binary.BigEndian.Uint32(raw), raw[4:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
	if int64(length) != int64(len(content)) || !bytes.HasPrefix(content, vectorMagic) ||
		crc32.ChecksumIEEE(content) != sum {
		return nil, notShown("the deletion vector in %s is damaged", d.Path)
	}
	b, err := readBitmap(content[len(vectorMagic):], s.memory)
	if err != nil {
		return nil, notShown("the deletion vector in %s cannot be read: %v", d.Path, err)
	}
	if int64(b.count) != d.Rows {
		s.memory.Give(b.held)
		return nil, notShown("the deletion vector in %s is damaged: it has %d rows, and %d in its manifest", d.Path,
			b.count, d.Rows)
	}
	return b, nil
}
