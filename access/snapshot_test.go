package access_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"

	"moorage"
	"moorage/access"
)

// bigID returns the n-th of many evenly distributed ids.
func bigID(n uint64) (id access.ID) {
	binary.BigEndian.PutUint64(id[8:], (n+1)*0x9e3779b97f4a7c15)
	return id
}

// bigLake returns the grants records of n tables in one warehouse, a thousand per namespace. Each
// table is granted to one of the roles "role-0" to "role-999", and every tenth also to ann.
func bigLake(n int) []access.Grants {
	records := make([]access.Grants, n)
	for i := range records {
		grants := []access.Grant{{Grantee: fmt.Sprintf("role-%d", i%1000), Privileges: access.Write}}
		if i%10 == 0 {
			grants = append(grants, access.Grant{Grantee: ann, Privileges: access.Read})
		}
		path := bigPath(i)
		records[i] = access.Grants{
			ID: path[0].ID, Kind: access.Table, Ancestors: []access.ID{path[1].ID, path[2].ID, path[3].ID}, Grants: grants,
		}
	}
	return records
}

// bigPath returns the path of table i of a bigLake.
func bigPath(i int) []access.Object {
	return []access.Object{
		{ID: bigID(uint64(i)), Kind: access.Table, Creator: "corp:maker"},
		{ID: bigID(1<<40 + uint64(i/1000)), Kind: access.Namespace, Creator: "corp:maker"},
		{ID: bigID(1 << 41), Kind: access.Namespace, Creator: "corp:maker"},
		{ID: bigID(1 << 42), Kind: access.Warehouse, Creator: "corp:maker"},
	}
}

// A plan lists the granted children as long as there are few, and again once many have become few.
// A snapshot updated step by step has the same plan as a fresh one.
func TestManyChildren(t *testing.T) {
	t.Parallel()
	const count = access.ChildrenMax + 500
	var records []access.Grants
	container := []access.Object{{ID: bigID(1 << 40), Kind: access.Namespace}, {ID: bigID(1 << 42), Kind: access.Warehouse}}
	for i := range uint64(count) {
		records = append(records, access.Grants{
			ID: bigID(i), Kind: access.Table, Ancestors: []access.ID{container[0].ID, container[1].ID},
			Grants: []access.Grant{{readers, access.Read}, {ann, access.Read}},
		})
	}
	caller := access.Caller{Name: bob, Roles: []string{"corp/x"}}
	roles := []access.Role{{Name: readers, Members: []string{"corp/x"}}}
	s := access.New(1, access.Records{Grants: records, Roles: roles})
	for left := count; left > 0; {
		var want []access.ID
		for _, record := range records[:left] {
			want = append(want, record.ID)
		}
		slices.SortFunc(want, func(a, b access.ID) int { return slices.Compare(a[:], b[:]) })
		for name, s := range map[string]*access.Snapshot{"followed": s, "fresh": access.New(1, access.Records{Grants: records[:left], Roles: roles})} {
			plan, ids := s.Who(caller).PlanList(container, access.Table)
			switch {
			case left > access.ChildrenMax && (plan != access.ListSeen || ids != nil):
				t.Errorf("%s, %d children: plan %d with %d ids", name, left, plan, len(ids))
			case left <= access.ChildrenMax && (plan != access.ListChildren || !slices.Equal(ids, want)):
				t.Errorf("%s, %d children: plan %d with %d ids", name, left, plan, len(ids))
			}
			if plan, ids := s.Who(caller).PlanList(container[1:], access.Namespace); left <= access.ChildrenMax &&
				(plan != access.ListChildren || !slices.Equal(ids, []access.ID{container[0].ID})) {
				t.Errorf("%s, %d tables: plan %d of namespaces with %d ids", name, left, plan, len(ids))
			}
		}
		next := max(0, left-250)
		var change access.Changes
		for i, record := range records[next:left] {
			if record.Grants = nil; i%2 == 0 {
				change.GoneGrants = append(change.GoneGrants, record.ID)
			} else {
				change.Grants = append(change.Grants, record)
			}
		}
		s, left = s.With(s.Epoch()+1, change), next
	}
	if s.Who(caller).Seen(container) {
		t.Error("the container is still seen when nothing in it is granted")
	}
}

// A table that moves into another namespace takes its grants with it.
func TestMove(t *testing.T) {
	t.Parallel()
	before := access.New(1, access.Records{Grants: []access.Grants{grantOn(0, ann, access.Read)}})
	moved := grantOn(0, ann, access.Read)
	moved.Ancestors[0] = id(9)
	after := before.With(2, access.Changes{Records: access.Records{Grants: []access.Grants{moved}}})
	path := lake()
	path[1].ID = id(9)
	for _, tt := range []struct {
		s    *access.Snapshot
		path []access.Object
		want bool
	}{{before, lake()[1:], true}, {before, path[1:], false}, {after, lake()[1:], false}, {after, path[1:], true}, {after, path[2:], true}} {
		if got := tt.s.Who(access.Caller{Name: ann}).Seen(tt.path); got != tt.want {
			t.Errorf("epoch %d: %v is seen %v", tt.s.Epoch(), tt.path[0], got)
		}
	}
}

// More names than fit into a block keep their numbers across changes.
func TestManyNames(t *testing.T) {
	t.Parallel()
	s := access.New(0, access.Records{})
	older := s
	for i := range 3000 {
		record := grantOn(0, fmt.Sprintf("corp:%d", i), access.Read)
		record.ID = bigID(uint64(i))
		s = s.With(uint64(i), access.Changes{Records: access.Records{Grants: []access.Grants{record}}})
		if i == 1500 {
			older = s
		}
	}
	for i := range 3000 {
		for _, s := range []*access.Snapshot{older, s} {
			g, found := s.Grants(bigID(uint64(i)))
			if found != (uint64(i) <= s.Epoch()) || found && g.Grants[0].Grantee != fmt.Sprintf("corp:%d", i) {
				t.Fatalf("epoch %d: object %d has %+v", s.Epoch(), i, g)
			}
		}
	}
}

func TestCheckRoom(t *testing.T) {
	t.Parallel()
	s := access.New(1, access.Records{Grants: bigLake(10)})
	if err := s.CheckRoom(access.ObjectsMax - 10); err != nil {
		t.Error(err)
	}
	if err := s.CheckRoom(access.ObjectsMax - 9); moorage.KindOf(err) != moorage.KindTooLarge {
		t.Errorf("one object too many: %v", err)
	}
}

// A decision allocates nothing, whatever its outcome.
func TestDecideAllocatesNothing(t *testing.T) {
	s := access.New(1, access.Records{Grants: bigLake(3000), Roles: twentyRoles()})
	path := bigPath(77)
	for _, name := range []string{ann, "corp:maker", "corp:eve", "corp:member"} {
		caller := access.Caller{Name: name, Roles: []string{"corp/a", "corp/b"}}
		for _, asked := range []access.Privileges{access.See, access.Read, access.Manage, access.Purge} {
			s.Who(caller).Decide(path, asked)
			if n := testing.AllocsPerRun(100, func() { s.Who(caller).Decide(path, asked) }); n > 0 {
				t.Errorf("%s asks for %q: %v allocations", name, asked, n)
			}
		}
	}
}

// twentyRoles returns roles that corp:member is a member of. A bigLake grants nothing to them.
func twentyRoles() (roles []access.Role) {
	for i := range 20 {
		roles = append(roles, access.Role{Name: fmt.Sprintf("idle-%d", i), Members: []string{"corp:member"}})
	}
	return roles
}

var objectsFlag = flag.Int("objects", access.ObjectsMax, "how many objects have grants in the largest benchmark of decisions")

// BenchmarkDecide measures a decision for different numbers of objects with grants. The caller has
// 20 roles, and the path has four objects. The case denied is the worst, because everything is
// checked.
func BenchmarkDecide(b *testing.B) {
	for _, count := range []int{1_000, 100_000, 1_000_000} {
		if count > *objectsFlag {
			continue
		}
		s := access.New(1, access.Records{Grants: bigLake(count), Roles: twentyRoles()})
		for name, caller := range map[string]access.Caller{
			"denied": {Name: "corp:member"}, "granted": {Name: ann}, "owner": {Name: "corp:maker"},
		} {
			b.Run(fmt.Sprintf("objects=%d/%s", count, name), func(b *testing.B) {
				b.ReportAllocs()
				path := bigPath(0)
				at := uint64(1)
				for b.Loop() {
					at = at*6364136223846793005 + 1442695040888963407
					table := int(at>>33) % count / 10 * 10
					path[0].ID, path[1].ID = bigID(uint64(table)), bigID(1<<40+uint64(table/1000))
					s.Who(caller).Decide(path, access.Read)
				}
			})
		}
		b.Run(fmt.Sprintf("objects=%d/change", count), func(b *testing.B) {
			record := bigLake(1)[0]
			for i := 0; b.Loop(); i++ {
				record.Grants[0].Privileges = []access.Privileges{access.Read, access.Write}[i%2]
				s = s.With(uint64(i), access.Changes{Records: access.Records{Grants: []access.Grants{record}}})
			}
		})
	}
}

// BenchmarkNew measures the loading of all access policy.
func BenchmarkNew(b *testing.B) {
	records := access.Records{Grants: bigLake(100_000), Roles: twentyRoles()}
	for b.Loop() {
		access.New(1, records)
	}
}
