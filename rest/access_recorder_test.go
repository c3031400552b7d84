package rest_test

import (
	"testing"

	"moorage/access"
	"moorage/catalog/gate"
)

// The matrix calls each verb of the specification. Each verb requires exactly the privileges, on
// exactly the subjects, in the table of verbs.
func TestVerbsAskWhatTheTableSays(t *testing.T) {
	t.Parallel()
	called := make(map[gate.Verb]bool)
	everything := principals()[0]
	for _, p := range principals() {
		if p.name == "everything" {
			everything = p
		}
	}
	for i := range newLake(t, "").cells() {
		l := newLake(t, "")
		objects, c := l.objects(), l.cells()[i]
		called[c.verb] = true
		l.setPolicy(everything.grants(objects)...)
		l.decided = nil
		if answer := l.do(everything.caller, c.method, c.path, c.body); answer.Code > 299 {
			t.Errorf("%s is answered %d %s", c.name(), answer.Code, answer.Body)
		}
		got := make(map[string]access.Privileges)
		for _, d := range l.decided {
			name := ""
			if len(d.Object.Path) > 0 {
				name = nameOf(objects, d.Object.Path[0])
			}
			got[name] |= d.Asked
			for _, view := range d.Through {
				got["w/a/"+view.Name] |= access.Read
			}
		}
		if c.through {
			c.when = append(c.when, gate.IfThrough)
		}
		// These privileges are always checked, but no request in the matrix is refused for lack of
		// them.
		c.when = append(c.when, gate.ForProperties, gate.ForWriting)
		_, asked := c.asked()
		want := make(map[string]access.Privileges)
		for subject, privileges := range asked {
			want[c.on[subject]] |= privileges
		}
		for name, privileges := range want {
			if got[name].Implied() != privileges.Implied() {
				t.Errorf("%s asks for %q on %q, the table says %q", c.name(), got[name], name, privileges)
			}
		}
		for name, privileges := range got {
			if _, found := want[name]; !found && privileges != access.See {
				t.Errorf("%s asks for %q on %q, which the table does not know", c.name(), privileges, name)
			}
		}
	}
	for _, row := range gate.Table() {
		if len(row.Iceberg) > 0 && !row.Open && !called[row.Verb] { // open: TestTokenAsksNobody
			t.Errorf("nothing calls %s", row.Verb)
		}
	}
}
