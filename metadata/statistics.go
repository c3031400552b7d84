package metadata

import (
	"encoding/base64"

	"moorage"
)

// readStatistics consumes the description of a statistics file, checks its form, and returns the id
// of its snapshot. Source: Java StatisticsFileParser.
func readStatistics(c *cursor) (snapshotID int64, err error) {
	err = c.record(func(key []byte) (err error) {
		switch string(key) {
		case "snapshot-id":
			snapshotID, err = c.long("snapshot-id")
		case "statistics-path":
			_, err = c.quoted("statistics-path")
		case "file-size-in-bytes":
			_, err = c.long("file-size-in-bytes")
		case "file-footer-size-in-bytes":
			_, err = c.long("file-footer-size-in-bytes")
		case "blob-metadata":
			err = c.Array(func() error { return readBlobMetadata(c) })
		default:
			err = c.Skip()
		}
		return err
	}, "snapshot-id", "statistics-path", "file-size-in-bytes", "file-footer-size-in-bytes", "blob-metadata")
	return snapshotID, err
}

// readBlobMetadata consumes the description of a blob. Its properties may be absent, but not null.
func readBlobMetadata(c *cursor) error {
	return c.record(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			_, err = c.quoted("type")
		case "snapshot-id":
			_, err = c.long("snapshot-id")
		case "sequence-number":
			_, err = c.long("sequence-number")
		case "fields":
			_, err = c.intList("fields")
		case "properties":
			_, err = c.stringMap("properties")
		default:
			err = c.Skip()
		}
		return err
	}, "type", "snapshot-id", "sequence-number", "fields")
}

// readPartitionStatistics consumes the description of a partition statistics file, checks its form,
// and returns the id of its snapshot. Source: Java PartitionStatisticsFileParser.
func readPartitionStatistics(c *cursor) (snapshotID int64, err error) {
	err = c.record(func(key []byte) (err error) {
		switch string(key) {
		case "snapshot-id":
			snapshotID, err = c.long("snapshot-id")
		case "statistics-path":
			_, err = c.quoted("statistics-path")
		case "file-size-in-bytes":
			_, err = c.long("file-size-in-bytes")
		default:
			err = c.Skip()
		}
		return err
	}, "snapshot-id", "statistics-path", "file-size-in-bytes")
	return snapshotID, err
}

// statisticsPath returns the path of a statistics file or partition statistics file.
func statisticsPath(raw []byte) (path string) {
	c := reread(raw)
	_ = c.Object(func(key []byte) (err error) {
		if string(key) == "statistics-path" {
			path, err = c.string("statistics-path")
			return err
		}
		return c.Skip()
	})
	return path
}

// readEncryptionKey consumes an encryption key, checks its form and returns its id.
// Source: Java EncryptedKeyParser.
func readEncryptionKey(c *cursor) (keyID string, err error) {
	err = c.record(func(key []byte) (err error) {
		switch string(key) {
		case "key-id":
			keyID, err = c.string("key-id")
		case "encrypted-key-metadata":
			err = c.base64("encrypted-key-metadata")
		case "encrypted-by-id":
			err = c.quotedOrNull("encrypted-by-id")
		case "properties":
			_, err = c.stringMap("properties")
		default:
			err = c.Skip()
		}
		return err
	}, "key-id", "encrypted-key-metadata")
	return keyID, err
}

// base64 consumes the value of a member that must be bytes in base 64.
func (c *cursor) base64(name string) error {
	text, err := c.string(name)
	if err != nil {
		return err
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return moorage.Errorf(moorage.KindBadRequest, "Cannot parse base64 value: %s", name)
	}
	return nil
}
