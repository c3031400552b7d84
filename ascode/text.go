package ascode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"moorage"
)

// String returns the kind and the name of o, as people write it.
func (o Object) String() string {
	levels := o.Levels()
	switch o.Kind {
	case ServerKind:
		return "server"
	case RoleKind:
		return "role " + o.Name
	case WarehouseKind:
		return "warehouse " + moorage.PersonLevels(o.Warehouse)
	case TableKind, ViewKind:
		levels = append(levels, o.Name)
	}
	return o.Kind.String() + " " + moorage.PersonName(o.Warehouse, levels...)
}

// Line is one line of a plan for people.
type Line struct {
	Sign  string `json:"sign"`  // "+", "-" or "~"; empty for an object that exists and stays
	Inner bool   `json:"inner"` // the line is about a fact of the object above
	Text  string `json:"text"`
}

// Lines returns what a plan changes: each object, followed by its facts, as was -> is.
func (p Plan) Lines() (lines []Line) {
	signs := make(map[Object]string)
	changes := make(map[Object][]Change)
	for _, step := range p.Steps {
		switch step.Do {
		case CreateWarehouse, CreateNamespace:
			signs[step.Object] = "+"
		case DropNamespace, DropWarehouse, RemoveRole:
			signs[step.Object] = "-"
		case PutRole:
			if step.IsNew {
				signs[step.Object] = "+"
			}
		}
		changes[step.Object] = append(changes[step.Object], step.Changes...)
	}
	objects := slices.Collect(maps.Keys(changes))
	slices.SortFunc(objects, Object.Compare)
	for _, o := range objects {
		lines = append(lines, Line{Sign: signs[o], Text: o.String()})
		lines = append(lines, changeLines(changes[o])...)
	}
	return lines
}

// changeLines returns the lines of the changes of one object. Grants to one grantee, and labels of
// one column, share a line if they have the same sign.
func changeLines(changes []Change) (lines []Line) {
	slices.SortStableFunc(changes, func(a, b Change) int { return a.Fact.Compare(b.Fact) })
	last := ""
	for _, change := range changes {
		sign := "~"
		switch {
		case change.Was == nil:
			sign = "+"
		case change.Is == nil:
			sign = "-"
		}
		fact := change.Fact
		group := sign + " " + string(fact.Attribute) + " " + fact.Key
		if fact.Attribute == Grant && group == last {
			lines[len(lines)-1].Text += ", " + fact.Item
			continue
		}
		last = group
		words := []string{string(fact.Attribute)}
		for _, name := range []string{fact.Key, fact.Item} {
			if name != "" {
				words = append(words, shown(name))
			}
		}
		if values := valuesOf(change); values != "" {
			words = append(words, values)
		}
		lines = append(lines, Line{sign, true, strings.Join(words, " ")})
	}
	return lines
}

// valuesOf returns the values of a change: was -> is, or the only one.
func valuesOf(change Change) string {
	switch change.Fact.Attribute {
	case Grant, Member, AllowedLocation:
		return ""
	}
	show := func(value string) string {
		if change.Fact.Attribute == Maintenance {
			return RuleOf(value).String()
		}
		return shown(value)
	}
	switch {
	case change.Was == nil:
		return show(*change.Is)
	case change.Is == nil:
		return show(*change.Was)
	}
	return show(*change.Was) + " -> " + show(*change.Is)
}

// String returns r for people, such as "enabled maxSnapshotAgeHours=120".
func (r Rule) String() string {
	words := []string{r.Status}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		words = append(words, name+"="+r.Settings[name])
	}
	if r.Unsafe {
		words = append(words, "unsafe")
	}
	return strings.Join(words, " ")
}

// shown returns a name or a value, in quotes if it would be unclear where it ends.
func shown(text string) string {
	unclear := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' }
	if text == "" || strings.ContainsFunc(text, unclear) {
		return strconv.Quote(text)
	}
	return text
}

// String returns what a step does in one line, such as "create namespace fleet".
func (s Step) String() string {
	text := map[Do]string{
		CreateWarehouse: "create", ChangeWarehouse: "change", CreateNamespace: "create", PutRole: "change",
		AddMembers: "add members of", AddGrants: "grant on", SetManaged: "change who can grant in",
		SetOwner: "change the owner of", SetProperties: "change properties of", SetLabels: "change labels of",
		SetPolicy: "change maintenance of", RemovePolicy: "end a policy of", Protect: "protect",
		Unprotect: "end the protection of", DropNamespace: "drop", DropWarehouse: "drop",
		RemoveGrants: "revoke on", RemoveMembers: "remove members of", RemoveRole: "remove",
	}[s.Do]
	if s.IsNew && s.Do == PutRole {
		text = "create"
	}
	return text + " " + s.Object.String()
}

// Summary counts what a plan adds, changes and removes, in one sentence.
func (p Plan) Summary() string {
	counts := map[string]int{}
	for _, line := range p.Lines() {
		counts[line.Sign]++
	}
	return fmt.Sprintf("%d to add, %d to change, %d to remove.", counts["+"], counts["~"], counts["-"])
}
