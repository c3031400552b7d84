package access_test

import (
	"testing"

	"moorage/access"
)

const (
	ann, bob = "corp:ann", "corp:bob"
	readers  = "readers"
)

func id(n byte) access.ID { return access.ID{0: 1, 15: n} }

// lake returns the path of a table made by bob, in a namespace and a warehouse made by root.
func lake() []access.Object {
	return []access.Object{
		{ID: id(3), Kind: access.Table, Creator: bob},
		{ID: id(2), Kind: access.Namespace, Creator: "corp:root"},
		{ID: id(1), Kind: access.Warehouse, Creator: "corp:root"},
	}
}

// grantOn returns the record of one grant on an object of the lake. at is the index of the object;
// 3 is the server.
func grantOn(at int, grantee string, privileges access.Privileges) access.Grants {
	path := lake()
	record := access.Grants{Grants: []access.Grant{{Grantee: grantee, Privileges: privileges}}}
	if at < len(path) {
		record.ID, record.Kind = path[at].ID, path[at].Kind
		for _, above := range path[at+1:] {
			record.Ancestors = append(record.Ancestors, above.ID)
		}
	}
	return record
}

func TestDecide(t *testing.T) {
	t.Parallel()
	s := access.New(1, access.Records{Grants: []access.Grants{grantOn(1, ann, access.Write)}})
	if d := s.Who(access.Caller{Name: ann}).Decide(lake(), access.Read); d.Outcome != access.Allow || d.At != 1 {
		t.Errorf("who may write may not read: %+v", d)
	}
	if d := s.Who(access.Caller{Name: ann}).Decide(lake(), access.Drop); d.Outcome != access.Forbid || d.Missing != access.Drop {
		t.Errorf("who may write may drop: %+v", d)
	}
	if d := s.Who(access.Caller{Name: bob}).Decide(lake(), access.Purge); d.Outcome != access.Allow || d.By != access.ByOwner {
		t.Errorf("the owner may not purge: %+v", d)
	}
	if d := s.Who(access.Caller{Name: "corp:eve"}).Decide(lake(), access.Read); d.Outcome != access.Hidden || d.HiddenAt != 2 {
		t.Errorf("a stranger sees it: %+v", d)
	}
}
