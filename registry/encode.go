package registry

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"moorage"
)

// Appender is a value of a record that writes itself exactly as package encoding/json would, but
// without looking at its type. Values that each commit writes are Appenders.
// registrytest.EncodesAsJSON checks that they keep to it.
type Appender interface {
	Value
	// AppendJSON appends the value, without what is Unknown. It fails if a time in it has no form
	// in RFC 3339.
	AppendJSON(dst []byte) ([]byte, error)
}

// Encode returns the value of a record. value is one of the structs of this package, or of txlog.
// All values are JSON objects in which unknown members are kept, so that a later version may add
// some.
func Encode(value Value) ([]byte, error) {
	encoded, err := encode(value)
	if rest := value.Later().rest; err == nil && rest != nil {
		encoded = rest.into(encoded)
	}
	return encoded, err
}

// encode is Encode without what is Unknown.
func encode(value Value) ([]byte, error) {
	var encoded []byte
	var err error
	if appender, ok := value.(Appender); ok {
		encoded, err = appender.AppendJSON(nil)
	} else {
		encoded, err = json.Marshal(value)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return encoded, nil
}

// Encode returns c as a record's value.
func (c Change) Encode() ([]byte, error) { return Encode(c) }

// AppendJSON implements Appender.
func (p Pointer) AppendJSON(dst []byte) ([]byte, error) {
	const usualBytes = 384
	dst = slices.Grow(dst, usualBytes+len(p.MetadataLocation))
	dst = appendHex(append(dst, `{"id":`...), p.ID)
	dst = AppendText(append(dst, `,"warehouse":`...), p.Warehouse)
	dst = AppendTexts(append(dst, `,"namespace":`...), p.Namespace)
	dst = AppendText(append(dst, `,"name":`...), p.Name)
	dst = appendHex(append(dst, `,"namespace-id":`...), p.NamespaceID)
	if p.View {
		dst = append(dst, `,"view":true`...)
	}
	dst = AppendText(append(dst, `,"table-uuid":`...), p.TableUUID)
	dst = AppendText(append(dst, `,"metadata-location":`...), p.MetadataLocation)
	if !p.Registration.IsZero() {
		dst = appendHex(append(dst, `,"registration":`...), p.Registration)
	}
	dst = AppendTexts(append(dst, `,"claims":`...), p.Claims)
	dst, err := AppendTime(append(dst, `,"since":`...), p.Since)
	if err != nil {
		return nil, err
	}
	if !p.Task.IsZero() {
		dst = appendHex(append(dst, `,"task":`...), p.Task)
	}
	if len(p.Storage) > 0 {
		dst = AppendMap(append(dst, `,"storage":`...), p.Storage)
	}
	if !p.WarehouseID.IsZero() {
		dst = appendHex(append(dst, `,"warehouse-id":`...), p.WarehouseID)
	}
	if !p.ReplayableUntil.IsZero() {
		if dst, err = AppendTime(append(dst, `,"replayable-until":`...), p.ReplayableUntil); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// AppendJSON implements Appender.
func (c Change) AppendJSON(dst []byte) ([]byte, error) {
	const usualBytes, versionBytes = 384, 160
	dst = slices.Grow(dst, usualBytes+len(c.Versions)*versionBytes)
	dst = appendHex(append(dst, `{"id":`...), c.ID)
	dst = AppendText(append(dst, `,"operation":`...), c.Operation)
	dst = AppendIdentifier(append(dst, `,"identifier":`...), c.Ident)
	dst = AppendText(append(dst, `,"principal":`...), c.Principal)
	if c.RequestID != "" {
		dst = AppendText(append(dst, `,"request-id":`...), c.RequestID)
	}
	dst, err := AppendTime(append(dst, `,"time":`...), c.Time)
	if err != nil {
		return nil, err
	}
	if c.MetadataLocation != "" {
		dst = AppendText(append(dst, `,"metadata-location":`...), c.MetadataLocation)
	}
	if len(c.Versions) > 0 {
		dst = AppendList(append(dst, `,"versions":`...), c.Versions, appendVersion)
	}
	return append(dst, '}'), nil
}

func appendVersion(dst []byte, v Version) []byte {
	dst = strconv.AppendUint(append(dst, `{"key":{"table":`...), uint64(v.Key.Table), 10)
	dst = append(AppendText(append(dst, `,"id":`...), v.Key.ID), '}')
	if !v.Old.IsZero() {
		dst = appendHex(append(dst, `,"old":`...), v.Old)
	}
	if !v.New.IsZero() {
		dst = appendHex(append(dst, `,"new":`...), v.New)
	}
	return append(dst, '}')
}

// AppendJSON appends the text of String, quoted.
func (id ID) AppendJSON(dst []byte) []byte { return appendHex(dst, id) }

// AppendJSON appends the text of String, quoted.
func (e ETag) AppendJSON(dst []byte) []byte { return appendHex(dst, e) }

func appendHex(dst []byte, bits [16]byte) []byte {
	return append(hex.AppendEncode(append(dst, '"'), bits[:]), '"')
}

// isPlain reports whether package encoding/json writes text as it is. It looks at eight bytes at a
// time, because most of a record is text.
func isPlain(text string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		x := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		quote, backslash, ampersand := x^ones*'"', x^ones*'\\', x^ones*'&'
		angle := (x | ones*('<'^'>')) ^ ones*'>' // either of them
		// A high bit is set for each such byte, and perhaps for some above it, to which a borrow
		// went.
		if (x|(x-ones*' ')|(quote-ones)|(backslash-ones)|(ampersand-ones)|(angle-ones))&highs != 0 {
			return false
		}
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// AppendText appends text as a string.
func AppendText(dst []byte, text string) []byte {
	if !isPlain(text) {
		literal, _ := json.Marshal(text) // a string always has a JSON form
		return append(dst, literal...)
	}
	return append(append(append(dst, '"'), text...), '"')
}

// AppendTexts appends texts as an array, null if it is nil.
func AppendTexts(dst []byte, texts []string) []byte {
	return AppendList(dst, texts, AppendText)
}

// AppendList appends list as an array of what appendOne appends, null if it is nil.
func AppendList[T any](dst []byte, list []T, appendOne func([]byte, T) []byte) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, one := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOne(dst, one)
	}
	return append(dst, ']')
}

// AppendMap appends texts as an object, null if it is nil.
func AppendMap(dst []byte, texts map[string]string) []byte {
	object, _ := json.Marshal(texts) // strings always have a JSON form
	return append(dst, object...)
}

// AppendIdentifier appends ident as an object.
func AppendIdentifier(dst []byte, ident moorage.Identifier) []byte {
	dst = AppendText(append(dst, `{"warehouse":`...), ident.Warehouse)
	dst = AppendTexts(append(dst, `,"namespace":`...), ident.Namespace)
	return append(AppendText(append(dst, `,"name":`...), ident.Name), '}')
}

// AppendTime appends t as a string. It fails if t has no form in RFC 3339.
func AppendTime(dst []byte, t time.Time) ([]byte, error) {
	dst, err := t.AppendText(append(dst, '"'))
	return append(dst, '"'), err
}
