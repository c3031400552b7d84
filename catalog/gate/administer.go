package gate

import "moorage/access"

// The verbs for managing access.
const (
	ListPrincipals  Verb = "list-principals"
	LoadPrincipal   Verb = "load-principal"
	PutPrincipal    Verb = "put-principal"
	DeletePrincipal Verb = "delete-principal"
	CreateKey       Verb = "create-key"
	RotateKey       Verb = "rotate-key"
	WithdrawKey     Verb = "withdraw-key"
	ListRoles       Verb = "list-roles"
	LoadRole        Verb = "load-role"
	PutRole         Verb = "put-role"
	DeleteRole      Verb = "delete-role"
	ChangeMembers   Verb = "change-members"
	ListGrants      Verb = "list-grants"
	ChangeGrants    Verb = "change-grants"
	SetOwner        Verb = "set-owner"
	SetManaged      Verb = "set-managed"
	LoadAccess      Verb = "load-access"
	EnableAccess    Verb = "enable-access"
	ExplainAccess   Verb = "explain-access"
	CheckAccess     Verb = "check-access"
	ExportAccess    Verb = "export-access"
	LoadDecisions   Verb = "load-decisions"
)

// administering returns the rows of the verbs for managing access. The Guard admits most of them:
// grants.Grants checks the required privileges, because it knows the object and the grants.
func administering() []Row {
	reads := func(verb Verb, operation string) Row {
		return Row{Verb: verb, On: access.Server, Reads: true, AskedLater: true, Management: []string{operation}}
	}
	changes := func(verb Verb, operation string) Row {
		return Row{Verb: verb, On: access.Server, Keyed: true, AskedLater: true, Management: []string{operation}}
	}
	atGate := func(row Row) Row {
		row.AskedLater = false
		return row
	}
	return []Row{
		reads(ListPrincipals, "listPrincipals"),
		reads(LoadPrincipal, "loadPrincipal"),
		changes(PutPrincipal, "putPrincipal"),
		changes(DeletePrincipal, "deletePrincipal"),
		changes(CreateKey, "createKey"),
		changes(RotateKey, "rotateKey"),
		changes(WithdrawKey, "withdrawKey"),
		reads(ListRoles, "listRoles"),
		reads(LoadRole, "loadRole"),
		changes(PutRole, "putRole"),
		changes(DeleteRole, "deleteRole"),
		changes(ChangeMembers, "changeMembers"),
		reads(ListGrants, "listGrants"),
		changes(ChangeGrants, "changeGrants"),
		changes(SetOwner, "setOwner"),
		changes(SetManaged, "setManaged"),
		atGate(reads(LoadAccess, "loadAccess")),
		atGate(changes(EnableAccess, "enableAccess")),
		reads(ExplainAccess, "explainAccess"),
		reads(CheckAccess, "checkAccess"),
		reads(ExportAccess, "exportAccess"),
		atGate(reads(LoadDecisions, "loadDecisions")),
	}
}

// administeringAsks returns the privilege checks of the verbs for managing access. A caller with
// admin also passes a check of access.Manage. For a change of owner, the table only requires that
// the object is visible to the caller. Package grants then admits only owners and administrators.
func administeringAsks() map[Verb][]Ask {
	admin := []Ask{{Of: OfServer, For: access.Admin}}
	adminOrSelf := []Ask{{OfServer, access.Admin, IfOther}}
	manage := []Ask{{Of: OfObject, For: access.Manage}}
	question := []Ask{{OfServer, access.Audit, IfOther}, {Of: OfObject, For: access.See}}
	server := []Ask{{Of: OfServer, For: access.See}}
	return map[Verb][]Ask{
		ListPrincipals:  admin,
		LoadPrincipal:   adminOrSelf,
		PutPrincipal:    admin,
		DeletePrincipal: admin,
		CreateKey:       adminOrSelf,
		RotateKey:       adminOrSelf,
		WithdrawKey:     adminOrSelf,
		ListRoles:       admin,
		LoadRole:        admin,
		PutRole:         admin,
		DeleteRole:      admin,
		ChangeMembers:   admin,
		ListGrants:      append(adminOrSelf, manage...), // adminOrSelf: by grantee; manage: by object
		ChangeGrants:    append(manage, Ask{Of: OfObject, When: ForGrants}),
		SetOwner:        {{Of: OfObject, For: access.See}},
		SetManaged:      manage,
		LoadAccess:      server,
		EnableAccess:    server,
		ExplainAccess:   question,
		CheckAccess:     question,
		ExportAccess:    admin,
		LoadDecisions:   {{Of: OfServer, For: access.Audit}}, // decisions name hidden objects
	}
}
