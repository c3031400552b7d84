package access_test

import (
	"slices"

	"moorage"
	"moorage/access"
)

// reference decides with nested loops over all records. It uses only the value types of package
// access. Each method goes through all records again.
type reference struct{ access.Records }

// implied is the table in the design, word for word.
func implied(set access.Privileges) access.Privileges {
	has := func(p access.Privileges) bool { return set&p != 0 }
	if has(access.Purge) {
		set |= access.Drop
	}
	if has(access.Write) {
		set |= access.Read
	}
	if has(access.Read | access.Alter | access.Maintain | access.Create | access.Drop | access.Manage) {
		set |= access.Describe
	}
	return set
}

// isMember reports whether one of names is the grantee, or a direct or indirect member of it.
func (r reference) isMember(names []string, grantee string, deep int) bool {
	if slices.Contains(names, grantee) {
		return true
	}
	for _, role := range r.Roles {
		if deep == 0 || r.present(role.Name) != grantee {
			continue
		}
		for _, member := range role.Members {
			if r.isMember(names, member, deep-1) {
				return true
			}
		}
	}
	return false
}

// present returns the present identity for a name.
func (r reference) present(name string) string { return moorage.IdentityOf(name, r.Generations[name]) }

// counts reports whether a grant to grantee counts for c.
func (r reference) counts(c access.Caller, grantee string) bool {
	for _, p := range r.Principals {
		if p.Name == c.Name && p.Disabled {
			return false
		}
	}
	names := append([]string{r.present(c.Name), moorage.AnyIdentityOf(c.Name), access.Everyone}, c.Roles...)
	if c.Only == nil {
		return r.isMember(names, grantee, 9)
	}
	narrow := []string{access.Everyone}
	for _, role := range c.Only {
		if role = r.present(role); r.isMember(names, role, 9) {
			narrow = append(narrow, role)
		}
	}
	return r.isMember(narrow, grantee, 9)
}

func (r reference) record(id access.ID) (found access.Grants) {
	for _, record := range r.Grants {
		if record.ID == id {
			found = record
		}
	}
	return found
}

func (r reference) owns(c access.Caller, o access.Object) bool {
	if owner := r.record(o.ID).Owner; owner != "" {
		return r.counts(c, owner)
	}
	return o.Creator == r.present(c.Name) && c.Only == nil && r.counts(c, o.Creator)
}

// at returns the privileges that c gets from path[at] alone. The index after the last stands for
// the server.
func (r reference) at(c access.Caller, path []access.Object, at int) (had access.Privileges) {
	object := access.Object{}
	if at < len(path) {
		object = path[at]
	} else if c.Acting {
		return 0
	}
	for _, grant := range r.record(object.ID).Grants {
		if r.counts(c, grant.Grantee) {
			had |= implied(grant.Privileges)
		}
	}
	if at < len(path) && r.owns(c, object) {
		own := access.OfOwner(object.Kind)
		for _, above := range path[at+1:] {
			if r.record(above.ID).Managed {
				own &^= access.Manage
			}
		}
		had |= own
	}
	return had
}

func (r reference) has(c access.Caller, path []access.Object) (had access.Privileges) {
	for at := range len(path) + 1 {
		had |= r.at(c, path, at)
	}
	return had
}

// canSee reports whether c sees the first object in path. That is true if c can describe it, has a
// grant on it, or sees an object below it. all contains all paths.
func (r reference) canSee(c access.Caller, path []access.Object, all [][]access.Object) bool {
	if len(path) == 0 {
		return true
	}
	if r.has(c, path)&(access.Describe|access.Admin) != 0 || r.at(c, path, 0) != 0 {
		return true
	}
	for _, other := range all {
		if at := len(other) - len(path); at > 0 && other[at].ID == path[0].ID && r.at(c, other, 0) != 0 {
			return true
		}
	}
	return false
}

func (r reference) decide(c access.Caller, path []access.Object, asked access.Privileges, all [][]access.Object) (
	outcome access.Outcome, missing access.Privileges, hiddenAt int) {
	missing = asked &^ r.has(c, path)
	if r.canSee(c, path, all) {
		if missing == 0 && (asked != 0 || r.counts(c, access.Everyone) || len(path) > 0) {
			return access.Allow, 0, 0
		}
		return access.Forbid, missing, 0
	}
	for hiddenAt < len(path)-1 && !r.canSee(c, path[hiddenAt+1:], all) {
		hiddenAt++
	}
	return access.Hidden, missing, hiddenAt
}
