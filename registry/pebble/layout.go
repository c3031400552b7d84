package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"moorage/registry"
)

// The first bytes of the engine's keys. The package comment describes the layout.
const (
	spaceMeta     = 'm'
	spacePosition = 'p'
	spaceRecord   = 'r'
)

const (
	recordPrefixBytes = 2 // spaceRecord and the table

	etagBytes     = len(registry.ETag{})
	positionBytes = 8
	// headerBytes is the length of the header before the value of each record. In a change record,
	// the position follows the header.
	headerBytes = etagBytes + 1
)

// positionKey is the key of the last assigned position.
func positionKey() []byte { return []byte{spaceMeta, 'p', 'o', 's', 'i', 't', 'i', 'o', 'n'} }

// appendRecordKey appends the engine's key of the record at key.
func appendRecordKey(buf []byte, key registry.Key) []byte {
	buf = append(buf, spaceRecord, byte(key.Table))
	return append(buf, key.ID...)
}

// appendPlaceKey appends the engine's key of a place in the order of changes.
func appendPlaceKey(buf []byte, position registry.Position) []byte {
	return binary.BigEndian.AppendUint64(append(buf, spacePosition), uint64(position))
}

// header is a record without its value. The zero header means that the record does not exist.
type header struct {
	etag     registry.ETag
	state    registry.State
	position registry.Position // 0 unless the record is a change that has a place
}

// record returns the record with this header, without a value.
func (h header) record(key registry.Key) registry.Record {
	return registry.Record{Key: key, ETag: h.etag, State: h.state}
}

// valueOffset returns the offset of the value in the stored form of a record of table.
func valueOffset(table registry.Table) int {
	if table == registry.TableChange {
		return headerBytes + positionBytes
	}
	return headerBytes
}

// appendRecord appends the stored form of the record that w writes with this ETag.
func appendRecord(buf []byte, w registry.Write, etag registry.ETag) []byte {
	buf = append(buf, etag[:]...)
	buf = append(buf, byte(w.State))
	if w.Key.Table == registry.TableChange {
		buf = append(buf, make([]byte, positionBytes)...)
	}
	return append(buf, w.Value...)
}

// setPosition writes the position into the stored form of a change.
func setPosition(stored []byte, position registry.Position) {
	binary.BigEndian.PutUint64(stored[headerBytes:], uint64(position))
}

// splitRecord returns the header and the value from the stored form of the record at key. The value
// is a part of the slice stored.
func splitRecord(key registry.Key, stored []byte) (header, []byte, error) {
	offset := valueOffset(key.Table)
	if len(stored) < offset {
		return header{}, nil, fmt.Errorf("record %s is damaged: %d bytes, at least %d are expected", key, len(stored),
			offset)
	}
	h := header{etag: registry.ETag(stored[:etagBytes]), state: registry.State(stored[etagBytes])}
	if key.Table == registry.TableChange {
		h.position = registry.Position(binary.BigEndian.Uint64(stored[headerBytes:]))
	}
	return h, stored[offset:], nil
}

// wholeRecord returns the record at key from its stored form, without sharing memory with it.
func wholeRecord(key registry.Key, stored []byte) (registry.Record, error) {
	h, value, err := splitRecord(key, stored)
	if err != nil {
		return registry.Record{}, err
	}
	record := h.record(key)
	record.Value = bytes.Clone(value)
	return record, nil
}

// afterPrefix returns the first key after all keys that start with prefix. The first byte of prefix
// must not be 0xff.
func afterPrefix(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	end[len(end)-1]++
	return end
}

// splitPosition returns the position in a key or a value of 8 bytes.
func splitPosition(stored []byte) (registry.Position, error) {
	if len(stored) != positionBytes {
		return 0, fmt.Errorf("position is damaged: %d bytes, want %d", len(stored), positionBytes)
	}
	return registry.Position(binary.BigEndian.Uint64(stored)), nil
}
