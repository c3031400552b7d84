package registry

import (
	"bytes"
	"encoding/json"
	"fmt"

	"moorage/internal/jsontext"
)

// beforeBytesMax bounds Before.Set. Without a bound, histories would be slow: each entry reads a
// change record, and the properties of a namespace may have megabytes.
const beforeBytesMax = 64 << 10

// Version is the change of one record.
//
// Each write of a warehouse, namespace, entry or pointer in a batch with a change replaces the
// version that its writer read (see Batch.Check). So Old and Before are exact for these records,
// and the changes of a record, read backwards from its present value, give each earlier value (see
// Earlier). For records of access policy and secrets there is no Before, because hashes and sealed
// values must not enter change records. Their Old is zero if the batch did not require a version.
type Version struct {
	Key Key `json:"key"`
	// Old is the replaced version. It is zero if there was no record.
	Old ETag `json:"old,omitzero"`
	New ETag `json:"new,omitzero"` // zero if the record was deleted
	// Before is nil if there was no record.
	Before *Before `json:"before,omitempty"`
}

// Before describes how to restore the replaced value of a record from the new value.
type Before struct {
	State State `json:"state"` // state of the replaced version
	// Set holds the top-level members of the replaced value that are missing or different in the
	// new value. If the record was deleted, it holds all members.
	Set json.RawMessage `json:"set,omitempty"`
	// Gone lists the members that exist only in the new value.
	Gone []string `json:"gone,omitempty"`
	// If Cut is true, Set is missing and the replaced value is unknown. That is the case if Set
	// would exceed 64 KiB, or if one of the values is not a JSON object.
	Cut bool `json:"cut,omitempty"`
}

// keepsBefore reports whether changes store the replaced values of the table's records.
func (t Table) keepsBefore() bool {
	switch t {
	case TableWarehouse, TableNamespace, TableEntry, TablePointer:
		return true
	}
	return false
}

// replaced returns the Before of w. It returns nil if w replaces no record.
func (w Write) replaced() *Before {
	if !w.Was.Exists() {
		return nil
	}
	b := &Before{State: w.Was.State}
	was, ok := membersOfObject(jsontext.NewReader(w.Was.Value)) // it may be damaged
	var is []objectMember
	if ok && !w.Delete {
		is, ok = membersOfObject(jsontext.Reread(w.Value)) // made by Encode
	}
	if !ok {
		b.Cut = true
		return b
	}
	size, differ := len("{}"), was[:0:0]
	kept := make([]bool, len(is)) // which members of the new value are also in the old value
	next := 0                     // most values have the same order of members
	for _, member := range was {
		at := findMember(is, member.name, next)
		if at >= 0 {
			kept[at], next = true, at+1
			if bytes.Equal(is[at].value, member.value) {
				continue
			}
		}
		size += len(member.text) + len(",")
		differ = append(differ, member)
	}
	if size > beforeBytesMax {
		b.Cut = true
		return b
	}
	for i, member := range is {
		if !kept[i] {
			b.Gone = append(b.Gone, string(member.name))
		}
	}
	if len(differ) > 0 {
		b.Set = appendObject(make([]byte, 0, size), differ)
	}
	return b
}

// Earlier returns the value of a record before v, given the value after v. The parameter after is
// nil if v deleted the record. The members have their former values, but may have another order. ok
// is false if there was no record, or if its value is unknown.
func (v Version) Earlier(after []byte) (was []byte, ok bool, err error) {
	if v.Before == nil || v.Before.Cut {
		return nil, false, nil
	}
	set, isObject := membersOfObject(jsontext.NewReader(v.Before.Set))
	if !isObject && len(v.Before.Set) > 0 {
		return nil, false, fmt.Errorf("the change of %s holds no object", v.Key)
	}
	var all []objectMember
	if !v.New.IsZero() {
		if all, isObject = membersOfObject(jsontext.NewReader(after)); !isObject {
			return nil, false, fmt.Errorf("%s holds no object", v.Key)
		}
	}
	kept := all[:0:0]
	for _, member := range all {
		gone := findMember(set, member.name, 0) >= 0
		for _, name := range v.Before.Gone {
			gone = gone || name == string(member.name)
		}
		if !gone {
			kept = append(kept, member)
		}
	}
	return appendObject(nil, append(kept, set...)), true, nil
}

// objectMember is a member of a JSON object.
type objectMember struct {
	name  []byte // unescaped
	text  []byte // the name, the colon and the value, as written
	value []byte
}

// membersOfObject returns the members of the JSON object in r. ok is false if r does not contain a
// JSON object.
func membersOfObject(r jsontext.Reader) (members []objectMember, ok bool) {
	if r.Space() != '{' {
		return nil, false
	}
	members = make([]objectMember, 0, 16) // enough for a live pointer
	err := r.Object(func(name []byte) error {
		start := r.KeyPos()
		value, err := r.Value()
		members = append(members, objectMember{name, r.From(start), value})
		return err
	})
	return members, err == nil && r.End() == nil
}

// textMember returns the text of a member of an object, which is valid JSON. The text is empty if
// there is no such member, or if it is not a string.
func textMember(object []byte, name string) (text string) {
	r := jsontext.Reread(object)
	if r.Space() != '{' {
		return ""
	}
	_ = r.Object(func(key []byte) error { // valid, so it does not fail
		value, err := r.Value()
		if string(key) == name && jsontext.TypeOf(value) == jsontext.String {
			text = jsontext.Unquote(value)
		}
		return err
	})
	return text
}

// findMember returns the index of a name, or -1. It begins the search at next.
func findMember(members []objectMember, name []byte, next int) int {
	for i := range members {
		if at := (next + i) % len(members); bytes.Equal(members[at].name, name) {
			return at
		}
	}
	return -1
}

func appendObject(dst []byte, members []objectMember) []byte {
	dst = append(dst, '{')
	for i, member := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, member.text...)
	}
	return append(dst, '}')
}
