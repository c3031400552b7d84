package documents

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"moorage/registry"
)

// The uuid in the name of a metadata file, as hexadecimal digits:
//
//	ssssssss-rrrr-8rrr-rrrr-mmmmmmmmmmmm
//
// s is the Unix time in seconds when the name was drawn, by the clock of the node. r are 42 random
// bits and the variant. m is a hash of the other digits, the warehouse, and the uuid of the table
// or view.
const (
	uuidLength = 36 // length of the text of a uuid
	timeLength = 8
	versionAt  = 14
	markLength = 12
	// drawnVersion is the version of such a uuid. Source: RFC 9562, UUID version 8.
	drawnVersion = '8'
)

// drawFor draws the uuid in the name of a file.
func (d *Documents) drawFor(file File) (string, error) {
	random, err := d.ledger.NewUUID()
	if err != nil {
		return "", err
	}
	dated := fmt.Sprintf("%08x", uint32(d.now().Unix())) + random[timeLength:versionAt] + string(drawnVersion) +
		random[versionAt+1:]
	return marked(dated, file.Warehouse, file.Document.UUID()), nil
}

// marked returns a uuid whose end shows the warehouse and the table or view for which it was drawn.
func marked(unique string, warehouse registry.ID, table string) string {
	rest := unique[:uuidLength-markLength]
	sum := sha256.Sum256([]byte(rest + warehouse.String() + strings.ToLower(table)))
	return rest + hex.EncodeToString(sum[:markLength/2])
}

// uuidIn returns the uuid in the name of a metadata file, if it may have been drawn by drawFor.
func uuidIn(location string) (unique string, ok bool) {
	_, unique, _ = strings.Cut(location[strings.LastIndexByte(location, '/')+1:], "-")
	if len(unique) <= uuidLength || unique[versionAt] != drawnVersion {
		return "", false
	}
	return unique[:uuidLength], true
}

// WroteFor reports whether a server over this store drew the name of a metadata file for the table
// or view with the uuid table. Names from other catalogs look similar, but have another end, even
// for the same table.
func WroteFor(warehouse registry.ID, table, location string) bool {
	unique, ok := uuidIn(location)
	return ok && marked(unique, warehouse, table) == unique
}

// drawnAt returns when the name of a metadata file was drawn, if a Moorage server drew it.
func drawnAt(location string) (at time.Time, ok bool) {
	unique, ok := uuidIn(location)
	if !ok {
		return at, false
	}
	seconds, err := strconv.ParseUint(unique[:timeLength], 16, 32)
	return time.Unix(int64(seconds), 0), err == nil
}
