package access

import (
	"slices"
	"strings"

	"moorage"
)

// Bounds of one record.
const (
	// MembersMax is the maximum number of direct members of a role. There is a limit because each
	// change rewrites the whole record of the role.
	MembersMax = 10_000
	// GranteesMax is the maximum number of grantees of one object, for the same reason.
	GranteesMax = 1_000
)

// CheckRole returns a KindIllegalArgument error if role may not be written. A role must not have an
// invalid name or member, contain itself, or nest more than DepthMax roles. If it has too many
// members, the error is KindTooLarge. In role, members are given by name, not by identity.
func (s *Snapshot) CheckRole(role Role) error {
	if GranteeOf(role.Name) != IsRole || role.Name == Everyone {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"%q cannot be the name of a role: take letters, digits, - _ and ., and not %s", role.Name, Everyone)
	}
	if len(role.Members) > MembersMax {
		return moorage.Errorf(moorage.KindTooLarge,
			"Role %s has %d members, at most %d are allowed: make roles of its parts",
			role.Name, len(role.Members), MembersMax)
	}
	for _, member := range role.Members {
		if err := CheckGrantee(member); err != nil {
			return moorage.Errorf(moorage.KindIllegalArgument, "Role %s: %w", role.Name, err)
		}
	}
	members := s.identities(role.Members)
	if chain := s.wayDown(members, s.Identity(role.Name)); chain != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "Role %s would contain itself: %s", role.Name,
			strings.Join(append([]string{role.Name}, chain...), " has the member "))
	}
	depth := 1 + s.chainAbove(role.Name) + s.chainBelow(members, make(map[string]int))
	if depth > DepthMax {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Role %s would make a chain of %d roles that contain each other, at most %d are allowed",
			role.Name, depth, DepthMax)
	}
	return nil
}

// identities returns the identities of the principals and roles that now have the given names.
func (s *Snapshot) identities(names []string) []string {
	identities := make([]string, len(names))
	for i, name := range names {
		identities[i] = s.Identity(name)
	}
	return identities
}

// membersOf returns the identities of the direct members of a role. identity is the role's own.
func (s *Snapshot) membersOf(identity string) []string {
	return s.names.roles[s.Holder(identity)].Members
}

// wayDown returns the shortest chain of memberships from one of members down to role, which is the
// last identity in the chain. If there is no chain, it returns nil.
func (s *Snapshot) wayDown(members []string, role string) (chain []string) {
	from := make(map[string]string)
	reached := make([]string, 0, len(members))
	reach := func(members []string, by string) {
		for _, member := range members {
			if _, found := from[member]; !found {
				from[member] = by
				reached = append(reached, member)
			}
		}
	}
	reach(members, "")
	for i := 0; i < len(reached); i++ {
		if reached[i] == role {
			for at := role; at != ""; at = from[at] {
				chain = append(chain, moorage.NameOf(at))
			}
			slices.Reverse(chain)
			return chain
		}
		reach(s.membersOf(reached[i]), reached[i])
	}
	return nil
}

// chainBelow returns the length of the longest chain of roles that begins with one of members.
// known caches the lengths for roles that were already visited.
func (s *Snapshot) chainBelow(members []string, known map[string]int) (longest int) {
	for _, member := range members {
		if GranteeOf(moorage.NameOf(member)) != IsRole {
			continue
		}
		depth, found := known[member]
		if !found {
			known[member] = 1 // ends the search if records have a cycle, which cannot happen
			depth = 1 + s.chainBelow(s.membersOf(member), known)
			known[member] = depth
		}
		longest = max(longest, depth)
	}
	return longest
}

// chainAbove returns the length of the longest chain of roles above the role called name.
func (s *Snapshot) chainAbove(name string) (longest int) {
	level := []number{s.names.numberOf(name)}
	for longest <= DepthMax {
		var above []number
		for _, each := range level {
			above = append(above, s.names.parents[each]...)
		}
		if len(above) == 0 {
			return longest
		}
		longest++
		slices.Sort(above)
		level = slices.Compact(above)
	}
	return longest
}

// CheckGrants returns a KindIllegalArgument error if record may not be written. A record must not
// have an invalid grantee or owner, or a privilege that cannot be granted on its kind. Only
// containers can be Managed. If there are too many grantees, the error is KindTooLarge.
func CheckGrants(record Grants) error {
	if len(record.Grants) > GranteesMax {
		return moorage.Errorf(moorage.KindTooLarge,
			"%d grantees on one %s, at most %d are allowed: grant to roles instead",
			len(record.Grants), record.Kind, GranteesMax)
	}
	if record.Managed && record.Kind != Warehouse && record.Kind != Namespace {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"A %s cannot be managed: a warehouse or a namespace can", record.Kind)
	}
	if record.Owner != "" {
		if record.Kind == Server {
			return moorage.Errorf(moorage.KindIllegalArgument, "The server has no owner: grant admin on it instead")
		}
		if err := CheckGrantee(moorage.NameOf(record.Owner)); err != nil {
			return moorage.Errorf(moorage.KindIllegalArgument, "Owner: %w", err)
		}
	}
	for _, grant := range record.Grants {
		if err := CheckGrantee(moorage.NameOf(grant.Grantee)); err != nil {
			return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
		}
		if err := CheckGrantable(grant.Privileges, record.Kind); err != nil {
			return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
		}
	}
	return nil
}
